"""The report: an audit, and what led to it, as one page to hand on."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import fairgrad
from fairgrad.audit import FAIR, UNDECIDED, UNFAIR, further, tables, words
from fairgrad.audit.impact import IMPACT_HEADS, impact_cells
from fairgrad.audit.intervals import impact_ratios
from fairgrad.audit.over_time import EACH
from fairgrad.audit.text import BESIDE
from fairgrad.files import write_whole
from fairgrad.report.audit_figures import (
    MANY_GROUPS,
    MOST_GROUPS,
    change_figures,
    level_figure,
    rate_figures,
)
from fairgrad.report.figure import FORMATS, number, percent, save_figures
from fairgrad.report.frontier import as_frontier, frontier_figures
from fairgrad.report.history import as_history, history_figures
from fairgrad.report.over_time import over_time_figures
from fairgrad.report.page import render
from fairgrad.report.score_figures import score_figures, threshold_figures

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from fairgrad.audit import Audit, AuditOverTime, Certificate, Finding
    from fairgrad.audit.counts import CountTable
    from fairgrad.groups import Floats
    from fairgrad.report.figure import ReportFigure

MOST_SIDES = 40
MOST_CELLS = 4_000
"""So many cells of a confusion table are on the page, those of the largest groups."""
CLASSES = {FAIR: "good", UNFAIR: "bad", UNDECIDED: "open"}


class Report:
    """An audit as one self-contained HTML page.

    Args:
        audit: what to report; give it a baseline to show before and after.
        frontier: a fitted `Frontier`, shown on its test rows if it has any, else on its validation
            rows; `FrontierData`; or a frame of its points (epsilon, accuracy, unfairness).
        history: a fitted model, whose training is shown if it keeps a history (plain models and
            boosted trees do not); or a frame with the columns epoch, quantity ("level",
            "multiplier", "weight"), name and value.
        chosen: position in the frontier of the model that was chosen.
        over: audits of consecutive periods of the same rows, to show how levels move.
        title: of the page.
        asked: what was asked for and how it was made, as names and values: shown as given.
        certificate: a `fairgrad.audit.Certificate` of the audit, if there is one.
        faults: sentences that say what is wrong with the model, for the top of the page.

    Example:
        >>> from fairgrad.audit import Audit
        >>> report = Report(Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20))
        >>> [figure.title for figure in report.figures[:2]]  # doctest: +NORMALIZE_WHITESPACE
        ['Demographic parity by sensitive_features', 'Equalized odds by sensitive_features']
    """

    def __init__(
        self,
        audit: Audit,
        *,
        frontier: Any = None,
        history: Any = None,
        chosen: int | None = None,
        over: AuditOverTime | None = None,
        title: str = "Fairness report",
        asked: Mapping[str, Any] | None = None,
        certificate: Certificate | None = None,
        faults: Sequence[str] = (),
    ) -> None:
        self.audit, self.title = audit, title
        self.over, self.certificate = over, certificate
        self.faults = tuple(str(fault) for fault in faults)
        self.asked = {str(name): str(value) for name, value in (asked or {}).items()}
        self.frontier = None if frontier is None else as_frontier(frontier, chosen)
        self.history = None if history is None else as_history(history)

    @cached_property
    def _by_section(self) -> dict[str, list[ReportFigure]]:
        audit = self.audit
        figures = {"levels": [level_figure(audit, i) for i in range(len(audit.findings))]}
        figures |= {f"rates {view}": rate_figures(audit, view) for view in audit.views}
        if audit.scores:
            figures |= {f"scores {view}": score_figures(audit, view) for view in audit.views}
            figures["thresholds"] = threshold_figures(audit)
        if audit.baseline is not None:
            figures |= {f"changes {view}": change_figures(audit, view) for view in audit.views}
        if self.over is not None:
            figures["over_time"] = over_time_figures(self.over)
        if self.frontier is not None:
            figures["frontier"] = frontier_figures(self.frontier)
        if self.history is not None:
            figures["history"] = history_figures(self.history)
        return figures

    @property
    def figures(self) -> list[ReportFigure]:
        """All charts, in the order of the page."""
        return [figure for part in self._by_section.values() for figure in part]

    def html(self) -> str:
        """The page."""
        audit = self.audit
        context = {
            "title": self.title,
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "version": fairgrad.__version__,
            "asked": self.asked,
            "facts": _facts(audit),
            "audit": audit,
            "certificate": self.certificate,
            "faults": self.faults,
            "impact": _impact(audit),
            "sides": _sides(audit),
            "most_sides": MOST_SIDES,
            "measures": dict.fromkeys(finding.measure for finding in audit.findings),
            "groups": _groups(audit),
            "ratios": _ratios(audit),
            "ratio_heads": [head.lower() for head in IMPACT_HEADS],
            "named": _named_figures(audit),
            "confusion": _confusion(audit),
            "score_gaps": _score_gaps(audit),
            "subgroups": _subgroups(audit),
            "about": further.ABOUT,
            "frontier": self.frontier,
            "over": self.over,
            "over_note": EACH,
            "figures": self._by_section,
            "most_groups": MOST_GROUPS,
            "classes": CLASSES,
            "words": words,
            "number": number,
            "gauge": _gauge,
            "beside": BESIDE,
        }
        return render(context, self.figures)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, whole or not at all; gives its path."""
        write_whole(Path(path), self.html())
        return Path(path)

    def save_charts(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = FORMATS
    ) -> list[Path]:
        """Writes every chart as SVG and PNG into a folder; gives the files."""
        return save_figures(self.figures, folder, formats)


def _gauge(finding: Finding) -> dict[str, float] | None:
    """Where interval, figure and limit stand on a line, in percent of its length."""
    judgement, limit = finding.judgement, finding.tolerance
    if limit.kind == "bounds" or judgement.value != judgement.value:
        return None
    end = 1.0 if limit.kind == "ratio" else max(judgement.high, limit.value) * 1.15 or 1.0
    place = {"value": judgement.value, "low": judgement.low, "high": judgement.high}
    gauge = {key: 100 * min(max(value / end, 0.0), 1.0) for key, value in place.items()}
    gauge["limit"] = 100 * limit.value / end
    return gauge | {"width": max(gauge["high"] - gauge["low"], 0.5), "ratio": limit.kind == "ratio"}


def _facts(audit: Audit) -> dict[str, str]:
    return {
        "Rows": f"{audit.table.n_rows:,}",
        "Labels": ", ".join(str(label) for label in audit.labels),
        "Desirable label": words.desirable(audit),
        "Sensitive attributes": ", ".join(audit.attributes),
        "Confidence": f"{100 * audit.confidence:.4g} %",
        "Sample weights": "yes, intervals are approximate" if audit.is_weighted else "none",
        "Least rows of a group to be judged": f"{audit.min_group:g}",
        "Compared with": audit.baseline_name if audit.baseline is not None else "nothing",
    }


def _impact(audit: Audit) -> dict[str, dict[str, Any]]:
    """By way of grouping: what happens to the people of every group, before and now."""
    changes = audit.to_frame("changes") if audit.baseline is not None else None
    frames = {"after": audit.to_frame("rates")}
    found = {}
    for name, view in audit.views.items():
        judged, ratios = audit.judged(name), _impact_ratios(audit, name)
        rates = _cells(frames["after"], name, "value")
        was = {} if changes is None else _cells(changes, name, "before")
        moved = {} if changes is None else _cells(changes, name, "moved")
        shorts = [*words.short_names(view.groups), words.OVERALL]
        names = [*view.groups.names, words.OVERALL]
        sizes = [*view.size, view.n_rows]
        columns, rows = _impact_columns(audit, ratios is not None), []
        for place, (short, group, size) in enumerate(zip(shorts, names, sizes, strict=True)):
            is_group = place < len(judged)
            cells = [f"{int(size):,}"]
            for rate, label, _ in columns[1:]:
                if rate == "impact":
                    shown = ratios is not None and is_group and judged[place]
                    cells.append(number(ratios[place], 2) if shown else "")
                else:
                    key = (group, rate, label)
                    cells.append(_in_rates(rates[key], was.get(key), moved.get(key)))
            is_small = is_group and not judged[place]
            rows.append({"name": short, "cells": cells, "small": is_small, "all": not is_group})
        ordered = [rows[place] for place in _by_size(view)] + rows[-1:]
        found[name] = {"columns": [title for _, _, title in columns], "rows": ordered}
    return found


def _sides(audit: Audit) -> list[list[str]]:
    """Who changes sides, the most people first."""
    return [
        [row["group"], f"{row['from']} → {row['to']}", tables.side(row), f"{row['rows']:,}"]
        for row in audit.to_frame("sides").to_dict(orient="records")
    ]


def _impact_columns(audit: Audit, has_ratio: bool) -> list[tuple[str, Any, str]]:
    """Rates to show of every group: of two labels those of the desirable one."""
    columns: list[tuple[str, Any, str]] = [("rows", None, "people")]
    if len(audit.desirable) == 1:
        label = audit.desirable[0]
        columns.append(("selection_rate", label, f"predicted {label}"))
        if has_ratio:
            columns.append(("impact", label, "ratio to the most selected"))
        columns.append(("true_positive_rate", label, f"of those who are {label}"))
        if len(audit.labels) == 2:
            columns.append(("false_positive_rate", label, "of those who are not"))
    columns.append(("accuracy", None, "predicted rightly"))
    known = {"rows", "impact", *audit.table.rates}
    return [column for column in columns if column[0] in known]


def _impact_ratios(audit: Audit, view: str) -> Floats | None:
    """(G,) the impact ratios of all groups; None if none is defined."""
    if len(audit.desirable) != 1:
        return None
    label = audit.labels.index(audit.desirable[0])
    rates = audit.views[view].rates["selection_rate"].row(label).value
    ratios = impact_ratios(rates, audit.judged(view))
    return None if np.isnan(ratios).all() else ratios


def _cells(frame: pd.DataFrame, view: str, column: str) -> dict[tuple[Any, ...], Any]:
    own = frame[frame["attribute"] == view].to_dict(orient="records")
    keys = [(row["group"], row["rate"], row["label"]) for row in own]
    if column == "moved":
        values = [(row["up"] - row["down"], row["low"] > 0 or row["high"] < 0) for row in own]
    else:
        values = [row[column] for row in own]
    return dict(zip(keys, values, strict=True))


def _in_rates(now: float, before: float | None, moved: tuple[float, bool] | None) -> str:
    """A rate before and now, and by how many people it changed; sure changes have a star."""
    if before is None or moved is None or math.isnan(now):
        return percent(now)
    net, is_sure = moved
    star = " *" if is_sure else ""
    return f"{100 * before:.1f} → {percent(now)} ({f'{int(net):+,}' if net else '0'}{star})"


def _by_size(view: CountTable) -> list[int]:
    """The groups in the order of the page's tables: many ones with the largest first."""
    n_groups = len(view.size)
    return view.largest(n_groups) if n_groups > MANY_GROUPS else list(range(n_groups))


def _groups(audit: Audit) -> dict[str, list[dict[Any, Any]]]:
    """By way of grouping: every group's name, rows and share."""
    frame = audit.to_frame("groups")
    found = {}
    for name, view in audit.views.items():
        rows = frame[frame["attribute"] == name].to_dict(orient="records")
        shorts = words.short_names(view.groups)
        found[name] = [
            {**rows[place], "name": shorts[place], "said": percent(rows[place]["share"])}
            for place in _by_size(view)
        ]
    return found


def _ratios(audit: Audit) -> dict[str, list[list[Any]]]:
    """By way of grouping: the rows of the impact table, if the audit has one."""
    if audit.impact_table is None:
        return {}
    found: dict[str, list[list[Any]]] = {}
    for row in audit.impact_table.frame.to_dict(orient="records"):
        found.setdefault(row["attribute"], []).append(impact_cells(row))
    return found


def _named_figures(audit: Audit) -> dict[str, Any]:
    """One row per figure, one column per way of grouping, and what the figure is."""
    several = len(audit.labels) > 2
    rows: dict[tuple[str, str], list[str]] = {}
    for gaps in audit.figures.values():
        for gap in gaps:
            label = f" ({audit.label_value(gap.label)})" if several and gap.label >= 0 else ""
            value, low, high = (number(figure, 3) for figure in gap[2:])
            rows.setdefault((gap.name, label), []).append(f"{value} ({low} to {high})")
    return {
        "columns": ["figure", *(f"by {view}" for view in audit.views), "what it is"],
        "rows": [
            [f"{name}{label}", *cells, words.FIGURES[name]] for (name, label), cells in rows.items()
        ],
    }


def _confusion(audit: Audit) -> dict[str, dict[str, Any]]:
    """By way of grouping: of the rows of every group and true label, how many get which label."""
    found = {}
    labels = [str(label) for label in audit.labels]
    n_labels = len(labels)
    for name, view in audit.views.items() if audit.has_labels else ():
        order = view.largest(max(MOST_CELLS // n_labels**2, 1))
        shorts = words.short_names(view.groups)
        together = view.together()
        blocks = [(shorts[g], view.rows[g], view.mass[g]) for g in order]
        blocks.append((words.OVERALL, together.rows[0], together.mass[0]))
        rows = []
        for number_of, (short, counts, mass) in enumerate(blocks):
            is_all = number_of == len(order)
            total = mass.sum(axis=1, keepdims=True)
            share = mass / np.where(total > 0, total, np.nan)
            for place, label in enumerate(labels):
                cells = [
                    {
                        "rows": f"{int(n):,}",
                        "share": "-" if math.isnan(part) else percent(part),
                        "shade": 0 if math.isnan(part) else round(40 * float(part)),
                        "right": place == column,
                    }
                    for column, (n, part) in enumerate(
                        zip(counts[place], share[place], strict=True)
                    )
                ]
                key = {"group": short, "true": label, "first": place == 0, "all": is_all}
                rows.append({**key, "cells": cells})
        found[name] = {"rows": rows, "left_out": len(view.size) - len(order)}
    return found


def _score_gaps(audit: Audit) -> list[list[str]]:
    names = {
        "auc_difference": "AUC, largest less smallest",
        "calibration_gap_difference": "calibration gap, largest less smallest",
    }
    several = len(audit.scores) > 1
    return [
        [
            names[row["figure"]] + (f" ({row['label']})" if several else ""),
            row["attribute"],
            *(number(row[end], 3) for end in ("value", "low", "high")),
        ]
        for row in audit.to_frame("score_gaps").to_dict(orient="records")
    ]


def _subgroups(audit: Audit) -> list[dict[str, Any]]:
    """The subgroups to look at, as text."""
    if audit.subgroups is None:
        return []
    return [
        {
            "name": one.name,
            "rate": further.rate_name(one),
            "rows": f"{one.rows:,}",
            "values": f"{percent(one.rate)} against {percent(one.overall)}",
            "gap": f"{number(one.gap, 3)} ({number(one.low, 3)} to {number(one.high, 3)})",
            "confirmed": one.is_confirmed,
        }
        for one in audit.subgroups.subgroups
    ]
