"""Metrics of the eval sets of a fair fit, in the form that `xgboost.train` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.boosting.judging import (
    NEED_GROUPS,
    NO_GROUPS,
    eval_groups,
    is_wrong,
    key,
    label_index,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.boosting.judging import EvalGroups
    from fairgrad.xgboost.classifier import FairGradXGBClassifier


class EvalMetrics:
    """Metrics that see who is who, of raw scores and a matrix, one after the other.

    XGBoost computes all others itself: it is told that the scores are those of its log loss.

    Args:
        names: among "unfairness" (the mean of ``|F|``) and "fair_error" (the error rate plus the
            mean of what is beyond the bounds).
        groups: of the eval sets with sensitive values, by `key` of their labels.
    """

    def __init__(self, names: Sequence[str], groups: dict[bytes, EvalGroups]) -> None:
        self.names = tuple(names)
        self.groups = groups

    def __call__(self, scores: Any, matrix: Any) -> list[tuple[str, float]]:
        """Names and values; nothing for sets of unknown groups."""
        label = matrix.get_label()
        groups = self.groups.get(key(label))
        if groups is None:
            return []
        weight = matrix.get_weight()
        wrong = is_wrong(np.asarray(scores), label.astype(np.int64))
        shares = weight if len(weight) else None
        return [(name, groups.metric(name, wrong, shares)) for name in self.names]


def evaluation_of(
    model: FairGradXGBClassifier,
    classes: NDArray[Any],
    eval_set: Sequence[tuple[Any, Any]] | None,
    eval_sensitive_features: Any,
) -> tuple[list[Any], EvalMetrics | None]:
    """The metrics left to XGBoost (names, and at most one function), and those of ours.

    With sensitive values, and no metric asked for, it is "fair_error": the last metric of the last
    set is the one that early stopping follows.

    Raises:
        ValueError: if a metric needs sensitive values, or these do not fit the eval sets.
    """
    labels = [label_index(y, classes) for _, y in eval_set or ()]
    groups = eval_groups(model, classes, labels, eval_sensitive_features, "XGBoost")
    wanted = listed(model.eval_metric)
    if groups and not wanted:
        wanted = ["fair_error"]
    own = [name for name in wanted if name in NEED_GROUPS]
    if own and not groups:
        raise ValueError(NO_GROUPS.format(name=own[0]))
    others = [name for name in wanted if name not in NEED_GROUPS]
    if own and any(callable(one) for one in others):
        raise ValueError(
            f"eval_metric: XGBoost takes one function only; not one of yours and {own[0]!r}."
        )
    return others, EvalMetrics(own, groups) if own else None
