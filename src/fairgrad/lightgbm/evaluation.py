"""Eval sets and metrics of a fair fit, in the form that LightGBM's estimators take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.boosting.judging import eval_groups, label_index, listed
from fairgrad.lightgbm.metrics import EvalMetric, split_metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.lightgbm.classifier import FairGradLGBMClassifier

METRIC_PARAMETERS = ("metric", "metrics", "metric_types")
NO_METRIC = ("", "None", "none", "na", "null", "custom")


Pairs = list[tuple[Any, Any]]


def eval_pairs(eval_set: Any, eval_X: Any, eval_y: Any, classes: NDArray[Any]) -> Pairs:
    """Features and label indices of the eval sets, given as pairs or as features and labels.

    Raises:
        ValueError: if they are given in both ways, or a label is not a known class.
    """
    if eval_set is not None and (eval_X is not None or eval_y is not None):
        raise ValueError("eval_set: not together with eval_X and eval_y; give one or the other.")
    if eval_set is not None:
        pairs = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    else:
        pairs = list(zip(_several(eval_X), _several(eval_y), strict=True))
    return [(X, label_index(y, classes)) for X, y in pairs]


def _several(given: Any) -> tuple[Any, ...]:
    if given is None:
        return ()
    return given if isinstance(given, tuple) else (given,)


def evaluation_of(
    model: FairGradLGBMClassifier,
    classes: NDArray[Any],
    pairs: Pairs,
    eval_sensitive_features: Any,
    eval_metric: Any,
) -> list[Any]:
    """The metrics to pass on to LightGBM: functions of ours and of the user, and rankings.

    Raises:
        ValueError: if a metric is not known, or sensitive values do not fit the eval sets.
    """
    labels = [label for _, label in pairs]
    groups = eval_groups(model, classes, labels, eval_sensitive_features, "LightGBM")
    wanted = listed(eval_metric)
    params = model.get_params()
    for name in METRIC_PARAMETERS:
        wanted += listed(params.get(name))
    if not wanted:
        wanted = ["fair_error" if groups else "logloss"]
    own, others = split_metrics(
        [name for name in wanted if callable(name) or name not in NO_METRIC],
        knows_groups=bool(groups),
    )
    return [EvalMetric(name, groups) for name in own] + others
