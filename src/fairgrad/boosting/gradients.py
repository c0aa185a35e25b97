"""The log loss of boosted scores: gradients, hessians, and what weights do to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Floats, Ints


def probabilities(scores: Floats) -> Floats:
    """(n,) of the second class from (n,) margins, or (n, L) from (n, L) scores.

    Example:
        >>> probabilities(np.array([0.0, 2.0])).round(3)
        array([0.5  , 0.881])
    """
    found: Floats = expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)
    return found


def predictions(scores: Floats) -> Ints:
    """(n,) the index of the class that each row's scores speak for."""
    found: Ints = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
    return found


def log_loss_gradients(
    scores: Floats, label: Ints, is_opposed: NDArray[np.bool_] | None = None
) -> tuple[Floats, Floats]:
    """First and second derivatives of each row's log loss in its scores.

    Two classes: ``p - y`` and ``p (1 - p)``. L classes: ``p_l - [l = y]`` and
    ``L / (L - 1) p_l (1 - p_l)``, the diagonal with the factor that makes up for taking the scores
    of the classes one by one (LightGBM's own rule).

    A row that is opposed is to get any label but its own: its loss is ``-log(1 - p_y)``. Of two
    classes that is the log loss of the other one; of L the derivatives are ``p_y`` for its own and
    ``-p_y p_l / (1 - p_y)`` for the others. The second derivatives of these may be negative; those
    of the log loss take their place.

    Args:
        scores: (n,) margins of the second of two classes, or (n, L).
        label: (n,) indices of the classes.
        is_opposed: (n,) rows whose label is to be avoided; None for none.

    Example:
        >>> log_loss_gradients(np.array([0.0, 0.0]), np.array([0, 1]))
        (array([ 0.5, -0.5]), array([0.25, 0.25]))
        >>> log_loss_gradients(np.zeros(2), np.array([0, 1]), np.array([False, True]))[0]
        array([0.5, 0.5])
    """
    p = probabilities(scores)
    if scores.ndim == 1:
        wanted = label if is_opposed is None else label ^ is_opposed
        return np.subtract(p, wanted, dtype=p.dtype, casting="same_kind"), p * (1.0 - p)
    n_labels = scores.shape[1]
    hessian = n_labels / (n_labels - 1) * p * (1.0 - p)
    gradient = p.copy()
    gradient[np.arange(len(label)), label] -= 1.0
    if is_opposed is not None:
        gradient[is_opposed] *= _turn(p[is_opposed], label[is_opposed])
    return gradient, hessian


def _turn(p: Floats, label: Ints) -> Floats:
    """(n, 1) from the derivatives of ``-log p_y`` to those of ``-log(1 - p_y)``."""
    own = p[np.arange(len(label)), label][:, None]
    odds: Floats = -own / np.maximum(1.0 - own, np.finfo(p.dtype).tiny)
    return odds


def weigh(
    gradient: Floats, hessian: Floats, weight: Floats, loss_weight: Any = 1.0
) -> tuple[Floats, Floats]:
    """Multiplies each row's gradient by ``|w|``, w its weight, and its hessian by ``max(|w|, 1)``.

    A leaf moves by ``-sum |w| g / sum max(|w|, 1) h``. The error that FairGrad weighs by w is
    ``w [h(x) != y]``, which for w < 0 is ``w + |w| [h(x) = y]``: a row of negative weight is one
    to be predicted wrongly. So it is opposed (see `log_loss_gradients`) and weighs ``|w|``. With
    the log loss times w in its place, the pull on such rows would grow without end the more wrongly
    they are predicted; trees then learn these very rows by heart, and new ones of their cell stay
    as they were. The floor at 1 keeps rows of small weight in the denominator: as the weight of a
    cell goes through 0 on its way to negative values, ``|w|`` alone would leave leaves full of that
    cell to the few other rows in them. With it no row of two classes ever moves its leaf further
    than in plain boosting.

    Args:
        gradient: (n,) or (n, L), of the loss that the sign of the weight asks for.
        hessian: of the same shape.
        weight: (n,) weights of the cells the rows are in.
        loss_weight: (n,) non-negative weights of the rows themselves, factors of both.

    Example:
        >>> weigh(np.array([0.5, 0.5]), np.array([0.25, 0.25]), np.array([-2.0, 0.5]))
        (array([1.  , 0.25]), array([0.5 , 0.25]))
    """
    size = np.abs(weight)
    factor, size = loss_weight * size, loss_weight * np.maximum(size, 1.0)
    if gradient.ndim == 2:
        factor, size = factor[:, None], size[:, None]
    return factor * gradient, size * hessian
