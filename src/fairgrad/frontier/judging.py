"""How accurate and how fair models are on some rows, with exact intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import Audit
from fairgrad.audit.intervals import clopper_pearson
from fairgrad.measures import On

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.frontier.parts import Part


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
        accuracy = audit.table.together().rates["accuracy"]
        low, high = clopper_pearson(accuracy.value, accuracy.trials, 1 - self.confidence)
        found = [finding for finding in audit.findings if finding.n_defined]
        # One mean over the levels of all measures, not a mean of means.
        unfair = np.average(
            [(f.unfairness, *f.unfairness_interval) for f in found],
            axis=0,
            weights=[f.n_defined for f in found],
        )
        return {
            "accuracy": float(accuracy.value[0]),
            "accuracy_low": float(low[0]),
            "accuracy_high": float(high[0]),
            "unfairness": float(unfair[0]),
            "unfairness_low": float(unfair[1]),
            "unfairness_high": float(unfair[2]),
        }


def _on_groups(measure: Any, attributes: tuple[str, ...]) -> Sequence[On]:
    """Every part of a measure with the attributes it speaks of: by default all of them, crossed."""
    parts = measure if isinstance(measure, list) else [measure]
    return [part if isinstance(part, On) else On(attributes, part) for part in parts]
