"""Models of the cells: ``P(y = l, s = r | x)``, from any classifier that gives probabilities.

A model of the label and, within the rows of each label, one of the group: ``P(y | x) P(s | x, y)``.
Models are fitted in folds, so that every row has probabilities from models that have not learnt
from it. New rows get the mean of the folds' models. Only the label is then learnt once more, from
all rows, unless the models are trees, which are more accurate as a mean.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, _num_samples, has_fit_parameter

from fairgrad.aware import SensitiveEncoder, beside
from fairgrad.checks import naming_rows
from fairgrad.progress import ProgressBar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, GroupedRows, Groups, Ints

TIE_BREAKER = 0.01
"""What of the probabilities without s stays in those with s."""

ROUNDS_OF_GROUPS = {"boosting": 4, "forest": 2}
"""By what the trees of the label are divided to have those of the groups within a label."""


def count_of_trees(estimator: Any) -> str | None:
    """The name of the argument with the number of trees; None if there are no trees."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if isinstance(last, HistGradientBoostingClassifier):
        return "max_iter"
    return "n_estimators" if hasattr(last, "n_estimators") else None


def takes_codes_only(estimator: Any) -> bool:
    """Whether labels must be 0, 1, ...: XGBoost refuses all others."""
    return any(kind.__module__.startswith("xgboost") for kind in type(estimator).__mro__)


def fit_arguments(estimator: Any, sample_weight: Any) -> dict[str, Any]:
    """The arguments by which an estimator, or the steps of a pipeline, get sample weights.

    Raises:
        ValueError: if the estimator, or the last step, takes none.
    """
    if sample_weight is None:
        return {}
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    if not has_fit_parameter(steps[-1][1], "sample_weight"):
        raise ValueError(
            f"sample_weight: {type(steps[-1][1]).__name__} takes none; leave the weights out, or "
            "use another estimator."
        )
    return {
        f"{name}__sample_weight" if name else "sample_weight": sample_weight
        for name, step in steps
        if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight")
    }


class FittedCells(NamedTuple):
    """Models fitted to the same rows, and what is needed to ask them.

    Attributes:
        label_model: of the labels.
        cell_models: of each set of attributes, models of the groups within each label.
        aware_model: of the labels' codes, with the sensitive values among its features, or None.
        groups: of each set of attributes.
        encoder: of the sensitive values of an aware model, or None.
    """

    label_model: Any
    cell_models: list[Any]
    aware_model: Any
    groups: list[Groups]
    encoder: SensitiveEncoder | None

    def probabilities(self, X: Any, sensitive: Mapping[str, Any] | None = None) -> list[Floats]:
        """(L, G, n) the probabilities of the cells of each set of attributes.

        Args:
            X: features.
            sensitive: columns of sensitive values, if decisions may look at them.
        """
        label = class_probabilities(self.label_model, X)
        cells = []
        for models, groups in zip(self.cell_models, self.groups, strict=True):
            within = np.stack([class_probabilities(model, X, groups.n_groups) for model in models])
            cells.append(label[:, None] * within)
        if sensitive is None:
            return cells
        told = None
        if self.encoder is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of values never seen, which the groups say, too
                features = beside(X, self.encoder, sensitive)
            told = class_probabilities(self.aware_model, features, len(label))
        conditional = []
        for probability, groups in zip(cells, self.groups, strict=True):
            known = {name: sensitive[name] for name in groups.attributes if name in sensitive}
            group = groups.find_groups(known, "sensitive_features")
            conditional.append(given_groups(probability, group, told))
        return conditional


class CellModels:
    """How to fit models of the cells to some rows.

    Args:
        estimator: of the labels; unfitted, or fitted if `prefit`.
        X: features of all rows.
        y: (n,) labels as the user has them.
        rows: labels and groups of all rows.
        attributes: the sets of attributes whose cells are modelled.
        arguments: of the estimators' fit, for all rows.
        prefit: whether the estimator is a fitted model of the label.
        encoder: how sensitive values become features of an aware model; None for no such model.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        rows: GroupedRows,
        attributes: Sequence[tuple[str, ...]],
        arguments: Mapping[str, Any],
        *,
        prefit: bool,
        encoder: SensitiveEncoder | None,
    ) -> None:
        self.X, self.rows, self.arguments, self.prefit = X, rows, arguments, prefit
        self.attributes, self.encoder = list(attributes), encoder
        merged = [rows.groups.merged(*names) for names in attributes]
        self.groups = [groups for groups, _ in merged]
        self.group = [parents[rows.group] for _, parents in merged]
        self.target = rows.label if takes_codes_only(estimator) else y
        self.of_label, self.of_groups = estimator, _with_fewer_trees(estimator)

    def fit(self, rows: Ints | None = None) -> FittedCells:
        """Models fitted to all rows, or to those at some places."""
        label = self.rows.label
        label_model, aware_model = self._fit_labels(rows)
        everyone = np.arange(len(label)) if rows is None else rows
        within = []
        for group in self.group:
            models = []
            for value in range(len(self.rows.groups.labels)):
                members = everyone[label[everyone] == value]
                if len(np.unique(group[members])) > 1:
                    models.append(self._fit(self.of_groups, self.X, group, members))
                else:
                    models.append(DummyClassifier().fit(group[members, None], group[members]))
            within.append(models)
        return FittedCells(label_model, within, aware_model, self.groups, self.encoder)

    def cross_fit(
        self, fold: Ints, *, aware: bool, shows: bool | None
    ) -> tuple[FittedCells, list[Floats]]:
        """The models of new rows, and what models of the folds say of rows they have not seen.

        Args:
            fold: (n,) the fold of each row.
            aware: whether probabilities are those given the sensitive values.
            shows: whether to show a progress bar, as `ProgressBar` takes it.
        """
        n_labels, n = len(self.rows.groups.labels), len(fold)
        totals = [np.zeros((n_labels, groups.n_groups, n)) for groups in self.groups]
        models = []
        for turn in ProgressBar(int(fold.max()) + 1, enabled=shows, unit="folds"):
            held, training = np.flatnonzero(fold == turn), np.flatnonzero(fold != turn)
            # The only row of a label is in the training rows of every fold: each model of the
            # labels must know them all, and XGBoost refuses labels with a gap.
            is_known = np.isin(self.rows.label[held], self.rows.label[training])
            models.append(self.fit(np.concatenate([training, held[~is_known]])))
            values = self.rows.take(held).sensitive_values() if aware else None
            cells = models[-1].probabilities(_safe_indexing(self.X, held), values)
            for total, held_out in zip(totals, cells, strict=True):
                total[:, :, held] = held_out
        within = [  # for each set of attributes and each label
            [FoldMean(of_label) for of_label in zip(*of_attributes, strict=True)]
            for of_attributes in zip(*(fold.cell_models for fold in models), strict=True)
        ]
        if self.prefit or count_of_trees(self.of_label) is None:
            label, aware_model = self._fit_labels(None)
        else:
            label = FoldMean(fold.label_model for fold in models)
            aware_model = None
            if self.encoder is not None:
                aware_model = FoldMean(fold.aware_model for fold in models)
        return FittedCells(label, within, aware_model, self.groups, self.encoder), totals

    def _fit_labels(self, rows: Ints | None) -> tuple[Any, Any]:
        """The model of the labels, and the aware one or None."""
        label_model, aware_model = self.of_label, None
        if not self.prefit:
            label_model = self._fit(self.of_label, self.X, self.target, rows)
        if self.encoder is not None:
            features = beside(self.X, self.encoder, self.rows.sensitive_values())
            aware_model = self._fit(self.of_label, features, self.rows.label, rows)
        return label_model, aware_model

    def _fit(self, estimator: Any, X: Any, target: Any, rows: Ints | None) -> Any:
        """A clone, fitted to all rows or some of them; an error about X names it."""
        arguments = self.arguments
        if rows is not None:
            arguments = _check_method_params(X, arguments, indices=rows)
            X, target = _safe_indexing(X, rows), _safe_indexing(target, rows)
        with naming_rows("X"):
            return clone(estimator).fit(X, target, **arguments)


def _with_fewer_trees(estimator: Any) -> Any:
    """The estimator for the groups within a label, for which fewer trees are enough."""
    argument = count_of_trees(estimator)
    is_pipeline = isinstance(estimator, Pipeline)
    last = estimator[-1] if is_pipeline else estimator
    trees = None if argument is None else getattr(last, argument)
    if not isinstance(trees, (int, np.integer)):
        return estimator
    kind = "boosting" if hasattr(last, "learning_rate") else "forest"
    name = f"{estimator.steps[-1][0]}__{argument}" if is_pipeline else argument
    return clone(estimator).set_params(**{str(name): max(1, int(trees) // ROUNDS_OF_GROUPS[kind])})


class FoldMean(list[Any]):
    """Fitted models of the same target, one per fold, which predict the mean probability."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes that any of the models knows."""
        return np.unique(np.concatenate([model.classes_ for model in self]))

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes) the mean over the models."""
        classes = self.classes_
        mean = np.zeros((_num_samples(X), len(classes)))
        for model in self:
            mean[:, np.searchsorted(classes, model.classes_)] += model.predict_proba(X)
        return mean / len(self)


def class_probabilities(model: Any, X: Any, n_codes: int | None = None) -> Floats:
    """(classes, n) what a fitted estimator says of rows; if it refuses them, X is named.

    A model of codes, of which there are `n_codes`, gives 0 for those that it has never seen.
    """
    with naming_rows("X"):
        known = np.asarray(model.predict_proba(X), dtype=np.float64).T
    if n_codes is None:
        return known
    probability = np.zeros((n_codes, known.shape[1]))
    probability[model.classes_] = known
    return probability


def given_groups(probability: Floats, group: Ints, told: Floats | None = None) -> Floats:
    """(L, G, n) the probabilities of the cells for those who tell their group.

    ``P(y = l, s = r | x, s)`` is ``P(y = l | x, s)`` in the group s and 0 in all others. Where the
    group is unknown, -1, it stays ``P(y = l, s = r | x)``. Of that a hundredth stays everywhere: if
    all weights of a group vanish, as they may for exact fairness, it breaks the ties, by what x
    says and in the same way on every machine.

    Args:
        probability: (L, G, n) without the group.
        group: (n,) the group of each row, or -1.
        told: (L, n) ``P(y = l | x, s)`` by another model; by default it follows from the
            probabilities.
    """
    known = np.flatnonzero(group >= 0)
    conditional = probability.copy()
    conditional[:, :, known] *= TIE_BREAKER
    if told is None:
        cells = probability[:, group[known], known]
        total = cells.sum(0)
        share = np.full_like(cells, 1.0 / len(cells))  # of an impossible group nothing is known
        np.divide(cells, total, out=share, where=total > 0)
    else:
        share = told[:, known]
    conditional[:, group[known], known] += (1.0 - TIE_BREAKER) * share
    return conditional
