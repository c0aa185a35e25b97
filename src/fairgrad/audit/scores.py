"""Scores against predictions: at which threshold were the predictions made?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.columns import as_array

if TYPE_CHECKING:
    from fairgrad.groups import Floats, Ints


def threshold_warning(
    y_score: Any, predicted: Ints, positive: int, n_labels: int, threshold: float
) -> str | None:
    """What to say if the predictions do not follow from the scores as the model was trained.

    Args:
        y_score: (N,) scores of the desirable label (two labels only), or (N, L) one per label.
        predicted: (N,) index of each row's predicted label.
        positive: index of the desirable label, whose score (N,) is.
        n_labels: L.
        threshold: the score at which the model was trained to switch.

    Raises:
        ValueError: if the scores do not fit the predictions, or are not finite.
    """
    score = _checked(y_score, len(predicted), n_labels)
    if score.ndim == 2 and n_labels > 2:
        return _not_the_largest(score, predicted)
    if score.ndim == 2:
        score = score[:, positive]
    return _other_threshold(score, predicted == positive, threshold)


def _checked(y_score: Any, n_rows: int, n_labels: int) -> Floats:
    score = as_array(y_score).astype(np.float64)
    shapes = [(n_rows, n_labels)] if n_labels > 2 else [(n_rows,), (n_rows, 2)]
    if score.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(
            f"y_score: expected the shape {allowed} for {n_rows} rows and {n_labels} labels, got "
            f"{score.shape}."
        )
    if not np.isfinite(score).all():
        row = int(np.flatnonzero(~np.isfinite(score.reshape(n_rows, -1)).all(axis=1))[0])
        raise ValueError(f"y_score: expected finite scores; row {row} has {score[row]}.")
    return score


def _not_the_largest(score: Floats, predicted: Ints) -> str | None:
    off = score[np.arange(len(score)), predicted] < score.max(axis=1)
    if not off.any():
        return None
    return (
        f"{off.mean():.1%} of the predictions are not the label with the largest score: thresholds "
        "were moved after training. What holds for them need not hold for the model as trained."
    )


def _other_threshold(score: Floats, is_positive: np.ndarray, threshold: float) -> str | None:
    highest_no = score[~is_positive].max(initial=-np.inf)
    lowest_yes = score[is_positive].min(initial=np.inf)
    if highest_no > lowest_yes:
        return (
            "The predictions do not come from one threshold on the scores given (a score of "
            f"{lowest_yes:.4g} is predicted positive and one of {highest_no:.4g} is not): groups "
            "may have thresholds of their own. The figures hold for these predictions only."
        )
    if highest_no <= threshold <= lowest_yes:
        return None
    where = lowest_yes if np.isinf(highest_no) else highest_no
    where = where if np.isinf(lowest_yes) else (highest_no + lowest_yes) / 2
    return (
        f"The predictions switch at a score of about {where:.4g}, the model was trained at "
        f"{threshold:.4g}: fairness was trained for, and holds, at the trained threshold only."
    )
