"""The conclusion of an audit in a few sentences: is it fair, for whom, at what price, how sure.

`compared` picks the rates that a verdict rests on. The sentences, the first chart of the report and
its table all show these rates.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.audit import words
from fairgrad.audit.changes import change_interval
from fairgrad.audit.comparisons import labels_of_cells
from fairgrad.audit.intervals import Interval, Proportion, impact_ratios
from fairgrad.audit.verdicts import FAIR, UNFAIR

if TYPE_CHECKING:
    from fairgrad.audit.audit import Audit
    from fairgrad.audit.changes import Change
    from fairgrad.audit.comparisons import Comparison
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats, Groups

HOW_OFTEN = {FAIR: "almost equally often", UNFAIR: "at different rates"}
JUDGED = {FAIR: "fair", UNFAIR: "unfair"}
MOST_GAINS = 6


class ComparedRates(NamedTuple):
    """The rates of all groups that a finding compares; of several labels those of the worst one.

    Attributes:
        groups: names of the groups.
        cells: where these rates are among the cells of the comparison.
        rate: (G,) the rates.
        worst: the group that is farthest from what is fair.
        among: whose rate it is, such as "with income >50K"; empty for everyone.
        predicate: what happens to them, such as "predicted >50K".
        reference: what each rate is compared with; NaN if rates are compared with each other.
        fair: the least and the greatest fair rate.
    """

    groups: tuple[str, ...]
    cells: slice
    rate: Proportion
    worst: int
    among: str
    predicate: str
    reference: float
    fair: Interval


def worst_finding(audit: Audit) -> Finding:
    """The finding that the conclusion is about: the worst of those that decide the verdict."""
    deciding = [finding for finding in audit.asked if finding.verdict == audit.verdict]
    return max(deciding, key=words.severity)


def compared(finding: Finding) -> ComparedRates | None:
    """The rates that a finding compares; None for measures that compare something else."""
    comparison, place = finding.comparison, np.arange(len(finding.table.groups.names))
    names, start = words.short_names(finding.table.groups), 0
    if comparison.parts:  # the stratum with the largest level
        ends = np.cumsum([len(part.names) for part, _ in comparison.parts])
        at = int(np.searchsorted(ends, _largest(finding.levels), side="right"))
        start = sum(len(part.cells.total) for part, _ in comparison.parts[:at])
        comparison, place = comparison.parts[at]
    level = comparison.map.levels(comparison.cells.value)
    n_groups, n_cells = len(place), len(comparison.cells.total)
    if np.isnan(level).all() or (comparison.group < 0).all() or n_cells % n_groups:
        return None
    by_cell = len(level) == n_cells
    row = _largest(level) // n_groups if by_cell else 0
    if comparison.ratio_row is not None and (not by_cell or n_cells == 2 * n_groups):
        row = comparison.ratio_row.start // n_groups
    own = slice(row * n_groups, (row + 1) * n_groups)
    rate = Proportion(*(part[own] for part in comparison.cells))
    reference, ratios = float("nan"), impact_ratios(rate.value)
    if by_cell and finding.tolerance.kind != "ratio":
        worst = _largest(level[own])
        reference = float(rate.value[worst] - level[own][worst])
    else:
        worst = int(np.nanargmin(ratios)) if not np.isnan(ratios).all() else 0
    among, predicate = _phrase(comparison, own.start, finding.table.groups)
    return ComparedRates(
        groups=tuple(names[g] for g in place),
        cells=slice(start + own.start, start + own.stop),
        rate=rate,
        worst=worst,
        among=among,
        predicate=predicate,
        reference=reference,
        fair=_fair_rates(finding, comparison, own.start, rate.value, reference),
    )


def compared_values(audit: Audit) -> dict[str, Any] | None:
    """The rates that the conclusion is about as plain values, before and now."""
    finding = worst_finding(audit)
    rates = compared(finding)
    if rates is None:
        return None
    records = []
    for when, rate in before_and_now(audit, finding, rates).items():
        ends = rate.exact_interval(audit.alpha)
        for group, value, low, high in zip(rates.groups, rate.value, *ends, strict=True):
            row = {"group": group, "when": when, "rate": value, "low": low, "high": high}
            records.append(row)
    return {
        "measure": finding.measure,
        "attribute": finding.attribute,
        "among": rates.among,
        "predicate": rates.predicate,
        "reference": rates.reference,
        "fair_low": float(rates.fair.low),
        "fair_high": float(rates.fair.high),
        "rates": records,
    }


def before_and_now(audit: Audit, finding: Finding, rates: ComparedRates) -> dict[str, Proportion]:
    """The compared rates "now", after those "before" if there is a baseline."""
    if audit.baseline is None:
        return {"now": rates.rate}
    cells = audit.baseline.findings[audit.findings.index(finding)].comparison.cells
    return {"before": Proportion(*(part[rates.cells] for part in cells)), "now": rates.rate}


def _largest(level: Floats) -> int:
    """Where the largest |F| is."""
    return int(np.nanargmax(np.abs(level)))


def _fair_rates(
    finding: Finding, comparison: Comparison, cell: int, rate: Floats, reference: float
) -> Interval:
    kind, value = finding.tolerance.kind, finding.tolerance.value
    if kind == "ratio":
        ends = value * float(np.nanmax(rate)), 1.0
    elif kind == "bounds" and math.isnan(reference):
        ends = 0.0, 1.0
    elif kind == "bounds":
        ends = reference + comparison.lower[cell], reference + comparison.upper[cell]
    else:
        ends = reference - value, reference + value
    return Interval(*(np.clip(np.asarray(end), 0.0, 1.0) for end in ends))


def _phrase(comparison: Comparison, cell: int, groups: Groups) -> tuple[str, str]:
    """Whose rate a cell is, and what the rate counts."""
    label = int(labels_of_cells(comparison)[cell])
    named = "as desirable" if label < 0 else words.in_sentence(str(groups.labels[label]))
    of = f"with {words.in_sentence(groups.label_name)} {named}"
    if comparison.rate in {"selection rate", "prediction rate"}:
        return "", f"predicted {named}"
    if comparison.rate == "false positive rate":
        return of.replace("with", "without", 1), f"predicted {named}"
    right = "predicted wrongly" if comparison.rate == "error rate" else "predicted correctly"
    return ("" if label < 0 else of), right


def capitalized(text: str) -> str:
    """The text with its first letter as a capital; names in it stay as they are."""
    return text[:1].upper() + text[1:]


def percent(value: float) -> str:
    """A rate for people."""
    return "not defined" if math.isnan(value) else f"{100 * value:.1f} %"


def points(value: float, sign: str = "") -> str:
    """A difference of rates for people."""
    return "not defined" if math.isnan(value) else f"{100 * value:{sign}.1f}".removesuffix(".0")


def conclusion(audit: Audit) -> tuple[str, ...]:
    """What the audit found, in a few sentences: the rates, the verdict, the accuracy."""
    finding = worst_finding(audit)
    rates = compared(finding)
    rows = f"{100 * audit.confidence:.4g} % confidence, {words.n_of(audit.table.n_rows, 'row')}"
    if rates is None:
        (name, level), verdict = _worst_level(finding), JUDGED.get(finding.verdict, finding.verdict)
        of = words.in_the_middle(finding.measure)
        said = [
            f"The largest level of {of} is {level:+.3f} ({words.in_sentence(name)}).",
            f"Fair is {words.in_words(finding)}, so the model is judged {verdict} ({rows}).",
        ]
    else:
        said = [_rates_sentence(finding, rates), f"{_verdict_sentence(finding, rates)} ({rows})."]
    said += [_other_findings(audit, finding), accuracy_sentence(audit), _useless(audit)]
    return tuple(sentence for sentence in (*said, _not_judged(audit)) if sentence)


def _worst_level(finding: Finding) -> tuple[str, float]:
    if np.isnan(finding.levels).all():
        return finding.comparison.names[0], float("nan")
    j = _largest(finding.levels)
    return finding.comparison.names[j], float(finding.levels[j])


def _rates_sentence(finding: Finding, rates: ComparedRates) -> str:
    """How often what is compared happens to each group."""
    value = rates.rate.value
    known = np.flatnonzero(~np.isnan(value))
    names = [words.in_sentence(rates.groups[g]) for g in known]
    often = HOW_OFTEN.get(finding.verdict, "")
    if finding.verdict == FAIR and np.nanmin(impact_ratios(value), initial=1.0) < 0.8:
        often = "at different rates"
    among = f"Among people {rates.among}, " if rates.among else ""
    if len(known) == 2:
        low, high = (percent(value[g]) for g in known)
        who = f"{among}{words.conjoined(names)} are {rates.predicate}"
        if not often:
            return f"{who} in {low} and {high} of cases."
        return f"{who} {often}: {low} and {high}."
    least, most = known[value[known].argmin()], known[value[known].argmax()]
    ends = [f"{percent(value[g])} ({words.in_sentence(rates.groups[g])})" for g in (least, most)]
    groups = f"{'the' if among else 'The'} groups by {words.in_sentence(finding.attribute)}"
    often = f" {often}:" if often else " in"
    return f"{among}{groups} are {rates.predicate}{often} from {ends[0]} to {ends[1]}" + (
        "." if often != " in" else " of cases."
    )


def _verdict_sentence(finding: Finding, rates: ComparedRates) -> str:
    """What is tolerated, and the verdict; without its full stop."""
    kind, limit = finding.tolerance.kind, finding.tolerance.value
    value, low, high, verdict = finding.judgement
    so = f"so the model is judged {JUDGED.get(verdict, '')}"
    if verdict not in JUDGED:
        so = "so these rows do not settle whether the model is fair"
    if kind == "ratio":
        said = f"The lowest rate is {value:.2f} times the highest"
        need = f"at least {limit:.3g} is required"
        between = f" (interval {low:.2f} to {high:.2f})" if verdict not in JUDGED else ""
        return f"{said}{between}; {need}, {so}"
    every = "Both" if (~np.isnan(rates.rate.value)).sum() == 2 else "All"
    who = words.in_sentence(rates.groups[rates.worst])
    gap = float(rates.rate.value[rates.worst] - rates.reference)
    side = "below" if gap < 0 else "above"
    if kind == "bounds":
        bound = f"the bound of {percent(rates.reference)}"
        if verdict == FAIR:
            return f"{every} keep {bound}, {so}"
        return f"{who} is {points(abs(gap))} points {side} {bound}, {so}"
    of = f"the overall rate, {percent(rates.reference)}"
    tolerated = f"{points(limit)} points"
    if verdict == FAIR:
        ratio = float(np.nanmin(impact_ratios(rates.rate.value), initial=1.0))
        but = f"The lowest rate is {ratio:.2f} times the highest, but " if ratio < 0.8 else ""
        return f"{but}{every.lower() if but else every} are within {tolerated} of {of}, {so}"
    between = f" (interval {points(low)} to {points(high)})" if verdict not in JUDGED else ""
    return (
        f"{who} is {points(abs(gap))} points{between} {side} {of}; up to {limit_said(limit)}, {so}"
    )


def limit_said(limit: float) -> str:
    """A tolerance of levels in points."""
    return f"{points(limit)} {'point is' if limit == 0.01 else 'points are'} tolerated"


def _other_findings(audit: Audit, worst: Finding) -> str:
    """How many comparisons there are, if the verdict rests on several."""
    asked = audit.asked
    if len(asked) == 1:
        return ""
    deciding = [finding for finding in asked if finding.verdict == worst.verdict]
    names = list(dict.fromkeys(words.in_the_middle(f.measure) for f in deciding))
    if len(deciding) == len(asked):
        how = f"All {len(asked)} comparisons are judged {JUDGED.get(worst.verdict, worst.verdict)}"
        return (
            f"{how}; this one is the closest to the limit." if worst.verdict == FAIR else how + "."
        )
    verdict = JUDGED.get(worst.verdict, worst.verdict)
    return (
        f"{len(deciding)} of {len(asked)} comparisons "
        f"{'is' if len(deciding) == 1 else 'are'} {verdict}: {words.conjoined(names)}."
    )


def accuracy_sentence(audit: Audit) -> str:
    """The accuracy, and that of the baseline; empty without true labels."""
    if not audit.has_labels:
        return ""
    said = f"Accuracy is {percent(audit.accuracy)}"
    if audit.baseline is None:
        return f"{said}."
    before = percent(audit.baseline.accuracy)
    if audit.baseline_name == "the plain model":
        return f"{said}; without the fairness constraint it would be {before}."
    return f"{said}; {words.in_sentence(audit.baseline_name)} has {before}."


def _useless(audit: Audit) -> str:
    """Whether one label for everybody would do as well: equal for all groups, useless for all."""
    rows, labels = audit.table.mass.sum(axis=0), audit.table.groups.labels
    predicted, truth = rows.sum(axis=0), rows.sum(axis=1)
    if (predicted > 0).sum() == 1:
        return f"The model is useless: every row is predicted {labels[predicted.argmax()]}."
    share = truth.max() / truth.sum()
    if audit.has_labels and audit.accuracy <= share:
        label = words.in_sentence(str(labels[truth.argmax()]))
        return f"Predicting {label} for everybody would be right in {percent(share)}."
    return ""


def _not_judged(audit: Audit) -> str:
    """How many people are in groups too small to judge."""
    views = dict.fromkeys(f.attribute for f in audit.asked if f.attribute in audit.views)
    small = {view: int(audit.views[view].size[~audit.judged(view)].sum()) for view in views}
    found = [
        f"{words.people_of(n)} in groups by {view} of fewer than {audit.least_rows(view):,} rows"
        for view, n in small.items()
        if n
    ]
    return f"Not judged: {words.conjoined(found)}." if found else ""


def gains(audit: Audit) -> tuple[str, ...]:
    """Who gained and who lost by the measures of the verdict, in people; only sure changes."""
    changes = [change for change in audit.changes if change.after.is_asked]
    if not changes:
        return ()
    against = f"Compared with {words.in_sentence(audit.baseline_name)},"
    by_predicate: dict[str, dict[str, None]] = {}
    for change in changes:
        for predicate, moved in _moved_people(change):
            by_predicate.setdefault(predicate, {}).setdefault(moved)
    said = []
    for predicate, people in by_predicate.items():
        shown = list(people)[:MOST_GAINS]
        more = [f"{len(people) - MOST_GAINS} more groups"] if len(people) > MOST_GAINS else []
        said.append(f"{against} {words.conjoined([*shown, *more])} are {predicate}.")
    return tuple(said) or (f"{against} no group surely gained or lost.",)


def _moved_people(change: Change) -> list[tuple[str, str]]:
    """What happens to how many more or fewer people of a group, the largest numbers first."""
    comparison, groups = change.after.comparison, change.after.table.groups
    names = words.short_names(groups)
    up, down = change.moves.of_cells(comparison, people=True)
    found = []
    for k in np.flatnonzero(change.direction).tolist():
        net = int(up[k] - down[k])
        if net:
            among, predicate = _phrase(comparison, k, groups)
            more = "more" if net > 0 else "fewer"
            who = f"{abs(net):,} {more} {words.in_sentence(names[comparison.cell_group[k]])}"
            found.append((abs(net), predicate, f"{who} {among}".strip()))
    return [(predicate, who) for _, predicate, who in sorted(found, key=lambda one: -one[0])]


def accuracy_change(audit: Audit) -> tuple[float, float, float]:
    """By how much the accuracy differs from the baseline's, with its interval; NaN without both."""
    if audit.baseline is None or audit.moves is None or not audit.has_labels:
        return float("nan"), float("nan"), float("nan")
    everyone = audit.table.together().rates["accuracy"]
    ends = change_interval(audit.moves.together().of_rate("accuracy"), everyone, audit.alpha)
    change = audit.accuracy - audit.baseline.accuracy
    return change, float(ends.low[0]), float(ends.high[0])


def price(audit: Audit) -> str:
    """What the change costs in accuracy, in points and in predictions; empty without a baseline."""
    change, low, high = accuracy_change(audit)
    if audit.moves is None or math.isnan(change):
        return ""
    up, down = audit.moves.together().of_rate("accuracy", people=True)[:, 0]
    net, way = int(up - down), "rises" if change > 0 else "falls"
    if not change:
        return "The accuracy stays the same."
    interval = f"({points(low, '+')} to {points(high, '+')})"
    return (
        f"Accuracy {way} by {points(abs(change))} points {interval}: {abs(net):,} "
        f"{'more' if net > 0 else 'fewer'} predictions are correct."
    )
