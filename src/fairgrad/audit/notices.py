"""Warnings an audit gives: each a short kind, for programs, and a sentence, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairgrad.audit.counts import CountTable, margins
from fairgrad.audit.words import listed, title
from fairgrad.columns import as_array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.audit.verdicts import Change
    from fairgrad.groups import Floats, Ints

TINY = 30
"""Groups, and labels within groups, with fewer rows are flagged: their rates are very uncertain."""


class Notice(NamedTuple):
    """A warning.

    Attributes:
        kind: "desirable", "constant", "levelling_down", "unknown", "empty", "tiny", "weights" or
            "threshold".
        message: what it is, in words.

    Example:
        >>> from fairgrad.audit import Audit
        >>> audit = Audit([0, 1] * 40, [1, 1] * 40, ["a", "a", "b", "b"] * 20)
        >>> audit.warnings[0].kind
        'constant'
    """

    kind: str
    message: str


def left_out(measures: Sequence[str], labels: Sequence[Any]) -> list[Notice]:
    """Measures of the default set that need a desirable label where none is known."""
    if not measures:
        return []
    names = " and ".join(title(name) for name in measures)
    said = (
        f"{names} was left out: there are {len(labels)} labels, and none is named as the desirable "
        "one. Name it to include this measure (y_desirable=)."
    )
    return [Notice("desirable", said)]


def weights(is_weighted: bool) -> list[Notice]:
    """Intervals are exact only without weights."""
    said = "Rows have weights: intervals rest on effective sizes and are approximate."
    return [Notice("weights", said)] if is_weighted else []


def unknown_values(table: CountTable, attributes: Sequence[str]) -> list[Notice]:
    """Rows set aside because their sensitive value is not known."""
    total, found = table.size.sum(), []
    for name in attributes:
        missing = int(total - table.view(name).size.sum())
        if missing:
            found.append(f"{missing:,} of {int(total):,} rows have no known {name}")
    if not found:
        return []
    return [Notice("unknown", f"{listed(found)}; they are left out of its groups and comparisons.")]


def empty_groups(columns: Mapping[str, Any], table: CountTable) -> list[Notice]:
    """Groups without any weight, and values that a column declares as a category but no row has."""
    weightless = table.mass.sum(axis=(1, 2)) <= 0
    names = [
        name for name, is_empty in zip(table.groups.names, weightless, strict=True) if is_empty
    ]
    for name, column in columns.items():
        if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
            series = pd.Series(column)
            unused = series.cat.categories.difference(series.dropna().unique())
            names += [f"{name}={value}" for value in unused]
    if not names:
        return []
    return [Notice("empty", f"Nothing can be said about groups without rows: {listed(names)}.")]


def few_rows(table: CountTable) -> list[Notice]:
    """Groups, and labels within groups, with few rows."""
    few_groups = [
        f"{name} ({int(n)})"
        for name, n in zip(table.groups.names, table.size, strict=True)
        if 0 < n < TINY
    ]
    cells = margins(table.rows).truth.ravel()
    large = np.tile(table.size >= TINY, table.n_labels)
    few_cells = [
        f"{name} ({int(n)})"
        for name, n, ok in zip(table.groups.cell_names(by_label=True), cells, large, strict=True)
        if ok and n < TINY
    ]
    parts = [f"groups {listed(few_groups)}"] if few_groups else []
    parts += [f"labels within groups {listed(few_cells)}"] if few_cells else []
    if not parts:
        return []
    return [Notice("tiny", f"Fewer than {TINY} rows, so rates are uncertain: {', '.join(parts)}.")]


def constant_predictions(table: CountTable) -> list[Notice]:
    """Predictions that are the same for everybody, or for everybody in a group."""
    predicted = margins(table.rows).predicted
    labels = table.groups.labels
    everyone = predicted.sum(axis=1)
    if (everyone > 0).sum() == 1:
        label = labels[int(everyone.argmax())]
        return [
            Notice(
                "constant",
                f"Every row is predicted {label}: a constant prediction is equal for all groups "
                "and of no use to any of them.",
            )
        ]
    one = (predicted > 0).sum(axis=0) == 1
    names = [
        f"{name} ({labels[int(column.argmax())]})"
        for name, column, same in zip(table.groups.names, predicted.T, one, strict=True)
        if same and column.sum() >= TINY
    ]
    if not names:
        return []
    return [Notice("constant", f"Everybody gets the same prediction in: {listed(names)}.")]


def levelling_down(changes: Sequence[Change]) -> list[Notice]:
    """Fairness that came from taking away, not from giving."""
    return [
        Notice(
            "levelling_down",
            f"Levelling down: {change.after.measure} on {change.after.attribute} improved although "
            f"no group has a better {change.after.comparison.rate} than under the baseline and "
            f"some have a worse one ({listed(change.lost())}).",
        )
        for change in changes
        if change.is_levelling_down
    ]


def other_threshold(
    y_score: Any, predicted: Ints, desirable: Sequence[int], n_labels: int, threshold: float
) -> list[Notice]:
    """What to say if the predictions do not follow from the scores as the model was trained.

    Args:
        y_score: (N,) scores of the desirable label (two labels only), or (N, L) one per label.
        predicted: (N,) index of each row's predicted label.
        desirable: indices of the desirable labels.
        n_labels: L.
        threshold: the score at which the model was trained to switch.

    Raises:
        ValueError: if the scores do not fit the predictions, or are not finite.
    """
    if y_score is None:
        return []
    score = _checked(y_score, len(predicted), n_labels)
    if n_labels > 2:
        said = _not_the_largest(score, predicted)
    else:
        positive = desirable[0]
        score = score[:, positive] if score.ndim == 2 else score
        said = _moved_threshold(score, predicted == positive, threshold)
    return [Notice("threshold", said)] if said else []


def _checked(y_score: Any, n_rows: int, n_labels: int) -> Floats:
    score = as_array(y_score).astype(np.float64)
    shapes = [(n_rows, n_labels)] if n_labels > 2 else [(n_rows,), (n_rows, 2)]
    if score.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(
            f"y_score: expected the shape {allowed} for {n_rows} rows and {n_labels} labels, got "
            f"{score.shape}."
        )
    if not np.isfinite(score).all():
        row = int(np.flatnonzero(~np.isfinite(score.reshape(n_rows, -1)).all(axis=1))[0])
        raise ValueError(f"y_score: expected finite scores; row {row} has {score[row]}.")
    return score


def _not_the_largest(score: Floats, predicted: Ints) -> str | None:
    off = score[np.arange(len(score)), predicted] < score.max(axis=1)
    if not off.any():
        return None
    return (
        f"{off.mean():.1%} of the predictions are not the label with the largest score: thresholds "
        "were moved after training. What holds for them may not hold for the model as trained."
    )


def _moved_threshold(score: Floats, is_positive: np.ndarray, threshold: float) -> str | None:
    highest_no = score[~is_positive].max(initial=-np.inf)
    lowest_yes = score[is_positive].min(initial=np.inf)
    if highest_no > lowest_yes:
        return (
            "The predictions do not come from one threshold on the scores given (a score of "
            f"{lowest_yes:.4g} is predicted positive and one of {highest_no:.4g} is not): groups "
            "may have thresholds of their own. The figures hold for these predictions only."
        )
    if highest_no <= threshold <= lowest_yes:
        return None
    where = lowest_yes if np.isinf(highest_no) else highest_no
    where = where if np.isinf(lowest_yes) else (highest_no + lowest_yes) / 2
    return (
        f"The predictions switch at a score of about {where:.4g}, but the model was trained for "
        f"{threshold:.4g}: it was made fair for that threshold only."
    )
