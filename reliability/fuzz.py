"""Odd inputs for everything that takes data: what is not understood is refused by a sentence.

Each target draws its arguments with hypothesis and calls the library, or the program. An input ends
well if it is accepted and the results are finite and right, or if it is refused by a ValueError or
TypeError that names an argument (the program: exit code 2 and one sentence). All else is a fault:
another exception, a warning of NumPy, NaN in a result, a traceback, a wrong figure, a call that
does not end. What was drawn for a fault is kept with its traceback, and can be tried again: other
versions of hypothesis, and of the code it reads, draw other inputs.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import signal
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import StopTest, UnsatisfiedAssumption

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass
class Fault:
    """An input that ended otherwise than promised.

    Attributes:
        said: what is wrong, in a line.
        drawn: all that was drawn for it, in order.
        trace: where an exception came from; empty if there was none.
    """

    said: str
    drawn: list[Any]
    trace: str = ""

    def to_text(self, target: str) -> str:
        """As a file, which `from_text` reads."""
        return f"{target}\n{self.drawn!r}\n{self.said}\n\n{self.trace}"

    @staticmethod
    def from_text(text: str) -> tuple[str, list[Any]]:
        """Target, and what was drawn for it."""
        target, drawn = text.splitlines()[:2]
        known = {"nan": float("nan"), "inf": float("inf"), "NaT": pd.NaT}
        return target, eval(drawn, {"__builtins__": {}}, known)  # noqa: S307 - a file of our own


@dataclass
class Tally:
    """How the inputs of one target ended."""

    accepted: int = 0
    refused: int = 0
    faults: list[Fault] = field(default_factory=list)
    sentences: Counter[str] = field(default_factory=Counter)

    @property
    def inputs(self) -> int:
        """All of them."""
        return self.accepted + self.refused + len(self.faults)


TARGETS: dict[str, tuple[str, float]] = {
    "Groups, measures": ("library.use_groups", 0.25),
    "Constraints": ("library.use_constraints", 0.15),
    "fairness_levels": ("library.use_levels", 0.2),
    "losses": ("library.use_losses", 0.15),
    "Audit": ("library.use_audit", 0.04),
    "Audit.from_counts": ("library.use_counts", 0.03),
    "ImpactTable": ("library.use_impact", 0.06),
    "FairGradClassifier": ("library.use_estimator", 0.06),
    "FairDecisionClassifier": ("library.use_decision", 0.03),
    "FairGradLGBMClassifier": ("library.use_trees", 0.015),
    "Frontier": ("library.use_frontier", 0.01),
    "fairgrad audit": ("programs.use_program_audit", 0.015),
    "fairgrad predict": ("programs.use_program_predict", 0.01),
    "fairgrad fit, predict": ("programs.use_program_fit", 0.005),
}
"""What is called, in a module that is imported when it is, and its share of the inputs."""

ARGUMENTS = re.compile(
    r"\b(X|y|s|c0|C|labels?|sensitive\w*|sample_weight|weights?|measures?|fairness_measure|epsilons?"
    r"|tolerance|confidence|min_group|y_\w+|s_\w+|counts?|lower|upper|slack|logits|input|target"
    r"|reduction|validation\w*|baseline|predictions?|estimator|n_\w+|cost_matrix|rate|bound|others"
    r"|n_folds|prediction|attributes|given)\b"
)
USUAL_WARNINGS = (UserWarning, FutureWarning)
REFUSED = "refused by the program"
"""How the error of a target begins if the program has left with one sentence."""

LIMIT = 60
"""Seconds after which a call counts as hanging."""


class HangError(Exception):
    """A call that does not end."""


class Recorded:
    """Draws as hypothesis' data does, and keeps what was drawn."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.drawn: list[Any] = []

    def draw(self, strategy: Any) -> Any:
        """What hypothesis draws."""
        # Lists are drawn but never changed: `odd` copies them into columns.
        self.drawn.append(self.data.draw(strategy))
        return self.drawn[-1]


class Replayed:
    """Draws what was drawn before."""

    def __init__(self, drawn: Sequence[Any]) -> None:
        self.left = list(drawn)

    def draw(self, _: Any) -> Any:
        """The next of them."""
        return self.left.pop(0)


def fuzz(name: str, inputs: int, start: int = 0) -> Tally:
    """Calls one target with so many inputs."""
    tally, target = Tally(), _target(name)

    @seed(start)
    @settings(
        max_examples=inputs,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: Any) -> None:
        _judge(target, Recorded(data), tally)

    with _quiet():
        run()
    return tally


def again(text: str) -> Tally:
    """Tries one input again, that of `Fault.to_text`."""
    name, drawn = Fault.from_text(text)
    tally = Tally()
    with _quiet():
        _judge(_target(name), Recorded(Replayed(drawn)), tally)
    return tally


def _target(name: str) -> Callable[[Any], list[Any]]:
    module, function = TARGETS[name][0].split(".")
    found: Callable[[Any], list[Any]]
    found = getattr(importlib.import_module(f"reliability.{module}"), function)
    return found


def _judge(target: Callable[[Any], list[Any]], data: Recorded, tally: Tally) -> None:
    def is_fault(said: str, error: Exception | None = None) -> None:
        trace = "" if error is None else "".join(traceback.format_exception(error))
        tally.faults.append(Fault(said[:300], data.drawn, trace))

    try:
        with _limited():
            found = target(data)
    except (UnsatisfiedAssumption, StopTest):  # hypothesis draws again
        raise
    except (ValueError, TypeError) as error:
        said = str(error)
        if ARGUMENTS.search(said) or said.startswith(REFUSED):
            tally.refused += 1
            tally.sentences[re.sub(r"\d+", "N", said)[:90]] += 1
        else:
            is_fault(f"names no argument: {type(error).__name__}: {said}", error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
        is_fault(f"{type(error).__name__}: {error}", error)
    else:
        values = [np.asarray(value, dtype=np.float64) for value in found if value is not None]
        if all(np.isfinite(value).all() for value in values):
            tally.accepted += 1
        else:
            is_fault(f"not finite: {values}")


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Ends a call that hangs, where there are signals."""

    def end(*_: object) -> NoReturn:
        raise HangError(f"no end after {LIMIT} seconds")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Warnings of this library are for users; those of NumPy and pandas are faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for usual in USUAL_WARNINGS:
            warnings.simplefilter("ignore", usual)
        yield


def share_of(name: str, inputs: int) -> int:
    """How many of the inputs a target gets, at least 20."""
    return max(20, round(TARGETS[name][1] * inputs))
