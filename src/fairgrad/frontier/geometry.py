"""Points in the plane of accuracy (more is better) and unfairness (less is better)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def non_dominated(accuracy: Any, unfairness: Any) -> NDArray[np.bool_]:
    """(n,) whether no other point is at least as good in both and better in one.

    Example:
        >>> non_dominated([0.8, 0.9, 0.7], [0.01, 0.05, 0.02])
        array([ True,  True, False])
    """
    a, u = np.asarray(accuracy, dtype=np.float64), np.asarray(unfairness, dtype=np.float64)
    as_good = (a >= a[:, None]) & (u <= u[:, None])
    better = (a > a[:, None]) | (u < u[:, None])
    dominated = np.asarray((as_good & better).any(axis=1))
    return ~dominated


def hypervolume(accuracy: Any, unfairness: Any, reference: tuple[float, float]) -> float:
    """The area of what the points are at least as good as, up to a reference point.

    ``area of the union over i of [u_i, u_ref] x [a_ref, a_i]``: larger is better. Two frontiers
    compare only with the same reference.

    Args:
        accuracy: (n,) of the points.
        unfairness: (n,) of the points.
        reference: accuracy and unfairness of the worst point that counts.

    Example:
        >>> round(hypervolume([0.8, 0.9], [0.0, 0.1], reference=(0.5, 0.2)), 4)
        0.07
    """
    worst_accuracy, worst_unfairness = reference
    order = np.argsort(unfairness)
    u = np.asarray(unfairness, dtype=np.float64)[order].clip(max=worst_unfairness)
    best = np.maximum.accumulate(np.asarray(accuracy, dtype=np.float64)[order])
    widths = np.diff(np.append(u, worst_unfairness))
    return float(widths @ (best - worst_accuracy).clip(min=0.0))
