"""Which epsilons a frontier is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.checks import check_count

if TYPE_CHECKING:
    from fairgrad.groups import Floats

SMALLEST, LARGEST = 0.002, 0.3
"""Below the one, slack is lost in the noise of most tables; beyond the other, few bounds bite."""


def epsilons_of(given: Any, *, with_plain: bool) -> Floats:
    """The epsilons in increasing order: those given, or so many of them.

    A number n gives exact fairness (0), values in equal ratios from 0.002 to 0.3, and, if models
    take it, infinity: the plain model.

    Args:
        given: a number of models, or the epsilons themselves.
        with_plain: whether infinity is one of n.

    Raises:
        ValueError: if there are fewer than two, or one is negative or not a number.

    Example:
        >>> epsilons_of(4, with_plain=True)
        array([0.   , 0.002, 0.3  ,   inf])
    """
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        ends = [0.0, np.inf] if with_plain else [0.0]
        check_count("epsilons", given, least=len(ends))
        between = np.geomspace(SMALLEST, LARGEST, int(given) - len(ends))
        return np.sort(np.concatenate([ends, between]))
    found = None if isinstance(given, (str, bool)) else np.asarray(given, dtype=np.float64)
    if found is None or found.ndim != 1 or len(found) == 0 or not (found >= 0).all():
        raise ValueError(
            "epsilons: expected a number of models, or a list of values of at least 0, got "
            f"{given!r}."
        )
    return np.unique(found)
