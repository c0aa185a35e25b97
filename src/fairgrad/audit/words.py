"""Names, phrases and warnings that people read: measures, rates, verdicts, lists of names."""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairgrad.audit.verdicts import FAIR, FOUR_FIFTHS, UNDECIDED, UNFAIR, gravest
from fairgrad.columns import UNKNOWN, counted
from fairgrad.definitions import DEFINITIONS
from fairgrad.groups import MIN_GROUP
from fairgrad.text import END, ISOLATE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.comparisons import Comparison
    from fairgrad.audit.counts import CountTable
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Groups

SIGNS = {FAIR: "✓", UNFAIR: "✗", UNDECIDED: "?"}
"""A sign beside each verdict: colour alone would not do."""
PLAIN = "the plain model"
"""The name of a baseline that was trained without the fairness constraint."""
PEOPLE = {"female": "women", "male": "men"}
"""Values of a column called sex or gender, as sentences name these people."""

RACES, RACE = {"race", "ethnicity"}, re.compile(r"(?!Other|Unknown)[A-Z][a-z]+( [A-Z][a-z]+)*")
"""Columns whose values describe people, such as "Black"; not codes and abbreviations."""
YES_OR_NO = {"yes", "no", "y", "n", "true", "false"}

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
    f"{name}_{kind}": f"{of} {rate}; {fair} is fair"
    for name, rate in {
        "demographic_parity": "selection rate of the groups",
        "equalized_odds": "true positive rate, or false positive rate of the groups (the worst "
        "case, not the mean)",
        "equal_opportunity": "true positive rate of the groups",
        "accuracy": "accuracy of the groups",
    }.items()
    for kind, of, fair in (
        ("difference", "largest minus smallest", 0),
        ("ratio", "smallest over largest", 1),
    )
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

SINGLE_RATES = "Intervals of single rates are {exact}; each holds by itself with {level}."
EXACT = "exact (Clopper-Pearson)"
APPROXIMATE = (
    "approximate, because rows have weights, belong together or are counted by probability: "
    "Clopper-Pearson with the number of independent rows that would be as certain"
)
LEVEL_INTERVALS = (
    "Intervals of levels, differences and ratios combine the limits of the rates (MOVER: Zou and "
    "Donner 2008; for ratios Donner and Zou 2012). The interval of each level holds by itself with "
    "{level}. It includes the uncertainty of the groups' shares in the overall rate."
)
VERDICTS = (
    "Fair within tolerance: the intervals of all levels lie within the tolerance. If some level is "
    "in truth beyond it, this verdict is given at most {error} of the time, however many groups "
    "there are (an intersection-union test, Berger 1982). Unfair: some level lies beyond the "
    "tolerance, corrected for the number of levels and comparisons (Holm 1979). If all levels are "
    "in truth within it, this verdict is given at most {error} of the time. Undecided: the data "
    "allow both. An interval that ends exactly at the tolerance was decided by its one-sided limit "
    "(Hsu et al. 1994)."
)


def title(measure: str) -> str:
    """A measure's name for people."""
    known = DEFINITIONS.get(measure)
    return measure.replace("_", " ") if known is None else known.title


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


def measures_by(findings: Iterable[Finding], *, whose: bool = True) -> str:
    """The measures of findings, and whose groups they compare: "accuracy parity (by sex)"."""
    grouped: dict[str, list[str]] = {}
    for finding in findings:
        grouped.setdefault(in_the_middle(finding.measure), []).append(finding.attribute)
    views = (f" (by {conjoined(attributes)})" if whose else "" for attributes in grouped.values())
    return conjoined([f"{name}{by}" for name, by in zip(grouped, views, strict=True)])


def in_words(finding: Finding) -> str:
    """What is still fair, in words."""
    kind, value = finding.tolerance.kind, finding.tolerance.value
    return {
        "level": f"at most {value:.3g}",
        "ratio": f"at least {value:.3g}",
        "bounds": "within its bounds",
    }[kind]


def people_of(number: int) -> str:
    """A number of people: "1 person", "2 people"."""
    return "1 person" if number == 1 else f"{number:,} people"


def conjoined(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"; with semicolons if names have commas."""
    if len(names) > 2 and any(", " in name for name in names):
        return f"{'; '.join(names[:-1])}; and {names[-1]}"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def intervals(audit: Audit) -> list[str]:
    """How the intervals are to be read."""
    level = f"{100 * audit.confidence:.4g} % confidence"
    exact = APPROXIMATE if audit.is_weighted or audit.cluster is not None else EXACT
    return [
        SINGLE_RATES.format(exact=exact, level=level),
        LEVEL_INTERVALS.format(level=level),
        VERDICTS.format(error=f"{100 * audit.alpha:.4g} %"),
    ]


def short_names(groups: Groups, values: Sequence[Any] | None = None) -> list[str]:
    """Groups by their values alone, where the attributes are named above."""
    values = groups.values if values is None else values
    return [
        ", ".join(
            f"{attribute} unknown" if code == UNKNOWN else str(of[code])
            for attribute, of, code in zip(groups.attributes, values, codes, strict=True)
        )
        for codes in groups.codes
    ]


def people_names(groups: Groups) -> list[str]:
    """`short_names`, with women and men for Female and Male, and "black yes" for a code."""
    named = []
    for attribute, values in zip(groups.attributes, groups.values, strict=True):
        column = "group" if attribute == "sensitive_features" else attribute
        texts = [str(value) for value in values]
        says_little = {*map(str.casefold, texts)} <= YES_OR_NO
        people = PEOPLE if attribute.casefold() in {"sex", "gender"} else {}
        named.append(
            [
                f"{column} {text}"
                if says_little or not any(map(str.isalpha, text))
                else people.get(text.casefold(), text)
                for text in texts
            ]
        )
    names = short_names(groups, named)
    return names if len({*names}) == len(names) else short_names(groups)


def people_with(groups: Groups, group: int, among: str = "", *, n: int = 2) -> str:
    """The people of a group in a sentence: "women with income >50K", "people (sex 0, income 1)"."""
    name, column = in_sentence(people_names(groups)[group]), groups.attributes[0].casefold()
    people = "person" if n == 1 else "people"
    if name in PEOPLE.values():
        who = name.replace("men", "man") if n == 1 else name
    elif len(groups.attributes) == 1 and column in RACES and RACE.fullmatch(name):
        who = f"{name} {people}"
    else:
        details = ", ".join([name, *([among.removeprefix("with ")] if among else [])])
        return f"{people} ({details})"
    return f"{who} {among}".strip()


def phrase(comparison: Comparison, cell: int, groups: Groups) -> tuple[str, str]:
    """Whose rate a cell is, and what the rate counts."""
    label = int(comparison.cell_label[cell])
    named = "as desirable" if label < 0 else in_sentence(str(groups.labels[label]))
    of = f"with {in_sentence(groups.label_name)} {named}"
    if comparison.rate in {"selection rate", "prediction rate"}:
        return "", f"predicted {named}"
    if comparison.rate == "false positive rate":
        return of.replace("with", "without", 1), f"predicted {named}"
    right = "predicted wrongly" if comparison.rate == "error rate" else "predicted correctly"
    return ("" if label < 0 else of), right


def level_names(finding: Finding) -> tuple[str, ...]:
    """Each level of a finding in words: "women", "men with income >50K", "men predicted >50K"."""
    comparison, groups = finding.comparison, finding.table.groups
    is_of_predictions = comparison.rate in {"selection rate", "prediction rate"}
    verb = "predicted" if is_of_predictions else f"with {groups.label_name}"
    people, names = people_names(groups), []
    for name, group, label in zip(
        comparison.names, comparison.group, comparison.label, strict=True
    ):
        of_label = f" {verb} {groups.labels[label]}" if label >= 0 else ""
        names.append(f"{people[group]}{of_label}" if group >= 0 else name)
    return tuple(names)


def told_levels(finding: Finding) -> dict[str, str]:
    """The levels to tell, by name, in words: of two labels those of the desirable one.

    The other label's levels are the same with the opposite sign.
    """
    comparison = finding.comparison
    is_told = comparison.valued | (finding.table.n_labels > 2)
    names = zip(comparison.names, level_names(finding), is_told, strict=True)
    return {name: text for name, text, told in names if told}


def short(verdict: str) -> str:
    """A verdict in one word after its sign."""
    return f"{SIGNS[verdict]} {verdict.split(maxsplit=1)[0]}"


def number(value: float, digits: int = 3) -> str:
    """A level or ratio for people."""
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def percent(value: float) -> str:
    """A rate for people."""
    return "not defined" if math.isnan(value) else f"{100 * value:.1f} %"


def points(value: float) -> str:
    """A difference of rates for people."""
    shown = "not defined" if math.isnan(value) else f"{100 * value:z.1f}"  # no "-0.0"
    return shown if shown == "1.0" else shown.removesuffix(".0")  # not "1 points"


def capitalized(text: str) -> str:
    """The text with a capital first letter; names in it do not change."""
    return text[:1].upper() + text[1:]


def judged(findings: Iterable[Finding]) -> str:
    """What the verdicts look at."""
    names = {"level": "largest |F|", "ratio": "ratio", "bounds": "beyond bounds"}
    kinds = {names[finding.tolerance.kind] for finding in findings}
    return kinds.pop() if len(kinds) == 1 else "judged"


def advice(finding: Finding) -> str:
    """For an undecided verdict: what would settle it."""
    if finding.verdict != UNDECIDED:
        return ""
    needed = finding.rows_needed
    if needed is None and finding.table.soft is not None:
        return "Knowing the group of every row would not settle it. Audit more rows."
    if needed is None:
        return "A million rows per group may not settle it: the level is close to the tolerance."
    groups = finding.table.groups
    largest = sorted(needed.more.items(), key=lambda item: -item[1])
    more = []
    for name, rows in largest[:3]:
        n = _rounded_up(rows)
        more.append(f"{n:,} more {people_with(groups, groups.names.index(name), n=n)}")
    others, n_others = sum(rows for _, rows in largest[3:]), len(largest) - 3
    if others:
        where = "another group" if n_others == 1 else f"{n_others} other groups"
        more.append(f"{_rounded_up(others):,} more in {where}")
    known = "" if finding.table.soft is None else " whose group is known"
    enough = f"About {conjoined(more)}{known} would settle it with a chance of 80 %."
    low = f"{_rounded_up(needed.low):,}"
    if needed.high is None:
        likely = f"{low} more rows to over a million per group"
    elif needed.high < 1.2 * needed.low:  # about the same number
        return enough
    else:
        likely = f"{low} to {_rounded_up(needed.high):,} more rows"
    return f"{enough} The likely total is {likely}."


def _rounded_up(number: int) -> int:
    """Two significant digits: more would promise too much."""
    unit = int(10 ** max(len(str(number)) - 2, 0))
    return unit * ((number + unit - 1) // unit)


LONGEST = 160
RIGHT_TO_LEFT = {"R", "AL", "RLE", "RLO", "RLI"}


def in_sentence(name: str) -> str:
    """A name cut to a bearable length; isolated if it holds text that runs right to left.

    Without the isolation one such name would turn around the rest of the sentence.
    """
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    is_isolated = any(unicodedata.bidirectional(sign) in RIGHT_TO_LEFT for sign in short)
    return f"{ISOLATE}{short}{END}" if is_isolated else short


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, shortened when there are many."""
    shown = "; ".join(in_sentence(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}; and {len(names) - most} more"


WEIGHTS = "Rows have weights: intervals rest on effective sizes and are approximate."
CLUSTERS = "Rows belong to {:,} clusters: intervals rest on these and are approximate."
OFF_SCORES = (
    "{:.1%} of the predictions are not the label with the largest score: they do not follow from "
    "the scores alone. The figures hold for these predictions only."
)
ABOUT_PREDICTIONS = {"constant", "levelling_down", "tolerance", "threshold"}
"""Kinds of warnings that do not hold for other predictions of the same rows."""

BAD_NEWS = re.compile(
    r"(deny|deni|reject|refus|declin|default|delinq|recid|reoffen|rearrest|arrest|convict|guilt|"
    r"fail|fraud|churn|dropout|readmi|died|dead|death|mortal|bad|evict|bankrupt|unpaid|overdue|"
    r"terminat|dismiss|fired|layoff|expel|suspend|cancel|diseas|sick|ill$|risk|crime|violen)"
)
NEGATION = {"no", "not", "non", "never", "without", "un"}
AFFIRMATION = {"1", "yes", "y", "true", "t", "positive", "pos"}


class Notice(NamedTuple):
    """A warning.

    Attributes:
        kind: "remark", "desirable", "constant", "levelling_down", "unknown", "empty",
            "not_judged", "strata", "tolerance", "weights", "clusters" or "threshold".
        message: what it is, in words.
    """

    kind: str
    message: str


def left_out(measures: Collection[str], n_labels: int) -> str:
    """Measures of the default set that need a desirable label where none is known."""
    names = " and ".join(title(name) for name in measures)
    return (
        f"Left out: {names}. There are {n_labels} labels, and none is named as the desirable one. "
        "Name the desirable label to include this measure."
    )


def single_group_strata(audit: Audit) -> str:
    """Strata in which there are not two groups to compare."""
    strata = {name: None for finding in audit.findings for name in finding.comparison.left_out}
    number_of = f"{len(strata)} {'stratum' if len(strata) == 1 else 'strata'}"
    reason = "left out, as fewer than two groups have enough rows there to be compared"
    return f"{number_of} {reason}: {listed(list(strata), most=8)}." if strata else ""


def doubtful_desirable(guessed: Sequence[Any], target: str, labels: Sequence[Any]) -> str:
    """A guessed desirable label whose name, or whose target's name, is bad news."""
    if len(guessed) != 1 or len(labels) != 2:
        return ""
    label = str(guessed[0])
    is_bad = _is_bad_news(label)
    if not is_bad and label.strip().casefold() in AFFIRMATION:
        is_bad = _is_bad_news(target)
    if not is_bad:
        return ""
    other = next(one for one in labels if one != guessed[0])
    return (
        f"{target}={label} was taken as desirable, but its name suggests otherwise. The second of "
        f"two values in sorted order is the default. If {target}={other} is desirable, audit again "
        "with it as the desirable value: gains and losses are swapped now."
    )


def _is_bad_news(name: str) -> bool:
    """Whether a name says denied, rejected, failed, ... and not the contrary."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", str(name))
    single_words = [word for word in re.split(r"[^a-z]+", spaced.casefold()) if word]
    return any(
        BAD_NEWS.match(word) and not (place and single_words[place - 1] in NEGATION)
        for place, word in enumerate(single_words)
    )


def all_judged(audit: Audit) -> str:
    """Groups that are judged although they have few rows, as too few groups have more."""
    all_small: dict[int, list[str]] = {}
    for name, view in audit.views.items():
        least = audit.least_rows[name]
        if audit.judged[name].all() and (view.size[view.size > 0] < least).any():
            all_small.setdefault(least, []).append(name)
    return " ".join(
        f"By {conjoined(names)} fewer than two groups have {least:,} rows, so all are judged, "
        "whatever their size."
        for least, names in all_small.items()
    )


def not_judged(audit: Audit) -> str:
    """Groups set aside from the verdict because they have few rows."""
    by_view: list[str] = []
    for name, view in audit.views.items():
        least, small = audit.least_rows[name], ~audit.judged[name] & (view.size > 0)
        if small.any():
            people = people_names(view.groups)
            names = [f"{people[g]} ({view.size[g]:.0f})" for g in np.flatnonzero(small)]
            among = f"{people_of(int(view.size[small].sum()))} in {counted(len(names), 'group')}"
            rows = f"{least:,} rows{' each' * (len(names) > 1)}"
            by_view.append(f"{among} by {name} with fewer than {rows}: {listed(names, most=6)}")
    if not by_view:
        return ""
    return (
        f"Not judged: {'. '.join(by_view)}. Their rates are shown. To judge them, too, lower the "
        "minimum size of a group."
    )


def wide_tolerance(audit: Audit) -> str:
    """Tolerances of levels that are large beside the selection rates they are for."""
    for finding in audit.asked:
        comparison, rule = finding.comparison, finding.tolerance
        if rule.kind != "level" or comparison.ratio_row is None:
            continue
        rates = comparison.cells.value[comparison.ratio_row]
        lowest = float(np.nanmin(rates, initial=1.0))
        if rule.value > lowest / 2 and np.nanmax(rates, initial=0.0) > 0:
            return (
                f"The tolerance of {100 * rule.value:.3g} points is more than half of the lowest "
                f"selection rate, {100 * lowest:.1f} %: rates that differ by a large factor are "
                f"within it. A tolerance of '{FOUR_FIFTHS}' compares the ratio of the rates."
            )
    return ""


def unknown_values(audit: Audit) -> str:
    """Rows set aside because their sensitive value is not known, and what they could change."""
    table, views = audit.table, audit.views
    if audit.partly is not None:
        return _partly_known(audit, audit.partly[0].attribute)
    missing = {name: table.n_rows - views[name].n_rows for name in table.groups.attributes}
    unknown = [
        f"{n:,} of {counted(table.n_rows, 'row')} {'has' if n == 1 else 'have'} no known {name}"
        for name, n in missing.items()
        if n
    ]
    if not unknown:
        return ""
    excluded = (
        "They are kept, but excluded from its groups and comparisons. To include them, estimate "
        "the probabilities of their groups (membership)."
    )
    text = f"{listed(unknown)}. {excluded}"
    verdicts = [both for finding in audit.asked if (both := audit.if_unknown(finding))]
    if not verdicts:
        return text
    worst, best = (gravest(side) for side in zip(*verdicts, strict=True))
    if worst == best == audit.verdict:
        ends = f"worst-off group, or all in the best-off group, the verdict would still be {worst}"
    elif worst == best:
        ends = f"worst-off group, or all in the best-off group, the verdict would be {worst}"
    else:
        ends = f"worst-off group, the verdict would be {worst}; in the best-off group, {best}"
    return f"{text} If all of them were in the {ends}."


def _partly_known(audit: Audit, attribute: str) -> str:
    """For how many rows the group is known, what is assumed of the others, and how far it goes."""
    assert audit.partly is not None  # noqa: S101 - the caller looked
    membership, n_known = audit.partly[1], audit.views[attribute].n_rows
    rows = counted(audit.table.n_rows, "row")
    known = (
        f"The group ({attribute}) is known for {n_known:,} of {rows}. "
        "The other rows count in every group, by probabilities from a model whose errors the known "
        "rows correct. This assumes that the known rows are a random sample of all rows"
    )
    if membership.known_probability is not None:
        known += " given how likely each was to be known"
    most = membership.difference or audit.largest_difference
    if not membership.difference and (audit.verdict == UNDECIDED or most >= 1):
        return f"{known}."
    holds = "intervals hold" if membership.difference else "the verdict stays the same"
    return (
        f"{known}. If they are not, {holds} as long as the share of each group among the rows of "
        f"unknown group, given label and prediction, differs by at most {100 * most:.2g} points "
        "from what the known rows say."
    )


def empty_groups(columns: Mapping[str, Any], table: CountTable) -> str:
    """Groups without any weight, and values that a column declares as a category but no row has."""
    names = [table.groups.names[g] for g in np.flatnonzero(table.mass.sum(axis=(1, 2)) <= 0)]
    for name, column in columns.items():
        if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
            series = pd.Series(column)
            unused = series.cat.categories.difference(list(series.dropna().unique()))
            names += [f"{name}={value}" for value in unused]
    if not names:
        return ""
    return f"These groups have no rows, so there are no figures for them: {listed(names)}."


def constant_predictions(table: CountTable) -> str:
    """Groups in which everybody gets the same prediction; of all people the conclusion tells it."""
    predicted, labels = table.rows.sum(axis=1).T, table.groups.labels
    constant = ((predicted > 0).sum(axis=0) == 1) & (table.size >= MIN_GROUP)
    if (predicted.sum(axis=1) > 0).sum() == 1 or not constant.any():
        return ""
    people = people_names(table.groups)
    names = [f"{people[g]} ({labels[predicted[:, g].argmax()]})" for g in np.flatnonzero(constant)]
    return f"Everybody gets the same prediction in: {listed(names)}."


def levelling_down(audit: Audit) -> str:
    """A warning about groups that lost while no group gained; one paragraph for all measures."""
    levelled = [c for c in audit.changes if c.after.is_asked and c.is_levelling_down]
    if not levelled:
        return ""
    lost: dict[str, dict[str, None]] = {}
    for change in levelled:
        comparison, groups = change.after.comparison, change.after.table.groups
        for k in np.flatnonzero(change.direction < 0).tolist():
            among, predicate = phrase(comparison, k, groups)
            often = f"{predicate} {'less' if comparison.good[k] > 0 else 'more'} often"
            lost.setdefault(often, {}).setdefault(
                people_with(groups, comparison.cell_group[k], among)
            )
    losses = [f"{capitalized(listed(list(who), 6))} are {often}." for often, who in lost.items()]
    return (
        f"Levelling down: {measures_by(change.after for change in levelled)} improved against "
        f"{audit.baseline_name} only because groups got worse. {' '.join(losses)} No group clearly "
        "gained."
    )


def other_threshold(audit: Audit, threshold: float | None) -> str:
    """What to say if the predictions do not follow from the scores as the model was trained.

    Of two labels: whether one threshold gives the predictions, and which.
    """
    score, predicted = audit.score, audit.predicted
    assert score is not None  # noqa: S101 - the caller looked
    if len(audit.labels) > 2:
        off = score[np.arange(len(score)), predicted] < score.max(axis=1)
        return OFF_SCORES.format(off.mean()) if off.any() else ""
    (desirable,) = audit.desirable_indices
    score = score[:, desirable] if score.ndim == 2 else score
    is_positive = predicted == desirable
    highest_no = float(score[~is_positive].max(initial=-np.inf))
    lowest_yes = float(score[is_positive].min(initial=np.inf))
    if highest_no > lowest_yes:
        return (
            f"No single threshold on the scores gives these predictions: {lowest_yes:.4g} is "
            f"predicted positive and {highest_no:.4g} is not, as with fair decisions or thresholds "
            "for each group. The figures hold for these predictions only."
        )
    if threshold is None or highest_no <= threshold <= lowest_yes:
        return ""
    where = np.mean([end for end in (highest_no, lowest_yes) if np.isfinite(end)])
    return (
        f"The predictions switch at a score of about {where:.4g}, not at {threshold:.4g}: a model "
        f"made fair for a threshold of {threshold:.4g} is fair for that one only."
    )
