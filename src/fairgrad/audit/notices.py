"""Warnings an audit gives: each a short kind, for programs, and a sentence, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fairgrad.audit.names import listed
from fairgrad.audit.table import margins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit.changes import Change
    from fairgrad.audit.table import Table

TINY = 30
"""Groups, and labels within groups, with fewer rows are flagged: their rates are very uncertain."""


class Notice(NamedTuple):
    """A warning.

    Attributes:
        kind: "unknown", "empty", "tiny", "constant", "weights", "threshold", "levelling_down" or
            "crossing".
        message: what it is, in words.

    Example:
        >>> from fairgrad.audit import Audit
        >>> audit = Audit([0, 1] * 40, [1, 1] * 40, ["a", "a", "b", "b"] * 20)
        >>> audit.warnings[0].kind
        'constant'
    """

    kind: str
    message: str


def unknown_values(table: Table, attributes: Sequence[str]) -> list[Notice]:
    """Rows set aside because their sensitive value is not known."""
    total, found = table.size.sum(), []
    for name in attributes:
        missing = int(total - table.view(name).size.sum())
        if missing:
            found.append(f"{missing:,} of {int(total):,} rows have no known {name}")
    if not found:
        return []
    return [Notice("unknown", f"{listed(found)}; they are in no group and no comparison of it.")]


def empty_groups(declared: Sequence[str], table: Table) -> list[Notice]:
    """Groups without any row, or without any weight."""
    weightless = table.mass.sum(axis=(1, 2)) <= 0
    names = [*declared, *(n for n, no in zip(table.groups.names, weightless, strict=True) if no)]
    if not names:
        return []
    return [Notice("empty", f"Nothing can be said about groups without rows: {listed(names)}.")]


def tiny_cells(table: Table) -> list[Notice]:
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


def constant_predictions(table: Table) -> list[Notice]:
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
