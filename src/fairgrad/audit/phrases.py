"""Short phrases that the terminal summary, the model card and the report share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.audit.names import in_sentence, listed
from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR

if TYPE_CHECKING:
    from fairgrad.audit.changes import Change
    from fairgrad.audit.findings import Finding
    from fairgrad.groups import Groups

SIGNS = {FAIR: "✓", UNFAIR: "✗", UNDECIDED: "?"}
"""A sign beside each verdict: colour alone would not do."""


def short_names(groups: Groups) -> list[str]:
    """Groups by their values alone, where the attributes are named above."""
    return [
        ", ".join(str(values[code]) for values, code in zip(groups.values, codes, strict=True))
        for codes in groups.codes
    ]


def extreme(found: tuple[str, float]) -> str:
    """The best or worst off cell with its level."""
    name, level = found
    return f"{in_sentence(name)} ({level:+.3f})" if name else "not defined"


def judged(finding: Finding) -> str:
    """What the verdict looks at."""
    return {"level": "largest |F|", "ratio": "ratio", "bounds": "beyond bounds"}[
        finding.tolerance.kind
    ]


def limit(finding: Finding) -> str:
    """What is still fair."""
    kind, value = finding.tolerance.kind, finding.tolerance.value
    return {"level": f"≤ {value:.3g}", "ratio": f"≥ {value:.3g}", "bounds": "own bounds"}[kind]


def advice(finding: Finding) -> str:
    """For an undecided verdict: what would settle it."""
    if finding.verdict != UNDECIDED:
        return ""
    more = finding.more_rows
    if more is None:
        return "No number of rows would settle it: the figure is at the tolerance, or not defined."
    largest = sorted(more.items(), key=lambda item: -item[1])
    parts = [f"{_rounded_up(rows):,} of {in_sentence(name)}" for name, rows in largest[:3]]
    rest = sum(rows for _, rows in largest[3:])
    parts += [f"{_rounded_up(rest):,} of {_others(len(largest) - 3)}"] if rest else []
    return f"More rows would settle it, if the rates stay as they are: about {_and(parts)}."


def who_gained(change: Change) -> str:
    """Who has a better, a worse, or a partly better and worse rate than under the baseline."""
    rate = change.after.comparison.rate
    if change.after.comparison.good.max() == change.after.comparison.good.min() == 0:
        return "No label is named desirable, so a higher selection rate is neither gain nor loss."
    named = {
        "Gained": change.gained(),
        "Lost": change.lost(),
        "Gained in one label, lost in another": change.mixed(),
    }
    said = [f"{word} ({rate}): {listed(names, most=8)}." for word, names in named.items() if names]
    return " ".join(said) or f"No group's {rate} changed noticeably."


def _rounded_up(number: int) -> int:
    """Two significant digits: more would promise too much."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return unit * ((number + unit - 1) // unit)


def _others(count: int) -> str:
    return "another group" if count == 1 else f"{count} other groups"


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
