"""What users give, refused with the argument's name if it is not allowed."""

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

FRAMEWORKS = {"fairgrad", "torch", "sklearn", "joblib", "lightning", "transformers", "skorch"}
"""Packages whose lines a warning does not point to."""


@contextmanager
def naming_rows(argument: str = "X, y") -> Iterator[None]:
    """Says which argument is meant where an estimator, or scikit-learn's checks, refuse rows."""
    try:
        yield
    except (TypeError, ValueError) as wrong:
        # An AttributeError, too, is scikit-learn's NotFittedError.
        if isinstance(wrong, AttributeError) or re.search(r"\b[Xy]\b", str(wrong)):
            raise
        kind = TypeError if isinstance(wrong, TypeError) else ValueError
        hint = ""
        if str(wrong).startswith("could not convert string to float"):
            hint = ". Encode texts first: make_pipeline(fairgrad.TableEncoder(), model)"
        raise kind(f"{argument}: {wrong}{hint}") from wrong


def check_number(
    name: str, value: Any, *, least: float = 0.0, below: float = math.inf, above: float = -math.inf
) -> float:
    """The number as a float, if it is finite, at least `least`, below `below`, above `above`.

    Raises:
        ValueError: naming the argument, what came and what is allowed.
    """
    if not (is_number(value) and least <= value < below and value > above):
        lowest = f"above {above:g}" if above >= least else f"of at least {least:g}"
        bound = "" if below == math.inf else f" and below {below:g}"
        raise ValueError(f"{name}: expected a finite number {lowest}{bound}, got {value!r}.")
    return float(value)


def check_count(name: str, value: Any, *, least: int = 1) -> int:
    """The whole number as an int, if it is at least `least`.

    Raises:
        ValueError: naming the argument, what came and what is allowed.
    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}: expected a whole number of at least {least}, got {value!r}.")
    return int(value)


def is_number(value: Any) -> bool:
    """Whether this is a real number; a bool is not."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of the user's line that called this library, directly or by way of a framework."""
    level, frame = 2, sys._getframe(1)  # noqa: SLF001 - what warnings.warn does itself
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in FRAMEWORKS:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def keeping_random_state() -> Iterator[None]:
    """Gives Python's own random numbers back the state that they had before."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def needing(*packages: str, message: str) -> Iterator[None]:
    """Where one of these packages is missing, says what to install; {name} is the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in packages:
            raise
        raise ImportError(message.format(name=error.name), name=error.name) from error
