"""Models of the cells: ``P(y = l, s = r | x)``, from any classifier that gives probabilities.

There are two ways: one multinomial model over all (label, group) cells, *joint*; or a model of the
label and, within the rows of each label, one of the group, ``P(y | x) P(s | x, y)``: *factored*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, _num_samples, has_fit_parameter

from fairgrad.aware import SensitiveEncoder, beside
from fairgrad.checks import naming_rows

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


def last_step(estimator: Any) -> Any:
    """An estimator, or the last step of a pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def count_of_trees(estimator: Any) -> str | None:
    """The name of the argument that says how many trees there are; None if there are no trees."""
    if isinstance(last_step(estimator), HistGradientBoostingClassifier):
        return "max_iter"
    return "n_estimators" if hasattr(last_step(estimator), "n_estimators") else None


def cheaper_cells(estimator: Any) -> Any:
    """The estimator for one model of all cells; logistic regression stops a little earlier."""
    last = last_step(estimator)
    if not isinstance(last, LogisticRegression) or last.tol >= TOLERANCE_OF_CELLS:
        return estimator
    return _with(estimator, tol=TOLERANCE_OF_CELLS)


def cheaper_groups(estimator: Any) -> Any:
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


@dataclass(frozen=True, eq=False)
class AttributeRows:
    """The rows of a table by the groups of some of its attributes.

    Attributes:
        groups: of these attributes alone.
        group: (n,) the group of each row.
    """

    groups: Groups
    group: Ints

    @classmethod
    def of(cls, rows: GroupedRows, attributes: Sequence[str]) -> AttributeRows:
        """Of rows with all attributes."""
        return cls(rows.groups.marginal(*attributes), rows.groups.parents(*attributes)[rows.group])


class CellModels:
    """How to fit models of the cells, and what they say of rows.

    Args:
        estimator: of the labels or cells; unfitted, or fitted if `prefit`.
        group_estimator: of the groups within a label; unfitted.
        is_joint: whether one model speaks of all cells.
        prefit: whether the estimator is a fitted model of the label.
    """

    def __init__(
        self, estimator: Any, group_estimator: Any, *, is_joint: bool, prefit: bool
    ) -> None:
        self.estimator = estimator
        self.group_estimator = group_estimator
        self.is_joint = is_joint
        self.prefit = prefit

    def fit(
        self,
        X: Any,
        y: Any,
        label: Ints,
        parts: Sequence[AttributeRows],
        rows: Ints | None,
        arguments: Mapping[str, Any],
    ) -> tuple[Any, list[Any]]:
        """The model of the label (None if joint), and what models each part's groups.

        Args:
            X: features of all rows.
            y: labels as the user has them.
            label: (n,) their indices.
            parts: the groups of each set of attributes.
            rows: which rows to fit to; None for all.
            arguments: of the estimators' fit, for all rows.
        """
        if self.is_joint:
            codes = [label * part.groups.n_groups + part.group for part in parts]
            return None, [fit_rows(self.estimator, X, c, rows, arguments) for c in codes]
        of_label = self.estimator
        if not self.prefit:
            target = label if takes_codes_only(self.estimator) else y
            of_label = fit_rows(self.estimator, X, target, rows, arguments)
        everyone = np.arange(len(label)) if rows is None else rows
        members = [everyone[label[everyone] == own] for own in range(int(label.max()) + 1)]
        return of_label, [
            [self._group_model(X, part.group, own, arguments) for own in members] for part in parts
        ]

    def _group_model(self, X: Any, group: Ints, rows: Ints, arguments: Mapping[str, Any]) -> Any:
        """A model of the groups of some rows, or the number of the only group."""
        present = np.unique(group[rows])
        if len(present) < 2:
            return int(present[0]) if len(present) else 0
        return fit_rows(self.group_estimator, X, group, rows, arguments)


def takes_codes_only(estimator: Any) -> bool:
    """Whether labels must be 0, 1, ...: XGBoost refuses all others."""
    return any(kind.__module__.startswith("xgboost") for kind in type(estimator).__mro__)


class FoldMean(list[Any]):
    """Fitted models of the same target, one per fold, which predict the mean probability.

    A fold in which only one class occurs has the number of that class in place of a model.
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


def fold_mean(models: Sequence[Any]) -> Any:
    """The mean of the folds' models, or of those at each place of lists of models."""
    first = models[0]
    if isinstance(first, list):
        return [fold_mean(own) for own in zip(*models, strict=True)]
    is_same = all(own is first for own in models)  # none, or a model that was fitted before
    is_number = isinstance(first, (int, np.integer)) and all(own == first for own in models)
    return first if is_same or is_number else FoldMean(models)


def fit_rows(
    estimator: Any, X: Any, target: Any, rows: Ints | None, arguments: Mapping[str, Any]
) -> Any:
    """A clone of an estimator, fitted to all rows or some of them; if it refuses X, that is named.

    Args:
        estimator: unfitted.
        X: features.
        target: labels or codes.
        rows: which; None for all.
        arguments: further ones of its fit, such as sample weights of all rows.
    """
    if rows is not None:
        arguments = _check_method_params(X, arguments, indices=rows)
        X, target = _safe_indexing(X, rows), _safe_indexing(target, rows)
    with naming_rows("X"):
        return clone(estimator).fit(X, target, **arguments)


def cell_probabilities(
    X: Any, n_rows: int, n_labels: int, of_label: Any, models: Sequence[Any], sizes: Sequence[int]
) -> list[Floats]:
    """(L, G, n) the probabilities of the cells of each set of attributes.

    Args:
        X: features.
        n_rows: n.
        n_labels: L.
        of_label: a model of the label; None where models are joint.
        models: of each set of attributes, as `CellModels.fit` gives them.
        sizes: G of each.
    """
    if of_label is None:
        return [
            code_probabilities(model, X, n_rows, n_labels * size).reshape(n_labels, size, n_rows)
            for model, size in zip(models, sizes, strict=True)
        ]
    label = class_probabilities(of_label, X)
    found = []
    for own, size in zip(models, sizes, strict=True):
        within = np.stack([code_probabilities(model, X, n_rows, size) for model in own])
        found.append(label[:, None] * within)
    return found


def code_probabilities(model: Any, X: Any, n_rows: int, size: int) -> Floats:
    """(size, n) probabilities of codes, 0 of those that the model has never seen.

    The codes are those of labels, groups or cells; a model that is a number says that one always.
    """
    probability = np.zeros((size, n_rows))
    if isinstance(model, (int, np.integer)):
        probability[model] = 1.0
    else:
        probability[model.classes_] = class_probabilities(model, X)
    return probability


def class_probabilities(model: Any, X: Any) -> Floats:
    """(classes, n) what a fitted estimator says of rows; if it refuses them, X is named."""
    with naming_rows("X"):
        return np.asarray(model.predict_proba(X), dtype=np.float64).T


def given_groups(probability: Floats, group: Ints, share: Floats | None = None) -> Floats:
    """(L, G, n) the probabilities of the cells for those who tell their group.

    ``P(y = l, s = r | x, s)`` is ``P(y = l | x, s)`` in the group s and 0 in all others. Where the
    group is unknown, -1, it stays ``P(y = l, s = r | x)``. Of that a hundredth stays everywhere: if
    all weights of a group vanish, as they may for exact fairness, it breaks the ties, by what x
    says and in the same way on every machine.

    Args:
        probability: (L, G, n) without the group.
        group: (n,) the group of each row, or -1.
        share: (L, n) ``P(y = l | x, s)`` by a model of its own; by default it follows from the
            probabilities.
    """
    own = np.flatnonzero(group >= 0)
    given = probability.copy()
    given[:, :, own] *= TIE_BREAKER
    told = within_groups(probability, group, own) if share is None else share[:, own]
    given[:, group[own], own] += (1.0 - TIE_BREAKER) * told
    return given


def within_groups(probability: Floats, group: Ints, rows: Ints) -> Floats:
    """(L, rows) ``P(y = l | x, s)`` of some rows, whose groups are known, from ``P(y, s | x)``."""
    cells = probability[:, group[rows], rows]
    total = cells.sum(0)
    share = np.full_like(cells, 1.0 / len(cells))  # of a group that is impossible, nothing is known
    np.divide(cells, total, out=share, where=total > 0)
    return share


class AwareLabels:
    """A model of the label that has the sensitive values among its features: ``P(y = l | x, s)``.

    Models of the cells say that, too, but learn each group by its own rows alone. Where groups are
    small, one model of all rows knows more.

    Args:
        estimator: unfitted.
        groups: of the rows of the fit.
        crossed: whether combinations of several attributes have features.

    Attributes:
        encoder: how sensitive values become features.
    """

    def __init__(self, estimator: Any, groups: Groups, *, crossed: bool) -> None:
        self.estimator, self.n_labels = estimator, len(groups.labels)
        self.encoder = SensitiveEncoder.of(groups, crossed=crossed)

    def fit(
        self, X: Any, sensitive: Any, label: Ints, rows: Ints | None, arguments: Mapping[str, Any]
    ) -> Any:
        """A model of the labels' codes, fitted to all rows or some of them."""
        return fit_rows(self.estimator, self.features(X, sensitive), label, rows, arguments)

    def features(self, X: Any, sensitive: Any) -> Any:
        """Features with the encoded values beside."""
        return aware_features(self.encoder, X, sensitive)

    def probabilities(self, model: Any, X: Any, sensitive: Any) -> Floats:
        """(L, n) of a fitted model."""
        return code_probabilities(
            model, self.features(X, sensitive), _num_samples(X), self.n_labels
        )


def aware_features(encoder: SensitiveEncoder, X: Any, sensitive: Any) -> Any:
    """(n, features) with the encoded sensitive values beside."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    return beside(X, encoder.encode(sensitive, _num_samples(X)), encoder.names)


def takes_columns(X: Any) -> bool:
    """Whether features are a table that further columns can be put beside."""
    if hasattr(X, "columns"):
        return hasattr(X, "iloc")  # pandas
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    return len(shape) == 2


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
