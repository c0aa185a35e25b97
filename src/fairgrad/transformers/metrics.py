"""Accuracy and unfairness of an evaluation, beside the user's own metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import EvalPrediction

from fairgrad.columns import UNKNOWN
from fairgrad.evaluate import fairness_levels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fairgrad.groups import Groups, Ints
    from fairgrad.torch import FairLoss


@dataclass(frozen=True, eq=False)
class FairMetrics:
    """``compute_metrics`` of a trainer whose labels are followed by the sensitive columns.

    Attributes:
        criterion: the loss, which knows the measure and how to read predictions.
        own: the user's function, which sees the labels alone; its values take precedence.
    """

    criterion: FairLoss
    own: Callable[[EvalPrediction], dict[str, Any]] | None = None

    def __call__(self, prediction: EvalPrediction) -> dict[str, Any]:
        """The metrics of gathered predictions."""
        labels, *columns = prediction.label_ids
        s = np.column_stack(columns) if len(columns) > 1 else np.asarray(columns[0])
        metrics: dict[str, Any] = measured(self.criterion, prediction.predictions, labels, s)
        if self.own is None:
            return metrics
        plain = EvalPrediction(
            predictions=prediction.predictions,
            label_ids=labels,
            inputs=prediction.inputs,
            losses=prediction.losses,
        )
        return {**metrics, **self.own(plain)}


def measured(criterion: FairLoss, logits: Any, labels: Any, s: Ints) -> dict[str, float]:
    """Accuracy, and mean |F| by the measure of the loss with the frequencies of these rows.

    There is no unfairness where nobody's sensitive value is known.
    """
    predicted = criterion.reading.predict(torch.as_tensor(logits)).reshape(-1).numpy()
    labels = np.asarray(labels).reshape(-1)
    keep = labels != criterion.ignore_index
    predicted, labels, s = predicted[keep].astype(labels.dtype), labels[keep], s[keep]
    metrics = {"accuracy": float((predicted == labels).mean())}
    if (s != UNKNOWN).any():
        levels = fairness_levels(
            labels,
            predicted,
            attributes_of(criterion.groups, s),
            criterion.fairness_measure,
            y_desirable=criterion.y_desirable,
        )
        metrics["unfairness"] = levels.unfairness
    return metrics


def attributes_of(groups: Groups, s: Ints) -> dict[str, NDArray[Any]]:
    """Named sensitive columns of rows that are given by the integers the losses take.

    Example:
        >>> from fairgrad.groups import Groups
        >>> groups = Groups.from_data([0, 1], {"sex": ["F", "M"]})
        >>> attributes_of(groups, np.array([1, 0, -1]))
        {'sex': array(['M', 'F', None], dtype=object)}
    """
    if groups.takes_integers:
        columns = s.reshape(len(s), -1)
        return {name: columns[:, a] for a, name in enumerate(groups.attributes)}
    return {
        name: np.append(groups.column(a), [None])[s.reshape(-1)]
        for a, name in enumerate(groups.attributes)
    }
