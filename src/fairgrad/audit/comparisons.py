"""What each measure compares: which rates of which groups, and how levels follow from them.

The library's own measures are read off the count table directly. That serves any number of labels
(also for demographic parity, which as a constraint on errors needs two) and makes the intervals
narrower: a selection rate is one proportion, not a sum of two. Any other measure is taken as
constraints on the error rates of the cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray  # noqa: TC002 - a dataclass's fields are read at run time

from fairgrad import measures
from fairgrad.audit.counts import POSITIVES, CountTable
from fairgrad.audit.intervals import Interval, Proportion
from fairgrad.constraints import Constraints, gaps
from fairgrad.groups import Floats, Ints  # noqa: TC001 - a dataclass's fields are read at run time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, eq=False)
class GapToMean:
    """``F_(l,r) = x_(l,r) - factor * sum_r' share_(l,r') x_(l,r')``, the library's own measures.

    Attributes:
        share: (R, G) the weight of each group in the mean of each row of rates; 0 for a group
            without rows, whose level is not defined.
        applies: (R,) whether a row is constrained; the levels of the others are 0.
        factor: 1, or 0.8 for the four-fifths rule.
    """

    share: Floats
    applies: NDArray[np.bool_]
    factor: float = 1.0

    def levels(self, rate: Floats) -> Floats:
        """(..., R * G) the levels of these rates; NaN where they are not defined."""
        return self._defined(self._gap(self._read(rate)))

    def combine(self, rate: Floats, ends: Interval) -> Interval:
        """The MOVER interval of each level, from rates and the intervals of each of them.

        A group's own rate is also in the mean, so it counts once, with what is left of it:
        ``F_r = (1 - factor share_r) x_r - factor sum_(r' != r) share_r' x_r'``.
        """
        x, low, high = (self._read(part) for part in (rate, *ends))
        weight, gap = self.factor * self.share, self._gap(x)

        def reach(own: Floats, others: Floats) -> Floats:
            squares = (weight * others) ** 2
            rest = squares.sum(axis=-1, keepdims=True) - squares
            far: Floats = np.sqrt(((1 - weight) * own) ** 2 + np.maximum(rest, 0.0))
            return far

        return Interval(
            self._defined(gap - reach(x - low, high - x)),
            self._defined(gap + reach(high - x, x - low)),
        )

    @property
    def range(self) -> Interval:
        """(R * G,) the least and the greatest level that any rates have."""
        weight = self.factor * self.share
        others = weight.sum(axis=1, keepdims=True) - weight
        return Interval(self._defined(-others), self._defined(1 - weight))

    @property
    def spread(self) -> Floats:
        """(R * G,) by how much each rate can move all levels: the sum of its coefficients."""
        present = self.share > 0
        weight = self.factor * self.share
        sums = (1 - weight) + (present.sum(axis=1, keepdims=True) - 1) * weight
        return np.where(present & self.applies[:, None], sums, 0.0).ravel()

    def grown(self, growth: Floats) -> GapToMean:
        """The same where each cell, (R * G,), has so many times its rows."""
        mass = self.share * growth.reshape(self.share.shape)
        total = mass.sum(axis=1, keepdims=True)
        return replace(self, share=mass / np.where(total > 0, total, 1.0))

    def _read(self, rate: Floats) -> Floats:
        """(..., R, G) rates, 0 where there are none."""
        shaped = rate.reshape(*rate.shape[:-1], *self.share.shape)
        return np.where(self.share > 0, shaped, 0.0)

    def _gap(self, x: Floats) -> Floats:
        gap: Floats = x - self.factor * (self.share * x).sum(axis=-1, keepdims=True)
        return gap

    def _defined(self, gap: Floats) -> Floats:
        gap = np.where(self.share > 0, gap, np.nan)
        gap = np.where(self.applies[:, None], gap, 0.0)
        return gap.reshape(*gap.shape[:-2], -1)


@dataclass(frozen=True, eq=False)
class MatrixMap:
    """``F = c0 + C e``: any constraints on the error rates of the cells.

    Attributes:
        c0: (J,) constants, NaN where a level is not defined.
        C: (J, K) coefficients.
    """

    c0: Floats
    C: Floats

    def levels(self, rate: Floats) -> Floats:
        """(..., J) the levels."""
        levels: Floats = self.c0 + np.nan_to_num(rate) @ self.C.T
        return levels

    def combine(self, rate: Floats, ends: Interval) -> Interval:
        """The MOVER interval of each level, from rates and the intervals of each of them."""
        x = np.nan_to_num(rate)
        rising, falling = np.maximum(self.C, 0.0).T ** 2, np.minimum(self.C, 0.0).T ** 2
        down, up = (x - ends.low) ** 2, (ends.high - x) ** 2
        levels = self.levels(x)
        return Interval(
            levels - np.sqrt(down @ rising + up @ falling),
            levels + np.sqrt(up @ rising + down @ falling),
        )

    @property
    def range(self) -> Interval:
        """(J,) the least and the greatest level that any rates have."""
        falling, rising = (np.clip(self.C, *ends).sum(axis=1) for ends in ((None, 0), (0, None)))
        return Interval(self.c0 + falling, self.c0 + rising)

    @property
    def spread(self) -> Floats:
        """(K,) by how much each rate can move all levels: the sum of its coefficients."""
        sums: Floats = np.abs(self.C[~np.isnan(self.c0)]).sum(axis=0)
        return sums

    def grown(self, growth: Floats) -> MatrixMap:
        """The same: a matrix of a user's own does not change with the rows."""
        del growth
        return self


class CellRates(NamedTuple):
    """Which rates of a count table the cells of a comparison are.

    Attributes:
        rate: its name in `CountTable.rates`.
        label: whose, if it is of one label alone; -1 for all.
        are_errors: whether cells are what is missing of these rates to 1.
    """

    rate: str
    label: int = -1
    are_errors: bool = False

    def of(self, table: CountTable) -> Proportion:
        """(G,) or (L, G) of the groups of a table."""
        found = table.rates[self.rate].row(self.label)
        return found._replace(hits=found.total - found.hits) if self.are_errors else found


@dataclass(frozen=True, eq=False)
class Comparison:
    """A measure on given data.

    Attributes:
        rate: the name of the rate that is compared.
        names: (J,) what each level speaks of.
        group: (J,) the index of the group each level speaks of, -1 for none in particular.
        label: (J,) the index of the label each level speaks of, -1 for none.
        cells: (K,) the proportions the levels are made of, or (M, K) of many models.
        source: which rates of the table they are.
        cell_group: (K,) the group each cell lies in.
        n_free: how many of the cells vary by themselves: what is said of all cells at once shares
            the error among them.
        tested: (J,) the levels that vary by themselves. Of two groups, and of two labels, one says
            what the other does: a verdict has as many chances to be wrong as there are of these.
        map: the levels as a function of the cells' rates.
        lower: (J,) the least level that is fair without any tolerance.
        upper: (J,) the greatest one.
        definition: lower and upper bounds without a user's slack, if there is some.
        good: (K,) 1 where people gain by a higher rate, -1 where by a lower one, 0 where neither.
        ratio_row: where the cells of the rates lie whose ratio the four-fifths rule looks at.
        only_label: the one label whose selection rates are compared; -1 for all labels.
    """

    rate: str
    names: tuple[str, ...]
    group: Ints
    label: Ints
    cells: Proportion
    source: CellRates
    cell_group: Ints
    n_free: int
    tested: NDArray[np.bool_]
    map: GapToMean | MatrixMap
    lower: Floats
    upper: Floats
    good: Floats
    definition: tuple[Floats, Floats] | None = None
    ratio_row: slice | None = None
    only_label: int = -1

    def gaps(self, level: Interval) -> Interval:
        """How unfair each level is when it lies anywhere in its interval: least and most.

        As `Constraints.gaps`: ``|F|``, or, where there is one bound only, by how much it is broken.
        """
        definition = (self.lower, self.upper) if self.definition is None else self.definition
        ends = [gaps(F, *definition) for F in level]
        # The gap is convex in F: most at an end, least at an end or as near to 0 as F comes.
        nearest = gaps(np.clip(0.0, *level), *definition)
        return Interval(np.minimum(np.minimum(*ends), nearest), np.maximum(*ends))

    def of_models(self, table: CountTable) -> Comparison:
        """The same of many models' predictions for the same rows, see `ModelCounts.view`."""

        def by_model(part: Floats) -> Floats:
            n_groups = int(self.cell_group.max()) + 1
            by_group = part.reshape(*part.shape[:-1], -1, n_groups)
            return np.moveaxis(by_group, -2, 0).reshape(by_group.shape[-2], -1)

        found = self.source.of(table)
        return replace(self, cells=Proportion(*(by_model(part) for part in found)))

    @property
    def valued(self) -> NDArray[np.bool_]:
        """(J,) the levels that say who is better off: not those of a label nobody wants."""
        is_good = self.good > 0
        if len(self.good) == len(self.names) and is_good.any():
            return is_good
        return np.ones(len(self.names), dtype=bool)


def accuracy_parity(table: CountTable, _desirable: Sequence[int]) -> Comparison:
    """Accuracies, one per group."""
    return _between_groups(table, "accuracy", CellRates("accuracy"))


def equalized_odds(table: CountTable, _desirable: Sequence[int]) -> Comparison:
    """Recalls, one per label and group."""
    return _between_groups(table, "recall", CellRates(POSITIVES))


def equality_of_opportunity(table: CountTable, desirable: Sequence[int]) -> Comparison:
    """Recalls of the desirable labels; those of the others count with a level of 0."""
    if not desirable:
        measures.equality_of_opportunity(table.together().groups)  # raises the library's one error
    return _between_groups(table, "recall", CellRates(POSITIVES), applies=desirable)


def demographic_parity(table: CountTable, desirable: Sequence[int]) -> Comparison:
    """Selection rates, one per label and group."""
    # Of two labels one is what the other is not: half of the rates say everything.
    n_free = None if table.n_labels > 2 else int((table.mass.sum(axis=(1, 2)) > 0).sum())
    rates = CellRates("selection_rate")
    return _between_groups(table, "selection rate", rates, n_free=n_free, good=desirable)


def four_fifths_rule(table: CountTable, desirable: Sequence[int]) -> Comparison:
    """Selection rates of the desirable label; a level is the rate less 0.8 of the overall rate."""
    if len(desirable) != 1:
        raise ValueError(
            "y_desirable: four_fifths_rule compares the selection rates of exactly one label among "
            f"{table.groups.labels.tolist()}, got {len(desirable)}."
        )
    rates = CellRates("selection_rate", desirable[0])
    found = _between_groups(table, "selection rate", rates, factor=0.8, upper=np.inf, good=[0])
    return replace(found, only_label=desirable[0])


BUILT_IN: dict[str, Callable[[CountTable, Sequence[int]], Comparison]] = {
    "accuracy_parity": accuracy_parity,
    "equalized_odds": equalized_odds,
    "equality_of_opportunity": equality_of_opportunity,
    "demographic_parity": demographic_parity,
    "four_fifths_rule": four_fifths_rule,
}


WITHOUT_LABELS = ("demographic_parity", "four_fifths_rule")
"""Measures that look at predictions alone."""


def compare(measure: Any, table: CountTable, desirable: Sequence[int]) -> Comparison:
    """What a single measure compares on the groups of a table, by indices of desirable labels."""
    name = measures.ALIASES.get(measure, measure) if isinstance(measure, str) else None
    if not table.has_labels and name not in WITHOUT_LABELS:
        raise ValueError(
            f"measures: {measures.measure_name(measure)} compares predictions with true labels, "
            "and there are none (y_true=, --target); without them an audit takes "
            f"{', '.join(WITHOUT_LABELS)}."
        )
    if name in BUILT_IN:
        return BUILT_IN[name](table, desirable)
    return _user_defined(measure, table, desirable)


def _between_groups(
    table: CountTable,
    rate: str,
    source: CellRates,
    *,
    applies: Sequence[int] | None = None,
    n_free: int | None = None,
    factor: float = 1.0,
    upper: float = 0.0,
    good: Sequence[int] | None = None,
) -> Comparison:
    """Each group's rate (for each label, if there is a row per label) against the mean over all."""
    cells = source.of(table)
    by_label = cells.total.ndim == 2
    total = np.atleast_2d(cells.total)
    n_rows, n_groups = total.shape
    everyone = total.sum(axis=1, keepdims=True)
    applied = np.isin(np.arange(n_rows), range(n_rows) if applies is None else applies)
    is_good = applied if good is None else np.isin(np.arange(n_rows), good)
    row = good[0] if good is not None and len(good) == 1 else None
    return Comparison(
        rate=rate,
        names=table.groups.cell_names(by_label),
        group=np.tile(np.arange(n_groups), n_rows),
        label=np.repeat(np.arange(n_rows) if by_label else [-1], n_groups),
        cells=cells.flat(),
        source=source,
        cell_group=np.tile(np.arange(n_groups), n_rows),
        n_free=n_free or int((total[applied] > 0).sum()),
        tested=_tested(total, applied, by_itself=n_free is None, one_bound=np.isinf(upper)).ravel(),
        map=GapToMean(total / np.where(everyone > 0, everyone, 1.0), applied, factor),
        lower=np.zeros(n_rows * n_groups),
        upper=np.full(n_rows * n_groups, upper),
        good=np.repeat(is_good, n_groups).astype(np.float64),
        ratio_row=None if row is None else slice(row * n_groups, (row + 1) * n_groups),
    )


def _tested(
    total: Floats, applied: NDArray[np.bool_], *, by_itself: bool, one_bound: bool
) -> NDArray[np.bool_]:
    """(R, G) the levels that say something no other one says.

    Args:
        total: rows of each rate.
        applied: (R,) the rows of rates that are constrained.
        by_itself: whether each row of rates is free of the others.
        one_bound: whether a level may be as large as it likes.
    """
    tested = (total > 0) & applied[:, None]
    if not by_itself:
        tested[1:] = False
    if not one_bound:  # of two groups the smaller one is the farther from the mean
        for row, present in zip(tested, total, strict=True):
            if row.sum() == 2:
                row[np.argmax(present)] = False
    return tested


def _directions(asked: Constraints) -> NDArray[np.bool_]:
    """(J,) the constraints of a user that are not multiples of an earlier one."""
    rows = np.column_stack([np.nan_to_num(asked.c0), asked.C])
    tested: NDArray[np.bool_] = np.any(asked.C != 0, axis=1) & ~np.isnan(asked.c0)
    if not np.array_equal(np.asarray(asked.lower), -np.asarray(asked.upper)):
        return tested
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    rows /= np.where(largest > 0, largest, 1.0)
    first = np.take_along_axis(rows, np.argmax(rows != 0, axis=1)[:, None], axis=1)
    scale = largest[:, 0]
    # The largest multiple stands for all, as it is the farthest from 0.
    order = np.argsort(-scale, kind="stable")
    _, place = np.unique(np.round(rows * np.sign(first), 9)[order], axis=0, return_index=True)
    is_first: NDArray[np.bool_] = np.isin(np.arange(len(rows)), order[place])
    return tested & is_first


def _user_defined(measure: Any, table: CountTable, desirable: Sequence[int]) -> Comparison:
    """Constraints on errors, with the frequencies of these data."""
    groups = table.groups
    wanted = groups.labels[list(desirable)] if desirable else None
    asked = measures.constraints_of(measure, groups, y_desirable=wanted)
    by_label = asked.by_label
    source = CellRates(POSITIVES if by_label else "accuracy", are_errors=True)
    cells = source.of(table).flat()
    used = np.isin(np.arange(asked.n_cells), asked.coefficients.cell) & (cells.total > 0)
    nobody = np.full(len(asked.names), -1)
    return Comparison(
        rate="error rate",
        names=asked.names,
        group=nobody,
        label=nobody,
        cells=cells,
        source=source,
        cell_group=np.tile(np.arange(groups.n_groups), table.n_labels if by_label else 1),
        n_free=max(int(used.sum()), 1),
        tested=_directions(asked),
        map=MatrixMap(asked.c0, asked.C),
        lower=np.asarray(asked.lower),
        upper=np.asarray(asked.upper),
        definition=asked.definition,
        good=-used.astype(np.float64),
    )
