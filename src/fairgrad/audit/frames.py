"""An audit's figures as data frames, one row per figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit.notices import TINY
from fairgrad.audit.proportions import Proportion, clopper_pearson
from fairgrad.audit.table import rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.findings import Finding
    from fairgrad.audit.table import Table

OVERALL = "overall"


def groups_frame(audit: Audit) -> pd.DataFrame:
    """Who the groups are: rows, share of the rows compared, and whether there are very few."""
    return pd.concat(
        [_groups_of(name, view) for name, view in audit.views.items()], ignore_index=True
    )


def rates_frame(audit: Audit) -> pd.DataFrame:
    """The rates of every group and overall, each with its own interval."""
    parts = []
    for name, view in audit.views.items():
        parts.append(_rates_of(name, view, view.groups.names, audit))
        parts.append(_rates_of(name, view.together(), [OVERALL], audit))
    return pd.concat(parts, ignore_index=True)


def levels_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """The levels of every measure with their simultaneous intervals."""
    return pd.concat([_levels_of(finding) for finding in findings], ignore_index=True)


def verdicts_frame(findings: Sequence[Finding]) -> pd.DataFrame:
    """One row per measure and attribute: unfairness, extremes, verdict."""
    return pd.DataFrame([_verdict_of(finding) for finding in findings])


def figures_frame(audit: Audit) -> pd.DataFrame:
    """Differences and ratios by their known names, with simultaneous intervals."""
    rows = [
        {
            "attribute": name,
            "label": audit.label_value(figure.label),
            "figure": figure.name,
            "value": figure.value,
            "low": figure.low,
            "high": figure.high,
        }
        for name, figures in audit.figures.items()
        for figure in figures
    ]
    frame = pd.DataFrame(rows)
    # Labels as they are: pandas would turn integers beside None into floats.
    return frame.assign(label=pd.Series([row["label"] for row in rows], dtype=object))


def changes_frame(audit: Audit) -> pd.DataFrame:
    """Rates of every group under the baseline and now; no rows without a baseline."""
    if audit.baseline is None:
        columns = ["attribute", "group", "label", "rate", "before", "after", "change"]
        return pd.DataFrame(columns=columns)
    keys = ["attribute", "group", "label", "rate"]
    before, after = rates_frame(audit.baseline), rates_frame(audit)
    frame = after[keys].assign(before=before["value"], after=after["value"])
    return frame.assign(change=frame["after"] - frame["before"])


def _groups_of(attribute: str, view: Table) -> pd.DataFrame:
    mass = view.mass.sum(axis=(1, 2))
    return pd.DataFrame(
        {
            "attribute": attribute,
            "group": view.groups.names,
            "rows": view.size.astype(np.int64),
            "share": mass / mass.sum(),
            "tiny": view.size < TINY,
        }
    )


def _rates_of(attribute: str, view: Table, names: Sequence[str], audit: Audit) -> pd.DataFrame:
    parts = []
    for rate, proportion in rates(view).items():
        for label in [-1] if rate == "accuracy" else audit.shown_labels:
            row = proportion if label < 0 else Proportion(*(part[label] for part in proportion))
            low, high = clopper_pearson(row.value, row.trials, audit.alpha)
            parts.append(
                pd.DataFrame(
                    {
                        "attribute": attribute,
                        "group": list(names),
                        "label": pd.Series([audit.label_value(label)] * len(names), dtype=object),
                        "rate": rate,
                        "value": row.value,
                        "low": low,
                        "high": high,
                        "trials": row.trials,
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def _levels_of(finding: Finding) -> pd.DataFrame:
    comparison, (low, high) = finding.comparison, finding.level_intervals
    names = np.asarray([*finding.table.groups.names, ""], dtype=object)
    labels = np.asarray([*finding.table.groups.labels.tolist(), None], dtype=object)
    return pd.DataFrame(
        {
            "measure": finding.measure,
            "attribute": finding.attribute,
            "name": list(comparison.names),
            "group": names[comparison.group],
            "label": pd.Series(labels[comparison.label], dtype=object),
            "level": finding.levels,
            "low": low,
            "high": high,
        }
    )


def _verdict_of(finding: Finding) -> dict[str, Any]:
    judgement, unfairness = finding.judgement, finding.unfairness_interval
    (best, best_level), (worst, worst_level) = finding.best, finding.worst
    return {
        "measure": finding.measure,
        "attribute": finding.attribute,
        "verdict": finding.verdict,
        "unfairness": finding.unfairness,
        "unfairness_low": float(unfairness.low),
        "unfairness_high": float(unfairness.high),
        "judged_by": finding.tolerance.kind,
        "tolerance": finding.tolerance.value,
        "judged": judgement.value,
        "judged_low": judgement.low,
        "judged_high": judgement.high,
        "best": best,
        "best_level": best_level,
        "worst": worst,
        "worst_level": worst_level,
        "n_undefined": finding.n_undefined,
        "more_rows": finding.more_rows,
    }
