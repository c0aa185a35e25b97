"""Labels of randomised predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fairgrad.groups import Floats, Ints


def drawn(positive_rate: Floats, seed: int) -> Ints:
    """(n,) label 1 with the given probabilities, else 0; the seed fixes the draw.

    Example:
        >>> drawn(np.array([0.0, 1.0, 1.0]), seed=1).tolist()
        [0, 1, 1]
    """
    chance = np.random.default_rng(seed).random(len(positive_rate))
    return (chance < positive_rate).astype(np.int64)
