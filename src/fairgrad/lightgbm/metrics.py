"""What eval sets are judged by: losses from raw scores, and how fair the predictions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.boosting.gradients import predictions, probabilities
from fairgrad.evaluate import levels_of
from fairgrad.groups import Groups
from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Ints

SYNONYMS = {
    **dict.fromkeys(("logloss", "binary_logloss", "multi_logloss"), "logloss"),
    **dict.fromkeys(("error", "binary_error", "multi_error"), "error"),
    "unfairness": "unfairness",
    "fair_error": "fair_error",
}
"""Metrics computed here, because LightGBM cannot read probabilities off scores of ours."""

RANKING = ("auc", "average_precision", "auc_mu")
"""LightGBM's own metrics that see only the order of the scores."""

NEED_GROUPS = ("unfairness", "fair_error")


def split_metrics(names: Sequence[Any], *, knows_groups: bool) -> tuple[list[str], list[Any]]:
    """Metrics that are computed here, and those left to LightGBM (functions among them).

    Raises:
        ValueError: if a metric is not known, or needs sensitive values that are not given.
    """
    own, others = [], []
    for name in names:
        if callable(name) or name in RANKING:
            others.append(name)
        elif name in SYNONYMS:
            own.append(SYNONYMS[name])
        else:
            raise ValueError(
                f"eval_metric: expected functions or names among {[*SYNONYMS, *RANKING]}, got "
                f"{name!r}."
            )
    lacking = [name for name in own if name in NEED_GROUPS]
    if lacking and not knows_groups:
        raise ValueError(f"eval_metric: {lacking[0]} needs eval_sensitive_features.")
    return list(dict.fromkeys(own)), others


@dataclass(frozen=True, eq=False)
class EvalGroups:
    """Who is who in an eval set, with the frequencies of that set."""

    groups: Groups
    constraints: Constraints
    cell: Ints

    @classmethod
    def of(cls, y: Any, s: Any, measure: Any, epsilon: Any, y_desirable: Any) -> EvalGroups:
        """Of the rows of an eval set."""
        groups = Groups.from_data(y, s)
        constraints = constraints_of(measure, groups, epsilon=epsilon, y_desirable=y_desirable)
        group = groups.group_index(s)
        cell = groups.label_index(y) * groups.n_groups + group if constraints.by_label else group
        return cls(groups, constraints, cell)

    def levels(self, wrong: Any) -> Floats:
        """(J,) levels of fairness, NaN where a group has no rows."""
        mass = np.bincount(self.cell, minlength=self.constraints.C.shape[1])
        errors = np.bincount(self.cell, wrong, minlength=len(mass)) / np.maximum(mass, 1)
        return levels_of(self.constraints, errors).values

    def violation(self, wrong: Any) -> float:
        """Mean over the constraints of what is beyond their bounds."""
        level = self.levels(wrong)
        beyond = np.maximum(level - self.constraints.upper, self.constraints.lower - level)
        return float(np.nanmean(np.maximum(beyond, 0.0)))


class EvalMetric:
    """A metric of raw scores, in the form that LightGBM's estimators take.

    Args:
        name: "logloss", "error", "unfairness" (the mean of ``|F|``) or "fair_error" (the error rate
            plus the mean of what is beyond the bounds).
        groups: of the eval sets with sensitive values, by `key` of their labels.
    """

    def __init__(self, name: str, groups: dict[bytes, EvalGroups]) -> None:
        self.name = name
        self.groups = groups

    def __call__(self, y_true: Any, y_pred: Any, weight: Any) -> list[tuple[str, float, bool]]:
        """Name, value, and that higher is not better; nothing for sets of unknown groups."""
        label = np.asarray(y_true).astype(np.int64)
        wrong = predictions(y_pred) != label
        if self.name not in NEED_GROUPS:
            value = log_loss(y_pred, label) if self.name == "logloss" else wrong
            return [(self.name, float(np.average(value, weights=weight)), False)]
        groups = self.groups.get(key(y_true))
        if groups is None:
            return []
        if self.name == "unfairness":
            return [(self.name, float(np.nanmean(np.abs(groups.levels(wrong)))), False)]
        error = float(np.average(wrong, weights=weight))
        return [(self.name, error + groups.violation(wrong), False)]


def log_loss(scores: Floats, label: Ints) -> Floats:
    """(n,) each row's log loss."""
    p = probabilities(scores)
    hit = np.where(label == 1, p, 1 - p) if p.ndim == 1 else p[np.arange(len(label)), label]
    loss: Floats = -np.log(np.maximum(hit, 1e-15))
    return loss


def key(label: Any) -> bytes:
    """What tells eval sets apart: LightGBM gives a metric their labels, not their names."""
    return np.asarray(label, dtype=np.float32).tobytes()
