"""The verdict as a function of the threshold: what other thresholds on the same scores would do.

Rows are counted once, by group, label and the thresholds their score lies between; the count table
of every threshold is a sum of these, and each is judged as the audit itself is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit import words
from fairgrad.audit.counts import CountTable
from fairgrad.audit.scores import switch
from fairgrad.audit.verdicts import FAIR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats

MOST_THRESHOLDS = 100
CELLS = 20_000
"""So many groups times thresholds are judged at most: of many groups at fewer thresholds."""

COLUMNS = [
    "measure",
    "attribute",
    "threshold",
    "present",
    "value",
    "low",
    "high",
    "verdict",
    "holds",
    "accuracy",
    "selection_rate",
]
HOLDING = [
    "measure",
    "attribute",
    "from",
    "to",
    "threshold",
    "value",
    "verdict",
    "accuracy",
    "selection_rate",
]
SAME_ROWS = (
    "Thresholds were tried on the rows of this audit, so the best of them looks better here than "
    "it will elsewhere: choose on other rows than those it is judged on."
)


@dataclass(frozen=True, eq=False)
class ThresholdSweep:
    """Every measure asked for, at thresholds along the scores.

    Attributes:
        audit: of the predictions as they are.
        score: (N,) of the desirable label.
        threshold: the one the predictions are said to be made with; None if that is not known.
    """

    audit: Audit
    score: Floats
    threshold: float | None

    @cached_property
    def present(self) -> float | None:
        """Where the predictions switch; None if not at one threshold, or if they never do."""
        (positive,) = self.audit.desirable_indices
        highest_no, lowest_yes = switch(self.score, self.audit.predicted == positive)
        if highest_no > lowest_yes:
            return None
        if self.threshold is not None and highest_no <= self.threshold <= lowest_yes:
            return float(self.threshold)
        if not np.isfinite(highest_no + lowest_yes):
            return None
        return (highest_no + lowest_yes) / 2

    @cached_property
    def grid(self) -> Floats:
        """(T,) the thresholds tried: scores that occur, evenly by rows; the lowest selects all."""
        findings = self.audit.asked
        groups = sum(len(finding.table.size) for finding in findings)
        most = max(min(MOST_THRESHOLDS, CELLS // max(groups, 1)), 12)
        ordered = np.sort(self.score)
        distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        evenly = np.linspace(0, len(ordered) - 1, most).astype(np.int64)
        found: Floats = distinct if len(distinct) <= most else np.unique(ordered[evenly])
        return found

    def tables(self) -> Iterator[CountTable]:
        """The counts at every threshold of the grid."""
        audit, grid = self.audit, self.grid
        (positive,) = audit.desirable_indices
        if audit.cluster is not None:
            for threshold in grid:
                predicted = np.where(self.score >= threshold, positive, 1 - positive)
                yield CountTable.from_rows(audit.rows, predicted, cluster=audit.cluster)
            return
        rows, n_groups = audit.rows, audit.table.groups.n_groups
        # As many thresholds as this select the row: those of at most its score.
        above = np.searchsorted(grid, self.score, side="right")
        n_bins = len(grid) + 1
        cell = (rows.group.astype(np.int64) * 2 + rows.label) * n_bins + above

        def selected(weight: Floats | None) -> tuple[Floats, Floats]:
            counts = np.bincount(cell, weight, minlength=n_groups * 2 * n_bins)
            binned = counts.reshape(n_groups, 2, n_bins).astype(np.float64)
            total = binned.sum(axis=2, keepdims=True)
            return total - np.cumsum(binned, axis=2)[:, :, :-1], total

        weights = [None] if rows.weight is None else [None, rows.weight, rows.weight**2]
        counted = [selected(weight) for weight in weights]
        for t in range(len(grid)):
            parts = []
            for chosen, total in counted:
                table = np.empty((n_groups, 2, 2))
                table[:, :, positive] = chosen[:, :, t]
                table[:, :, 1 - positive] = total[:, :, 0] - chosen[:, :, t]
                parts.append(table)
            number, mass, squares = parts if len(parts) == 3 else parts * 3
            yield CountTable(audit.table.groups, number, mass, squares)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per measure asked for, way of grouping and threshold, ascending."""
        audit = self.audit
        found = []
        for threshold, table in zip(self.grid.tolist(), self.tables(), strict=True):
            shares = _shares(table, *audit.desirable_indices)
            for place, finding in enumerate(audit.findings_of(table)):
                found.append([place, *_row(finding, threshold, *shares)])
        if self.present is not None:
            shares = _shares(audit.table, *audit.desirable_indices)
            for place, finding in enumerate(audit.asked):
                found.append([place, *_row(finding, self.present, *shares, is_present=True)])
        frame = pd.DataFrame(found, columns=["place", *COLUMNS])
        frame = frame.sort_values(["place", "threshold", "present"], kind="stable")
        return frame[COLUMNS].reset_index(drop=True)

    @cached_property
    def holding(self) -> pd.DataFrame:
        """Stretches of thresholds at which a measure holds, each with its most accurate threshold.

        A measure holds where the figure of its verdict lies within the tolerance; the verdict says
        whether that is sure. Thresholds that select everybody or nobody are left out.
        """
        found = []
        for (measure, attribute), own in self.frame.groupby(["measure", "attribute"], sort=False):
            tried = own[(own["selection_rate"] > 0) & (own["selection_rate"] < 1)]
            run = (tried["holds"] != tried["holds"].shift()).cumsum()
            for _, part in tried[tried["holds"]].groupby(run):
                rows = part.to_dict(orient="records")
                best = max(rows, key=lambda row: row["accuracy"])
                ends = [rows[0]["threshold"], rows[-1]["threshold"]]
                found.append([measure, attribute, *ends, *(best[name] for name in HOLDING[4:])])
        return pd.DataFrame(found, columns=HOLDING)

    def _holding(self, finding: Finding) -> list[dict[Any, Any]]:
        return [
            row
            for row in self.holding.to_dict(orient="records")
            if (row["measure"], row["attribute"]) == (finding.measure, finding.attribute)
        ]

    def best_holding(self, finding: Finding) -> dict[Any, Any] | None:
        """The most accurate threshold at which a measure holds; None if it holds at none."""
        return max(self._holding(finding), key=lambda row: row["accuracy"], default=None)

    def sentence(self, finding: Finding) -> str:
        """Where a measure holds, and what that costs."""
        own, best = self._holding(finding), self.best_holding(finding)
        if best is None:
            return "Holds at no threshold tried."
        parts = [
            f"{row['from']:.3g}"
            if row["from"] == row["to"]
            else f"{row['from']:.3g} to {row['to']:.3g}"
            for row in own
        ]
        sure = "" if best["verdict"] == FAIR else f" ({best['verdict']})"
        return (
            f"Holds at thresholds of {words.listed(parts)}; most accurate at "
            f"{best['threshold']:.3g}, where {100 * best['selection_rate']:.1f} % are selected and "
            f"{100 * best['accuracy']:.1f} % of the predictions are right{sure}."
        )


def _shares(table: CountTable, positive: int) -> tuple[float, float]:
    """Accuracy and selection rate over all rows."""
    mass = table.mass.sum(axis=0)
    return float(mass.trace() / mass.sum()), float(mass[:, positive].sum() / mass.sum())


def _row(
    finding: Finding,
    threshold: float,
    accuracy: float,
    selected: float,
    *,
    is_present: bool = False,
) -> list[Any]:
    value, low, high, verdict = finding.judgement
    holds = not np.isnan(value) and finding.tolerance.settle(value, value) == FAIR
    return [
        finding.measure,
        finding.attribute,
        threshold,
        is_present,
        value,
        low,
        high,
        verdict,
        holds,
        accuracy,
        selected,
    ]
