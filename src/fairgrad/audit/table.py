"""The count table (group, true label, predicted label) on which every figure of an audit rests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fairgrad.audit.proportions import Proportion
from fairgrad.columns import UNKNOWN
from fairgrad.groups import Floats, Groups, Ints  # noqa: TC001 - fields are read at run time


class Margins(NamedTuple):
    """Sums of a (G, L, L) table: all rows (G,), and by true, predicted, rightly predicted label."""

    total: Floats
    truth: Floats
    predicted: Floats
    hit: Floats


@dataclass(frozen=True, eq=False)
class Table:
    """Rows by group, true label and predicted label.

    Attributes:
        groups: who the groups are.
        rows: (G, L, L) number of rows.
        mass: (G, L, L) sum of their sample weights; the same as `rows` without weights.
        squares: (G, L, L) sum of the squared weights; the same as `rows` without weights.
    """

    groups: Groups
    rows: Floats
    mass: Floats
    squares: Floats

    @property
    def n_labels(self) -> int:
        """L."""
        return int(self.rows.shape[1])

    @property
    def size(self) -> Floats:
        """(G,) rows of each group."""
        size: Floats = self.rows.sum(axis=(1, 2))
        return size

    def view(self, *attributes: str) -> Table:
        """The table by some of the attributes, rows with an unknown value set aside."""
        parent = self.groups.parents(*attributes)
        columns = [self.groups.attributes.index(name) for name in attributes]
        member = np.unique(parent, return_index=True)[1]  # one of the groups in each coarser one
        codes = self.groups.codes[member][:, columns]
        keep = (codes != UNKNOWN).all(axis=1)
        rows, mass, squares = (
            _sum_by(parent, table, len(codes))[keep]
            for table in (self.rows, self.mass, self.squares)
        )
        groups = replace(
            self.groups,
            attributes=tuple(attributes),
            values=tuple(self.groups.values[column] for column in columns),
            codes=codes[keep],
            mass=margins(mass).truth,
        )
        return Table(groups, rows, mass, squares)

    def together(self) -> Table:
        """The same rows as one single group, for the overall rates."""
        one = replace(self.groups, codes=self.groups.codes[:1], mass=self.groups.mass[:, :1])
        rows, mass, squares = (
            table.sum(axis=0, keepdims=True) for table in (self.rows, self.mass, self.squares)
        )
        return Table(one, rows, mass, squares)


def margins(table: Floats) -> Margins:
    """Sums of a (G, L, L) table; all but the first are (L, G)."""
    return Margins(
        total=table.sum(axis=(1, 2)),
        truth=table.sum(axis=2).T,
        predicted=table.sum(axis=1).T,
        hit=np.diagonal(table, axis1=1, axis2=2).T,
    )


def rates(table: Table) -> dict[str, Proportion]:
    """The rates of each group: accuracy (G,), all others (L, G), each label against the rest.

    base_rate ``P(y = l)``, selection_rate ``P(h = l)``, true_positive_rate ``P(h = l | y = l)``,
    false_positive_rate ``P(h = l | y != l)``, precision ``P(y = l | h = l)``.
    """
    sums, squares = margins(table.mass), margins(table.squares)
    everyone = sums.total + np.zeros_like(sums.truth), squares.total + np.zeros_like(sums.truth)
    return {
        "accuracy": Proportion(sums.hit.sum(axis=0), sums.total, squares.total),
        "base_rate": Proportion(sums.truth, *everyone),
        "selection_rate": Proportion(sums.predicted, *everyone),
        "true_positive_rate": Proportion(sums.hit, sums.truth, squares.truth),
        "false_positive_rate": Proportion(
            sums.predicted - sums.hit, sums.total - sums.truth, squares.total - squares.truth
        ),
        "precision": Proportion(sums.hit, sums.predicted, squares.predicted),
    }


def _sum_by(parent: Ints, table: Floats, n: int) -> Floats:
    summed = np.zeros((n, *table.shape[1:]))
    np.add.at(summed, parent, table)
    return summed
