"""Batches with given numbers of rows of each kind."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


def apportion(shares: Sequence[float], total: int) -> list[int]:
    """Whole numbers in proportion to the shares that sum to the total, by largest remainder.

    Example:
        >>> apportion([0.5, 0.3, 0.2], 8)
        [4, 2, 2]
    """
    exact = [share * total / max(sum(shares), 1e-12) for share in shares]
    slots = [math.floor(part) for part in exact]
    by_remainder = sorted(range(len(exact)), key=lambda k: slots[k] - exact[k])
    for k in by_remainder[: total - sum(slots)]:
        slots[k] += 1
    return slots


def draw(rows: Tensor, size: int, n_steps: int, source: torch.Generator) -> Tensor:
    """(n_steps, size) rows, each used once more only when all have been used.

    Example:
        >>> drawn = draw(torch.tensor([7, 8, 9]), 2, 3, torch.Generator().manual_seed(0))
        >>> drawn.shape, drawn.unique(return_counts=True)[1].tolist()
        (torch.Size([3, 2]), [2, 2, 2])
    """
    if size == 0:
        return rows.new_empty(n_steps, 0)
    needed = size * n_steps
    passes = [
        rows[torch.randperm(len(rows), generator=source)]
        for _ in range(math.ceil(needed / len(rows)))
    ]
    return torch.cat(passes)[:needed].view(n_steps, size)
