"""Warnings an audit gives: each a short kind, for programs, and a sentence, for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairgrad.audit.counts import CountTable, margins
from fairgrad.audit.scores import switch
from fairgrad.audit.verdicts import FOUR_FIFTHS
from fairgrad.audit.words import conjoined, in_the_middle, listed, n_of, people_of, title
from fairgrad.groups import MIN_GROUP

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.changes import Change
    from fairgrad.groups import Floats, Ints

WEIGHTS = "Rows have weights: intervals rest on effective sizes and are approximate."
TINY = MIN_GROUP
"""Groups, and labels within groups, with fewer rows are flagged: their rates are very uncertain."""

ABOUT_ROWS = frozenset(
    {"remark", "desirable", "unknown", "empty", "not_judged", "strata", "tiny", "weights"}
)
"""Kinds of warnings that hold for all predictions of the same rows."""

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
            "not_judged", "tiny", "weights" or "threshold".
        message: what it is, in words.
    """

    kind: str
    message: str


def left_out(measures: Collection[str], n_labels: int) -> str:
    """Measures of the default set that need a desirable label where none is known."""
    names = " and ".join(title(name) for name in measures)
    return names and (
        f"{names} was left out: there are {n_labels} labels, and none is named as the desirable "
        "one. Name it to include this measure (y_desirable=)."
    )


def lonely_strata(audit: Audit) -> str:
    """Strata in which there are not two groups to compare."""
    found = {name: None for finding in audit.findings for name in finding.comparison.left_out}
    strata = f"{len(found)} {'stratum' if len(found) == 1 else 'strata'}"
    said = f"{strata} left out, as fewer than two groups have enough rows there to be compared: "
    return said + f"{listed(list(found), most=8)}." if found else ""


def doubtful_desirable(guessed: Sequence[Any], target: str, labels: Sequence[Any]) -> str:
    """A guessed desirable label whose name, or whose target's name, is bad news.

    Example:
        >>> doubtful_desirable(["yes"], "deny", ["no", "yes"])[:51]
        'deny=yes was taken as desirable, though its name su'
        >>> doubtful_desirable([1], "hired", [0, 1])
        ''
    """
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
        f"{target}={label} was taken as desirable, though its name suggests otherwise: of two "
        f"values the second in sorted order is. If {target}={other} is the desirable one, say so "
        f"(--desirable {str(other)!r}, y_desirable={other!r}): rates, gains and losses turn around."
    )


def _is_bad_news(name: str) -> bool:
    """Whether a name says denied, rejected, failed, ... and not the contrary."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", str(name))
    parts = [part for part in re.split(r"[^a-z]+", spaced.casefold()) if part]
    return any(
        BAD_NEWS.match(part) and not (place and parts[place - 1] in NEGATION)
        for place, part in enumerate(parts)
    )


def not_judged(audit: Audit) -> str:
    """Groups set aside from the verdict because they have few rows."""
    found = []
    for name, view in audit.views.items():
        small = np.flatnonzero(~audit.judged(name) & (view.size > 0))
        if len(small):
            names = [f"{view.groups.names[g]} ({view.size[g]:.0f})" for g in small]
            people = people_of(int(view.size[small].sum()))
            found.append(
                f"by {name} {people} in {n_of(len(small), 'group')} of fewer than "
                f"{audit.least_rows(name):,} rows: {listed(names, most=6)}"
            )
    return (
        f"Not judged, {'; '.join(found)}. Their rates are shown; min_group (--min-group 0) "
        "includes them in the verdict."
        if found
        else ""
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


def unknown_values(table: CountTable, views: Mapping[str, CountTable]) -> str:
    """Rows set aside because their sensitive value is not known."""
    missing = {name: table.n_rows - views[name].n_rows for name in table.groups.attributes}
    found = [
        f"{n:,} of {n_of(table.n_rows, 'row')} {'has' if n == 1 else 'have'} no known {name}"
        for name, n in missing.items()
        if n
    ]
    return f"{listed(found)}; left out of its groups and comparisons." if found else ""


def empty_groups(columns: Mapping[str, Any], table: CountTable) -> str:
    """Groups without any weight, and values that a column declares as a category but no row has."""
    weightless = np.flatnonzero(table.mass.sum(axis=(1, 2)) <= 0)
    names = [table.groups.names[g] for g in weightless]
    for name, column in columns.items():
        if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
            series = pd.Series(column)
            unused = series.cat.categories.difference(list(series.dropna().unique()))
            names += [f"{name}={value}" for value in unused]
    return f"Nothing can be said about groups without rows: {listed(names)}." if names else ""


def few_rows(table: CountTable, is_judged: NDArray[np.bool_]) -> str:
    """Groups, and labels within groups, that are judged though they have few rows."""
    names, cell_names = table.groups.names, table.groups.cell_names(by_label=True)
    cells = margins(table.rows).truth.ravel()
    is_large = np.tile((table.size >= TINY) & is_judged, table.n_labels)
    groups = np.flatnonzero((table.size > 0) & (table.size < TINY) & is_judged)
    labels = np.flatnonzero(is_large & (cells < TINY) & table.has_labels)
    found = {
        "groups": [f"{names[g]} ({table.size[g]:.0f})" for g in groups],
        "labels within groups": [f"{cell_names[k]} ({cells[k]:.0f})" for k in labels],
    }
    parts = [f"{what} {listed(few)}" for what, few in found.items() if few]
    return f"Fewer than {TINY} rows, so rates are uncertain: {'; '.join(parts)}." if parts else ""


def constant_predictions(table: CountTable) -> str:
    """Predictions that are the same for everybody, or for everybody in a group."""
    predicted, labels = margins(table.rows).predicted, table.groups.labels
    everyone = predicted.sum(axis=1)
    if (everyone > 0).sum() == 1:
        return (
            f"Every row is predicted {labels[everyone.argmax()]}: a constant prediction is equal "
            "for all groups and of no use to any of them."
        )
    constant = ((predicted > 0).sum(axis=0) == 1) & (table.size >= TINY)
    names = [
        f"{table.groups.names[g]} ({labels[predicted[:, g].argmax()]})"
        for g in np.flatnonzero(constant)
    ]
    return f"Everybody gets the same prediction in: {listed(names)}." if names else ""


def levelling_down(changes: Sequence[Change], baseline: str) -> str:
    """Fairness that came from taking away, not from giving; one paragraph for all measures."""
    found = [change for change in changes if change.is_levelling_down]
    if not found:
        return ""
    grouped: dict[str, list[str]] = {}
    for change in found:
        grouped.setdefault(in_the_middle(change.after.measure), []).append(change.after.attribute)
    measures = [f"{name} (by {conjoined(views)})" for name, views in grouped.items()]
    rates = " or ".join(dict.fromkeys(change.after.comparison.rate for change in found))
    lost = list(dict.fromkeys(name for change in found for name in change.lost()))
    return (
        f"Levelling down: {conjoined(measures)} improved against {baseline} by taking away, not by "
        f"giving. No group has a surely better {rates}, and {listed(lost, most=6)} "
        f"{'has' if len(lost) == 1 else 'have'} a worse one."
    )


def other_threshold(
    score: Floats | None,
    predicted: Ints,
    desirable: Sequence[int],
    n_labels: int,
    threshold: float | None,
) -> str:
    """What to say if the predictions do not follow from the scores as the model was trained.

    Scores are (N,) of the desirable label (two labels only), or (N, L) one per label.
    """
    if score is None:
        return ""
    if n_labels > 2:
        return _not_the_largest(score, predicted)
    positive = desirable[0]
    score = score[:, positive] if score.ndim == 2 else score
    return _moved_threshold(score, predicted == positive, threshold)


def _not_the_largest(score: Floats, predicted: Ints) -> str:
    off = score[np.arange(len(score)), predicted] < score.max(axis=1)
    if not off.any():
        return ""
    return (
        f"{off.mean():.1%} of the predictions are not the label with the largest score: they do "
        "not follow from the scores alone. The figures hold for these predictions only."
    )


def _moved_threshold(score: Floats, is_positive: NDArray[np.bool_], threshold: float | None) -> str:
    highest_no, lowest_yes = switch(score, is_positive)
    if highest_no > lowest_yes:
        return (
            "The predictions do not come from one threshold on the scores given (a score of "
            f"{lowest_yes:.4g} is predicted positive and one of {highest_no:.4g} is not): groups "
            "may have thresholds of their own. The figures hold for these predictions only."
        )
    if threshold is None or highest_no <= threshold <= lowest_yes:
        return ""
    where = np.mean([end for end in (highest_no, lowest_yes) if np.isfinite(end)])
    return (
        f"The predictions switch at a score of about {where:.4g}, not at {threshold:.4g}: a model "
        f"made fair for a threshold of {threshold:.4g} is fair for that one only."
    )
