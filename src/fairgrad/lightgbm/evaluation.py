"""Eval sets and metrics of a fair fit, in the form that LightGBM's estimators take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.lightgbm.inputs import desirable_labels, named_columns
from fairgrad.lightgbm.metrics import EvalGroups, EvalMetric, key, split_metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Ints
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
    return [(X, _label_index(y, classes)) for X, y in pairs]


def _several(given: Any) -> tuple[Any, ...]:
    if given is None:
        return ()
    return given if isinstance(given, tuple) else (given,)


def _label_index(y: Any, classes: NDArray[Any]) -> Ints:
    label = np.asarray(y)
    strangers = np.setdiff1d(label, classes)
    if len(strangers):
        raise ValueError(
            f"eval_set: got labels {strangers.tolist()}, which are not among the classes "
            f"{classes.tolist()}."
        )
    return np.searchsorted(classes, label)


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
    groups = _eval_groups(model, classes, pairs, eval_sensitive_features)
    wanted = _listed(eval_metric)
    params = model.get_params()
    for name in METRIC_PARAMETERS:
        wanted += _listed(params.get(name))
    if not wanted:
        wanted = ["fair_error" if groups else "logloss"]
    own, others = split_metrics(
        [name for name in wanted if callable(name) or name not in NO_METRIC],
        knows_groups=bool(groups),
    )
    return [EvalMetric(name, groups) for name in own] + others


def _listed(metric: Any) -> list[Any]:
    if metric is None:
        return []
    return list(metric) if isinstance(metric, (list, tuple, set)) else [metric]


def _eval_groups(
    model: FairGradLGBMClassifier, classes: NDArray[Any], pairs: Pairs, sensitive: Any
) -> dict[bytes, EvalGroups]:
    """Groups of the eval sets whose sensitive values are given."""
    if sensitive is None:
        return {}
    columns = sensitive if isinstance(sensitive, (list, tuple)) else [sensitive]
    if len(columns) != len(pairs):
        raise ValueError(
            "eval_sensitive_features: expected a list with one entry per eval set "
            f"({len(pairs)}), got {len(columns)}."
        )
    desirable = desirable_labels(model.y_desirable, classes)
    found: dict[bytes, EvalGroups] = {}
    for (_, label), s in zip(pairs, columns, strict=True):
        if s is None:
            continue
        if key(label) in found:
            raise ValueError(
                "eval_set: two sets have the same labels in the same order; LightGBM tells a "
                "metric nothing else, so their sensitive values cannot be told apart."
            )
        named = named_columns(s, len(label), "eval_sensitive_features", "its eval set")
        found[key(label)] = EvalGroups.of(
            classes[label], named, model.fairness_measure, model.epsilon, desirable
        )
    return found
