"""Scores and labels -> errors, losses, and the gradient of the losses by the scores.

Scores are (S, T, outputs, B): one output is the margin between two labels, several are logits.
Labels are (S, B).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def wrong(scores: Tensor, label: Tensor) -> Tensor:
    """(S, T, B) whether the predicted label is not the true one."""
    return predicted(scores) != label[:, None]


def predicted(scores: Tensor) -> Tensor:
    """(S, T, B) predicted label indices; a margin of 0 is the first label, as for a softmax."""
    return scores[:, :, 0] > 0 if scores.shape[2] == 1 else scores.argmax(2)


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
        return functional.softplus(torch.where(label > 0, -scores, scores))[:, :, 0]
    index = label.expand(*scores.shape[:2], 1, -1)
    return (scores.logsumexp(2, keepdim=True) - scores.gather(2, index))[:, :, 0]
