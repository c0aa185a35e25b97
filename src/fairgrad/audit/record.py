"""An audit as data frames, plain values and a record for a file.

The record is the result of `Audit.to_dict`, with its provenance. `audit.schema.json` beside this
file describes it, in JSON Schema. Fields may be added; no required field is removed or changes its
meaning without a new `schema_version`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import fairgrad
from fairgrad.audit import sections, words
from fairgrad.audit.changes import change_interval, moved
from fairgrad.audit.counts import FALSE_ALARMS, OVERALL, POSITIVES, rate_masks
from fairgrad.audit.intervals import impact_ratios, largest_difference, smallest_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.counts import CountTable
    from fairgrad.audit.intervals import Proportion
    from fairgrad.audit.verdicts import Finding

SCHEMA, SCHEMA_VERSION = "fairgrad.audit", 4
PACKAGES = ("fairgrad", "numpy", "pandas", "scikit-learn", "torch", "lightgbm")


def audit_schema() -> dict[str, Any]:
    """The JSON Schema of an audit's record (draft 2020-12).

    Example:
        >>> schema = audit_schema()
        >>> schema["properties"]["schema"]["const"], "verdict" in schema["required"]
        ('fairgrad.audit', True)
    """
    text = files("fairgrad.audit").joinpath("audit.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def to_dict(audit: Audit) -> dict[str, Any]:
    """Everything an audit found; lists of records for what are data frames otherwise."""
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "fairgrad_version": fairgrad.__version__,
        "asked": {
            name: [
                {
                    "measure": measure.name,
                    "tolerance": measure.tolerance,
                    "attributes": [list(names) for names in measure.attributes],
                }
                for measure in asked
            ]
            for name, asked in zip(("measures", "others"), audit.wanted, strict=True)
        },
        "rows": audit.table.n_rows,
        "attributes": list(audit.attributes),
        "labels": audit.labels,
        "desirable": audit.desirable,
        "confidence": audit.confidence,
        "weighted": audit.is_weighted,
        "has_labels": audit.has_labels,
        "min_group": audit.min_group,
        "reference": audit.reference,
        "verdict": audit.verdict,
        "conclusion": audit.conclusion,
        "accuracy": audit.accuracy,
        "baseline_accuracy": None if audit.baseline is None else audit.baseline.accuracy,
        "warnings": [notice._asdict() for notice in audit.warnings],
        "conventions": {
            "levels": words.LEVELS,
            "measures": {f.measure: words.convention(f.measure) for f in audit.findings},
            "rates": words.RATES,
            "figures": words.FIGURES,
            "figures_note": words.FIGURES_NOTE,
            "intervals": words.intervals(audit),
        },
    }
    values["compared"] = sections.compared_values(audit)
    values["sections"] = [
        {**section._asdict(), "blocks": [block._asdict() for block in section.blocks]}
        for section in audit.sections
    ]
    values["impact"] = None if audit.impact_table is None else audit.impact_table.to_dict()
    if audit.baseline is not None:
        values["baseline_verdicts"] = audit.baseline.to_frame("verdicts").to_dict(orient="records")
    if audit.subgroups is not None:
        values["subgroup_search"] = audit.subgroups.about
    for kind in FRAMES:
        values[kind] = audit.to_frame(kind).to_dict(orient="records")
    plain: dict[str, Any] = plain_values(values)
    return plain


def plain_values(value: Any) -> Any:
    """NumPy values as Python's own, NaN and infinities as None."""
    if isinstance(value, dict):
        return {str(key): plain_values(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(inner) for inner in value]
    if isinstance(value, np.generic):
        return plain_values(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def record(audit: Audit) -> dict[str, Any]:
    """Everything an audit found, with the hash of its rows, date and versions."""
    digest = hashlib.sha256()
    labels = audit.labels if audit.has_labels else []
    digest.update(json.dumps([list(map(str, labels)), audit.table.groups.names]).encode())
    rows = audit.rows
    columns = [rows.label if audit.has_labels else None, audit.predicted, rows.group, rows.weight]
    if audit.counts is not None:
        columns.append(audit.counts.times)
    for column in columns:
        if column is not None:
            plain = np.ascontiguousarray(column, dtype="<f8" if column.dtype.kind == "f" else "<i8")
            digest.update(plain.tobytes())
    data = {"name": "rows of the audit", "sha256": digest.hexdigest(), "rows": audit.table.n_rows}
    made = {"date": made_at(), "versions": used_versions(), "command": "", "test": []}
    return {**audit.to_dict(), "provenance": {"data": [data], **made}}


def made_at() -> str:
    """Now, in UTC; what SOURCE_DATE_EPOCH says if it is set."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    seconds = float(fixed) if fixed and fixed.isdigit() else None
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def used_versions() -> dict[str, str]:
    """Those of Python and of the packages that results rest on."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        if name == "lightgbm" and "lightgbm" not in sys.modules:
            continue
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


GAP_RATES = {
    "demographic_parity": ("selection_rate",),
    "equalized_odds": (POSITIVES, FALSE_ALARMS),
    "equal_opportunity": (POSITIVES,),
    "accuracy": ("accuracy",),
}
"""Each family of named differences and ratios, and the rates whose worst gap it reports."""
SUBGROUP_COLUMNS = [
    "subgroup",
    *("conditions", "measure", "label", "rows", "searched_gap", "rate", "overall"),
    *("gap", "low", "high", "confirmed"),
]


def _verdict(audit: Audit, finding: Finding) -> dict[str, Any]:
    """A finding as plain values: unfairness, extremes, verdict."""
    judgement, unfairness = finding.judgement, finding.unfairness_interval
    needed, unknown = finding.rows_needed, audit.if_unknown(finding)
    names, levels = (*finding.comparison.names, ""), np.append(finding.levels, np.nan)
    worst, best = finding.extremes or (-1, -1)
    return {
        "measure": finding.measure,
        "attribute": finding.attribute,
        "asked": finding.is_asked,
        "verdict": finding.verdict,
        "unfairness": finding.unfairness,
        "unfairness_low": float(unfairness.low),
        "unfairness_high": float(unfairness.high),
        "judged_by": finding.tolerance.kind,
        "tolerance": finding.tolerance.value,
        "judged": judgement.value,
        "judged_low": judgement.low,
        "judged_high": judgement.high,
        "best": names[best],
        "best_level": levels[best],
        "worst": names[worst],
        "worst_level": levels[worst],
        "p_fair": finding.p_values[0],
        "p_unfair": finding.p_values[1],
        "unknown_worst_off": None if unknown is None else unknown[0],
        "unknown_best_off": None if unknown is None else unknown[1],
        "n_undefined": finding.n_undefined,
        "more_rows": None if needed is None else needed.more,
        "more_rows_low": None if needed is None else needed.low,
        "more_rows_high": None if needed is None else needed.high,
        "advice": words.advice(finding),
    }


def groups_frame(audit: Audit) -> pd.DataFrame:
    """Who the groups are: rows, share, and whether they are judged."""
    frames = []
    for name, view in audit.views.items():
        mass = view.mass.sum(axis=(1, 2))
        columns = {
            "attribute": name,
            "group": view.groups.names,
            "rows": view.size.astype(np.int64),
            "share": mass / mass.sum(),
            "judged": audit.judged[name],
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def rates_frame(audit: Audit) -> pd.DataFrame:
    """The rates of every group and overall, each with its own interval."""
    frames = []
    for attribute, table, names in _tables(audit):
        for rate, label, row in _rate_rows(audit, table):
            low, high = row.exact_interval(audit.alpha)
            columns = {
                "attribute": attribute,
                "group": names,
                "label": pd.Series([audit.label_values[label]] * len(names), dtype=object),
                "rate": rate,
                "value": row.value,
                "low": low,
                "high": high,
                "trials": row.trials,
            }
            frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def _rate_rows(audit: Audit, table: CountTable) -> Iterator[tuple[str, int, Proportion]]:
    """The rates of a table's groups, of each label shown (-1 for none)."""
    for rate, proportions in table.rates.items():
        for label in [-1] if rate == "accuracy" else audit.shown_labels:
            yield rate, label, proportions.row(label)


def _tables(audit: Audit) -> Iterator[tuple[str, CountTable, Sequence[str]]]:
    """The counts of every way of grouping, by group and of everyone, with the names of groups."""
    for attribute, view in audit.views.items():
        yield attribute, view, view.groups.names
        yield attribute, view.together(), (OVERALL,)


def levels_frame(audit: Audit) -> pd.DataFrame:
    """The levels of every measure with their intervals, and whether they surely are beyond."""
    frames = []
    for finding in audit.findings:
        comparison, (low, high) = finding.comparison, finding.level_intervals
        groups = np.asarray([*finding.table.groups.names, ""], dtype=object)
        columns = {
            "measure": finding.measure,
            "attribute": finding.attribute,
            "name": list(comparison.names),
            "group": groups[comparison.group],
            "label": pd.Series(audit.label_values[comparison.label], dtype=object),
            "level": finding.levels,
            "low": low,
            "high": high,
            "beyond": finding.beyond,
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def figures_frame(audit: Audit) -> pd.DataFrame:
    """Differences and ratios by their known names, with intervals.

    `judged` is the value among the groups that have enough rows to be judged.
    """
    rows: list[tuple[Any, ...]] = []
    for name, view in audit.views.items():
        gaps = _gaps(view, audit)
        judged = (value for *_, value, _, _ in _gaps(view.take(audit.judged[name]), audit))
        rows += [(name, *gap, value) for gap, value in zip(gaps, judged, strict=True)]
    columns = ["attribute", "label", "figure", "value", "low", "high", "judged"]
    frame = pd.DataFrame(rows, columns=columns)
    # As objects: pandas would turn integers beside None into floats.
    return frame.assign(label=pd.Series(audit.label_values[frame["label"]], dtype=object))


def _gaps(table: CountTable, audit: Audit) -> Iterator[tuple[int, str, float, float, float]]:
    """The label, name, value and interval of each difference and ratio of a table's groups.

    Groups are compared with each other, as fairlearn does; levels compare them with everyone. Of
    several rates of a family the worst one counts. NaN if fewer than two groups have the rate.
    """
    for family, names in GAP_RATES.items():
        if not table.rates.keys() >= set(names):  # needs true labels
            continue
        for label in [-1] if family == "accuracy" else audit.shown_labels:
            rates = [table.rates[name].row(label) for name in names]
            rates = [rate.pick(rate.total > 0) for rate in rates if (rate.total > 0).sum() > 1]
            difference = ratio = (float("nan"), 0.0, 1.0)
            if rates:
                largest = max(float(np.ptp(rate.value)) for rate in rates)
                low, high = map(float, largest_difference(rates, audit.alpha / 2))
                difference = (largest, low, high)
            # 0 / 0: if no group has the rate, the ratio is not defined.
            rated = [rate for rate in rates if rate.value.max() > 0]
            if rated:
                smallest = min(float(impact_ratios(rate.value).min()) for rate in rated)
                low, high = map(float, smallest_ratio(rated, audit.alpha / 2))
                ratio = (smallest, low, high)
            yield (label, f"{family}_difference", *difference)
            yield (label, f"{family}_ratio", *ratio)


def changes_frame(audit: Audit) -> pd.DataFrame:
    """Rates of every group under the baseline and now; no rows without a baseline.

    `change` has its own interval from `low` to `high`; `up` and `down` are the rows that get and
    lose what the rate counts, `net` their difference. The rows are the same, so the change is a
    paired difference.
    """
    keys = ["attribute", "group", "label", "rate"]
    figures = ["before", "after", "change", "low", "high", "up", "down", "net"]
    if audit.baseline is None or audit.moves is None:
        return pd.DataFrame(columns=[*keys, *figures])
    before, after = audit.baseline.to_frame("rates"), audit.to_frame("rates")
    frame = after[keys].assign(before=before["value"], after=after["value"])
    frame = frame.assign(change=frame["after"] - frame["before"])
    ends = []
    for attribute, table, names in _tables(audit):
        moves = [move.view(*audit.views[attribute].groups.attributes) for move in audit.moves]
        if names == (OVERALL,):
            moves = [move.together() for move in moves]
        for rate, label, row in _rate_rows(audit, table):
            if rate in {"base_rate", "precision"}:
                # One is the data's own, the other is about other rows each time.
                ends.append(np.full((4, len(names)), np.nan))
            else:
                hits = rate_masks(table.n_labels)[rate][0][[max(label, 0)]]
                interval = change_interval(moved(moves, hits)[:, 0], row, audit.alpha)
                ends.append(np.stack([*interval, *moved(moves, hits, people=True)[:, 0]]))
    columns = zip(("low", "high", "up", "down"), np.concatenate(ends, axis=1), strict=True)
    frame = frame.assign(**dict(columns))
    return frame.assign(net=frame["up"] - frame["down"])


def sides_frame(audit: Audit) -> pd.DataFrame:
    """Who changes sides: rows by group, true label and both predictions, where the two differ."""
    columns = ["group", "true", "from", "to"]
    if audit.baseline is None:
        return pd.DataFrame(columns=[*columns, "rows"])
    names, labels = np.asarray(audit.table.groups.names, dtype=object), audit.label_values
    before, after = audit.baseline.predicted, audit.predicted
    changed = before != after
    label, group = audit.rows.label[changed], audit.rows.group[changed]
    cells = (names[group], labels[label], labels[before[changed]], labels[after[changed]])
    frame = pd.DataFrame(dict(zip(columns, cells, strict=True)), dtype=object)
    if not audit.has_labels:
        frame["true"] = "not known"
    frame["rows"] = audit.times[changed].astype(np.int64)
    counted = frame.groupby(columns)["rows"].sum().reset_index()
    return counted.sort_values("rows", ascending=False, kind="stable").reset_index(drop=True)


def confusion_frame(audit: Audit) -> pd.DataFrame:
    """Rows of every group by true and predicted label, and their share of the true label's rows."""
    columns = ["attribute", "group", "true", "predicted", "rows", "share"]
    lines: list[tuple[Any, ...]] = []
    for attribute, table, names in _tables(audit) if audit.has_labels else ():
        truth = table.mass.sum(axis=2, keepdims=True)
        share = table.mass / np.where(truth > 0, truth, np.nan)
        keys = product([attribute], names, audit.labels, audit.labels)
        figures = zip(table.rows.ravel().astype(np.int64), share.ravel(), strict=True)
        lines += [(*key, *both) for key, both in zip(keys, figures, strict=True)]
    return pd.DataFrame(lines, columns=columns)


FRAMES: dict[str, Callable[[Audit], pd.DataFrame]] = {
    "verdicts": lambda audit: pd.DataFrame([_verdict(audit, f) for f in audit.findings]),
    "groups": groups_frame,
    "rates": rates_frame,
    "levels": levels_frame,
    "figures": figures_frame,
    "confusion": confusion_frame,
    "changes": changes_frame,
    "sides": sides_frame,
    "scores": lambda audit: audit.score_frames["scores"],
    "roc": lambda audit: audit.score_frames["roc"],
    "calibration": lambda audit: audit.score_frames["calibration"],
    "subgroups": lambda audit: (
        pd.DataFrame(columns=SUBGROUP_COLUMNS) if audit.subgroups is None else audit.subgroups.frame
    ),
}
