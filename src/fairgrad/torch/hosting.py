"""A fair loss inside a training framework: found in a module, shared between processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.torch.fair_loss import FairLoss
from fairgrad.torch.ranks import Ranks

if TYPE_CHECKING:
    from torch import nn


def fair_losses(module: nn.Module) -> dict[str, FairLoss]:
    """The fair losses among a module and its submodules, by their names in it.

    Example:
        >>> import torch
        >>> from fairgrad.torch import CrossEntropyLoss
        >>> model = torch.nn.Module()
        >>> model.criterion = CrossEntropyLoss([0, 1, 0, 1], [0, 0, 1, 1], "accuracy_parity")
        >>> list(fair_losses(model))
        ['criterion']
    """
    return {name: part for name, part in module.named_modules() if isinstance(part, FairLoss)}


def join_processes(criterion: FairLoss) -> None:
    """Lets a loss share its multipliers with all processes, if there are several now.

    Frameworks start their processes after the user has made the loss, which then knew of none:
    without this each process would have multipliers of its own.

    Raises:
        ValueError: if the processes were given different training data.
    """
    if criterion.state.ranks.is_alone:
        ranks = Ranks(None)
        ranks.check_equal(criterion.groups)
        criterion.state.ranks = ranks
