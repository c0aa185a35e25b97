"""How accurate and how fair models are on some rows, with exact intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import Audit
from fairgrad.audit.proportions import Interval, absolute, clopper_pearson
from fairgrad.audit.table import rates
from fairgrad.measures import On

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.audit import Finding
    from fairgrad.frontier.parts import Part
    from fairgrad.groups import Floats


@dataclass(frozen=True, eq=False)
class Judge:
    """What models are judged by.

    Attributes:
        measure: the fairness measure, as in training.
        y_desirable: labels that some measures ask for.
        classes: all labels.
        confidence: of each interval.
    """

    measure: Any
    y_desirable: Any
    classes: NDArray[Any]
    confidence: float

    def audit(self, part: Part, predicted: Any) -> Audit:
        """Audits predictions by this measure, on the groups that training compares."""
        measures = _on_groups(self.measure, tuple(part.s))
        desirable = self.y_desirable if len(np.atleast_1d(self.y_desirable)) else None
        return Audit(
            part.y,
            predicted,
            part.s,
            measures=measures,
            # Each measure's intervals hold at once; sharing the error, so do all of them.
            confidence=1 - (1 - self.confidence) / len(measures),
            sample_weight=part.weight,
            y_desirable=desirable,
            labels=self.classes,
        )

    def figures(self, audit: Audit) -> dict[str, float]:
        """Accuracy and unfairness, each with its ends.

        The interval of the accuracy is Clopper and Pearson's. That of the unfairness encloses the
        mean of |F| when every rate lies in its own such interval, all at once.
        """
        accuracy = rates(audit.table.together())["accuracy"]
        low, high = clopper_pearson(accuracy.value, accuracy.trials, 1 - self.confidence)
        unfair = np.concatenate([_unfairness(f, *[f.levels] * 2) for f in audit.findings], axis=1)
        ends = np.concatenate([_unfairness(f, *f.level_intervals) for f in audit.findings], axis=1)
        return {
            "accuracy": float(accuracy.value[0]),
            "accuracy_low": float(low[0]),
            "accuracy_high": float(high[0]),
            "unfairness": float(np.nanmean(unfair[0])),
            "unfairness_low": float(np.nanmean(ends[0])),
            "unfairness_high": float(np.nanmean(ends[1])),
        }


def _on_groups(measure: Any, attributes: tuple[str, ...]) -> Sequence[On]:
    """Every part of a measure with the attributes it speaks of: by default all of them, crossed."""
    parts = measure if isinstance(measure, list) else [measure]
    return [part if isinstance(part, On) else On(attributes, part) for part in parts]


def _unfairness(finding: Finding, low: Floats, high: Floats) -> Floats:
    """(2, J) least and greatest |F| when F lies between low and high.

    For a constraint with one bound only, its violation takes the place of |F|.
    """
    lower, upper = finding.comparison.lower, finding.comparison.upper
    one_sided = np.isinf(lower) | np.isinf(upper)
    at_low, at_high = (np.maximum(np.maximum(lower - F, F - upper), 0.0) for F in (low, high))
    # A one-sided violation is monotone in F, so its extremes lie at the ends.
    violation = np.sort(np.stack([at_low, at_high]), axis=0)
    plain = np.stack(absolute(Interval(low, high)))
    found: Floats = np.where(one_sided, violation, plain)
    return found
