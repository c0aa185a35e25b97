"""Where training stands, as named numbers for the loggers of training frameworks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from fairgrad.torch.fair_loss import FairLoss

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from torch import Tensor, nn


def fair_losses(module: nn.Module) -> dict[str, FairLoss]:
    """The fair losses among a module and its submodules, by their names in it."""
    return {name: part for name, part in module.named_modules() if isinstance(part, FairLoss)}


def numbers_of(criterion: FairLoss, levels: Tensor | None = None) -> dict[str, float]:
    """Levels, multipliers, weights of the cells and the share of negative weights.

    The share is that of the training rows in cells whose weight is below 0. Everything is read at
    once: on an accelerator the host waits for the device one time.

    Args:
        criterion: a fair loss.
        levels: (J,) levels to be given in place of the current ones, such as their mean over an
            epoch.
    """
    weights = criterion.cell_weights
    found = (criterion.levels if levels is None else levels, criterion.multipliers, weights)
    names = _names(criterion)
    numbers = torch.cat([part.detach().float() for part in found]).tolist()
    mass = criterion.groups.cell_mass(criterion.constraints.by_label)
    is_negative = [number < 0 for number in numbers[-len(weights) :]]
    share = float(mass[is_negative].sum() / mass.sum())
    return {**dict(zip(names, numbers, strict=True)), "negative_share": share}


def check_finite(loss: Any, criterion: FairLoss, step: int) -> None:
    """Says so when training has diverged.

    Raises:
        FloatingPointError: if the loss or a multiplier is infinite or not a number.
    """
    problem = divergence(loss, criterion)
    if problem is not None:
        raise FloatingPointError(f"step {step}: training has diverged: {problem} {ADVICE}")


ADVICE = "Try a smaller learning rate, a smaller fairness_rate, or gradient clipping."


def divergence(loss: Any, criterion: FairLoss) -> str | None:
    """What is infinite or not a number, in a sentence; None if nothing is."""
    value = float(loss)
    if not torch.isfinite(torch.tensor(value)):
        return f"the loss is {value}."
    multipliers = criterion.multipliers
    if not bool(torch.isfinite(multipliers).all()):
        return f"the multipliers are {multipliers.tolist()}."
    return None


def _names(criterion: FairLoss) -> list[str]:
    constraints = list(_distinct(criterion.constraint_names))
    return [
        *(f"level/{name}" for name in constraints),
        *(f"multiplier/{name}" for name in constraints),
        *(f"weight/{name}" for name in criterion.cell_names),
    ]


def _distinct(names: Iterable[str]) -> Iterator[str]:
    """Numbers the second and later ones of a name: two measures may speak of the same cell."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"
