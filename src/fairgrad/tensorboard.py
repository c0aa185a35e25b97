"""TensorBoard integration: ``from fairgrad.tensorboard import add_fairness``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.torch import FairLoss
from fairgrad.torch.monitor import numbers_of

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["add_fairness"]


def add_fairness(
    writer: SummaryWriter, criterion: FairLoss, step: int, prefix: str = "fairness"
) -> None:
    """Writes the levels, multipliers and weights of a fair loss as scalars.

    The scalars are "fairness/level/...", "fairness/multiplier/..." and "fairness/weight/...", one
    for each constraint or cell, and "fairness/negative_share", the share of the training rows whose
    weight is below 0. The levels are the estimates of the loss. Without error memory they are those
    of the last batch, so smooth them in TensorBoard. On an accelerator each call waits for the
    device once.

    Args:
        writer: PyTorch's `SummaryWriter`.
        criterion: the fair loss.
        step: the number of the step.
        prefix: the start of the scalars' names.

    Raises:
        TypeError: if the criterion is not a fair loss.

    Example:
        >>> import tempfile, torch
        >>> from torch.utils.tensorboard import SummaryWriter
        >>> from fairgrad.torch import CrossEntropyLoss
        >>> y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
        >>> criterion = CrossEntropyLoss(y, s, "equalized_odds")
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     for step in range(3):
        ...         loss = criterion(torch.randn(4, 2, requires_grad=True), y, s)
        ...         add_fairness(writer, criterion, step)
    """
    if not isinstance(criterion, FairLoss):
        raise TypeError(
            f"criterion: expected a loss of fairgrad.torch, got {type(criterion).__name__}."
        )
    for name, number in numbers_of(criterion).items():
        writer.add_scalar(f"{prefix}/{name}", number, step)
