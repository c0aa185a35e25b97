"""What trees are shown: features with encoded sensitive values; eval sets and how fair they are."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.aware import beside
from fairgrad.columns import sensitive_columns
from fairgrad.evaluate import cell_rates, levels_of, unfairness
from fairgrad.groups import group_rows
from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairgrad.aware import SensitiveEncoder
    from fairgrad.boosting.objective import BoostingObjective
    from fairgrad.constraints import Constraints
    from fairgrad.groups import GroupedRows, Ints

FAIRNESS_METRICS = ("unfairness", "fair_error")
"""Metrics of eval sets with sensitive values: the mean of ``|F|`` (for a measure with one bound
only, of its violations), and the error rate plus the mean violation of the bounds."""


class EvalSets:
    """All eval sets of a fair fit. Those with sensitive values are found by their labels.

    Labels are all that the boosting libraries tell a metric about the set it is called for.

    Args:
        model: the classifier: its epsilon and desirable labels.
        objective: of the fit: its groups and its measure.
        labels: (n,) labels of each eval set.
        sensitive_features: of each eval set, or None; a list unless there is one set only.

    Attributes:
        label: (n,) of each eval set, as indices of the training rows' labels.

    Raises:
        ValueError: if a label is unknown, the sensitive values do not fit, or two sets with
            sensitive values have the same labels.
    """

    def __init__(
        self,
        model: Any,
        objective: BoostingObjective,
        labels: Iterable[Any],
        sensitive_features: Any,
    ) -> None:
        labels, groups = list(labels), objective.groups
        try:
            self.label: list[Ints] = [groups.label_index(y) for y in labels]
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None
        self._model, self._measure = model, objective.measure
        self._rows: dict[bytes, GroupedRows] = {}
        self._judged: dict[bytes, tuple[GroupedRows, Constraints]] = {}
        if sensitive_features is None:
            return
        is_list = isinstance(sensitive_features, (list, tuple))
        columns = sensitive_features if is_list else [sensitive_features]
        if len(columns) != len(labels):
            raise ValueError(
                "eval_sensitive_features: expected a list with one entry per eval set "
                f"({len(labels)}), got {len(columns)}."
            )
        for y, label, s in zip(labels, self.label, columns, strict=True):
            if s is None:
                continue
            if _key(label) in self._rows:
                raise ValueError(
                    "eval_set: two sets have the same labels in the same order; a metric is told "
                    "nothing else, so their sensitive values cannot be told apart."
                )
            named = sensitive_columns(s, len(label), "eval_sensitive_features", "its eval set")
            self._rows[_key(label)] = group_rows(y, named, labels=groups.labels)

    def __bool__(self) -> bool:
        """Whether any set has sensitive values."""
        return bool(self._rows)

    def fairness(self, label: Ints, predicted: Ints, weight: Any) -> dict[str, float]:
        """`FAIRNESS_METRICS` of the set with these labels; none if its groups are unknown.

        Args:
            label: (n,) indices of the labels.
            predicted: (n,) indices of the predicted labels.
            weight: (n,) weights of the rows, the same in every round, or None.
        """
        key = _key(label)
        if key not in self._rows:
            return {}
        if key not in self._judged:
            self._judged[key] = self._weigh(self._rows[key], weight)
        rows, constraints = self._judged[key]
        levels = levels_of(constraints, cell_rates(constraints, rows, predicted))
        beyond = np.maximum(levels.values - constraints.upper, constraints.lower - levels.values)
        error = float(np.average(predicted != label, weights=rows.weight))
        fair_error = error + float(unfairness(np.maximum(beyond, 0.0)))
        return dict(zip(FAIRNESS_METRICS, (levels.unfairness, fair_error), strict=True))

    def _weigh(self, rows: GroupedRows, weight: Any) -> tuple[GroupedRows, Constraints]:
        """The rows with their weights, and the constraints with the frequencies these give."""
        if weight is not None:
            weighted = replace(rows, weight=np.asarray(weight, dtype=np.float64))
            rows = weighted.take(slice(None))
        model = self._model
        constraints = constraints_of(
            self._measure,
            rows.groups,
            epsilon=model.epsilon,
            y_desirable=model.y_desirable,
        )
        return rows, constraints

    def require(self, metrics: Iterable[str]) -> None:
        """Refuses metrics that need sensitive values if no set has any."""
        lacking = [name for name in metrics if name in FAIRNESS_METRICS]
        if lacking and not self:
            raise ValueError(f"eval_metric: {lacking[0]} needs eval_sensitive_features.")


def column_names(encoder: SensitiveEncoder) -> list[str]:
    """Names of the encoded values in a data frame, without signs that the libraries refuse."""
    names = [re.sub(r"[^\w=?. -]", "_", name) for name in encoder.names]
    return [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]


def as_table(X: Any) -> Any:
    """Features that have a shape; lists become an array.

    Raises:
        ValueError: if they are no table.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2 or X.shape[1] == 0:
        raise ValueError(f"X: expected a table with a column or more, got shape {tuple(X.shape)}.")
    return X


def fitted_features(encoder: SensitiveEncoder | None, X: Any, values: Any) -> Any:
    """Features as the trees get them: with the encoded values, None for unknown, if aware."""
    if encoder is None:
        return X
    X = as_table(X)
    return beside(X, encoder.encode(values, X.shape[0]), column_names(encoder))


def eval_sets(
    encoder: SensitiveEncoder | None, features: list[Any], sensitive_features: Any
) -> list[Any]:
    """Features of the eval sets as the trees get them; values that are not given are unknown."""
    if encoder is None:
        return features
    is_list = isinstance(sensitive_features, (list, tuple))
    values = list(sensitive_features) if is_list else [sensitive_features] * len(features)
    values += [None] * (len(features) - len(values))  # too few are refused elsewhere
    return [fitted_features(encoder, X, s) for X, s in zip(features, values, strict=False)]


def list_metrics(metric: Any) -> list[Any]:
    """No metric, one or several, as a list."""
    if metric is None:
        return []
    return list(metric) if isinstance(metric, (list, tuple, set)) else [metric]


def _key(label: Any) -> bytes:
    return np.asarray(label, dtype=np.float32).tobytes()
