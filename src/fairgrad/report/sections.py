"""What each section of the page shows, as plain values for the template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.audit import FAIR, UNDECIDED, UNFAIR, phrases, wording
from fairgrad.report.figure import number, percent
from fairgrad.report.frontier import point_names
from fairgrad.report.rates import MOST_GROUPS

if TYPE_CHECKING:
    from fairgrad.audit import Audit, Finding
    from fairgrad.report.figure import Figure
    from fairgrad.report.frontier import FrontierData

CLASSES = {FAIR: "good", UNFAIR: "bad", UNDECIDED: "open"}


def of_audit(audit: Audit, figures: dict[str, list[Figure]]) -> dict[str, Any]:
    """Everything the page says about an audit."""
    return {
        "overall": verdict(audit.verdict) | {"words": _overall(audit)},
        "cards": [_card(finding) for finding in audit.findings],
        "warnings": [notice.message for notice in audit.warnings],
        "facts": _facts(audit),
        "groups": _groups(audit),
        "levels": _levels(audit, figures["levels"]),
        "rates": _views(audit, figures, "rates"),
        "changes": _views(audit, figures, "changes"),
        "gains": [_gain(change) for change in audit.changes],
        "figures": _named_figures(audit),
        "reading": _reading(audit),
    }


def verdict(word: str) -> dict[str, str]:
    """A verdict with its sign and its style."""
    return {"word": word, "sign": phrases.SIGNS[word], "style": CLASSES[word]}


def frontier(given: FrontierData | None, figures: dict[str, list[Figure]]) -> dict[str, Any] | None:
    """The frontier's charts, its points as a list, and each point's rates for the reader."""
    if given is None:
        return None
    return {
        "figures": figures["frontier"],
        "points": list(enumerate(point_names(given))),
        "chosen": 0 if given.chosen is None else int(given.chosen),
        "on": given.on,
        "note": given.note,
        "has_rates": given.rates is not None,
    }


def _overall(audit: Audit) -> str:
    counts = {word: sum(f.verdict == word for f in audit.findings) for word in CLASSES}
    parts = [f"{count} {word}" for word, count in counts.items() if count]
    return f"Of {len(audit.findings)} comparisons: {', '.join(parts)}."


def _card(finding: Finding) -> dict[str, Any]:
    judgement = finding.judgement
    return verdict(finding.verdict) | {
        "title": wording.title(finding.measure),
        "attribute": finding.attribute,
        "judged": phrases.judged(finding),
        "value": number(judgement.value, 3),
        "low": number(judgement.low, 3),
        "high": number(judgement.high, 3),
        "limit": phrases.limit(finding),
        "unfairness": number(finding.unfairness),
        "best": phrases.extreme(finding.best),
        "worst": phrases.extreme(finding.worst),
        "advice": phrases.advice(finding),
        "undefined": finding.n_undefined,
        "gauge": _gauge(finding),
    }


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
    rows = int(audit.table.size.sum())
    return {
        "Rows": f"{rows:,}",
        "Labels": ", ".join(str(label) for label in audit.labels),
        "Desirable label": ", ".join(str(label) for label in audit.desirable) or "none named",
        "Sensitive attributes": ", ".join(audit.attributes),
        "Confidence": f"{100 * audit.confidence:.4g} %",
        "Sample weights": "yes, intervals are approximate" if audit.is_weighted else "none",
        "Baseline": "given, compared below" if audit.baseline is not None else "none",
    }


def _groups(audit: Audit) -> list[dict[str, Any]]:
    frame = audit.to_frame("groups")
    found = []
    for name, view in audit.views.items():
        rows = frame[frame["attribute"] == name].to_dict(orient="records")
        shorts = phrases.short_names(view.groups)
        found.append(
            {
                "view": name,
                "rows": [
                    {
                        "name": short,
                        "rows": f"{row['rows']:,}",
                        "share": percent(row["share"]),
                        "width": 100 * row["share"],
                        "tiny": bool(row["tiny"]),
                    }
                    for short, row in zip(shorts, rows, strict=True)
                ],
            }
        )
    return found


def _views(audit: Audit, figures: dict[str, list[Figure]], part: str) -> list[dict[str, Any]]:
    return [
        {
            "view": name,
            "figures": figures[f"{part} {name}"],
            "left_out": max(len(view.size) - MOST_GROUPS, 0),
        }
        for name, view in audit.views.items()
        if f"{part} {name}" in figures
    ]


def _gain(change: Any) -> dict[str, str]:
    return {
        "title": wording.title(change.after.measure),
        "attribute": change.after.attribute,
        "before": number(change.before.unfairness),
        "after": number(change.after.unfairness),
        "before_verdict": f"{phrases.SIGNS[change.before.verdict]} {change.before.verdict}",
        "after_verdict": f"{phrases.SIGNS[change.after.verdict]} {change.after.verdict}",
        "words": phrases.who_gained(change),
    }


def _levels(audit: Audit, figures: list[Figure]) -> list[dict[str, Any]]:
    """By measure: what it asks, and its chart for each way of grouping."""
    found: dict[str, dict[str, Any]] = {}
    for finding, figure in zip(audit.findings, figures, strict=True):
        start = {
            "title": wording.title(finding.measure),
            "words": wording.convention(finding.measure),
            "charts": [],
        }
        part = found.setdefault(finding.measure, start)
        part["charts"].append((verdict(finding.verdict), figure))
    return list(found.values())


def _named_figures(audit: Audit) -> dict[str, Any]:
    """One row per figure, one column per way of grouping, and what the figure is."""
    several = len(audit.labels) > 2
    rows: dict[str, list[str]] = {}
    words = {}
    for row in audit.to_frame("figures").to_dict(orient="records"):
        label = f" ({row['label']})" if several and row["label"] is not None else ""
        name = f"{row['figure']}{label}"
        interval = f"{number(row['low'], 3)} to {number(row['high'], 3)}"
        rows.setdefault(name, []).append(f"{number(row['value'], 3)} ({interval})")
        words[name] = wording.FIGURES[row["figure"]]
    return {
        "columns": ["figure", *(f"by {view}" for view in audit.views), "what it is"],
        "rows": [[name, *cells, words[name]] for name, cells in rows.items()],
    }


def _reading(audit: Audit) -> dict[str, Any]:
    measures = dict.fromkeys(finding.measure for finding in audit.findings)
    return {
        "levels": wording.LEVELS,
        "figures": wording.FIGURES_NOTE,
        "measures": [(wording.title(name), wording.convention(name)) for name in measures],
        "rates": [(name.replace("_", " "), words) for name, words in wording.RATES.items()],
        "intervals": wording.intervals(audit.confidence, audit.is_weighted),
    }
