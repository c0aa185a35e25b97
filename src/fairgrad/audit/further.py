"""What an audit shows on the terminal beyond its rates: scores, thresholds, mistakes, subgroups."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fairgrad.audit import scores, subgroups, thresholds, words
from fairgrad.audit.layout import FittedTable, Paragraph
from fairgrad.audit.words import OVERALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.layout import Cell
    from fairgrad.audit.verdicts import Finding

MOST_GROUPS, MOST_LABELS, MOST_MISTAKES = 40, 6, 10
ABOUT = {
    "scores": scores.METHOD,
    "calibration": scores.CALIBRATION,
    "thresholds": thresholds.SAME_ROWS,
    "subgroups": subgroups.ABOUT,
}
"""What the figures of each part are."""


def shown(audit: Audit) -> list[Any]:
    """The tables, with what they are; nothing where there is nothing to say."""
    parts: list[Any] = []
    if len(audit.labels) > 2 and audit.has_labels:
        parts += [_mistakes(audit, view) for view in audit.views]
    if audit.scores:
        parts += [_scores(audit, view) for view in audit.views]
    if audit.thresholds is not None:
        parts.append(_thresholds(audit))
    if audit.subgroups is not None:
        parts += [_subgroups(audit.subgroups), Paragraph(audit.subgroups.sentence)]
    return parts


def how_to_read(audit: Audit) -> list[str]:
    """What the figures of these tables are."""
    parts = {
        "scores": bool(audit.scores),
        "calibration": bool(audit.scores) and audit.scores[0].is_probability,
        "thresholds": audit.thresholds is not None,
        "subgroups": audit.subgroups is not None,
    }
    return [ABOUT[name] for name, is_shown in parts.items() if is_shown]


def _scores(audit: Audit, view: str) -> FittedTable:
    """AUC, and with one label the calibration, of the largest groups."""
    frame = audit.to_frame("scores")
    frame = frame[frame["attribute"] == view]
    labels = [audit.label_value(index) for index in audit.shown_labels]
    table, several = audit.views[view], len(labels) > 1
    short = dict(zip(table.groups.names, words.short_names(table.groups), strict=True))
    names = [table.groups.names[g] for g in table.largest(MOST_GROUPS)] + [OVERALL]
    found = {(row["group"], row["label"]): row for row in frame.to_dict(orient="records")}
    rows: list[list[Cell]] = []
    for name in names:
        own = [found.get((name, label)) for label in labels[: MOST_LABELS if several else 1]]
        if own[0] is None:
            continue
        cells = [_with_half(row, "auc", "auc_low", "auc_high") for row in own if row is not None]
        if not several:
            cells += [f"{own[0]['mean_score']:.3f}", f"{own[0]['base_rate']:.3f}"]
            cells.append(
                _with_half(own[0], "calibration_gap", "calibration_low", "calibration_high", "+")
            )
        rows.append([short.get(name, name), f"{own[0]['rows']:,}", *cells])
    heads = [f"AUC {label}" for label in labels[:MOST_LABELS]] if several else ["AUC"]
    heads += [] if several else ["mean score", "base rate", "calibration gap"]
    more = len(labels) - MOST_LABELS if several else 0
    rest = (
        f"... {words.n_of(more, 'more label')}; the JSON and the report have all."
        if more > 0
        else ""
    )
    of = "" if several else f" of {audit.target}={labels[0]}"
    return FittedTable(f"Scores{of} by {view}", ["Group", "rows", *heads], rows, rest=rest, last=1)


def _with_half(row: Mapping[Any, Any], value: str, low: str, high: str, sign: str = "") -> str:
    middle = row[value]
    if math.isnan(middle):
        return "-"
    half = max(middle - row[low], row[high] - middle)
    return f"{middle:{sign}.3f}±{half:.3f}"


def _thresholds(audit: Audit) -> FittedTable:
    """Every measure now, and at the most accurate threshold at which it holds."""
    sweep = audit.thresholds
    assert sweep is not None  # noqa: S101 - the caller looked
    rows: list[list[Cell]] = []
    for finding in audit.asked:
        best = best_holding(audit, finding)
        now = f"{finding.judgement.value:.3f}"
        cells = ["-"] * 3
        if best is not None:
            cells = [
                f"{best['threshold']:.3g}",
                f"{best['value']:.3f}",
                _accuracy(best["accuracy"]),
            ]
        rows.append([words.title(finding.measure), finding.attribute, now, *cells])
    at = "now" if sweep.present is None else f"now, at {sweep.present:.3g}"
    return FittedTable(
        "Thresholds: the most accurate at which a measure holds",
        ["Measure", "groups by", at, "holds at", "with", "accuracy"],
        rows,
        texts=2,
        rest=f"Accuracy now {_accuracy(audit.accuracy)}.",
    )


def best_holding(audit: Audit, finding: Finding) -> Mapping[Any, Any] | None:
    """The most accurate threshold at which a measure holds."""
    frame = audit.to_frame("holding")
    own = frame[
        (frame["measure"] == finding.measure) & (frame["attribute"] == finding.attribute)
    ].to_dict(orient="records")
    return max(own, key=lambda row: row["accuracy"]) if own else None


def _accuracy(value: float) -> str:
    return f"{100 * value:.1f} %"


def _mistakes(audit: Audit, view: str) -> FittedTable:
    """The mistakes that groups have most often, by their share of the true label's rows."""
    frame = audit.to_frame("confusion")
    wrong = frame[(frame["attribute"] == view) & (frame["true"] != frame["predicted"])]
    wrong = wrong[(wrong["rows"] > 0) & (wrong["group"] != OVERALL)]
    largest = wrong.sort_values(["share", "rows"], ascending=False, kind="stable")
    table = audit.views[view]
    short = dict(zip(table.groups.names, words.short_names(table.groups), strict=True))
    judged = {n for n, ok in zip(table.groups.names, audit.judged(view), strict=True) if ok}
    largest = largest[largest["group"].isin(judged)].head(MOST_MISTAKES)
    rows: list[list[Cell]] = [
        [
            short[row["group"]],
            f"{row['true']} → {row['predicted']}",
            f"{row['rows']:,}",
            f"{100 * row['share']:.1f}",
        ]
        for row in largest.to_dict(orient="records")
    ] or [["none", "-", "0", "0.0"]]
    return FittedTable(
        f"Most frequent mistakes by {view}",
        ["Group", "true → predicted", "rows", "% of the true"],
        rows,
        texts=2,
        rest="The JSON and the report have all labels of all groups.",
    )


def _subgroups(found: subgroups.SubgroupSearch) -> FittedTable:
    rows: list[list[Cell]] = [
        [
            one.name,
            rate_name(one),
            f"{one.rows:,}",
            f"{one.gap:+.3f}",
            f"{one.low:+.2f} to {one.high:+.2f}",
            "yes" if one.is_confirmed else "no",
        ]
        for one in found.subgroups
    ]
    heads: Sequence[str] = ["Subgroup", "rate", "rows", "gap", "interval", "confirmed"]
    nothing: list[list[Cell]] = [["none with enough rows", "-", "-", "-", "-", "-"]]
    return FittedTable("Look here: subgroups with large gaps", heads, rows or nothing, texts=2)


def rate_name(one: subgroups.Subgroup) -> str:
    """The rate a subgroup was found by."""
    if one.label is None:
        return "accuracy"
    is_selection = one.measure in {"demographic_parity", "four_fifths_rule"}
    return f"{'selected' if is_selection else 'recall of'} {one.label}"
