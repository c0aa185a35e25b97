"""What an audit says, as a list of sections: plain data that terminal, page, card and JSON render.

The first section answers four questions: is it fair, for whom, at what price, how certain? Its
sentences, its table and the first chart of the report show the same rates: `compared_values`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import scores, words
from fairgrad.audit.changes import accuracy_change
from fairgrad.audit.counts import OVERALL
from fairgrad.audit.intervals import impact_ratios
from fairgrad.audit.verdicts import FAIR, UNFAIR, attainable_tolerance
from fairgrad.audit.words import number, percent, points
from fairgrad.columns import counted
from fairgrad.text import Block, Section
from fairgrad.usefulness import MOST_SLACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.changes import Change
    from fairgrad.audit.verdicts import Finding

SUMMARY, GROUPS, VERDICTS, DETAILS, METHOD = "summary", "groups", "verdicts", "details", "method"
MANY_GROUPS, MOST_LABELS, MOST_GAINS = 12, 12, 6
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
STARS = "A star marks a change that is not due to chance ({level})."
LIMITS = (
    "Equal rates between groups do not make each single decision right or just.",
    "The figures hold for data like these, at the threshold these predictions were made with.",
    "Groups that were not recorded, or were merged, may still be treated unequally.",
    "Labels are taken as they were recorded, fairly or not.",
    "Measures contradict each other where base rates differ: which one matters is a choice.",
)


def sections(audit: Audit) -> tuple[Section, ...]:
    """Everything an audit says, in the order in which readers need it."""
    first = brief_section(audit, [*_compared(audit), *gains(audit)])
    return (first, *further_sections(audit))


def brief(audit: Audit) -> Section:
    """What terminal and card show: one screen for two groups."""
    rates = [rate_block(audit, view) for view in audit.views]
    searched = [] if audit.subgroups is None else [audit.subgroups.block]
    return brief_section(audit, [*gains(audit), *rates, *remarks(audit), *searched])


def brief_section(audit: Audit, blocks: Iterable[Block]) -> Section:
    """The conclusion, and these blocks."""
    judged = f"Judged {JUDGED[audit.verdict]}" if audit.verdict in JUDGED else "Undecided"
    title = f"{words.SIGNS[audit.verdict]} {judged}"
    if useless(audit):  # the first thing to know, whatever the verdict
        title = f"{words.SIGNS[UNFAIR]} No better than a constant ({audit.verdict})"
    return Section(SUMMARY, title, conclusion(audit), tuple(blocks))


def further_sections(audit: Audit) -> list[Section]:
    """What follows the summary: groups, verdicts, scores and subgroups, and the method."""
    groups = [rate_block(audit, view) for view in audit.views]
    groups += [] if audit.baseline is None else [sides(audit)]
    if audit.impact_table is not None:
        groups += audit.impact_table.blocks(audit.impact_table.notes)
    groups.append(_named_figures(audit))
    verdicts = [*verdict_blocks(audit), *remarks(audit)]
    verdicts += [level_block(finding, place) for place, finding in enumerate(audit.findings)]
    details = [_scores(audit, view) for view in audit.views if len(audit.score_frames["scores"])]
    details += [] if audit.subgroups is None else [audit.subgroups.block]
    further = [
        Section(GROUPS, "How each group is treated", (), groups),
        Section(VERDICTS, "The verdict on each measure", (), verdicts),
        Section(DETAILS, "Scores and subgroups", (), details),
        _method(audit),
    ]
    return [section for section in further if section.blocks]


def gains(audit: Audit) -> list[Block]:
    """Who gained and lost by the measures of the verdict, in people, and what it costs.

    Only sure changes count.
    """
    if audit.baseline is None:
        return []
    by_predicate: dict[tuple[str, bool], dict[str, None]] = {}
    asked = [change for change in audit.changes if change.after.is_asked]
    for change in asked:
        for predicate, has_label, moved in _moved_people(change):
            by_predicate.setdefault((predicate, has_label), {}).setdefault(moved)
    is_plain = audit.baseline_name == words.PLAIN
    other = "the model without the fairness constraint" if is_plain else audit.baseline_name
    against = f"Compared with {words.in_sentence(other)},"
    sentences = []
    for (predicate, _), people in by_predicate.items():
        be = "is" if len(people) == 1 and next(iter(people)).startswith("1 ") else "are"
        n_more = len(people) - MOST_GAINS
        shown = [*list(people)[:MOST_GAINS], *([f"{n_more} more groups"] if n_more > 0 else [])]
        sentences.append(f"{against} {words.conjoined(shown)} {be} {predicate}.")
    if asked and not sentences:
        sentences.append(f"{against} no group clearly gained or lost.")
    cost = price(audit)
    sentences += [cost] if cost else []
    return [Block("Who gained, who lost, at what price", sentences=sentences)]


def severity(finding: Finding) -> float:
    """How far the figure of a verdict lies beyond what is fair, to name the worst of several."""
    value, limit = finding.judgement.value, finding.tolerance
    if math.isnan(value):
        return float("inf")
    return limit.value - value if limit.kind == "ratio" else value - limit.value


def deciding(audit: Audit) -> tuple[list[Finding], Finding]:
    """The findings that decide the verdict, and the worst of them."""
    decisive = [finding for finding in audit.asked if finding.verdict == audit.verdict]
    return decisive, max(decisive, key=severity)


def compared_values(audit: Audit) -> dict[str, Any] | None:
    """The rates that the conclusion is about, before and now; of several labels the worst one's.

    "among" says whose rate it is, such as "with income >50K" (empty for everyone), "predicate" what
    happens to them, and "reference" what each rate is compared with (NaN if with each other). None
    for measures that compare something else.
    """
    _, finding = deciding(audit)
    comparison, table, rule = finding.comparison, finding.table, finding.tolerance
    level = finding.levels
    if np.isnan(level).all() or (comparison.group < 0).all():
        return None
    by_cell = len(level) == len(comparison.cells.total)
    cell = _named_level(finding)
    if not by_cell:
        cell = int(np.flatnonzero(comparison.cell_group == comparison.group[cell])[0])
    cells = np.flatnonzero(comparison.block == comparison.block[cell])
    rate = comparison.cells.pick(cells).value
    reference, fair = float("nan"), (0.0, 1.0)
    if by_cell and rule.kind != "ratio":
        worst = int(np.flatnonzero(cells == cell)[0])
        reference = float(rate[worst] - level[cell])
        least, most = rule.fair_levels(comparison)
        fair = reference + least[cells[0]], reference + most[cells[0]]
    else:
        ratios = impact_ratios(rate, reference=comparison.reference)
        worst = int(np.nanargmin(ratios)) if not np.isnan(ratios).all() else 0
        if rule.kind == "ratio":
            fair = rule.value * float(np.nanmax(rate)), 1.0
    people, against = words.people_names(table.groups), "the overall rate"
    if comparison.reference >= 0:
        against = f"the rate of {people[comparison.reference]}"
    names = [people[g] for g in comparison.cell_group[cells]]
    among, predicate = words.phrase(comparison, cells[0], table.groups)
    of = f" among people {among}" if among else ""
    fair_low, fair_high = (float(np.clip(end, 0.0, 1.0)) for end in fair)
    records = []
    for when, shown in (("before", audit.baseline), ("now", audit)):
        if shown is not None:
            rates = shown.findings[audit.findings.index(finding)].comparison.cells.pick(cells)
            ends = rates.exact_interval(audit.alpha)
            records += [
                {"group": name, "when": when, "rate": value, "low": low, "high": high}
                for name, value, low, high in zip(names, rates.value, *ends, strict=True)
            ]
    return {
        "title": f"{words.capitalized(predicate)}{of}, by {finding.attribute}",
        "measure": finding.measure,
        "attribute": finding.attribute,
        "among": among,
        "predicate": predicate,
        "reference": reference,
        "compared_with": against,
        "worst": names[worst],
        "fair_low": fair_low,
        "fair_high": fair_high,
        "rates": records,
    }


def _named_level(finding: Finding) -> int:
    """The index of the largest level; of two labels that of the desirable one, which says both."""
    told = finding.comparison.valued | (finding.table.n_labels > 2)
    level = np.where(told, finding.levels, np.nan)
    return int(np.nanargmax(np.abs(finding.levels if np.isnan(level).all() else level)))


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
    return [Block(values["title"], columns, rows, chart="compared")]


def conclusion(audit: Audit) -> tuple[str, ...]:
    """What the audit found, in a few sentences: the rates, the verdict, the accuracy."""
    (decisive, finding), values = deciding(audit), compared_values(audit)
    # Rows of unknown group are in no comparison.
    table, n_rows = finding.table, audit.table.n_rows
    n_known = table.n_rows + (0 if table.others is None else table.others.n_rows)
    rows = counted(n_rows, "row")
    are_unknown = n_known < n_rows and audit.partly is None
    if are_unknown:
        attributes = table.groups.attributes
        whose = f"{words.conjoined(attributes)} {'is' if len(attributes) == 1 else 'are'}"
        rows = f"the {n_known:,} of {n_rows:,} rows whose {whose} known"
    rows = f"{100 * audit.confidence:.4g} % confidence, {rows}"
    if values is None:
        j = 0 if np.isnan(finding.levels).all() else int(np.nanargmax(np.abs(finding.levels)))
        of, name = words.in_the_middle(finding.measure), finding.comparison.names[j]
        verdict = JUDGED.get(finding.verdict, finding.verdict)
        sentences = [
            f"The largest level of {of} is {finding.levels[j]:+.3f} ({words.in_sentence(name)}).",
            f"Fair is {words.in_words(finding)}, so the model is judged {verdict} ({rows}).",
        ]
    else:
        rates = {row["group"]: row["rate"] for row in values["rates"] if row["when"] == "now"}
        # A verdict may be "fair" although a rate is much smaller than another: mention it.
        ratio = float(np.nanmin(impact_ratios(np.array([*rates.values()])), initial=1.0))
        ratio = ratio if finding.verdict == FAIR and ratio < 0.8 else 1.0
        verdict = _verdict_sentence(decisive, values, rates, ratio)
        sentences = [_rates_sentence(finding, values, rates, ratio), f"{verdict} ({rows})."]
    sentences = [useless(audit), *sentences, _passing(audit)]
    sentences += [_other_findings(audit, decisive), _accuracy(audit, on_all=are_unknown)]
    return tuple(sentence for sentence in (*sentences, _not_judged(audit)) if sentence)


def _rates_sentence(
    finding: Finding, values: Mapping[str, Any], rates: Mapping[str, float], ratio: float
) -> str:
    """How often what is compared happens to each group; with a ratio of rates below 1."""
    known = {words.in_sentence(name): rate for name, rate in rates.items() if not math.isnan(rate)}
    often = "at different rates" if ratio < 1 else HOW_OFTEN.get(finding.verdict, "")
    end = f", a ratio of {ratio:.2f}." if ratio < 1 else "."
    often, end = (f"{often}:", end) if often else ("in", " of cases.")
    if len({*map(percent, known.values())}) == 1:
        every = f"In every group by {words.in_sentence(finding.attribute)}"
        people = f"{points(max(known.values()))} % of people {values['among']}".rstrip()
        return f"{every}, {people} are {values['predicate']}."
    if len(known) == 2:
        who, figures = words.conjoined([*known]), words.conjoined([*map(percent, known.values())])
    else:
        ends = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
        who = f"the groups by {words.in_sentence(finding.attribute)}"
        spans = " to ".join(f"{percent(known[name])} ({name})" for name in ends)
        figures = f"{'from ' * (often != 'in')}{spans}"
    among = f"Among people {values['among']}, " if values["among"] else ""
    if not among and who.split()[0] in {"the", *words.PEOPLE.values()}:  # a name stays as it is
        who = words.capitalized(who)
    return f"{among}{who} are {values['predicate']} {often} {figures}{end}"


def _verdict_sentence(
    decisive: Sequence[Finding], values: Mapping[str, Any], rates: Mapping[str, float], ratio: float
) -> str:
    """What is tolerated, and the verdict; without its full stop. With a ratio of rates below 1."""
    finding = max(decisive, key=severity)
    kind, limit = finding.tolerance.kind, finding.tolerance.value
    value, low, high, verdict = finding.judgement
    is_open = verdict not in JUDGED
    so = f"so the model is judged {JUDGED.get(verdict, '')}"
    so = "so these rows do not settle whether the model is fair" if is_open else so
    if kind == "ratio":
        between = f" (interval {low:.2f} to {high:.2f})" if is_open else ""
        lowest = f"The lowest rate is {value:.2f} times the highest{between}"
        return f"{lowest}. At least {limit:.3g} is required, {so}"
    every = "Both" if sum(not math.isnan(rate) for rate in rates.values()) == 2 else "All"
    who, gap = values["worst"], rates[values["worst"]] - values["reference"]
    side = f"points {'below' if gap < 0 else 'above'}"
    the_rate = f"The rate of {words.in_sentence(who)} is {points(abs(gap))}"
    if kind == "bounds":
        bound = f"the bound of {percent(values['reference'])}"
        kept = f"{every} keep {bound}" if verdict == FAIR else f"{the_rate} {side} {bound}"
        return f"{kept}, {so}"
    of = f"{values['compared_with']}, {percent(values['reference'])}"
    if verdict == FAIR:
        within = f"{every} are within {points(limit)} points of {of}, {so}"
        return f"This is tolerated: {within[0].lower()}{within[1:]}" if ratio < 1 else within
    tolerated = f"{points(limit)} {'point is' if limit == 0.01 else 'points are'} tolerated"
    verdict = f"Up to {tolerated}, {so}"
    if not is_open:
        return f"{the_rate} {side} {of}. {verdict}"
    # The rate that is named has its own interval; the verdict is open because of any group's.
    most = attainable_tolerance([f for f in decisive if f.tolerance.kind == "level"]) or 1.0
    ends = (float(end[_named_level(finding)]) for end in finding.level_intervals)
    low, high = sorted(math.copysign(1.0, gap) * end for end in ends)
    # It is two-sided and may reach farther than the one-sided limit that decides.
    between = f" (interval {points(low)} to {points(high)})" if high <= most else ""
    largest = f"The largest gap of any group could be up to {points(most)} points."
    named = f"{the_rate} points{between} {side[7:]} {of}."
    if points(abs(gap)) == "0":
        named = "All groups have the same rate."
    return f"{named} {largest} {verdict}"


def _passing(audit: Audit) -> str:
    """The tolerance at which levels would be judged fair; ratios have other tolerances."""
    levels = [finding for finding in audit.asked if finding.tolerance.kind == "level"]
    passing = attainable_tolerance(levels) if any(f.verdict != FAIR for f in levels) else None
    if passing is None or passing >= 1:
        return ""
    names = list(dict.fromkeys(words.in_the_middle(finding.measure) for finding in levels))
    subject = "It" if len(levels) == len(audit.asked) else f"By {words.conjoined(names)} it"
    if passing <= MOST_SLACK:
        return f"{subject} would be judged fair at a tolerance of {points(passing)} points."
    return (
        f"{subject} would be judged fair only at a tolerance of {points(passing)} points: groups "
        "differ too much, or are too small, for a claim of fairness."
    )


def _other_findings(audit: Audit, decisive: Sequence[Finding]) -> str:
    """How many comparisons there are, if the verdict rests on several."""
    if len(audit.asked) == 1:
        return ""
    verdict = JUDGED.get(audit.verdict, audit.verdict)
    if len(decisive) == len(audit.asked):
        closest = "; this one is the closest to the limit" if audit.verdict == FAIR else ""
        every = "Both" if len(decisive) == 2 else f"All {len(decisive)}"
        return f"{every} comparisons are {verdict}{closest}."
    are = "is" if len(decisive) == 1 else "are"
    of = f"{len(decisive)} of {len(audit.asked)} comparisons"
    several = len({finding.attribute for finding in audit.asked}) > 1
    return f"{of} {are} {verdict}: {words.measures_by(decisive, whose=several)}."


def _accuracy(audit: Audit, *, on_all: bool) -> str:
    """The accuracy, of which rows if need be, and the baseline's; empty without true labels."""
    if not audit.has_labels:
        return ""
    of = f" on all {counted(audit.table.n_rows, 'row')}" if on_all else ""
    now = f"Accuracy{of} is {percent(audit.accuracy)}"
    if audit.baseline is None:
        return f"{now}."
    before = percent(audit.baseline.accuracy)
    if audit.baseline_name != words.PLAIN:
        return f"{now}; {words.in_sentence(audit.baseline_name)} has {before}."
    if before == percent(audit.accuracy):
        return f"{now}, the same as without the fairness constraint."
    _, _, most, _ = accuracy_change(audit)
    is_needless = most < 0 and audit.baseline.verdict == FAIR
    also = " as well" if audit.verdict == FAIR else ""
    needless = f", and that model would be judged fair{also}" if is_needless else ""
    return f"{now}; without the fairness constraint it would be {before}{needless}."


def useless(audit: Audit) -> str:
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
    small = {view: int(audit.views[view].size[~audit.judged[view]].sum()) for view in views}
    people = [
        f"{words.people_of(n)} in groups by {view} with fewer than {audit.least_rows[view]:,} rows"
        for view, n in small.items()
        if n
    ]
    return f"Not judged: {words.conjoined(people)}." if people else ""


def _moved_people(change: Change) -> list[tuple[str, bool, str]]:
    """What happens to how many more or fewer people of a group, or of a label in it.

    Increases come first.
    """
    comparison, groups = change.after.comparison, change.after.table.groups
    up, down = change.moved(people=True)
    moved = []
    for k in np.flatnonzero(change.direction).tolist():
        net = int(up[k] - down[k])
        if net:
            among, predicate = words.phrase(comparison, k, groups)
            more = "more" if net > 0 else "fewer"
            who = words.people_with(groups, comparison.cell_group[k], among, n=abs(net))
            moved.append((net, predicate, bool(among), f"{abs(net):,} {more} {who}"))
    moved.sort(key=lambda row: (row[0] < 0, -abs(row[0])))
    return [row[1:] for row in moved]


def price(audit: Audit) -> str:
    """What the change costs in accuracy, in points and in predictions; empty without a baseline."""
    change, low, high, net = accuracy_change(audit)
    if math.isnan(change):
        return ""
    if not change:
        return "The accuracy stays the same."
    way, more = ("rises", "more") if change > 0 else ("falls", "fewer")
    low, high = (low, high) if change > 0 else (-high, -low)
    interval = f"(interval {points(low)} to {points(high)})"
    of = f"Accuracy {way} by {points(abs(change))} points {interval}"
    n = abs(net)
    one, several = ("row", "rows") if audit.is_weighted else ("person", "people")
    who = f"{one} is" if n == 1 else f"{several} are"
    return f"{of}: {n:,} {more} {who} predicted correctly."


def verdict_blocks(audit: Audit) -> list[Block]:
    """The measures asked for, and those beside them."""
    others = [finding for finding in audit.findings if not finding.is_asked]
    titled = {"Verdict": audit.asked, OTHERS: others}
    return [verdict_block(title, audit, findings) for title, findings in titled.items() if findings]


def remarks(audit: Audit) -> list[Block]:
    """What would settle an undecided verdict, and the warnings."""
    steps = [
        f"{words.title(finding.measure)}, {finding.attribute}: {advice}"
        for finding in audit.asked
        if (advice := words.advice(finding))
    ]
    told = {"not_judged"} if _not_judged(audit) else set()  # by the conclusion and the tables
    warnings = [notice.message for notice in audit.warnings if notice.kind not in told]
    blocks = [Block("What would settle it", sentences=steps)] if steps else []
    warned = Block("Warnings", sentences=warnings, is_warning=True)
    return [*blocks, *([warned] if warnings else [])]


def risks(audit: Audit) -> list[str]:
    """Who is treated unequally beyond doubt, the warnings, and what the figures do not say."""
    beyond: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for finding in audit.findings:
        for name, is_beyond in zip(words.level_names(finding), finding.beyond, strict=True):
            if is_beyond:
                told = f"{name} ({words.in_the_middle(finding.measure)})"
                beyond[finding.is_asked].setdefault(told)
    wheres = {True: "", False: ", by measures that were not asked for"}
    return [
        *(
            f"Clearly beyond the tolerance{wheres[is_asked]}: {words.listed(list(names), most=8)}."
            for is_asked, names in beyond.items()
            if names
        ),
        *(notice.message for notice in audit.warnings),
        *([] if audit.has_labels else ["True labels are not known, so errors were not measured."]),
        *LIMITS,
    ]


def verdict_block(title: str, audit: Audit, findings: Iterable[Finding]) -> Block:
    """What each verdict rests on, and what it was for the baseline."""
    baseline = () if audit.baseline is None else audit.baseline.findings
    before = {(f.measure, f.attribute): f.judgement for f in baseline}
    attributes = list(dict.fromkeys(finding.attribute for finding in audit.findings))
    several, rows = len(attributes) > 1, []
    for finding in findings:
        value, low, high, verdict = finding.judgement
        fair = words.in_words(finding).replace("at most", "≤").replace("at least", "≥")
        figures = [number(value), f"{low:.3f}-{high:.3f}", fair]
        by = [finding.attribute] if several else []  # a terminal has no room for both
        row = [words.title(finding.measure), *by, *figures, words.short(verdict)]
        if before:
            was = before[finding.measure, finding.attribute]
            row.append(f"{number(was.value)} {words.SIGNS[was.verdict]}")
        rows.append(row)
    columns = ["measure", *["groups by"] * several, words.judged(findings), "interval", "fair if"]
    columns += ["verdict", *["before"] * bool(before)]
    title = title if several else f"{title}, groups by {attributes[0]}"
    return Block(title, columns, rows, texts=1 + several)


def level_block(finding: Finding, place: int) -> Block:
    """Every level of a measure with its interval."""
    (low, high), names = finding.level_intervals, words.level_names(finding)
    rows = [
        [name, f"{level:.4f}", f"{a:.4f}", f"{b:.4f}"]
        for name, level, a, b in zip(names, finding.levels, low, high, strict=True)
        if not math.isnan(level)
    ]
    sentences = [words.convention(finding.measure)]
    if finding.extremes is not None:
        worst, best = (
            f"{words.in_sentence(names[j])} ({finding.levels[j]:+.3f})" for j in finding.extremes
        )
        mean = f"The mean of |F| is {finding.unfairness:.4f}."
        sentences.append(f"Best off: {best}. Worst off: {worst}. {mean}")
    if finding.n_undefined:
        sentences.append(f"{counted(finding.n_undefined, 'level')} not defined: no rows.")
    title = f"{words.title(finding.measure)} by {finding.attribute}"
    columns = ("level of", "F", "from", "to")
    return Block(title, columns, rows, sentences, chart="levels", about=place)


def _by_group(
    audit: Audit, view: str, title: str, columns: Sequence[tuple[str, Sequence[str]]], **more: Any
) -> Block:
    """A table with a line per group and one of everyone; columns have a heading and such cells.

    If there are many groups, the largest come first. A dagger marks those that are not judged.
    """
    table, judged = audit.views[view], audit.judged[view]
    order = np.arange(len(table.size))
    if len(order) > MANY_GROUPS:
        order = np.argsort(-table.size, kind="stable")
    names = words.people_names(table.groups)
    rows = [
        [f"{names[g]}{'' if judged[g] else ' †'}", f"{int(table.size[g]):,}"]
        + [cells[g] for _, cells in columns]
        for g in order.tolist()
    ]
    rows.append([OVERALL, f"{table.n_rows:,}", *(cells[-1] for _, cells in columns)])
    heads = ("group", "people", *(heading for heading, _ in columns))
    return Block(title, heads, rows, last=1, about=view, **more)


def rate_block(audit: Audit, view: str) -> Block:
    """The rates of every group in percent, with the baseline's if there is one.

    Of two labels they are those of the desirable one; of more the accuracy and the recalls.
    """
    table, judged, desirable = audit.views[view], audit.judged[view], audit.desirable_indices
    if len(audit.labels) == 2:
        label = audit.shown_labels[0]
        wanted = [(r, -1 if r == "accuracy" else label, title) for r, title in RATES.items()]
    else:
        recall, word = "true_positive_rate", "recall"
        if not audit.has_labels:
            recall, word = "selection_rate", "selected"
        named = enumerate(audit.labels[:MOST_LABELS])
        wanted = [(recall, index, f"{word}\n{name}") for index, name in named]
        wanted.insert(0, ("accuracy", -1, "accuracy"))
    columns = []
    for rate, label, heading in (column for column in wanted if column[0] in table.rates):
        columns.append((heading, _rate_cells(audit, view, rate, label)))
        if rate == "selection_rate" and len(desirable) == 1 and label == desirable[0]:
            ratios = impact_ratios(table.rates[rate].row(label).value, judged)
            columns.append(("impact\nratio", [*(number(ratio, 2) for ratio in ratios), ""]))
    sentences = []
    if not judged.all():
        least = counted(audit.least_rows[view], "row")
        sentences.append(f"† not judged: fewer than {least}.")
    if len(audit.labels) > MOST_LABELS:
        sentences.append(f"... {counted(len(audit.labels) - MOST_LABELS, 'more label')}.")
    if any(cell.endswith("*") for _, cells in columns for cell in cells):
        sentences.append(STARS.format(level=f"{100 * audit.confidence:.4g} % confidence"))
    labels = [str(audit.labels[index]) for index in audit.shown_labels]
    of = f"; selected means {audit.target} {labels[0]}" if len(labels) == 1 else ""
    shown = "before → now" if audit.baseline is not None else "with half of the interval"
    title = f"Rates by {view}, in %, {shown}{of}"
    return _by_group(audit, view, title, columns, sentences=sentences, chart="rates")


def _rate_cells(audit: Audit, view: str, rate: str, label: int) -> list[str]:
    """A rate of every group, and of everyone, as text."""
    if audit.baseline is None:
        tables = audit.views[view], audit.views[view].together()
        return [
            _with_half(*ends)
            for rates in (table.rates[rate].row(label) for table in tables)
            for ends in zip(rates.value, *rates.exact_interval(audit.alpha), strict=True)
        ]
    frame = audit.to_frame("changes")
    frame = frame[(frame["attribute"] == view) & (frame["rate"] == rate)]
    frame = frame if label < 0 else frame[frame["label"] == audit.label_values[label]]
    rows = frame[["before", "after", "low", "high"]].to_numpy(dtype=float)
    return [
        "-"
        if math.isnan(new)
        else f"{100 * old:.1f}→{100 * new:.1f}{'*' if low > 0 or high < 0 else ''}"
        for old, new, low, high in rows
    ]


def _with_half(value: float, low: float, high: float, form: str = ".1f", unit: float = 100) -> str:
    """A figure and the larger half of its interval, in percent unless it says otherwise."""
    half = max(high - value, value - low)
    reach = form.removeprefix("+")
    return "-" if math.isnan(value) else f"{unit * value:{form}}±{unit * half:{reach}}"


def _named_figures(audit: Audit) -> Block:
    """Differences and ratios by their usual names, one column per way of grouping."""
    several = len(audit.labels) > 2
    rows: dict[tuple[str, str], list[str]] = {}
    for row in audit.to_frame("figures").to_dict(orient="records"):
        label = f" ({row['label']})" if several and row["label"] is not None else ""
        value, low, high, judged = (number(row[n]) for n in ("value", "low", "high", "judged"))
        of_judged = "" if judged == value else f"; groups judged: {judged}"
        cell = f"{value} ({low} to {high}){of_judged}"
        rows.setdefault((row["figure"], label), []).append(cell)
    cells = [
        [f"{name.replace('_', ' ')}{label}", *figures, words.FIGURES[name]]
        for (name, label), figures in rows.items()
    ]
    columns = ("figure", *(f"by {view}" for view in audit.views), "what it is")
    title = "Differences and ratios by their usual names"
    return Block(title, columns, cells, (words.FIGURES_NOTE,))


def sides(audit: Audit) -> Block:
    """Who gets another prediction, the most people first."""
    groups = audit.table.groups
    people = dict(zip(groups.names, words.people_names(groups), strict=True))
    rows = []
    for row in audit.to_frame("sides").to_dict(orient="records"):
        side = "not known" if row["true"] == "not known" else "still wrong"
        side = {row["from"]: "wrong", row["to"]: "right"}.get(row["true"], side)
        who, change = people[row["group"]], f"{row['from']} → {row['to']}"
        rows.append([who, change, side, f"{row['rows']:,}"])
    rows = rows or [["no group", "-", "-", "0"]]
    columns = ("group", f"predicted {audit.target}", "new decision", "people")
    return Block("Who gets a different decision", columns, rows, texts=3)


def _scores(audit: Audit, view: str) -> Block:
    """AUC, and with one label the calibration, of every group."""
    frame = audit.to_frame("scores")
    frame = frame[frame["attribute"] == view].set_index("group")
    labels = [audit.label_values[index] for index in audit.shown_labels][:MOST_LABELS]
    groups, columns, rows = [*audit.views[view].groups.names, OVERALL], [], []
    for label in labels:
        rows = frame[frame["label"] == label].reindex(groups).to_dict(orient="records")
        areas = [_with_half(r["auc"], r["auc_low"], r["auc_high"], ".3f", 1) for r in rows]
        columns.append(("AUC" if len(labels) == 1 else f"AUC\n{label}", areas))
    if len(labels) == 1:
        gap, low, high = (f"calibration_{end}" for end in ("gap", "low", "high"))
        gaps = [_with_half(row[gap], row[low], row[high], "+.3f", 1) for row in rows]
        columns.append(("mean\nscore", [number(row["mean_score"]) for row in rows]))
        columns.append(("base\nrate", [number(row["base_rate"]) for row in rows]))
        columns.append(("calibration\ngap", gaps))
    is_calibrated = len(audit.score_frames["calibration"]) > 0
    notes = [scores.METHOD, *([scores.CALIBRATION] if is_calibrated else [])]
    title = f"Scores by {view}"
    return _by_group(audit, view, title, columns, sentences=notes, chart="scores")


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
