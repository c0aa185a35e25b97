"""What an audit is asked: which measures, on whose groups, and what is still fair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit.verdicts import FOUR_FIFTHS, VerdictRule, tolerated_ratio
from fairgrad.checks import is_number
from fairgrad.constraints import Constraints
from fairgrad.measures import ALIASES, MEASURES, On, as_measure, measure_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit.comparisons import Comparison

DEFAULT_MEASURES = (
    "demographic_parity",
    "equalized_odds",
    "equality_of_opportunity",
    "accuracy_parity",
)
DEFAULT_TOLERANCE = 0.05


@dataclass(frozen=True)
class AskedMeasure:
    """One measure to be checked.

    Attributes:
        measure: a name, a function, `Constraints`, or a pair (c0, C).
        attributes: whose groups to compare, one tuple per comparison; empty for each attribute
            alone and all crossed.
        tolerance: what is still fair: a number for levels, or a text such as "80%" for ratios.
        given: attributes within whose values groups are compared; none for everyone together.
    """

    measure: Any
    attributes: tuple[tuple[str, ...], ...]
    tolerance: float | str
    given: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A short readable name."""
        return measure_name(self.measure)

    def rule(self, comparison: Comparison) -> VerdictRule:
        """The rule of the verdict; measures with bounds of their own are judged by these."""
        ratio = tolerated_ratio(self.tolerance)
        if self.name == "four_fifths_rule":
            if comparison.ratio_row is None:  # within strata: no rate is below 0.8 of another
                return VerdictRule("bounds", 0.0)
            return VerdictRule("ratio", float(self.tolerance) if ratio is None else ratio)
        if ratio is not None:
            if comparison.ratio_row is None:
                raise ValueError(
                    f"tolerance: {self.tolerance!r} is a ratio of the selection rates of one "
                    f"desirable label; it serves demographic_parity, not {self.name}. Name what it "
                    f"is for: tolerance={{'demographic_parity': {self.tolerance!r}}}."
                )
            return VerdictRule("ratio", ratio)
        if np.any(comparison.lower != 0) or np.any(comparison.upper != 0):
            return VerdictRule("bounds", 0.0)
        return VerdictRule("level", float(self.tolerance))


def asked_measures(
    measures: Any, others: Any, tolerance: Any, attributes: Sequence[str]
) -> tuple[tuple[AskedMeasure, ...], tuple[AskedMeasure, ...]]:
    """The measures of the verdict and those beside it, each with its groups and its tolerance."""
    flat, beside = _flatten(measures), _flatten(others)
    if not flat:
        raise ValueError("measures: expected at least one measure, got none.")
    both = [*flat, *beside]
    names = [measure_name(part.measure if isinstance(part, On) else part) for part in both]
    if isinstance(tolerance, Mapping):
        strangers = [key for key in tolerance if ALIASES.get(key, key) not in names]
        if strangers:
            raise ValueError(f"tolerance: got {strangers[0]!r}; the measures asked are {names}.")
    read = [_asked(part, tolerance, tuple(attributes)) for part in both]
    return tuple(read[: len(flat)]), tuple(read[len(flat) :])


def _flatten(measures: Any) -> list[Any]:
    """One level list of measures; a pair (c0, C) and a name are single measures."""
    is_pair = isinstance(measures, tuple) and any(hasattr(part, "shape") for part in measures)
    if isinstance(measures, (list, tuple)) and not is_pair:
        return [single for part in measures for single in _flatten(part)]
    return [measures]


def _asked(part: Any, tolerance: Any, attributes: tuple[str, ...]) -> AskedMeasure:
    measure, own, wanted = part, None, None
    given: tuple[str, ...] = ()
    if isinstance(part, On):
        measure, wanted, given = part.measure, part.compared, part.strata
        own = part.epsilon or None
    elif isinstance(part, (Constraints, tuple)):
        wanted = attributes  # matrices fit one set of cells only: those of all attributes
    strangers = [name for name in (*(wanted or ()), *given) if name not in attributes]
    if strangers:
        raise ValueError(
            f"measures: got the attribute {strangers[0]!r}; the sensitive attributes are "
            f"{list(attributes)}."
        )
    measure = as_measure(measure)
    is_own = isinstance(measure, (Constraints, tuple)) or callable(measure)
    if not is_own and measure not in MEASURES:
        raise ValueError(
            f"measures: got {measure!r}; expected one of {[*MEASURES, *ALIASES]}, a function from "
            "Groups to Constraints, AtLeast, AtMost, Constraints, a pair (c0, C), an On, or a list "
            "of these."
        )
    compared = () if wanted is None else (wanted,)
    return AskedMeasure(measure, compared, _tolerance(measure_name(measure), tolerance, own), given)


def _tolerance(name: str, tolerance: Any, own: float | None) -> float | str:
    """The tolerance named for this measure, else its own slack, else the common one."""
    default: float | str = FOUR_FIFTHS if name == "four_fifths_rule" else DEFAULT_TOLERANCE
    if isinstance(tolerance, Mapping):
        named = {ALIASES.get(key, key): value for key, value in tolerance.items()}
        chosen: Any = named.get(name, own)
    else:  # a common number is about levels, not ratios
        chosen = tolerance if own is None and default != FOUR_FIFTHS else own
    chosen = default if chosen is None else chosen
    is_level = is_number(chosen) and 0 <= chosen <= 1
    if not is_level and tolerated_ratio(chosen) is None:
        raise ValueError(
            "tolerance: expected a number from 0 to 1, or a text such as '80%' for ratios of "
            f"selection rates, got {chosen!r}."
        )
    return chosen if isinstance(chosen, str) else float(chosen)
