"""PyTorch's losses, made fair: the same names, the same arguments, and the fairness ones."""

from __future__ import annotations

from typing import Any

from torch import nn

from fairgrad.torch.fair_loss import FairLoss


class CrossEntropyLoss(FairLoss):
    """`torch.nn.CrossEntropyLoss` made fair; input (N, classes), target (N,) class indices.

    See `FairLoss` for the arguments; the others (weight, ignore_index, label_smoothing) are
    PyTorch's.

    Example:
        >>> import torch
        >>> y_train, s_train = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
        >>> criterion = CrossEntropyLoss(y_train, s_train, "equalized_odds", fairness_rate=0.01)
        >>> logits = torch.zeros(4, 2, requires_grad=True)
        >>> loss = criterion(logits, y_train, s_train)
        >>> loss.backward()
        >>> criterion.cell_names
        ('y=0, s=0', 'y=0, s=1', 'y=1, s=0', 'y=1, s=1')
    """

    def __init__(
        self,
        y_train: Any = None,
        s_train: Any = None,
        fairness_measure: Any = None,
        **arguments: Any,
    ) -> None:
        super().__init__(nn.CrossEntropyLoss, y_train, s_train, fairness_measure, **arguments)
