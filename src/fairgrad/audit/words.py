"""Names and phrases that people read: measures, rates, verdicts, lists of names."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING

from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR
from fairgrad.definitions import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Groups

SIGNS = {FAIR: "✓", UNFAIR: "✗", UNDECIDED: "?"}
"""A sign beside each verdict: colour alone would not do."""
OVERALL = "overall"
"""Stands for everyone where groups are listed."""

BOUND = (
    "Does every group's rate keep the bound? The level F of a group is its rate minus the bound; "
    "unfairness is the mean of what breaks it."
)
OWN_MEASURE = "A measure of your own: levels are c0 + C e, where e are the cells' error rates."

LEVELS = (
    "Levels compare each group with all rows of known group, not with the best-off group: "
    "above 0 a group is better off than average, below 0 worse off. Unfairness is the mean of |F|, "
    "or, for a measure with one bound only, of what breaks that bound. The verdict looks at the "
    "largest |F|, or at the figure named beside it."
)

FIGURES = {
    "demographic_parity_difference": "largest minus smallest selection rate of the groups; 0 is "
    "fair",
    "demographic_parity_ratio": "smallest over largest selection rate of the groups; 1 is fair",
    "equalized_odds_difference": "the larger of two gaps between groups, in true positive rate and "
    "in false positive rate (the worst case, not the mean); 0 is fair",
    "equalized_odds_ratio": "the smaller of two ratios between groups, of true positive rates and "
    "of false positive rates (the worst case, not the mean); 1 is fair",
    "equal_opportunity_difference": "largest minus smallest true positive rate of the groups; 0 is "
    "fair",
    "equal_opportunity_ratio": "smallest over largest true positive rate of the groups; 1 is fair",
    "accuracy_difference": "largest minus smallest accuracy of the groups; 0 is fair",
    "accuracy_ratio": "smallest over largest accuracy of the groups; 1 is fair",
}
FIGURES_NOTE = (
    "Differences and ratios compare groups with each other (fairlearn's between_groups), so they "
    "are larger than the levels, which compare with everyone. A group in which a rate is not "
    "defined is left out (fairlearn counts such a rate as 0)."
)

RATES = {
    "base_rate": "how often the label is true",
    "accuracy": "how often the prediction is right",
    "selection_rate": "how often the label is predicted",
    "true_positive_rate": "how often the label is predicted where it is true (recall)",
    "false_positive_rate": "how often the label is predicted where it is not true",
    "precision": "how often the label is true where it is predicted",
}

POINTWISE = (
    "Intervals of single rates are exact (Clopper-Pearson); each holds by itself with {level}."
)
POINTWISE_WEIGHTED = (
    "Intervals of single rates are approximate, because rows have weights: Clopper-Pearson with "
    "Kish's effective number of rows; each holds by itself with about {level}."
)
LEVEL_INTERVALS = (
    "Intervals of levels, differences and ratios are MOVER's (Zou and Donner 2008; of ratios "
    "Donner and Zou 2012), made of Clopper-Pearson limits of the rates{weighted}; that of a level "
    "holds by itself with {level}. The shares of the groups in the overall rate are estimates, "
    "too."
)
VERDICTS = (
    "Fair within tolerance: the intervals of all levels lie within it; if some level is in truth "
    "beyond, this is said at most {error} of the time, however many groups there are (an "
    "intersection-union test, Berger 1982). Unfair: some level lies beyond, corrected for the "
    "number of levels and of comparisons in the verdict (Holm 1979); if all are in truth within, "
    "this is said of any of them at most {error} of the time. Undecided: the data allow both. An "
    "interval that ends exactly at the tolerance was decided by its one-sided limit there (Hsu et "
    "al. 1994)."
)
METHOD = {
    "rates": "Clopper-Pearson",
    "levels": "MOVER of Clopper-Pearson limits, each level by itself",
    "figures": "MOVER of Clopper-Pearson limits; lower limits of the largest difference, and upper "
    "ones of the smallest ratio, share the error among all pairs of groups",
    "fair": "intersection-union test: every level within the tolerance, each at the full error",
    "unfair": "some level beyond the tolerance, Holm over the levels and over all findings asked "
    "for",
    "references": [
        "Clopper, Pearson (1934), Biometrika 26",
        "Zou, Donner (2008), Statistics in Medicine 27",
        "Donner, Zou (2012), Statistical Methods in Medical Research 21",
        "Berger (1982), Technometrics 24",
        "Hsu, Hwang, Liu, Ruberg (1994), Biometrika 81",
        "Holm (1979), Scandinavian Journal of Statistics 6",
    ],
}
"""How the intervals and verdicts are made, for programs."""


def title(measure: str) -> str:
    """A measure's name for people."""
    known = DEFINITIONS.get(measure)
    return measure.replace("_", " ") if known is None else known.title


def heading(finding: Finding) -> str:
    """What a finding is about: the measure and whose groups."""
    return f"{title(finding.measure)}, {finding.attribute}"


def convention(measure: str) -> str:
    """What a measure asks, and how its level is computed."""
    known = DEFINITIONS.get(measure)
    if known is not None:
        return known.question
    bound = next((sign for sign in (" at least ", " at most ") if sign in measure), None)
    return OWN_MEASURE if bound is None else BOUND


def in_the_middle(measure: str) -> str:
    """A measure's name within a sentence: without a capital."""
    name = title(measure)
    return name[0].lower() + name[1:] if measure in DEFINITIONS else name


def severity(finding: Finding) -> float:
    """How far the figure of a verdict lies beyond what is fair, to name the worst of several."""
    value, limit = finding.judgement.value, finding.tolerance
    if math.isnan(value):
        return float("inf")
    return limit.value - value if limit.kind == "ratio" else value - limit.value


def in_words(finding: Finding) -> str:
    """What is still fair, in words."""
    kind, value = finding.tolerance.kind, finding.tolerance.value
    most, least = f"at most {value:.3g}", f"at least {value:.3g}"
    return {"level": most, "ratio": least, "bounds": "what lies within its own bounds"}[kind]


def n_of(number: int, noun: str) -> str:
    """A number of things: "1 row", "2 rows"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def people_of(number: int) -> str:
    """A number of people: "1 person", "2 people"."""
    return "1 person" if number == 1 else f"{number:,} people"


def conjoined(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def intervals(audit: Audit) -> list[str]:
    """How the intervals are to be read."""
    level = f"{100 * audit.confidence:.4g} % confidence"
    error = f"{100 * audit.alpha:.4g} %"
    single = POINTWISE_WEIGHTED if audit.is_weighted else POINTWISE
    weighted = " with effective numbers of rows, and approximate" if audit.is_weighted else ""
    return [
        single.format(level=level),
        LEVEL_INTERVALS.format(level=level, weighted=weighted),
        VERDICTS.format(error=error),
    ]


def short_names(groups: Groups) -> list[str]:
    """Groups by their values alone, where the attributes are named above."""
    return [
        ", ".join(str(values[code]) for values, code in zip(groups.values, codes, strict=True))
        for codes in groups.codes
    ]


def judged(findings: Iterable[Finding]) -> str:
    """What the verdicts look at."""
    names = {"level": "largest |F|", "ratio": "ratio", "bounds": "beyond bounds"}
    found = {names[finding.tolerance.kind] for finding in findings}
    return found.pop() if len(found) == 1 else "judged"


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
    rest, others = sum(rows for _, rows in largest[3:]), len(largest) - 3
    if rest:
        parts.append(
            f"{_rounded_up(rest):,} of {'another group' if others == 1 else f'{others} others'}"
        )
    said = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return (
        f"About {said} more would settle it four times out of five, if the rates are as observed."
    )


def _rounded_up(number: int) -> int:
    """Two significant digits: more would promise too much."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return unit * ((number + unit - 1) // unit)


LONGEST = 160
ISOLATE, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
LEFT_TO_RIGHT = frozenset(
    {"L", "EN", "ES", "ET", "AN", "CS", "NSM", "BN", "B", "S", "WS", "ON", ""}
)


def in_sentence(name: str) -> str:
    """A name cut to a bearable length; isolated if it holds text that runs right to left.

    Without the isolation one such name would turn around the rest of the sentence.
    """
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    if all(unicodedata.bidirectional(sign) in LEFT_TO_RIGHT for sign in short):
        return short
    return f"{ISOLATE}{short}{END}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, shortened when there are many."""
    shown = "; ".join(in_sentence(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}; and {len(names) - most} more"


def printable(text: object) -> str:
    """Text without characters that could steer a terminal."""
    plain = str(text).replace(ISOLATE, "").replace(END, "")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain)
