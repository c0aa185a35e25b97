"""Scores and labels -> errors, losses, and the gradient of the losses by the scores.

Scores are (S, T, outputs, B): one output is the margin between two labels, several are logits.
Labels are (S, B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def wrong(scores: Tensor, label: Tensor) -> Tensor:
    """(S, T, B) 1 where the predicted label is not the true one, else 0, as the scores' kind.

    A margin of 0 is the first label, as for a softmax.
    """
    if scores.shape[2] > 1:
        return (scores.argmax(2) != label[:, None]).to(scores.dtype)
    positive = torch.gt(scores[:, :, 0], 0, out=torch.empty_like(scores[:, :, 0]))
    return positive.sub_(label[:, None]).abs_()


def residual(scores: Tensor, label: Tensor) -> Tensor:
    """(S, T, outputs, B) the gradient of each row's cross-entropy by its scores.

    Predicted probability less 1 for the true label, less 0 for the others.
    """
    label = label[:, None, None]
    if scores.shape[2] == 1:
        return scores.sigmoid() - label
    index = label.expand(*scores.shape[:2], 1, -1)
    probability = scores.softmax(2)
    return probability.scatter_add_(2, index, probability.new_full((1,), -1.0).expand(index.shape))


def losses(scores: Tensor, label: Tensor) -> Tensor:
    """(S, T, B) each row's cross-entropy."""
    label = label[:, None, None]
    if scores.shape[2] == 1:
        return (functional.softplus(scores) - label * scores)[:, :, 0]
    index = label.expand(*scores.shape[:2], 1, -1)
    return (scores.logsumexp(2, keepdim=True) - scores.gather(2, index))[:, :, 0]
