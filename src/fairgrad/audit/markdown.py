"""An audit as a section of a model card."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from fairgrad.audit import phrases, wording
from fairgrad.audit.frames import OVERALL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.audit.audit import Audit

MOST_GROUPS = 50


def to_markdown(audit: Audit) -> str:
    """Verdicts, rates per group, changes and how to read them, in Markdown."""
    parts = [
        "## Fairness audit",
        _opening(audit),
        "### Verdicts",
        _verdicts(audit),
        *_bullets(_advices(audit)),
        *[
            part
            for name in audit.views
            for part in (f"### Rates by {escape(name)}", _rates(audit, name))
        ],
        *_changes(audit),
        *_section("### Warnings", [notice.message for notice in audit.warnings]),
        *_section("### How to read these figures", _reading(audit)),
    ]
    return "\n\n".join(parts) + "\n"


def escape(text: object) -> str:
    """A user's text as text: nothing in it becomes Markdown or HTML."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    html = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", html)


def _opening(audit: Audit) -> str:
    labels = ", ".join(escape(label) for label in audit.labels)
    desirable = ", ".join(escape(label) for label in audit.desirable) or "none named"
    rows = int(audit.table.size.sum())
    return (
        f"{rows:,} rows; labels {labels}; desirable: {desirable}; {100 * audit.confidence:.4g} % "
        f"confidence. Overall: **{phrases.SIGNS[audit.verdict]} {audit.verdict}**."
    )


def _verdicts(audit: Audit) -> str:
    header = [
        "Measure",
        "Groups by",
        "mean \\|F\\|",
        "Judged",
        "Figure",
        "Interval",
        "Fair if",
        "Verdict",
    ]
    rows = [
        [
            wording.title(finding.measure),
            finding.attribute,
            f"{finding.unfairness:.4f}",
            phrases.judged(finding),
            f"{finding.judgement.value:.4f}",
            f"{finding.judgement.low:.4f} to {finding.judgement.high:.4f}",
            phrases.limit(finding),
            f"{phrases.SIGNS[finding.verdict]} {finding.verdict}",
        ]
        for finding in audit.findings
    ]
    return _table(header, rows)


def _advices(audit: Audit) -> list[str]:
    return [
        f"{wording.title(finding.measure)}, {finding.attribute}: {phrases.advice(finding)}"
        for finding in audit.findings
        if phrases.advice(finding)
    ]


def _rates(audit: Audit, attribute: str) -> str:
    frame = audit.to_frame("rates")
    frame = frame[frame["attribute"] == attribute]
    several = len(audit.labels) > 2
    columns = list(dict.fromkeys(zip(frame["rate"], frame["label"], strict=True)))
    records = frame.to_dict(orient="records")
    cells = {(row["group"], row["rate"], row["label"]): row for row in records}
    view = audit.views[attribute]
    sizes = dict(zip(view.groups.names, view.size, strict=True))
    names = [*sorted(sizes, key=lambda name: -sizes[name])[:MOST_GROUPS], OVERALL]
    sizes[OVERALL] = view.size.sum()
    header = ["Group", "Rows", *(_heading(rate, label, several) for rate, label in columns)]
    rows = [
        [
            name,
            f"{int(sizes[name]):,}",
            *(_percent(cells[name, rate, label]) for rate, label in columns),
        ]
        for name in names
    ]
    left_out = len(sizes) - len(names)
    note = f"\n\nThe {left_out} smallest groups are left out here." if left_out > 0 else ""
    return _table(header, rows) + note


def _heading(rate: str, label: object, several: bool) -> str:
    words = rate.replace("_", " ")
    return f"{words} ({label})" if several and label is not None else words


def _percent(row: Mapping[Any, Any]) -> str:
    value, low, high = (100 * row[name] for name in ("value", "low", "high"))
    return "not defined" if math.isnan(value) else f"{value:.1f} % ({low:.1f} to {high:.1f})"


def _changes(audit: Audit) -> list[str]:
    if audit.baseline is None:
        return []
    header = ["Measure", "Groups by", "mean \\|F\\| before", "now", "Who gained, who lost"]
    rows = [
        [
            wording.title(change.after.measure),
            change.after.attribute,
            f"{change.before.unfairness:.4f}",
            f"{change.after.unfairness:.4f}",
            phrases.who_gained(change),
        ]
        for change in audit.changes
    ]
    return ["### Against the baseline", _table(header, rows)]


def _reading(audit: Audit) -> list[str]:
    measures = dict.fromkeys(finding.measure for finding in audit.findings)
    asked = [f"{wording.title(name)}: {wording.convention(name)}" for name in measures]
    return [wording.LEVELS, *asked, *wording.intervals(audit.confidence, audit.is_weighted)]


def _section(title: str, sentences: Sequence[str]) -> list[str]:
    return [title, *_bullets(sentences)] if sentences else []


def _bullets(sentences: Sequence[str]) -> list[str]:
    lines = [f"- {escape(sentence)}" for sentence in sentences]
    return ["\n".join(lines)] if lines else []


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *([escape(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
