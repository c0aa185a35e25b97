"""What was asked of an audit: measures, tolerances, confidence, desirable labels; checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit.comparisons import known_measures
from fairgrad.audit.verdicts import FOUR_FIFTHS, Tolerance
from fairgrad.columns import as_array
from fairgrad.constraints import Constraints
from fairgrad.measures import ALIASES, On, measure_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.comparisons import Comparison

DEFAULT_MEASURES = (
    "demographic_parity",
    "equalized_odds",
    "equality_of_opportunity",
    "accuracy_parity",
)
DEFAULT_TOLERANCE = 0.05


@dataclass(frozen=True)
class Asked:
    """One measure to be checked.

    Attributes:
        measure: a name, a function, `Constraints`, or a pair (c0, C).
        attributes: whose groups to compare; None for each attribute alone and all crossed.
        tolerance: what is still fair, a number or "four_fifths".
    """

    measure: Any
    attributes: tuple[str, ...] | None
    tolerance: float | str

    @property
    def name(self) -> str:
        """A short readable name."""
        return measure_name(self.measure)

    def tolerance_for(self, comparison: Comparison) -> Tolerance:
        """The rule of the verdict; measures with bounds of their own are judged by these."""
        if self.name == "four_fifths_rule":
            return Tolerance("ratio", 0.8 if isinstance(self.tolerance, str) else self.tolerance)
        if isinstance(self.tolerance, str):
            if comparison.ratio_row is None:
                raise ValueError(
                    "tolerance: 'four_fifths' is a ratio of the selection rates of one desirable "
                    f"label; it serves demographic_parity, not {self.name}. Name what it is for: "
                    "tolerance={'demographic_parity': 'four_fifths'}."
                )
            return Tolerance("ratio", 0.8)
        if np.any(comparison.lower != 0) or np.any(comparison.upper != 0):
            return Tolerance("bounds", 0.0)
        return Tolerance("level", self.tolerance)


def asked_measures(measures: Any, tolerance: Any, attributes: Sequence[str]) -> tuple[Asked, ...]:
    """The measures to check, each with its groups and its tolerance.

    Raises:
        ValueError: if a measure, an attribute or a tolerance is not known.
    """
    flat = _flatten(DEFAULT_MEASURES if measures is None else measures)
    if not flat:
        raise ValueError("measures: expected at least one measure, got none.")
    names = [measure_name(part.measure if isinstance(part, On) else part) for part in flat]
    if isinstance(tolerance, Mapping):
        strangers = [key for key in tolerance if ALIASES.get(key, key) not in names]
        if strangers:
            raise ValueError(f"tolerance: got {strangers[0]!r}; the measures asked are {names}.")
    return tuple(_asked(part, tolerance, tuple(attributes)) for part in flat)


def desirable_labels(y_desirable: Any, labels: NDArray[Any]) -> tuple[int, ...]:
    """Indices of the desirable labels; by default of label 1.

    With two labels the desirable one says whose selection rate and true positives are meant, so it
    must be known. With more, every label has rates of its own, and it may stay open.

    Raises:
        ValueError: if a label is not among those of the data, or must be named and is not.
    """
    known = labels.tolist()
    if y_desirable is None:
        if 1 in known:
            return (known.index(1),)
        if len(known) > 2:
            return ()
        raise ValueError(
            f"y_desirable: the labels are {known}; name the desirable one, such as {known[-1]!r}."
        )
    wanted = np.atleast_1d(as_array(y_desirable)).tolist()
    strangers = [label for label in wanted if label not in known]
    if strangers or not wanted:
        raise ValueError(f"y_desirable: expected labels among {known}, got {wanted}.")
    if len(known) == 2 and len(set(wanted)) != 1:
        raise ValueError(f"y_desirable: expected one of the two labels {known}, got {wanted}.")
    return tuple(sorted({known.index(label) for label in wanted}))


def _flatten(measures: Any) -> list[Any]:
    """One level list of measures; a pair (c0, C) and a name are single measures."""
    is_pair = isinstance(measures, tuple) and any(hasattr(part, "shape") for part in measures)
    if isinstance(measures, (list, tuple)) and not is_pair:
        return [single for part in measures for single in _flatten(part)]
    return [measures]


def _asked(part: Any, tolerance: Any, attributes: tuple[str, ...]) -> Asked:
    measure, own, wanted = part, None, None
    if isinstance(part, On):
        measure = part.measure
        wanted = (part.attributes,) if isinstance(part.attributes, str) else tuple(part.attributes)
        own = part.epsilon or None
    elif isinstance(part, (Constraints, tuple)):
        wanted = attributes  # matrices fit one set of cells only: those of all attributes
    strangers = [name for name in wanted or () if name not in attributes]
    if strangers:
        raise ValueError(
            f"measures: got the attribute {strangers[0]!r}; the sensitive attributes are "
            f"{list(attributes)}."
        )
    _check_measure(measure)
    if isinstance(measure, str):
        measure = ALIASES.get(measure, measure)
    return Asked(measure, wanted, _tolerance_of(measure_name(measure), tolerance, own))


def _tolerance_of(name: str, tolerance: Any, own: float | None) -> float | str:
    """The tolerance named for this measure, else its own slack, else the common one."""
    is_ratio = name == "four_fifths_rule"
    if isinstance(tolerance, Mapping):
        named = {ALIASES.get(key, key): value for key, value in tolerance.items()}
        common = named.get(name)
        own = own if common is None else None
    else:
        common = None if is_ratio else tolerance  # a common number is about levels, not ratios
    chosen = common if own is None else own
    return _check_tolerance(
        (FOUR_FIFTHS if is_ratio else DEFAULT_TOLERANCE) if chosen is None else chosen
    )


def _check_measure(measure: Any) -> None:
    if isinstance(measure, (Constraints, tuple)) or callable(measure):
        return
    if measure not in known_measures():
        raise ValueError(
            f"measures: got {measure!r}; expected {known_measures()}, a function from Groups to "
            "Constraints, Constraints, a pair (c0, C), an On, or a list of these."
        )


def _check_tolerance(tolerance: Any) -> float | str:
    if isinstance(tolerance, str):
        if tolerance != FOUR_FIFTHS:
            raise ValueError(f"tolerance: expected a number or {FOUR_FIFTHS!r}, got {tolerance!r}.")
        return tolerance
    number = float(tolerance)
    if not 0 <= number <= 1:
        raise ValueError(f"tolerance: expected a number from 0 to 1, got {tolerance!r}.")
    return number
