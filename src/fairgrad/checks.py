"""Checks of arguments and packages, with errors that name the argument."""

from __future__ import annotations

import math
import random
import re
import sys
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

FRAMEWORKS = {"fairgrad", "torch", "sklearn", "joblib", "lightning", "transformers", "skorch"}
"""Warnings point to the first line outside these packages: the user's."""


@contextmanager
def naming_rows(argument: str = "X, y") -> Iterator[None]:
    """Adds the argument's name to errors of estimators and of scikit-learn's checks."""
    try:
        yield
    except (TypeError, ValueError) as wrong:
        # scikit-learn's NotFittedError is also an AttributeError.
        if isinstance(wrong, AttributeError) or re.search(r"\b[Xy]\b", str(wrong)):
            raise
        kind = TypeError if isinstance(wrong, TypeError) else ValueError
        hint = ""
        if str(wrong).startswith("could not convert string to float"):
            hint = ". Encode texts first: make_pipeline(fairgrad.TableEncoder(), model)"
        raise kind(f"{argument}: {wrong}{hint}") from wrong


def check_number(
    name: str, value: Any, *, below: float = math.inf, above: float = -math.inf
) -> float:
    """Checks that a number is finite, at least 0, below `below` and above `above`.

    Raises:
        ValueError: with the argument's name, the value and what is allowed.
    """
    if not (is_number(value) and 0 <= value < below and value > above):
        lowest = f"above {above:g}" if above >= 0 else "of at least 0"
        bound = "" if below == math.inf else f" and below {below:g}"
        raise ValueError(f"{name}: expected a finite number {lowest}{bound}, got {value!r}.")
    return float(value)


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """Checks that a value is a whole number of at least `least`.

    Raises:
        ValueError: with the argument's name, the value and what is allowed.
    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}.")
    return int(value)


def require_values(model: Any, values: Any) -> None:
    """Refuses to fit an estimator without sensitive values, if it needs them."""
    if values is not None or (model.fairness_measure is None and not model.use_sensitive):
        return
    why = f"fairness_measure is {model.fairness_measure!r}"
    if model.fairness_measure is None:
        why = "use_sensitive is set"
    raise ValueError(
        f"sensitive_features: required, one value per row, because {why}. Call fit(X, y, "
        "sensitive_features=...). A plain model has fairness_measure=None and use_sensitive=False."
    )


def relative_costs(cost_matrix: Any, n_labels: int) -> NDArray[np.float64]:
    """(L, L) what each prediction costs more than the correct one, checked and without a unit.

    The most expensive mistakes of the labels cost 1 on average, as they do if every mistake costs
    the same. So models are the same whether costs are in dollars or in thousands of dollars.

    Args:
        cost_matrix: of each prediction (columns) of each true label (rows); None for 1 per mistake.
        n_labels: how many labels there are.

    Example:
        >>> relative_costs([[0, 1000], [3000, 0]], 2)
        array([[0. , 0.5],
               [1.5, 0. ]])
    """
    if cost_matrix is None:
        return 1.0 - np.eye(n_labels)
    try:
        costs = np.asarray(cost_matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"cost_matrix: expected numbers, got {cost_matrix!r}.") from None
    if costs.shape != (n_labels, n_labels) or not np.isfinite(costs).all():
        raise ValueError(
            f"cost_matrix: expected finite numbers, a row per true label and a column per "
            f"predicted label ({n_labels} of each); got shape {costs.shape}."
        )
    extra = costs - np.diag(costs)[:, None]
    if extra.min() < 0 or extra.max() == 0:
        raise ValueError(
            "cost_matrix: every error must cost at least as much as the correct prediction (the "
            f"diagonal), and some error more; got {costs.tolist()}."
        )
    relative: NDArray[np.float64] = extra / extra.max(axis=1).mean()
    return relative


def is_number(value: Any) -> bool:
    """Whether the value is a real number; booleans are not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the user's line that called this library, directly or through a framework."""
    level, frame = 2, sys._getframe(1)  # noqa: SLF001 - what warnings.warn does itself
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in FRAMEWORKS:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def keeping_random_state() -> Iterator[None]:
    """Restores the state of Python's random number generator afterwards."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def needing(*packages: str, message: str) -> Iterator[None]:
    """Raises an ImportError with this message if a package is missing; {name} is the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in packages:
            raise
        raise ImportError(message.format(name=error.name), name=error.name) from error
