"""All words about measures, verdicts and rates that people read: terminal, model card, report."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.verdicts import Change, Finding
    from fairgrad.groups import Groups

SIGNS = {FAIR: "✓", UNFAIR: "✗", UNDECIDED: "?"}
"""A sign beside each verdict: colour alone would not do."""
OVERALL = "overall"
"""Stands for everyone where groups are listed."""

TITLES = {
    "accuracy_parity": "Accuracy parity",
    "equalized_odds": "Equalized odds",
    "equality_of_opportunity": "Equality of opportunity",
    "demographic_parity": "Demographic parity",
    "four_fifths_rule": "Four-fifths rule",
}

MEASURES = {
    "accuracy_parity": "Are predictions right equally often in every group? The level F of a group "
    "is its accuracy minus the accuracy over everyone.",
    "equalized_odds": "Among people with the same true label, is that label predicted equally "
    "often in every group? The level F of a label in a group is its recall there minus its recall "
    "over everyone. With more than two labels this looks at each label's recall only, not at "
    "which other label was predicted by mistake.",
    "equality_of_opportunity": "Among people whose true label is the desirable one, is it "
    "predicted equally often in every group? The level F is the group's recall minus the recall "
    "over everyone. As in the FairGrad paper, unfairness is the mean over all labels and groups, "
    "with 0 for the other labels; over the desirable labels alone it would be larger.",
    "demographic_parity": "Is each label predicted equally often in every group, whatever the "
    "true label? The level F of a label in a group is its selection rate there minus its "
    "selection rate over everyone.",
    "four_fifths_rule": "Is every group's selection rate at least four fifths of the highest "
    "group's? The verdict is about this ratio, smallest over largest. The level F shown is the "
    "rate minus 0.8 of the rate over everyone, the form used in training, which asks for less; "
    "unfairness is the mean of what the levels lie below 0.",
}
OWN_MEASURE = "A measure of your own: levels are c0 + C e, where e are the cells' error rates."

LEVELS = (
    "Levels compare each group with everyone (the overall rate), not with the best-off group: "
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
SIMULTANEOUS = (
    "Intervals of levels, differences and ratios hold for all groups of a comparison at once with "
    "at least {level}: Clopper-Pearson per cell at the Bonferroni level, then interval arithmetic. "
    "They take the sizes of groups and labels as given, and do not correct for looking at several "
    "measures."
)
VERDICTS = (
    "Fair within tolerance: the whole interval lies within it. Unfair: the whole interval lies "
    "beyond it. Undecided: the data allow both."
)


def title(measure: str) -> str:
    """A measure's name for people."""
    return TITLES.get(measure, measure.replace("_", " "))


def heading(finding: Finding) -> str:
    """What a finding is about: the measure and whose groups."""
    return f"{title(finding.measure)}, {finding.attribute}"


def convention(measure: str) -> str:
    """What a measure asks, and how its level is computed."""
    return MEASURES.get(measure, OWN_MEASURE)


def signed(verdict: str) -> str:
    """A verdict after its sign."""
    return f"{SIGNS[verdict]} {verdict}"


def counted(audit: Audit) -> str:
    """How many comparisons have which verdict."""
    verdicts = [finding.verdict for finding in audit.findings]
    parts = [f"{verdicts.count(word)} {word}" for word in SIGNS if word in verdicts]
    return f"Of {len(verdicts)} comparisons: {', '.join(parts)}."


def intervals(audit: Audit) -> list[str]:
    """How the intervals are to be read."""
    level = f"{100 * audit.confidence:.4g} % confidence"
    single = POINTWISE_WEIGHTED if audit.is_weighted else POINTWISE
    return [single.format(level=level), SIMULTANEOUS.format(level=level), VERDICTS]


def desirable(audit: Audit) -> str:
    """The labels taken as desirable."""
    return ", ".join(str(label) for label in audit.desirable) or "none named"


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
    return f"More rows would settle it, if the rates stay as they are: about {said}."


def who_gained(change: Change) -> str:
    """Who has a better, a worse, or a partly better and worse rate than under the baseline."""
    rate = change.after.comparison.rate
    if not change.after.comparison.good.any():
        return "No label is named desirable, so a higher selection rate is neither gain nor loss."
    named = {
        "Gained": change.gained(),
        "Lost": change.lost(),
        "Gained for one label, lost for another": change.mixed(),
    }
    said = [f"{word} ({rate}): {listed(names, most=8)}." for word, names in named.items() if names]
    return " ".join(said) or f"No group's {rate} changed noticeably."


def _rounded_up(number: int) -> int:
    """Two significant digits: more would promise too much."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return unit * ((number + unit - 1) // unit)


LONGEST = 80
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
