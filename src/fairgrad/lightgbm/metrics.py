"""Metrics of eval sets, in the form that LightGBM's estimators take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.boosting.judging import NEED_GROUPS, NO_GROUPS, is_wrong, key, log_loss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.boosting.judging import EvalGroups

SYNONYMS = {
    **dict.fromkeys(("logloss", "binary_logloss", "multi_logloss"), "logloss"),
    **dict.fromkeys(("error", "binary_error", "multi_error"), "error"),
    "unfairness": "unfairness",
    "fair_error": "fair_error",
}
"""Metrics computed here, because LightGBM cannot read probabilities off scores of ours."""

RANKING = ("auc", "average_precision", "auc_mu")
"""LightGBM's own metrics that see only the order of the scores."""


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
        raise ValueError(NO_GROUPS.format(name=lacking[0]))
    return list(dict.fromkeys(own)), others


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
        wrong = is_wrong(y_pred, label)
        if self.name not in NEED_GROUPS:
            value = log_loss(y_pred, label) if self.name == "logloss" else wrong
            return [(self.name, float(np.average(value, weights=weight)), False)]
        groups = self.groups.get(key(y_true))
        return (
            [] if groups is None else [(self.name, groups.metric(self.name, wrong, weight), False)]
        )
