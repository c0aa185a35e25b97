"""What an audit says, as a list of sections: plain data that terminal, page, card and JSON render.

The first section answers four questions: is it fair, for whom, at what price, how certain? Its
sentences, its table and the first chart of the report show the same rates: `compared_values`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.audit import scores, subgroups, words
from fairgrad.audit.changes import accuracy_change
from fairgrad.audit.counts import OVERALL
from fairgrad.audit.intervals import Interval, Proportion, impact_ratios
from fairgrad.audit.verdicts import FAIR, UNFAIR
from fairgrad.audit.words import number, percent, points
from fairgrad.text import Block, Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.changes import Change
    from fairgrad.audit.comparisons import Comparison
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats, Groups, Ints

SUMMARY, GROUPS, VERDICTS, DETAILS, METHOD = "summary", "groups", "verdicts", "details", "method"
MANY_GROUPS, MOST_LABELS, MOST_CELLS, MOST_GAINS = 12, 12, 4_000, 6
HOW_OFTEN = {FAIR: "almost equally often", UNFAIR: "at different rates"}
JUDGED = {FAIR: "fair", UNFAIR: "unfair"}
OTHERS = "Also measured, not part of the verdict"
RATES = {
    "selection_rate": "selected",
    "true_positive_rate": "true\npositive\nrate",
    "false_positive_rate": "false\npositive\nrate",
    "accuracy": "accuracy",
}
"""Rates of the tables and their headings."""
CHANGES_NOTE = (
    "Changes are differences on the same rows, in points, with their intervals at {level} each "
    "(MOVER of two exact intervals). A star marks changes that are not 0 with this confidence."
)
LIMITS = (
    "Equal rates between groups do not make each single decision right or just.",
    "The figures hold for data like these, at the threshold these predictions were made with.",
    "Groups that were not recorded, or were merged, may still be treated unequally.",
    "Measures contradict each other where base rates differ: which one matters is a choice.",
)


def sections(audit: Audit) -> tuple[Section, ...]:
    """Everything an audit says, in the order in which readers need it."""
    changed = [] if audit.baseline is None else change_blocks(audit)
    return (_summary(audit), *_after_summary(audit, changed))


def comparison_sections(audit: Audit, title: str, sentences: Sequence[str]) -> tuple[Section, ...]:
    """Everything about two systems: who gets a different decision comes first."""
    *changed, sides = [block._replace(is_brief=True) for block in change_blocks(audit)]
    verdicts = verdict_block("Verdicts", audit, audit.findings)._replace(is_brief=True)
    blocks = (sides, *_gains(audit), verdicts, *changed)
    return (Section(SUMMARY, title, sentences, blocks), *_after_summary(audit, []))


def _after_summary(audit: Audit, changed: list[Block]) -> list[Section]:
    details = _details(audit)
    rest = [_groups(audit, changed), _verdicts(audit), *([details] if details.blocks else [])]
    return [*rest, _method(audit)]


def _summary(audit: Audit) -> Section:
    title = f"{words.SIGNS[audit.verdict]} {words.capitalized(audit.verdict)}"
    if _useless(audit):  # the first thing to know, whatever the verdict
        title = f"{words.SIGNS[UNFAIR]} No better than a constant ({audit.verdict})"
    blocks = [*_compared(audit), *_gains(audit)]
    return Section(SUMMARY, title, conclusion(audit), tuple(blocks))


def _gains(audit: Audit) -> list[Block]:
    """Who gained and lost against the baseline, and what it costs."""
    sentences = [sentence for sentence in (*gains(audit), price(audit)) if sentence]
    title = "Who gained, who lost, at what price"
    return [Block(title, sentences=sentences, is_brief=True)] if audit.baseline is not None else []


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
        compared_with: what that is called.
        fair: the least and the greatest fair rate.
    """

    groups: tuple[str, ...]
    cells: Ints
    rate: Proportion
    worst: int
    among: str
    predicate: str
    reference: float
    compared_with: str
    fair: Interval


def worst_finding(audit: Audit) -> Finding:
    """The finding that the conclusion is about: the worst of those that decide the verdict."""
    deciding = [finding for finding in audit.asked if finding.verdict == audit.verdict]
    return max(deciding, key=words.severity)


def compared_rates(finding: Finding) -> ComparedRates | None:
    """The rates that a finding compares; None for measures that compare something else."""
    comparison, table = finding.comparison, finding.table
    level, n_cells = finding.levels, len(finding.comparison.cells.total)
    if np.isnan(level).all() or (comparison.group < 0).all():
        return None
    by_cell = len(level) == n_cells
    # Of two labels one says what the other does: the desirable one is told.
    told = np.where(comparison.valued | (table.n_labels > 2), level, np.nan)
    cell = _largest(level if np.isnan(told).all() else told)
    if not by_cell:
        cell = int(np.flatnonzero(comparison.cell_group == comparison.group[cell])[0])
    cells = np.flatnonzero(comparison.block == comparison.block[cell])
    rate = comparison.cells.pick(lambda counts: counts[cells])
    reference, ratios = float("nan"), impact_ratios(rate.value, reference=comparison.reference)
    if by_cell and finding.tolerance.kind != "ratio":
        worst = _largest(level[cells])
        reference = float(rate.value[worst] - level[cells][worst])
    else:
        worst = int(np.nanargmin(ratios)) if not np.isnan(ratios).all() else 0
    among, predicate = _phrase(comparison, cells[0], table.groups)
    names = words.people_names(table.groups)
    return ComparedRates(
        groups=tuple(names[g] for g in comparison.cell_group[cells]),
        cells=cells,
        rate=rate,
        worst=worst,
        among=among,
        predicate=predicate,
        reference=reference,
        compared_with="the overall rate"
        if comparison.reference < 0
        else f"the rate of {names[comparison.reference]}",
        fair=_fair_rates(finding, comparison, cells[0], rate.value, reference),
    )


def compared_values(audit: Audit) -> dict[str, Any] | None:
    """The rates that the conclusion is about as plain values, before and now."""
    finding = worst_finding(audit)
    rates = compared_rates(finding)
    if rates is None:
        return None
    by_time = {"now": rates.rate}
    if audit.baseline is not None:
        cells = audit.baseline.findings[audit.findings.index(finding)].comparison.cells
        before = cells.pick(lambda counts: counts[rates.cells])
        by_time = {"before": before, **by_time}
    records = [
        {"group": group, "when": when, "rate": value, "low": low, "high": high}
        for when, rate in by_time.items()
        for group, value, low, high in zip(
            rates.groups, rate.value, *rate.exact_interval(audit.alpha), strict=True
        )
    ]
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


def _compared(audit: Audit) -> list[Block]:
    """The rates that the conclusion is about, as a table and a chart."""
    values = compared_values(audit)
    if values is None:
        return []
    before = {row["group"]: row["rate"] for row in values["rates"] if row["when"] == "before"}
    rows = []
    for row in values["rates"]:
        if row["when"] == "now":
            was = [percent(before[row["group"]])] if before else []
            interval = f"{percent(row['low'])} to {percent(row['high'])}"
            rows.append([row["group"], *was, percent(row["rate"]), interval])
    columns = ("group", *(["before", "now"] if before else ["rate"]), "interval")
    among = f" among people {values['among']}" if values["among"] else ""
    title = f"{words.capitalized(values['predicate'])}{among}, by {values['attribute']}"
    return [Block(title, columns, rows, chart="compared")]


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
    label = int(comparison.cell_label[cell])
    named = "as desirable" if label < 0 else words.in_sentence(str(groups.labels[label]))
    of = f"with {words.in_sentence(groups.label_name)} {named}"
    if comparison.rate in {"selection rate", "prediction rate"}:
        return "", f"predicted {named}"
    if comparison.rate == "false positive rate":
        return of.replace("with", "without", 1), f"predicted {named}"
    right = "predicted wrongly" if comparison.rate == "error rate" else "predicted correctly"
    return ("" if label < 0 else of), right


def conclusion(audit: Audit) -> tuple[str, ...]:
    """What the audit found, in a few sentences: the rates, the verdict, the accuracy."""
    finding = worst_finding(audit)
    rates = compared_rates(finding)
    rows = f"{100 * audit.confidence:.4g} % confidence, {words.n_of(audit.table.n_rows, 'row')}"
    if rates is None:
        (name, level), verdict = _worst_level(finding), JUDGED.get(finding.verdict, finding.verdict)
        of = words.in_the_middle(finding.measure)
        sentences = [
            f"The largest level of {of} is {level:+.3f} ({words.in_sentence(name)}).",
            f"Fair is {words.in_words(finding)}, so the model is judged {verdict} ({rows}).",
        ]
    else:
        verdict = _verdict_sentence(finding, rates)
        sentences = [_rates_sentence(finding, rates), f"{verdict} ({rows})."]
    sentences = [_useless(audit), *sentences, _other_findings(audit, finding), _accuracy(audit)]
    return tuple(sentence for sentence in (*sentences, _not_judged(audit)) if sentence)


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
    ratio = float(np.nanmin(impact_ratios(value), initial=1.0))
    is_small_ratio = finding.verdict == FAIR and ratio < 0.8
    often = "at different rates" if is_small_ratio else HOW_OFTEN.get(finding.verdict, "")
    end = f", a ratio of {ratio:.2f}." if is_small_ratio else "."
    often, end = (f"{often}:", end) if often else ("in", " of cases.")
    if len(known) == 2:
        low, high = (percent(value[g]) for g in known)
        who, figures = words.conjoined(names), f"{low} and {high}"
    else:
        least, most = known[value[known].argmin()], known[value[known].argmax()]
        ends = (
            f"{percent(value[g])} ({words.in_sentence(rates.groups[g])})" for g in (least, most)
        )
        who = f"the groups by {words.in_sentence(finding.attribute)}"
        figures = f"{'from ' * (often != 'in')}{' to '.join(ends)}"
    among = f"Among people {rates.among}, " if rates.among else ""
    if not among and who.split()[0] in {"the", *words.PEOPLE.values()}:  # a name stays as it is
        who = words.capitalized(who)
    return f"{among}{who} are {rates.predicate} {often} {figures}{end}"


def _verdict_sentence(finding: Finding, rates: ComparedRates) -> str:
    """What is tolerated, and the verdict; without its full stop."""
    kind, limit = finding.tolerance.kind, finding.tolerance.value
    value, low, high, verdict = finding.judgement
    is_open = verdict not in JUDGED
    so = f"so the model is judged {JUDGED.get(verdict, '')}"
    so = "so these rows do not settle whether the model is fair" if is_open else so
    if kind == "ratio":
        between = f" (interval {low:.2f} to {high:.2f})" if is_open else ""
        lowest = f"The lowest rate is {value:.2f} times the highest{between}"
        return f"{lowest}; at least {limit:.3g} is required, {so}"
    every = "Both" if (~np.isnan(rates.rate.value)).sum() == 2 else "All"
    who = words.in_sentence(rates.groups[rates.worst])
    gap = float(rates.rate.value[rates.worst] - rates.reference)
    side = "below" if gap < 0 else "above"
    if kind == "bounds":
        bound = f"the bound of {percent(rates.reference)}"
        if verdict == FAIR:
            return f"{every} keep {bound}, {so}"
        return f"The rate of {who} is {points(abs(gap))} points {side} {bound}, {so}"
    of = f"{rates.compared_with}, {percent(rates.reference)}"
    if verdict == FAIR:
        return f"{every} are within {points(limit)} points of {of}, {so}"
    between = f" (interval {points(low)} to {points(high)})" if is_open else ""
    tolerated = f"{points(limit)} {'point is' if limit == 0.01 else 'points are'} tolerated"
    gap_words = f"{points(abs(gap))} points{between} {side} {of}"
    return f"The rate of {who} is {gap_words}; up to {tolerated}, {so}"


def _other_findings(audit: Audit, worst: Finding) -> str:
    """How many comparisons there are, if the verdict rests on several."""
    if len(audit.asked) == 1:
        return ""
    deciding = [finding for finding in audit.asked if finding.verdict == worst.verdict]
    verdict = JUDGED.get(worst.verdict, worst.verdict)
    if len(deciding) == len(audit.asked):
        closest = "; this one is the closest to the limit" if worst.verdict == FAIR else ""
        return f"All {len(audit.asked)} comparisons are judged {verdict}{closest}."
    names = list(dict.fromkeys(words.in_the_middle(finding.measure) for finding in deciding))
    are = "is" if len(deciding) == 1 else "are"
    of = f"{len(deciding)} of {len(audit.asked)} comparisons"
    return f"{of} {are} {verdict}: {words.conjoined(names)}."


def _accuracy(audit: Audit) -> str:
    """The accuracy, and that of the baseline; empty without true labels."""
    if not audit.has_labels:
        return ""
    now = f"Accuracy is {percent(audit.accuracy)}"
    if audit.baseline is None:
        return f"{now}."
    before = percent(audit.baseline.accuracy)
    if audit.baseline_name == words.PLAIN:
        return f"{now}; without the fairness constraint it would be {before}."
    return f"{now}; {words.in_sentence(audit.baseline_name)} has {before}."


def _useless(audit: Audit) -> str:
    """Whether one label for everybody would do as well: equal for all groups, useless for all."""
    mass, labels = audit.table.mass.sum(axis=0), audit.labels
    truth, predicted = mass.sum(axis=1), mass.sum(axis=0)
    if (predicted > 0).sum() == 1:
        return f"The model is useless: every row is predicted {labels[predicted.argmax()]}."
    share = truth.max() / truth.sum()
    if audit.has_labels and audit.accuracy <= share:
        label = words.in_sentence(str(labels[truth.argmax()]))
        return (
            f"By accuracy the model is no better than a constant: it is right in "
            f"{percent(audit.accuracy)}, predicting {label} for everybody in {percent(share)}."
        )
    return ""


def _not_judged(audit: Audit) -> str:
    """How many people are in groups too small to judge."""
    views = dict.fromkeys(f.attribute for f in audit.asked if f.attribute in audit.views)
    small = {view: int(audit.views[view].size[~audit.judged(view)].sum()) for view in views}
    people = [
        f"{words.people_of(n)} in groups by {view} of fewer than {audit.least_rows(view):,} rows"
        for view, n in small.items()
        if n
    ]
    return f"Not judged: {words.conjoined(people)}." if people else ""


def gains(audit: Audit) -> tuple[str, ...]:
    """Who gained and who lost by the measures of the verdict, in people; only sure changes."""
    by_predicate: dict[tuple[str, bool], dict[str, None]] = {}
    asked = [change for change in audit.changes if change.after.is_asked]
    for change in asked:
        for predicate, has_label, moved in _moved_people(change):
            by_predicate.setdefault((predicate, has_label), {}).setdefault(moved)
    plain = " (without the fairness constraint)" if audit.baseline_name == words.PLAIN else ""
    against = f"Compared with {words.in_sentence(audit.baseline_name)}{plain},"
    sentences = []
    for (predicate, _), people in by_predicate.items():
        n_more = len(people) - MOST_GAINS
        shown = [*list(people)[:MOST_GAINS], *([f"{n_more} more groups"] if n_more > 0 else [])]
        sentences.append(f"{against} {words.conjoined(shown)} are {predicate}.")
    nobody = (f"{against} no group surely gained or lost.",) if asked else ()
    return tuple(sentences) or nobody


def _moved_people(change: Change) -> list[tuple[str, bool, str]]:
    """What happens to how many more or fewer people of a group, or of a label in it.

    Increases come first.
    """
    comparison, groups = change.after.comparison, change.after.table.groups
    names = words.people_names(groups)
    up, down = change.moves.of_cells(comparison, people=True)
    moved = []
    for k in np.flatnonzero(change.direction).tolist():
        net = int(up[k] - down[k])
        if net:
            among, predicate = _phrase(comparison, k, groups)
            more = "more" if net > 0 else "fewer"
            who = f"{abs(net):,} {more} {words.in_sentence(names[comparison.cell_group[k]])}"
            moved.append((net, predicate, bool(among), f"{who} {among}".strip()))
    moved.sort(key=lambda one: (one[0] < 0, -abs(one[0])))
    return [one[1:] for one in moved]


def price(audit: Audit) -> str:
    """What the change costs in accuracy, in points and in predictions; empty without a baseline."""
    change, low, high = accuracy_change(audit)
    if audit.moves is None or math.isnan(change):
        return ""
    if not change:
        return "The accuracy stays the same."
    up, down = audit.moves.together().of_rate("accuracy", people=True)[:, 0]
    way, more = ("rises", "more") if change > 0 else ("falls", "fewer")
    low, high = (low, high) if change > 0 else (-high, -low)
    interval = f"(interval {points(low)} to {points(high)})"
    of = f"Accuracy {way} by {points(abs(change))} points {interval}"
    return f"{of}: {abs(int(up - down)):,} {more} people are predicted correctly."


def _verdicts(audit: Audit) -> Section:
    """The verdict on each measure, the warnings, and the levels behind it."""
    blocks = [verdict_block("Verdict", audit, audit.asked)]
    if audit.others:
        blocks.append(verdict_block(OTHERS, audit, audit.others))
    steps = [f"{words.heading(f)}: {words.advice(f)}" for f in audit.asked if words.advice(f)]
    if steps:
        blocks.append(Block("What would settle it", sentences=steps, is_brief=True))
    warnings = [notice.message for notice in audit.warnings]
    if warnings:
        blocks.append(Block("Warnings", sentences=warnings, is_brief=True, is_warning=True))
    blocks += [_levels(finding, place) for place, finding in enumerate(audit.findings)]
    return Section(VERDICTS, "The verdict on each measure", (), blocks)


def verdict_block(title: str, audit: Audit, findings: Iterable[Finding]) -> Block:
    """What each verdict rests on, and what it was for the baseline."""
    baseline = () if audit.baseline is None else audit.baseline.findings
    before = {(one.measure, one.attribute): one.judgement for one in baseline}
    attributes = list(dict.fromkeys(finding.attribute for finding in audit.findings))
    several, rows = len(attributes) > 1, []
    for finding in findings:
        value, low, high, verdict = finding.judgement
        figures = [number(value), f"{low:.3f}-{high:.3f}", words.limit(finding)]
        by = [finding.attribute] if several else []
        row = [words.title(finding.measure), *by, *figures, words.short(verdict)]
        if before:
            was = before[finding.measure, finding.attribute]
            row += [f"{number(was.value)} {words.SIGNS[was.verdict]}"]
        rows.append(row)
    columns = ["measure", *["groups by"] * several, words.judged(findings), "interval", "fair if"]
    columns += ["verdict", *["before"] * bool(before)]
    title = title if several else f"{title}, groups by {attributes[0]}"
    return Block(title, columns, rows, texts=1 + several)


def _levels(finding: Finding, place: int) -> Block:
    """Every level of a measure with its interval."""
    comparison, (low, high) = finding.comparison, finding.level_intervals
    names = words.level_names(finding)
    rows = [
        [name, f"{level:.4f}", f"{a:.4f}", f"{b:.4f}"]
        for name, level, a, b in zip(names, finding.levels, low, high, strict=True)
        if not math.isnan(level)
    ]
    readable = dict(zip(comparison.names, names, strict=True))
    (best, best_level), (worst, worst_level) = finding.best, finding.worst
    sentences = [words.convention(finding.measure)]
    if best:
        sentences.append(
            f"Best off: {words.in_sentence(readable[best])} ({best_level:+.3f}). Worst off: "
            f"{words.in_sentence(readable[worst])} ({worst_level:+.3f}). The mean of |F| is "
            f"{finding.unfairness:.4f}."
        )
    if finding.n_undefined:
        sentences.append(f"{words.n_of(finding.n_undefined, 'level')} not defined: no rows.")
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    columns = ("level of", "F", "from", "to")
    return Block(title, columns, rows, sentences, chart="levels", about=place)


def _groups(audit: Audit, changed: list[Block]) -> Section:
    """The rates of every group, how they changed, their ratios, differences and mistakes."""
    blocks = [rate_block(audit, view) for view in audit.views] + changed
    if audit.impact_table is not None:
        blocks += audit.impact_table.blocks()
    blocks.append(_named_figures(audit))
    if audit.has_labels:
        blocks += [_confusion(audit, view) for view in audit.views]
    return Section(GROUPS, "How each group is treated", (), blocks)


def rate_block(audit: Audit, view: str) -> Block:
    """The rates of every group in percent, with the baseline's if there is one."""
    table, judged = audit.views[view], audit.judged(view)
    columns = _rate_columns(audit)
    cells = [_rate_cells(audit, view, rate, label) for rate, label, _ in columns]
    heads = ["group", "people", *(title for _, _, title in columns)]
    desirable = audit.desirable_indices
    place = next((i for i, column in enumerate(columns) if column[0] == "selection_rate"), None)
    if len(desirable) == 1 and place is not None:
        selected = table.rates["selection_rate"].row(desirable[0])
        ratios = [number(ratio, 2) for ratio in impact_ratios(selected.value, judged)]
        heads.insert(3 + place, "impact\nratio")
        cells.insert(1 + place, [*ratios, ""])
    names = words.people_names(table.groups)
    rows = [
        [
            f"{names[g]}{'' if judged[g] else ' *'}",
            f"{int(table.size[g]):,}",
            *(c[g] for c in cells),
        ]
        for g in _ordered(table.size)
    ]
    rows.append([OVERALL, f"{table.n_rows:,}", *(c[-1] for c in cells)])
    sentences = []
    if not judged.all():
        least = words.n_of(audit.least_rows(view), "row")
        sentences.append(f"* not judged: fewer than {least}.")
    if len(audit.labels) > MOST_LABELS:
        sentences.append(f"... {words.n_of(len(audit.labels) - MOST_LABELS, 'more label')}.")
    labels = [str(audit.labels[index]) for index in audit.shown_labels]
    of = f"; selected means {audit.target} {labels[0]}" if len(labels) == 1 else ""
    shown = "before → now" if audit.baseline is not None else "with half of the interval"
    title = f"Rates by {view}, in %, {shown}{of}"
    return Block(title, heads, rows, sentences, last=1, chart="rates", about=view, is_brief=True)


def _rate_columns(audit: Audit) -> list[tuple[str, int, str]]:
    """Of two labels the rates of the desirable one; of more the accuracy and the recalls."""
    if len(audit.labels) == 2:
        wanted = [(rate, audit.shown_labels[0], title) for rate, title in RATES.items()]
    else:
        name = "true_positive_rate" if audit.has_labels else "selection_rate"
        word = "recall" if audit.has_labels else "selected"
        wanted = [("accuracy", -1, "accuracy")]
        for index, label in enumerate(audit.labels[:MOST_LABELS]):
            wanted.append((name, index, f"{word}\n{label}"))
    return [column for column in wanted if column[0] in audit.table.rates]


def _rate_cells(audit: Audit, view: str, rate: str, label: int) -> list[str]:
    """A rate of every group, and of everyone, as text."""
    label = -1 if rate == "accuracy" else label
    table = audit.views[view]
    now = [counted.rates[rate].row(label) for counted in (table, table.together())]
    if audit.baseline is None:
        cells = []
        for rates in now:
            low, high = rates.exact_interval(audit.alpha)
            half = np.maximum(high - rates.value, rates.value - low)
            cells += [
                "-" if math.isnan(value) else f"{100 * value:.1f}±{100 * reach:.1f}"
                for value, reach in zip(rates.value, half, strict=True)
            ]
        return cells
    before = audit.baseline.views[view]
    was = [counted.rates[rate].row(label).value for counted in (before, before.together())]
    return [
        "-" if math.isnan(new) else f"{_short_percent(old)}→{_short_percent(new)}"
        for olds, rates in zip(was, now, strict=True)
        for old, new in zip(olds, rates.value, strict=True)
    ]


def _short_percent(share: float) -> str:
    """In %, with one digit but for 100, which has no room for it."""
    return "100" if share > 0.9995 else f"{100 * share:.1f}"


def _ordered(size: Any) -> list[int]:
    """The groups in the order of tables: as they are, or if there are many the largest first."""
    order = np.argsort(-size, kind="stable") if len(size) > MANY_GROUPS else np.arange(len(size))
    places: list[int] = order.tolist()
    return places


def _named_figures(audit: Audit) -> Block:
    """Differences and ratios by their usual names, one column per way of grouping."""
    several = len(audit.labels) > 2
    rows: dict[tuple[str, str], list[str]] = {}
    for gaps in audit.figures.values():
        for gap in gaps:
            label = f" ({audit.label_value(gap.label)})" if several and gap.label >= 0 else ""
            value, low, high, judged = (number(figure) for figure in gap[2:])
            of_judged = "" if judged == value else f"; groups judged: {judged}"
            cell = f"{value} ({low} to {high}){of_judged}"
            rows.setdefault((gap.name, label), []).append(cell)
    cells = [[f"{name}{label}", *c, words.FIGURES[name]] for (name, label), c in rows.items()]
    columns = ("figure", *(f"by {view}" for view in audit.views), "what it is")
    title = "Differences and ratios by their usual names"
    return Block(title, columns, cells, (words.FIGURES_NOTE,))


def _confusion(audit: Audit, view: str) -> Block:
    """Rows of each group and true label, by predicted label, with their share of the line."""
    table, labels = audit.views[view], [str(label) for label in audit.labels]
    order = table.largest(max(MOST_CELLS // len(labels) ** 2, 1))
    names, together = words.people_names(table.groups), table.together()
    groups = [(names[g], table.rows[g], table.mass[g]) for g in order]
    groups.append((OVERALL, together.rows[0], together.mass[0]))
    rows = []
    for name, counts, mass in groups:
        total = mass.sum(axis=1, keepdims=True)
        share = mass / np.where(total > 0, total, np.nan)
        for true, label in enumerate(labels):
            cells = zip(counts[true], share[true], strict=True)
            rows.append([name, label, *(f"{int(n):,} ({percent(of)})" for n, of in cells)])
    left_out = len(table.size) - len(order)
    sentences = (f"The {left_out} smallest groups are left out here.",) if left_out else ()
    columns = ("group", f"true {audit.target}", *(f"predicted {label}" for label in labels))
    title = f"Right and wrong predictions by {view}: rows, and their share of the true label"
    return Block(title, columns, rows, sentences, texts=2, last=len(labels))


def change_blocks(audit: Audit) -> list[Block]:
    """How the rates of each group differ from the baseline's, and who gets another prediction."""
    frame, level = audit.to_frame("changes"), f"{100 * audit.confidence:.4g} % confidence"
    blocks = [_change_block(audit, frame[frame["attribute"] == v], v) for v in audit.views]
    blocks[-1] = blocks[-1]._replace(sentences=(CHANGES_NOTE.format(level=level),))
    return [*blocks, _sides(audit)]


def _change_block(audit: Audit, frame: Any, view: str) -> Block:
    columns = _rate_columns(audit)
    cells = {
        (row["group"], row["rate"], row["label"]): _change(row)
        for row in frame.to_dict(orient="records")
    }
    table, names = audit.views[view], words.people_names(audit.views[view].groups)
    lines = [(names[g], table.groups.names[g], table.size[g]) for g in _ordered(table.size)]
    rows = []
    for shown, group, size in (*lines, (OVERALL, OVERALL, table.n_rows)):
        keys = [
            (group, rate, None if rate == "accuracy" else audit.label_value(label))
            for rate, label, _ in columns
        ]
        rows.append([shown, f"{int(size):,}", *(cells[key] for key in keys)])
    heads = ("group", "people", *(title for _, _, title in columns))
    title = f"Changes by {view} against {audit.baseline_name}, in points"
    return Block(title, heads, rows, last=1)


def _change(row: Mapping[Any, Any]) -> str:
    change, low, high = (row[name] for name in ("change", "low", "high"))
    if math.isnan(change):
        return "-"
    half = max(high - change, change - low)
    return f"{100 * change:+.1f}±{100 * half:.1f}{'*' if low > 0 or high < 0 else ' '}"


def _sides(audit: Audit) -> Block:
    """Who gets another prediction, the most people first."""
    groups = audit.table.groups
    people = dict(zip(groups.names, words.people_names(groups), strict=True))
    rows = [
        [people[row["group"]], f"{row['from']} → {row['to']}", _side(row), f"{row['rows']:,}"]
        for row in audit.to_frame("sides").to_dict(orient="records")
    ] or [["no group", "-", "-", "0"]]
    columns = ("group", f"predicted {audit.target}", "new decision", "people")
    return Block("Who gets a different decision", columns, rows, texts=3)


def _side(row: Mapping[Any, Any]) -> str:
    """Whether the new prediction of a row of the frame "sides" is right."""
    if row["true"] == "not known":
        return "not known"
    if row["to"] == row["true"]:
        return "right"
    return "wrong" if row["from"] == row["true"] else "still wrong"


def _details(audit: Audit) -> Section:
    """Scores, thresholds and subgroups, where there are some."""
    blocks = [_scores(audit, view) for view in audit.views] if audit.scores else []
    if audit.thresholds is not None:
        blocks.append(_thresholds(audit))
    if audit.subgroups is not None:
        blocks.append(_subgroups(audit.subgroups))
    return Section(DETAILS, "Scores, thresholds and subgroups", (), blocks)


def _scores(audit: Audit, view: str) -> Block:
    """AUC, and with one label the calibration, of every group."""
    frame = audit.to_frame("scores")
    labels = [audit.label_value(index) for index in audit.shown_labels][:MOST_LABELS]
    records = frame[frame["attribute"] == view].to_dict(orient="records")
    known = {(row["group"], row["label"]): row for row in records}
    table, several = audit.views[view], len(labels) > 1
    names = words.people_names(table.groups)
    lines = [(names[g], table.groups.names[g]) for g in _ordered(table.size)]
    rows = []
    for shown, group in (*lines, (OVERALL, OVERALL)):
        of_labels = [known[group, label] for label in labels if (group, label) in known]
        if of_labels:
            first = of_labels[0]
            cells = [_with_half(row, "auc") for row in of_labels]
            if not several:
                cells += [number(first["mean_score"]), number(first["base_rate"])]
                cells.append(_with_half(first, "calibration", "_gap", "+"))
            rows.append([shown, f"{first['rows']:,}", *cells])
    heads = [f"AUC\n{label}" for label in labels] if several else ["AUC"]
    heads += [] if several else ["mean\nscore", "base\nrate", "calibration\ngap"]
    notes = [scores.METHOD, *([scores.CALIBRATION] if audit.scores[0].is_probability else [])]
    columns = ("group", "rows", *heads)
    return Block(f"Scores by {view}", columns, rows, notes, last=1, chart="scores", about=view)


def _with_half(row: Mapping[Any, Any], name: str, more: str = "", sign: str = "") -> str:
    value, low, high = row[f"{name}{more}"], row[f"{name}_low"], row[f"{name}_high"]
    half = max(value - low, high - value)
    return "-" if math.isnan(value) else f"{value:{sign}.3f}±{half:.3f}"


def _thresholds(audit: Audit) -> Block:
    """Every measure now, and at the most accurate threshold at which it holds."""
    sweep = audit.thresholds
    assert sweep is not None  # noqa: S101 - the caller looked
    rows = []
    for finding in audit.asked:
        best = sweep.best_holding(finding)
        cells = ["-", "-", "-"]
        if best is not None:
            at, value = f"{best['threshold']:.3g}", number(best["value"])
            cells = [at, value, percent(best["accuracy"])]
        now = number(finding.judgement.value)
        rows.append([words.title(finding.measure), finding.attribute, now, *cells])
    at = "now" if sweep.present is None else f"now, at {sweep.present:.3g}"
    columns = ("measure", "groups by", at, "holds at", "with", "accuracy")
    notes = (f"Accuracy now {percent(audit.accuracy)}.", scores.SAME_ROWS)
    title = "Thresholds: the most accurate at which a measure holds"
    return Block(title, columns, rows, notes, texts=2, chart="thresholds")


def _subgroups(search: subgroups.SubgroupSearch) -> Block:
    rows = [
        [
            one.name,
            subgroups.rate_name(one),
            f"{one.rows:,}",
            percent(one.rate),
            percent(one.overall),
            f"{one.gap:+.3f}",
            f"{one.low:+.2f} to {one.high:+.2f}",
            "yes" if one.is_confirmed else "no",
        ]
        for one in search.subgroups
    ] or [["none with enough rows", *"-------"]]
    columns = ("subgroup", "rate", "rows", "there", "overall", "gap", "interval", "confirmed")
    notes, title = (search.sentence, subgroups.ABOUT), "Subgroups with large gaps"
    return Block(title, columns, rows, notes, texts=2, is_brief=True)


def _method(audit: Audit) -> Section:
    """What was audited, how intervals and verdicts are made, and what figures do not say."""
    facts = {
        "Rows": f"{audit.table.n_rows:,}",
        "Labels": ", ".join(str(label) for label in audit.labels),
        "Desirable label": ", ".join(str(label) for label in audit.desirable) or "none named",
        "Sensitive attributes": ", ".join(audit.attributes),
        "Confidence": f"{100 * audit.confidence:.4g} %",
        "Sample weights": "yes, intervals are approximate" if audit.is_weighted else "none",
        "Least rows of a group to be judged": f"{audit.min_group:g}",
        "Compared with": audit.baseline_name if audit.baseline is not None else "nothing",
    }
    measures = dict.fromkeys(finding.measure for finding in audit.findings)
    meanings = [[words.title(measure), words.convention(measure)] for measure in measures]
    rates = [[rate.replace("_", " "), words.RATES[rate]] for rate in audit.table.rates]
    blocks = (
        Block("What was audited", ("fact", "value"), list(facts.items()), texts=2),
        Block("Measures", ("measure", "what it asks"), meanings, texts=2),
        Block("Rates", ("rate", "what it is"), rates, texts=2),
        Block("Intervals and verdicts", sentences=(words.LEVELS, *words.intervals(audit))),
        Block("What these figures do not say", sentences=LIMITS),
    )
    return Section(METHOD, "Method and definitions", (), blocks)
