"""All words about measures, verdicts and rates that people read: terminal, model card, report."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.changes import Change
    from fairgrad.audit.verdicts import Finding
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
LEVEL_INTERVALS = (
    "Intervals of levels, differences and ratios are MOVER's (Zou and Donner 2008; of ratios "
    "Donner and Zou 2012), made of Clopper-Pearson limits of the rates{weighted}; that of a level "
    "holds by itself with {level}. They take the sizes of groups and labels as given, and do not "
    "correct for looking at several measures."
)
VERDICTS = (
    "Fair within tolerance: the intervals of all levels lie within it; if some level is in truth "
    "beyond, this is said at most {error} of the time, however many groups there are (an "
    "intersection-union test, Berger 1982). Unfair: some level lies beyond, corrected for the "
    "number of levels (Holm 1979); if all are in truth within, this is said at most {error} of the "
    "time. Undecided: the data allow both. An interval that ends exactly at the tolerance was "
    "decided by its one-sided limit there (Hsu et al. 1994)."
)
METHOD = {
    "rates": "Clopper-Pearson",
    "levels": "MOVER of Clopper-Pearson limits, each level by itself",
    "figures": "MOVER of Clopper-Pearson limits; lower limits of the largest difference, and upper "
    "ones of the smallest ratio, share the error among all pairs of groups",
    "fair": "intersection-union test: every level within the tolerance, each at the full error",
    "unfair": "some level beyond the tolerance, Holm over the levels",
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


def conclusion(audit: Audit) -> str:
    """The verdict in one sentence: by what, on whom, how accurate, and what is desirable."""
    verdict = audit.verdict
    decisive = [finding for finding in audit.asked if finding.verdict == verdict]
    names = list(dict.fromkeys(in_the_middle(finding.measure) for finding in decisive))
    grouped = list(dict.fromkeys(finding.attribute for finding in decisive))
    of = "" if len(decisive) == len(audit.asked) else f" in {len(decisive)} of {len(audit.asked)}"
    of += " comparisons" if of else ""
    by = f"{verdict.capitalize()}{of} by {conjoined(names)}, groups by {conjoined(grouped)}"
    small = not_judged_people(audit)
    if small:
        by += f", for groups of at least {_least(audit)} rows ({small})"
    worst = max(decisive, key=severity)
    which = f" of {in_the_middle(worst.measure)}" if len(names) > 1 else ""
    which += f" by {worst.attribute}" if len(grouped) > 1 else ""
    return (
        f"{by}; {judged([worst])} {_with_ends(worst)}{which}, fair is {in_words(worst)}; "
        f"{accuracies(audit)}{n_of(audit.table.n_rows, 'row')}; {useless(audit)}"
        f"{desirable_value(audit)}."
    )


def useless(audit: Audit) -> str:
    """If one label for everybody would do as well: equal for all groups, and of no use to any."""
    rows, labels = audit.table.mass.sum(axis=0), audit.table.groups.labels
    predicted, truth = rows.sum(axis=0), rows.sum(axis=1)
    if (predicted > 0).sum() == 1:
        return f"of no use, as every row is predicted {labels[predicted.argmax()]}; "
    if not audit.has_labels:
        return ""
    share, most = truth.max() / truth.sum(), labels[truth.argmax()]
    if audit.accuracy <= share:
        return f"predicting {most} for everybody would be right in {100 * share:.1f} %; "
    return ""


def in_the_middle(measure: str) -> str:
    """A measure's name within a sentence: without a capital."""
    name = title(measure)
    return name[0].lower() + name[1:] if measure in TITLES else name


def severity(finding: Finding) -> float:
    """How far the figure of a verdict lies beyond what is fair, to name the worst of several."""
    value, limit = finding.judgement.value, finding.tolerance
    if math.isnan(value):
        return float("inf")
    return limit.value - value if limit.kind == "ratio" else value - limit.value


def _with_ends(finding: Finding) -> str:
    value, low, high, _ = finding.judgement
    return "not defined" if math.isnan(value) else f"{value:.3f} ({low:.3f} to {high:.3f})"


def in_words(finding: Finding) -> str:
    """What is still fair, in words."""
    kind, value = finding.tolerance.kind, finding.tolerance.value
    most, least = f"at most {value:.3g}", f"at least {value:.3g}"
    return {"level": most, "ratio": least, "bounds": "what lies within its own bounds"}[kind]


def accuracies(audit: Audit) -> str:
    """The accuracy, and that of the baseline, on ...; without true labels nothing of the kind."""
    if not audit.has_labels:
        return "no true labels, "
    said = f"accuracy {100 * audit.accuracy:.1f} %"
    if audit.baseline is None:
        return f"{said} on "
    return f"{said} ({audit.baseline_name} {100 * audit.baseline.accuracy:.1f} %) on "


def desirable_value(audit: Audit) -> str:
    """Which value of the target is desirable."""
    target = in_sentence(audit.target)
    return (
        f"desirable {target}: {desirable(audit)}"
        if audit.desirable
        else (f"no value of {target} is named desirable")
    )


def not_judged_people(audit: Audit) -> str:
    """How many people are in groups too small to judge, by way of grouping; empty if none are."""
    views = dict.fromkeys(f.attribute for f in audit.asked if f.attribute in audit.views)
    people = {view: int(audit.views[view].size[~audit.judged(view)].sum()) for view in views}
    found = {view: n for view, n in people.items() if n}
    if not found:
        return ""
    if len(views) == 1:
        return f"{people_of(*found.values())} not judged"
    parts = [f"{people_of(n)} by {view}" for view, n in found.items()]
    return f"not judged: {conjoined(parts)}"


def _least(audit: Audit) -> str:
    views = dict.fromkeys(f.attribute for f in audit.asked if f.attribute in audit.views)
    return conjoined(list(dict.fromkeys(f"{audit.least_rows(view):,}" for view in views)))


def n_of(number: int, noun: str) -> str:
    """A number of things: "1 row", "2 rows"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def people_of(number: int) -> str:
    """A number of people: "1 person", "2 people"."""
    return "1 person" if number == 1 else f"{number:,} people"


def conjoined(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(findings: Sequence[Finding]) -> str:
    """How many comparisons have which verdict."""
    verdicts = [finding.verdict for finding in findings]
    parts = [f"{verdicts.count(word)} {word}" for word in SIGNS if word in verdicts]
    return f"Of {n_of(len(verdicts), 'comparison')}: {', '.join(parts)}."


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
    return (
        f"About {said} more would settle it four times out of five, if the rates are as observed."
    )


def figure(finding: Finding) -> tuple[str, float]:
    """The figure that tells one model from another: mean |F|, or the ratio that is judged."""
    if finding.tolerance.kind == "ratio":
        return "ratio", finding.judgement.value
    return "mean |F|", finding.unfairness


def before_and_after(change: Change) -> str:
    """That figure of both models."""
    (name, before), (_, after) = figure(change.before), figure(change.after)
    return f"{name} {before:.3f} → {after:.3f}"


def who_gained(change: Change) -> str:
    """Who has a better, a worse, or a partly better and worse rate than under the baseline.

    Only what the intervals of the changes say for sure.
    """
    rate = change.after.comparison.rate
    if not change.after.comparison.good.any():
        return "No label is named desirable, so a higher selection rate is neither gain nor loss."
    named = {
        "Gained": change.gained(),
        "Lost": change.lost(),
        "Gained for one label, lost for another": change.mixed(),
    }
    said = [f"{word} ({rate}): {listed(names, most=8)}." for word, names in named.items() if names]
    return " ".join(said) or f"No group's {rate} surely changed."


def all_who_gained(changes: Sequence[Change]) -> list[str]:
    """Who gained and who lost by each measure; those without a sure change in one sentence."""
    sure = [change for change in changes if change.direction.any()]
    said = [f"{heading(change.after)}: {who_gained(change)}" for change in sure]
    rest = len(changes) - len(sure)
    if rest:
        which = "the other" if sure else "the"
        said.append(f"By {which} {n_of(rest, 'comparison')} no group surely gained or lost.")
    return list(dict.fromkeys(said))


def in_people(change: Change, most: int = 6) -> list[str]:
    """Who surely gained or lost, in people: the largest first."""
    comparison, names = change.after.comparison, change.after.table.groups.names
    groups = change.after.table.groups
    moved = change.moves.of_cells(comparison, people=True)
    n_groups = len(names)
    found = []
    for k in np.flatnonzero(change.direction).tolist():
        row, g = k // n_groups, comparison.cell_group[k]
        net = int(moved[0, k] - moved[1, k])
        if net:
            by_label = len(comparison.cell_group) > n_groups
            label = comparison.only_label if comparison.only_label >= 0 else row if by_label else -1
            said = _in_people(comparison.rate, net, groups.label_name, groups.labels, label)
            found.append((abs(net), f"{in_sentence(names[g])}: {said}"))
    shown = [said for _, said in sorted(found, key=lambda one: -one[0])]
    rest = len(shown) - most
    return shown if rest <= 0 else [*shown[:most], f"{rest} more"]


def _in_people(rate: str, net: int, target: str, labels: Any, label: int) -> str:
    more = f"{abs(net):,} {'more' if net > 0 else 'fewer'}"
    are = "is" if abs(net) == 1 else "are"
    if rate == "selection rate":
        return f"{more} {are} predicted {labels[label]}"
    if rate == "error rate":
        return f"{more} {are} predicted wrongly"
    if label < 0:
        return f"{more} {are} predicted rightly"
    of = f"of those whose {target} is {labels[label]}"
    return f"{more} {of} {are} predicted {labels[label]}"


def impact(audit: Audit) -> str:
    """Who gained and who lost by the measures asked for, in people, in one sentence."""
    changes = [change for change in audit.changes if change.after.is_asked]
    if not changes:
        return ""
    parts = list(dict.fromkeys(part for change in changes for part in in_people(change, most=4)))
    against = f"Compared with {audit.baseline_name}"
    if not parts:
        return f"{against}, no group surely gained or lost."
    shown = parts[:6]
    more = f"; and {len(parts) - 6} more below" if len(parts) > 6 else ""
    return f"{against}: {'; '.join(shown)}{more}."


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
