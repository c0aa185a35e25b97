"""Models of the cells: ``P(y = l, s = r | x)``, from any classifier that gives probabilities.

There are two ways: one multinomial model over all (label, group) cells, *joint*; or a model of the
label and, within the rows of each label, one of the group, ``P(y | x) P(s | x, y)``: *factored*.
Models may be fitted in folds, so that every row has probabilities from models that have not learnt
from it. The mean of the folds' models is then the model of new rows.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
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

TOLERANCE_OF_CELLS = 1e-3
"""At which a logistic regression of the cells stops: it costs half as much as scikit-learn's 1e-4,
and its decisions are as accurate and as fair on rows that it has not seen."""

ROUNDS_OF_GROUPS = {"boosting": 4, "forest": 2}
"""By what the trees of the label are divided to have those of the groups within a label."""

LEAST = 1e-6
"""Probabilities below say how sure a model is, not how much it knows."""


def last_step(estimator: Any) -> Any:
    """An estimator, or the last step of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def count_of_trees(estimator: Any) -> str | None:
    """The name of the argument that says how many trees there are; None if there are no trees."""
    if isinstance(last_step(estimator), HistGradientBoostingClassifier):
        return "max_iter"
    return "n_estimators" if hasattr(last_step(estimator), "n_estimators") else None


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
    """Models fitted to the same rows.

    Attributes:
        label_model: of the labels; None if the models of the cells are joint.
        cell_models: of each set of attributes one of the cells, or a list of models of the groups
            within each label; a number stands for the only group.
        aware_model: of the labels' codes, with the sensitive values among its features; None if
            there is none.
    """

    label_model: Any
    cell_models: list[Any]
    aware_model: Any = None


class CellModels:
    """How to fit models of the cells to some rows.

    Args:
        estimator: of the labels or cells; unfitted, or fitted if `prefit`.
        X: features of all rows.
        y: (n,) labels as the user has them.
        rows: labels and groups of all rows.
        attributes: the sets of attributes whose cells are modelled.
        arguments: of the estimators' fit, for all rows.
        is_joint: whether one model speaks of all cells.
        prefit: whether the estimator is a fitted model of the label.
        is_cheaper: whether models of the cells may cost less than the estimator itself.
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
        is_joint: bool,
        prefit: bool,
        is_cheaper: bool,
        encoder: SensitiveEncoder | None,
    ) -> None:
        self.X, self.rows, self.arguments, self.prefit = X, rows, arguments, prefit
        self.attributes, self.is_joint, self.encoder = list(attributes), is_joint, encoder
        self.groups = [rows.groups.marginal(*names) for names in attributes]
        self.group = [rows.groups.parents(*names)[rows.group] for names in attributes]
        self.target = rows.label if takes_codes_only(estimator) else y
        self.of_aware = self.of_label = self.of_groups = estimator
        if is_cheaper:
            self.of_label = _cheaper_cells(estimator) if is_joint else estimator
            self.of_groups = _cheaper_groups(estimator)

    def fit(self, rows: Ints | None = None) -> FittedCells:
        """Models fitted to all rows, or to those at some places."""
        label = self.rows.label
        aware_model = None
        if self.encoder is not None:
            features = aware_features(self.encoder, self.X, sensitive_values(self.rows))
            aware_model = self._fit(self.of_aware, features, label, rows)
        if self.is_joint:
            pairs = zip(self.groups, self.group, strict=True)
            codes = [label * groups.n_groups + group for groups, group in pairs]
            joint = [self._fit(self.of_label, self.X, code, rows) for code in codes]
            return FittedCells(None, joint, aware_model)
        of_label = self.of_label
        if not self.prefit:
            of_label = self._fit(self.of_label, self.X, self.target, rows)
        everyone = np.arange(len(label)) if rows is None else rows
        members = [everyone[label[everyone] == one] for one in range(int(label.max()) + 1)]
        within = [[self._group_model(group, one) for one in members] for group in self.group]
        return FittedCells(of_label, within, aware_model)

    def cross_fit(
        self, fold: Ints, shows: bool | None
    ) -> tuple[FittedCells, list[Floats], Floats | None]:
        """The mean of models of the folds, and what they say of the rows they have not seen.

        Args:
            fold: (n,) the fold of each row.
            shows: whether to show a progress bar, as `ProgressBar` takes it.

        Returns:
            The mean; of each set of attributes (L, G, n) the probabilities of the cells; and those
            of the labels by the aware models, (L, n), if there are any.
        """
        n_labels, n = len(self.rows.groups.labels), len(fold)
        totals = [np.zeros((n_labels, groups.n_groups, n)) for groups in self.groups]
        told = None if self.encoder is None else np.zeros((n_labels, n))
        models = []
        for turn in ProgressBar(int(fold.max()) + 1, enabled=shows, unit="folds"):
            held = np.flatnonzero(fold == turn)
            models.append(self.fit(np.flatnonzero(fold != turn)))
            X = _safe_indexing(self.X, held)
            of_cells, of_labels = self.probabilities(models[-1], X, self.rows.take(held))
            for whole, piece in zip(totals, of_cells, strict=True):
                whole[:, :, held] = piece
            if told is not None:
                told[:, held] = of_labels
        mean = FittedCells(*(_fold_mean(turn) for turn in zip(*models, strict=True)))
        return mean, totals, told

    def probabilities(
        self, fitted: FittedCells, X: Any, rows: GroupedRows
    ) -> tuple[list[Floats], Floats | None]:
        """(L, G, n) of the cells of each set of attributes; (L, n) of the labels, if aware."""
        n_labels = len(self.rows.groups.labels)
        of_cells = cell_probabilities(fitted, X, n_labels, self.groups)
        if self.encoder is None:
            return of_cells, None
        values = sensitive_values(rows)
        return of_cells, aware_probabilities(fitted.aware_model, self.encoder, X, values, n_labels)

    def _group_model(self, group: Ints, rows: Ints) -> Any:
        """A model of the groups of some rows, or the number of the only group."""
        present = np.unique(group[rows])
        if len(present) < 2:
            return int(present[0]) if len(present) else 0
        return self._fit(self.of_groups, self.X, group, rows)

    def _fit(self, estimator: Any, X: Any, target: Any, rows: Ints | None) -> Any:
        """A clone, fitted to all rows or some of them; an error about X names it."""
        arguments = self.arguments
        if rows is not None:
            arguments = _check_method_params(X, arguments, indices=rows)
            X, target = _safe_indexing(X, rows), _safe_indexing(target, rows)
        with naming_rows("X"):
            return clone(estimator).fit(X, target, **arguments)


def _cheaper_cells(estimator: Any) -> Any:
    """The estimator for one model of all cells; logistic regression stops a little earlier."""
    last = last_step(estimator)
    if not isinstance(last, LogisticRegression) or last.tol >= TOLERANCE_OF_CELLS:
        return estimator
    return _with(estimator, tol=TOLERANCE_OF_CELLS)


def _cheaper_groups(estimator: Any) -> Any:
    """The estimator for the groups within a label; of trees there are fewer."""
    argument = count_of_trees(estimator)
    trees = None if argument is None else getattr(last_step(estimator), argument)
    if argument is None or not isinstance(trees, (int, np.integer)):
        return estimator
    kind = "boosting" if hasattr(last_step(estimator), "learning_rate") else "forest"
    return _with(estimator, **{argument: max(1, int(trees) // ROUNDS_OF_GROUPS[kind])})


def _with(estimator: Any, **settings: Any) -> Any:
    """A clone, of which the last step has other settings."""
    prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    named = {f"{prefix}{name}": value for name, value in settings.items()}
    return clone(estimator).set_params(**named)


class FoldMean(list[Any]):
    """Fitted models of the same target, one per fold, which predict the mean probability.

    A fold in which only one class occurs has the number of that class instead of a model.
    """

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes that any of the models knows."""
        return np.unique(np.concatenate([np.atleast_1d(_classes(model)) for model in self]))

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes) the mean over the models."""
        classes = self.classes_
        mean = np.zeros((_num_samples(X), len(classes)))
        for model in self:
            is_number = isinstance(model, (int, np.integer))
            place = np.searchsorted(classes, _classes(model))
            mean[:, place] += (1.0 if is_number else model.predict_proba(X)) / len(self)
        return mean


def _classes(model: Any) -> Any:
    return model if isinstance(model, (int, np.integer)) else model.classes_


def _fold_mean(models: Sequence[Any]) -> Any:
    """The mean of the folds' models, or of those at each place of lists of models."""
    first = models[0]
    if isinstance(first, list):
        return [_fold_mean(model) for model in zip(*models, strict=True)]
    is_same = all(model is first for model in models)  # none, or a model that was fitted before
    is_number = isinstance(first, (int, np.integer)) and all(model == first for model in models)
    return first if is_same or is_number else FoldMean(models)


def cell_probabilities(
    fitted: FittedCells, X: Any, n_labels: int, groups: Sequence[Groups]
) -> list[Floats]:
    """(L, G, n) the probabilities of the cells of each set of attributes.

    Args:
        fitted: the models.
        X: features.
        n_labels: L.
        groups: of each set of attributes.
    """
    n_rows = _num_samples(X)
    if fitted.label_model is None:
        return [
            _code_probabilities(model, X, n_labels * grouped.n_groups).reshape(n_labels, -1, n_rows)
            for model, grouped in zip(fitted.cell_models, groups, strict=True)
        ]
    label = class_probabilities(fitted.label_model, X)
    probabilities = []
    for models, grouped in zip(fitted.cell_models, groups, strict=True):
        within = np.stack([_code_probabilities(model, X, grouped.n_groups) for model in models])
        probabilities.append(label[:, None] * within)
    return probabilities


def _code_probabilities(model: Any, X: Any, size: int) -> Floats:
    """(size, n) probabilities of codes, 0 of those that the model has never seen.

    The codes are those of labels, groups or cells; a model that is a number says that one always.
    """
    probability = np.zeros((size, _num_samples(X)))
    if isinstance(model, (int, np.integer)):
        probability[model] = 1.0
    else:
        probability[model.classes_] = class_probabilities(model, X)
    return probability


def class_probabilities(model: Any, X: Any) -> Floats:
    """(classes, n) what a fitted estimator says of rows; if it refuses them, X is named."""
    with naming_rows("X"):
        return np.asarray(model.predict_proba(X), dtype=np.float64).T


def sensitive_values(rows: GroupedRows) -> dict[str, Any]:
    """The sensitive values of rows, by attribute."""
    groups = rows.groups
    return {name: groups.column(a)[rows.group] for a, name in enumerate(groups.attributes)}


def given_groups(probability: Floats, group: Ints, told: Floats | None = None) -> Floats:
    """(L, G, n) the probabilities of the cells for those who tell their group.

    ``P(y = l, s = r | x, s)`` is ``P(y = l | x, s)`` in the group s and 0 in all others. Where the
    group is unknown, -1, it stays ``P(y = l, s = r | x)``. Of that a hundredth stays everywhere: if
    all weights of a group vanish, as they may for exact fairness, it breaks the ties, by what x
    says and in the same way on every machine.

    Args:
        probability: (L, G, n) without the group.
        group: (n,) the group of each row, or -1.
        told: (L, n) ``P(y = l | x, s)`` by a model of its own; by default it follows from the
            probabilities.
    """
    known = np.flatnonzero(group >= 0)
    conditional = probability.copy()
    conditional[:, :, known] *= TIE_BREAKER
    share = _within_groups(probability, group, known) if told is None else told[:, known]
    conditional[:, group[known], known] += (1.0 - TIE_BREAKER) * share
    return conditional


def _within_groups(probability: Floats, group: Ints, rows: Ints) -> Floats:
    """(L, rows) ``P(y = l | x, s)`` of some rows, whose groups are known, from ``P(y, s | x)``."""
    cells = probability[:, group[rows], rows]
    total = cells.sum(0)
    share = np.full_like(cells, 1.0 / len(cells))  # of a group that is impossible, nothing is known
    np.divide(cells, total, out=share, where=total > 0)
    return share


def foresees_better(
    told: Floats, of_cells: Sequence[Floats], groups: Sequence[Ints], rows: GroupedRows
) -> bool:
    """Whether ``P(y | x, s)``, (L, n), has a smaller log loss than the models of the cells.

    Models of the cells learn each group by its own rows alone. Where groups are small, one model of
    all rows knows more. Both are compared on rows of known groups that neither has learnt from.
    """
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    better = 0.0
    for probability, group in zip(of_cells, groups, strict=True):
        known = np.flatnonzero(group >= 0)
        label = rows.label[known]
        within = _within_groups(probability, group, known)[label, np.arange(len(known))]
        ratio = np.maximum(told[label, known], LEAST) / np.maximum(within, LEAST)
        better += float(weight[known] @ np.log(ratio))
    return better > 0


def aware_features(encoder: SensitiveEncoder, X: Any, sensitive: Any) -> Any:
    """(n, features) with the encoded sensitive values beside."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    return beside(X, encoder.encode(sensitive, _num_samples(X)), encoder.names)


def aware_probabilities(model: Any, encoder: Any, X: Any, sensitive: Any, n_labels: int) -> Floats:
    """(L, n) the probabilities of the labels, by a model that sees sensitive values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of values never seen, which the groups say, too
        features = aware_features(encoder, X, sensitive)
    return _code_probabilities(model, features, n_labels)
