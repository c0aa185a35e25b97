"""A model as the folds have judged it, and whether the one fitted to all rows decides like it.

What was found in the folds speaks for the model that is fitted to all rows only if that one decides
as those of the folds do. Few trees give many people one score, which may end on the other side of
the threshold, and weights may end elsewhere. So shifts are moved until as many of each group get
each label; where that is not to be had the next best model of the folds is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.boosting.objective import predicted_labels

if TYPE_CHECKING:
    from fairgrad.groups import Floats, GroupedRows, Ints

MOVED_BEYOND, REFUSED_BEYOND = (1.0, 0.03), (2.0, 0.1)
"""Standard errors, and a share of a group added to them, by which the trees of all rows may decide
otherwise than those of the folds: before shifts are moved, and before a model is not taken."""


class JudgedRounds(NamedTuple):
    """One model after so many rounds, on rows that its trees have not learnt from.

    Attributes:
        n_rounds: how many rounds.
        parts: of the rows that its trees leave out in turn.
        accuracy: of these rows.
        violation: the mean of what levels are beyond their bounds.
        levels: (J,) of these rows.
        is_plain: whether all weights were 1.
        plain: the model without weights that it was compared with, if there is one.
        beyond: by how much the worst level is beyond its bounds.
        predicted: (n,) labels of these rows.
        scores: (n,) or (n, L), their scores.
        shifts: (L, G) what is added to the scores of each group's labels at the end; None if
            nothing is.
        shares: (L, G) the share of each group that gets each label, of the rows that the trees have
            learnt from; None if nothing is to be compared with it.

    Example:
        >>> fair = JudgedRounds(30, 0, accuracy=0.75, violation=0.01, levels=np.array([0.01]))
        >>> plain = JudgedRounds(100, 0, accuracy=0.74, violation=0.02, levels=np.array([0.02]))
        >>> plain.is_dominated_by(fair), fair.is_dominated_by(plain)
        (True, False)
    """

    n_rounds: int
    parts: int
    accuracy: float
    violation: float
    levels: Floats
    is_plain: bool = False
    plain: JudgedRounds | None = None
    beyond: float = np.inf
    predicted: Ints | None = None
    scores: Floats | None = None
    shifts: Floats | None = None
    shares: Floats | None = None

    def is_dominated_by(self, other: JudgedRounds) -> bool:
        """Whether the other is at least as good in both figures, and better in one."""
        own, theirs = (self.accuracy, -self.violation), (other.accuracy, -other.violation)
        return own != theirs and theirs[0] >= own[0] and theirs[1] >= own[1]

    def decided(self, scores: Floats, group: Ints) -> Ints:
        """(n,) labels of rows that have these scores before the shifts, and are in these groups."""
        moved = scores if self.shifts is None else scores + by_margin(self.shifts)[group]
        return predicted_labels(moved)

    def moved(self, rows: GroupedRows, scores: Floats) -> JudgedRounds:
        """The same with shifts that give each group its labels as often as in the folds.

        That is, to the same share of the rows that trees have learnt from: those are compared on
        both sides, as trees decide otherwise for new ones. With two labels only.

        Args:
            rows: all of them.
            scores: (n,) or (n, L), theirs by the model fitted to all rows, before the shifts.
        """
        if self.shares is None or self.shifts is None or scores.ndim > 1:
            return self
        off = self._off(rows, scores, MOVED_BEYOND)[0].max(axis=0)
        shifts = self.shifts.copy()
        for group in np.flatnonzero(off > 0):
            own = np.sort(scores[rows.group == group])
            own = np.concatenate([own[:1] - 1.0, own, own[-1:] + 1.0])
            cuts = np.flatnonzero(np.diff(own) > 0)  # after so many rows
            wanted = (1.0 - self.shares[1, group]) * (len(own) - 2)
            cut = cuts[np.abs(cuts - wanted).argmin()]
            shifts[1, group] = shifts[0, group] - own[cut : cut + 2].mean()
        return self._replace(shifts=shifts)

    def decided_otherwise(self, rows: GroupedRows, scores: Floats) -> OtherDecisions | None:
        """The group for which a model fitted to all rows decides most unlike those of the folds.

        Args:
            rows: all of them.
            scores: (n,) or (n, L), theirs by the model, before the shifts.

        Returns:
            None if the same share of each group gets each label, but for chance and a tenth.
        """
        if self.shares is None:
            return None
        off, shares = self._off(rows, scores, REFUSED_BEYOND)
        label, group = np.unravel_index(int(np.argmax(off)), off.shape)
        if off[label, group] <= 0:
            return None
        before, after = (float(one[label, group]) for one in (self.shares, shares))
        return OtherDecisions(
            rows.groups.names[group], rows.groups.labels.tolist()[label], before, after
        )

    def _off(
        self, rows: GroupedRows, scores: Floats, beyond: tuple[float, float]
    ) -> tuple[Floats, Floats]:
        """(L, G) by how much more of each group get each label than may be, and how many get it."""
        counts = label_counts(rows, self.decided(scores, rows.group))
        size = np.maximum(counts.sum(axis=0), 1.0)
        off = counts / size - self.shares - beyond[0] * np.sqrt(0.5 / size) - beyond[1]
        off[:, ~rows.groups.is_known] = -1.0
        return off, counts / size


class OtherDecisions(NamedTuple):
    """What a model fitted to all rows does otherwise than those of the folds.

    Attributes:
        group: the group's name.
        label: a label that more of the group get than in the folds.
        expected: the share of the group that gets it in the folds.
        found: the share that gets it from the model.
    """

    group: str
    label: Any
    expected: float
    found: float


def by_margin(shifts: Floats) -> Floats:
    """(G,) of the margin of two labels, or (G, L), from shifts of the labels' scores, (L, G)."""
    found: Floats = shifts[1] - shifts[0] if len(shifts) == 2 else shifts.T
    return found


def label_counts(rows: GroupedRows, predicted: Ints) -> Floats:
    """(L, G) how many rows of each group get each label."""
    n_labels, n_groups = rows.groups.mass.shape
    counts = np.bincount(predicted * n_groups + rows.group, minlength=n_labels * n_groups)
    return counts.astype(np.float64).reshape(n_labels, n_groups)
