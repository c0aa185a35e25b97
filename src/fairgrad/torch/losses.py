"""PyTorch's losses, made fair: the same names, the same arguments, and the fairness ones."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from fairgrad.torch.fairness_loss import FairLoss, takes_older_order


class _PyTorchLoss(FairLoss):
    """A loss of PyTorch's, made fair; arguments are those of `FairLoss` and PyTorch's own."""

    base: ClassVar[type[nn.Module]]

    @takes_older_order
    def __init__(
        self,
        y_train: Any = None,
        s_train: Any = None,
        fairness_measure: Any = None,
        **arguments: Any,
    ) -> None:
        super().__init__(self.base, y_train, s_train, fairness_measure, **arguments)


class CrossEntropyLoss(_PyTorchLoss):
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

    base = nn.CrossEntropyLoss


class NLLLoss(_PyTorchLoss):
    """`torch.nn.NLLLoss` made fair; input (N, classes) log-probabilities, target (N,).

    Example:
        >>> import torch
        >>> y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
        >>> criterion = NLLLoss(y, s, "accuracy_parity")
        >>> logits = torch.eye(2)[[0, 1, 1, 1]].requires_grad_()
        >>> criterion(logits.log_softmax(1), y, s).backward()
        >>> criterion.levels
        tensor([ 0.2500, -0.2500])
    """

    base = nn.NLLLoss


class MultiMarginLoss(_PyTorchLoss):
    """`torch.nn.MultiMarginLoss` made fair; input (N, classes) scores, target (N,).

    Example:
        >>> import torch
        >>> y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
        >>> criterion = MultiMarginLoss(y, s, "accuracy_parity", margin=0.5)
        >>> criterion(torch.eye(2, requires_grad=True)[y], y, s).item()
        0.0
    """

    base = nn.MultiMarginLoss


class BCEWithLogitsLoss(_PyTorchLoss):
    """`torch.nn.BCEWithLogitsLoss` made fair; input and target (N,) or (N, 1), labels 0 and 1.

    A logit above 0 predicts label 1.

    Example:
        >>> import torch
        >>> y, s = torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0, 0, 1, 1])
        >>> criterion = BCEWithLogitsLoss(y.long(), s, "accuracy_parity")
        >>> criterion(torch.tensor([-1.0, 1.0, 1.0, 1.0], requires_grad=True), y, s).backward()
        >>> criterion.levels
        tensor([ 0.2500, -0.2500])
    """

    base = nn.BCEWithLogitsLoss


class BCELoss(_PyTorchLoss):
    """`torch.nn.BCELoss` made fair; input and target (N,) or (N, 1), labels 0 and 1.

    A probability above a half predicts label 1.

    Example:
        >>> import torch
        >>> y, s = torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0, 0, 1, 1])
        >>> criterion = BCELoss(y.long(), s, "accuracy_parity")
        >>> criterion(torch.tensor([0.2, 0.8, 0.8, 0.8], requires_grad=True), y, s).backward()
        >>> criterion.levels
        tensor([ 0.2500, -0.2500])
    """

    base = nn.BCELoss


class SoftMarginLoss(_PyTorchLoss):
    """`torch.nn.SoftMarginLoss` made fair; input and target (N,) or (N, 1), labels -1 and 1.

    A score above 0 predicts label 1.

    Example:
        >>> import torch
        >>> y, s = torch.tensor([-1.0, 1.0, -1.0, 1.0]), torch.tensor([0, 0, 1, 1])
        >>> criterion = SoftMarginLoss(y.long(), s, "accuracy_parity")
        >>> criterion(torch.tensor([-1.0, 1.0, 1.0, 1.0], requires_grad=True), y, s).backward()
        >>> criterion.levels
        tensor([ 0.2500, -0.2500])
    """

    base = nn.SoftMarginLoss
