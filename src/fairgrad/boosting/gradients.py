"""The log loss of boosted scores: gradients, hessians, and what weights do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

if TYPE_CHECKING:
    from fairgrad.groups import Floats, Ints


def probabilities(scores: Floats) -> Floats:
    """(n,) of the second class from (n,) margins, or (n, L) from (n, L) scores."""
    found: Floats = expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
    return found


def predictions(scores: Floats) -> Ints:
    """(n,) the index of the class that each row's scores speak for."""
    found: Ints = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
    return found


def log_loss_gradients(scores: Floats, label: Ints) -> tuple[Floats, Floats]:
    """First and second derivatives of each row's log loss in its scores.

    Two classes: ``p - y`` and ``p (1 - p)``. L classes: ``p_l - [l = y]`` and
    ``L / (L - 1) p_l (1 - p_l)``, the diagonal with the factor that makes up for taking the scores
    of the classes one by one (LightGBM's own rule).

    Example:
        >>> log_loss_gradients(np.array([0.0, 0.0]), np.array([0, 1]))
        (array([ 0.5, -0.5]), array([0.25, 0.25]))
    """
    p = probabilities(scores)
    if scores.ndim == 1:
        return np.subtract(p, label, dtype=p.dtype, casting="same_kind"), p * (1.0 - p)
    n_labels = scores.shape[1]
    hessian = n_labels / (n_labels - 1) * p * (1.0 - p)
    gradient = p.copy()
    gradient[np.arange(len(label)), label] -= 1.0
    return gradient, hessian


def weigh(
    gradient: Floats, hessian: Floats, weight: Floats, loss_weight: Any = 1.0
) -> tuple[Floats, Floats]:
    """Multiplies each row's gradient by its weight w, and its hessian by ``max(|w|, 1)``.

    A leaf moves by ``-sum w g / sum max(|w|, 1) h``. The hessians of a loss with negative weights
    are negative, and no step follows from them; their absolute value has the right sign: a row of
    negative weight is a row to be predicted wrongly, and moves its leaf as far as one to be
    predicted rightly, in the other direction. The floor at 1 keeps rows of small weight in the
    denominator: as the weight of a cell goes through 0 on its way to negative values, ``|w|`` alone
    would leave leaves full of that cell to the few other rows in them. With it no row ever moves
    its leaf further than in plain boosting.

    Args:
        gradient: (n,) or (n, L).
        hessian: of the same shape.
        weight: (n,) weights of the cells the rows are in.
        loss_weight: (n,) non-negative weights of the rows themselves, factors of both.

    Example:
        >>> weigh(np.array([0.5, 0.5]), np.array([0.25, 0.25]), np.array([-2.0, 0.5]))
        (array([-1.  ,  0.25]), array([0.5 , 0.25]))
    """
    factor, size = loss_weight * weight, loss_weight * np.maximum(np.abs(weight), 1.0)
    if gradient.ndim == 2:
        factor, size = factor[:, None], size[:, None]
    return factor * gradient, size * hessian
