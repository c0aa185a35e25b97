"""What eval sets are judged by: losses from raw scores, and how fair the predictions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.boosting.gradients import predictions, probabilities
from fairgrad.boosting.inputs import desirable_labels, named_columns
from fairgrad.evaluate import levels_of
from fairgrad.groups import Groups
from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Ints

NEED_GROUPS = ("unfairness", "fair_error")
"""Metrics of eval sets whose sensitive values are known."""

NO_GROUPS = "eval_metric: {name} needs eval_sensitive_features."


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

    def unfairness(self, wrong: Any) -> float:
        """The mean of ``|F|``."""
        return float(np.nanmean(np.abs(self.levels(wrong))))

    def violation(self, wrong: Any) -> float:
        """Mean over the constraints of what is beyond their bounds."""
        level = self.levels(wrong)
        beyond = np.maximum(level - self.constraints.upper, self.constraints.lower - level)
        return float(np.nanmean(np.maximum(beyond, 0.0)))

    def metric(self, name: str, wrong: Any, weight: Any) -> float:
        """The unfairness, or the "fair_error": error rate plus mean of what is beyond bounds."""
        if name == "unfairness":
            return self.unfairness(wrong)
        return float(np.average(wrong, weights=weight)) + self.violation(wrong)


def eval_groups(
    model: Any, classes: NDArray[Any], labels: Sequence[Ints], sensitive: Any, library: str
) -> dict[bytes, EvalGroups]:
    """Groups of the eval sets whose sensitive values are given, by `key` of their labels.

    Args:
        model: the classifier: its measure, epsilon and desirable labels.
        classes: its labels.
        labels: of each eval set, as indices of the classes.
        sensitive: of each eval set, or None; a list unless there is one set only.
        library: whose way it is to tell a metric nothing but labels.

    Raises:
        ValueError: if the sensitive values do not fit, or two sets have the same labels.
    """
    if sensitive is None:
        return {}
    columns = sensitive if isinstance(sensitive, (list, tuple)) else [sensitive]
    if len(columns) != len(labels):
        raise ValueError(
            "eval_sensitive_features: expected a list with one entry per eval set "
            f"({len(labels)}), got {len(columns)}."
        )
    desirable = desirable_labels(model.y_desirable, classes)
    found: dict[bytes, EvalGroups] = {}
    for label, s in zip(labels, columns, strict=True):
        if s is None:
            continue
        if key(label) in found:
            raise ValueError(
                f"eval_set: two sets have the same labels in the same order; {library} tells a "
                "metric nothing else, so their sensitive values cannot be told apart."
            )
        named = named_columns(s, len(label), "eval_sensitive_features", "its eval set")
        found[key(label)] = EvalGroups.of(
            classes[label], named, model.fairness_measure, model.epsilon, desirable
        )
    return found


def label_index(y: Any, classes: NDArray[Any]) -> Ints:
    """(n,) the indices of the labels of an eval set.

    Raises:
        ValueError: if a label is not a known class.
    """
    label = np.asarray(y)
    strangers = np.setdiff1d(label, classes)
    if len(strangers):
        raise ValueError(
            f"eval_set: got labels {strangers.tolist()}, which are not among the classes "
            f"{classes.tolist()}."
        )
    return np.searchsorted(classes, label)


def listed(metric: Any) -> list[Any]:
    """One metric or several as a list."""
    if metric is None:
        return []
    return list(metric) if isinstance(metric, (list, tuple, set)) else [metric]


def is_wrong(scores: Floats, label: Ints) -> NDArray[np.bool_]:
    """(n,) whether the scores speak for another class."""
    found: NDArray[np.bool_] = predictions(scores) != label
    return found


def log_loss(scores: Floats, label: Ints) -> Floats:
    """(n,) each row's log loss."""
    p = probabilities(scores)
    hit = np.where(label == 1, p, 1 - p) if p.ndim == 1 else p[np.arange(len(label)), label]
    loss: Floats = -np.log(np.maximum(hit, 1e-15))
    return loss


def key(label: Any) -> bytes:
    """What tells eval sets apart: a metric is given their labels, not their names."""
    return np.asarray(label, dtype=np.float32).tobytes()
