"""Which model of a frontier to take, by a bound on one of its two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairgrad.checks import check_number

if TYPE_CHECKING:
    import pandas as pd

PART = "validation"
"""The rows that models are chosen by; those of a test stay out of it."""


def choose(points: pd.DataFrame, max_unfairness: float | None, min_accuracy: float | None) -> int:
    """The position of the most accurate model that is fair enough, or of the fairest accurate one.

    Raises:
        ValueError: if not exactly one bound is given, or no model is within it; the message names
            the best there is.
    """
    if (max_unfairness is None) == (min_accuracy is None):
        raise ValueError(
            "max_unfairness, min_accuracy: expected exactly one of them, got "
            f"{max_unfairness!r} and {min_accuracy!r}."
        )
    accuracy, unfairness = points[f"{PART}_accuracy"], points[f"{PART}_unfairness"]
    if max_unfairness is not None:
        check_number("max_unfairness", max_unfairness)
        fits, key, tie = unfairness <= max_unfairness, -accuracy, unfairness
        wanted = f"max_unfairness: no model has an unfairness of at most {max_unfairness:g}"
        best = int(np.lexsort((-accuracy, unfairness))[0])
    else:
        check_number("min_accuracy", min_accuracy)
        fits, key, tie = accuracy >= min_accuracy, unfairness, -accuracy
        wanted = f"min_accuracy: no model has an accuracy of at least {min_accuracy:g}"
        best = int(np.lexsort((unfairness, -accuracy))[0])
    if not fits.any():
        raise ValueError(f"{wanted} on the {PART} rows; the best is {describe(points.iloc[best])}.")
    order = np.lexsort((tie, key))
    return int(order[fits.to_numpy()[order]][0])


def describe(point: pd.Series) -> str:
    """A point in words."""
    return (
        f"epsilon {point['epsilon']:.4g} with accuracy {point[f'{PART}_accuracy']:.4f} and "
        f"unfairness {point[f'{PART}_unfairness']:.4f}"
    )
