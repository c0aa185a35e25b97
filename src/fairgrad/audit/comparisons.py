"""What each measure compares: which rates of which groups, and how levels follow from them.

The library's own measures are read off the count table directly. That makes the intervals
narrower: a selection rate is one proportion, not a sum of several. Any other measure is taken as
constraints on the error rates of the cells, or on the rates of the labels predicted there.
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

    from fairgrad.constraints import Constraints


@dataclass(frozen=True, eq=False)
class GapToMean:
    """``F_(l,r) = x_(l,r) - factor * mean_l``, the library's own measures.

    The mean is that of all rows, ``sum_r' share_(l,r') x_(l,r') + outside_l``: groups that are not
    compared, because they have few rows, count in it as well.

    Attributes:
        share: (R, G) the weight of each group in the mean of each row of rates; 0 for a group
            without rows, whose level is not defined.
        applies: (R,) whether a row is constrained; the levels of the others are 0.
        factor: 1, or 0.8 for the four-fifths rule.
        outside: (R, 1) what groups that are not compared add to the mean.
        outside_variance: (R, 1) the variance of that.
        n_rows: (R, 1) rows of all groups: shares of groups are estimates, too.
    """

    share: Floats
    applies: NDArray[np.bool_]
    factor: float = 1.0
    outside: Floats | float = 0.0
    outside_variance: Floats | float = 0.0
    n_rows: Floats | float = np.inf

    def levels(self, rate: Floats) -> Floats:
        """(..., R * G) the levels of these rates; NaN where they are not defined."""
        return self._defined(self._gap(self._read(rate)))

    def combine(self, rate: Floats, ends: Interval, z: float = 0.0) -> Interval:
        """The MOVER interval of each level, from rates and the intervals of each of them.

        A group's own rate is also in the mean, so it counts once, with what is left of it:
        ``F_r = (1 - factor share_r) x_r - factor sum_(r' != r) share_r' x_r'``. What the shares of
        the groups and the groups outside add to the variance of the mean reaches z times its root.
        """
        x, low, high = (self._read(part) for part in (rate, *ends))
        weight, gap = self.factor * self.share, self._gap(x)
        around = (self.share * (x - self._mean(x)) ** 2).sum(axis=-1, keepdims=True)
        more = (z * self.factor) ** 2 * (around / self.n_rows + self.outside_variance)

        def reach(own: Floats, others: Floats) -> Floats:
            squares = (weight * others) ** 2
            rest = squares.sum(axis=-1, keepdims=True) - squares
            far: Floats = np.sqrt(((1 - weight) * own) ** 2 + np.maximum(rest, 0.0) + more)
            return far

        return Interval(
            self._defined(gap - reach(x - low, high - x)),
            self._defined(gap + reach(high - x, x - low)),
        )

    @property
    def range(self) -> Interval:
        """(R * G,) the least and the greatest level that any rates have."""
        weight, fixed = self.factor * self.share, self.factor * self.outside
        others = weight.sum(axis=1, keepdims=True) - weight
        return Interval(self._defined(-others - fixed), self._defined(1 - weight - fixed))

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
        before, total = (part.sum(axis=1, keepdims=True) for part in (self.share, mass))
        return replace(self, share=before * mass / np.where(total > 0, total, 1.0))

    def _read(self, rate: Floats) -> Floats:
        """(..., R, G) rates, 0 where there are none."""
        shaped = rate.reshape(*rate.shape[:-1], *self.share.shape)
        return np.where(self.share > 0, shaped, 0.0)

    def _gap(self, x: Floats) -> Floats:
        return x - self.factor * self._mean(x)

    def _mean(self, x: Floats) -> Floats:
        mean: Floats = (self.share * x).sum(axis=-1, keepdims=True) + self.outside
        return mean

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

    def combine(self, rate: Floats, ends: Interval, z: float = 0.0) -> Interval:
        """The MOVER interval of each level, from rates and the intervals of each of them."""
        del z  # a user's coefficients are no estimates
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
        return found.complement() if self.are_errors else found


class CellHits(NamedTuple):
    """The cells of a comparison by what counts as having the property, R rows of one per group.

    Attributes:
        hits: (R, L, L) which predicted labels (last axis) of which true labels count. The rate is
            among the rows of all true labels of which some do.
    """

    hits: NDArray[np.bool_]

    def of(self, table: CountTable) -> Proportion:
        """(R, G) of the groups of a table."""
        within = np.broadcast_to(self.hits.any(axis=-1, keepdims=True), self.hits.shape)
        return table.proportion(self.hits, within)


@dataclass(frozen=True, eq=False)
class JoinedMap:
    """Levels of several strata, one after the other, each of rates of its own.

    Attributes:
        maps: of each stratum.
        sizes: how many rates each has.
    """

    maps: tuple[GapToMean | MatrixMap | JoinedMap, ...]
    sizes: tuple[int, ...]

    def levels(self, rate: Floats) -> Floats:
        """(..., J) the levels."""
        return np.concatenate([own.levels(part) for own, part in self._split(rate)], axis=-1)

    def combine(self, rate: Floats, ends: Interval, z: float = 0.0) -> Interval:
        """The MOVER interval of each level, from rates and the intervals of each of them."""
        parts = zip(*(self._split(part) for part in (rate, *ends)), strict=True)
        found = [own.combine(x, Interval(low, high), z) for (own, x), (_, low), (_, high) in parts]
        return Interval(*(np.concatenate(side, axis=-1) for side in zip(*found, strict=True)))

    @property
    def range(self) -> Interval:
        """(J,) the least and the greatest level that any rates have."""
        sides = zip(*(own.range for own in self.maps), strict=True)
        return Interval(*(np.concatenate(side) for side in sides))

    @property
    def spread(self) -> Floats:
        """(K,) by how much each rate can move all levels: the sum of its coefficients."""
        return np.concatenate([own.spread for own in self.maps])

    def grown(self, growth: Floats) -> JoinedMap:
        """The same where each cell, (K,), has so many times its rows."""
        return replace(self, maps=tuple(own.grown(part) for own, part in self._split(growth)))

    def _split(self, rate: Floats) -> list[tuple[GapToMean | MatrixMap | JoinedMap, Floats]]:
        parts = np.split(rate, np.cumsum(self.sizes)[:-1], axis=-1)
        return list(zip(self.maps, parts, strict=True))


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
        cell_label: (K,) the index of the label each cell speaks of; None where the rate says it.
        parts: of groups compared within strata, the comparison in each, and which groups it is of.
        n_groups: of these the number of all groups; 0 for others.
        left_out: names of strata in which there is nothing to compare.
    """

    rate: str
    names: tuple[str, ...]
    group: Ints
    label: Ints
    cells: Proportion
    source: CellRates | CellHits
    cell_group: Ints
    n_free: int
    tested: NDArray[np.bool_]
    map: GapToMean | MatrixMap | JoinedMap
    lower: Floats
    upper: Floats
    good: Floats
    definition: tuple[Floats, Floats] | None = None
    ratio_row: slice | None = None
    only_label: int = -1
    cell_label: Ints | None = None
    parts: tuple[tuple[Comparison, Ints], ...] = ()
    n_groups: int = 0
    left_out: tuple[str, ...] = ()

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
        if self.parts:
            found_parts = []
            for part, place in self.parts:
                own = (np.arange(0, len(table.rows), self.n_groups)[:, None] + place).ravel()
                parts = (getattr(table, name)[own] for name in ("rows", "mass", "squares"))
                found_parts.append(part.of_models(CountTable(table.groups, *parts)).cells)
            columns = zip(*found_parts, strict=True)
            joined = Proportion(*(np.concatenate(column, axis=1) for column in columns))
            return replace(self, cells=joined)

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
    """Selection rates of the desirable labels; a level is a group's less 0.8 of another's."""
    if not desirable or len(desirable) == table.n_labels:
        measures.four_fifths_rule(  # raises the library's one error
            table.together().groups, [table.groups.labels[index] for index in desirable] or None
        )
    source = CellHits(_hits_of(table.n_labels, [desirable]))
    n, names = table.groups.n_groups, table.groups.names
    own, other = np.nonzero(~np.eye(n, dtype=bool))
    C = np.zeros((len(own), n))
    C[np.arange(len(own)), own] = 1.0
    C[np.arange(len(own)), other] -= 0.8
    total = source.of(table).total[0]
    undefined = (total[own] <= 0) | (total[other] <= 0)
    found = _of_rates(
        table,
        "selection rate",
        source,
        MatrixMap(np.where(undefined, np.nan, 0.0), C),
        [f"{names[i]} against {names[j]}" for i, j in zip(own, other, strict=True)],
        upper=np.inf,
    )
    only = desirable[0] if len(desirable) == 1 else -1
    return replace(
        found,
        group=own,
        good=np.ones(n),
        ratio_row=slice(0, n),
        only_label=only,
        cell_label=np.full(n, only),
    )


def equalized_odds_all(table: CountTable, _desirable: Sequence[int]) -> Comparison:
    """The rates of every predicted label, one per predicted label, true label and group."""
    n_labels = table.n_labels
    if n_labels == 2:
        return equalized_odds(table, _desirable)
    predicted, true = np.divmod(np.arange(n_labels**2), n_labels)
    hits = np.zeros((n_labels**2, n_labels, n_labels), dtype=bool)
    hits[np.arange(len(hits)), true, predicted] = True
    # Of L rates of a cell L - 1 say everything.
    n_free = (n_labels - 1) * int((table.mass.sum(axis=2) > 0).sum())
    right = np.flatnonzero(predicted == true).tolist()  # to be right is good
    found = _between_groups(table, "prediction rate", CellHits(hits), n_free=n_free, good=right)
    label = np.repeat(predicted, table.groups.n_groups)
    total = found.source.of(table).total
    return replace(
        found,
        names=tuple(
            f"{label} predicted, {name}"
            for label in table.groups.labels
            for name in table.groups.cell_names(by_label=True)
        ),
        label=label,
        cell_label=label,
        tested=_tested(
            total, np.ones(len(hits), dtype=bool), by_itself=True, one_bound=False
        ).ravel(),
        ratio_row=None,
    )


BUILT_IN: dict[str, Callable[[CountTable, Sequence[int]], Comparison]] = {
    "accuracy_parity": accuracy_parity,
    "equalized_odds": equalized_odds,
    "equality_of_opportunity": equality_of_opportunity,
    "demographic_parity": demographic_parity,
    "four_fifths_rule": four_fifths_rule,
    "equalized_odds_all": equalized_odds_all,
}


WITHOUT_LABELS = ("demographic_parity", "four_fifths_rule")
"""Measures that look at predictions alone."""


def compare_within(
    measure: Any,
    table: CountTable,
    desirable: Sequence[int],
    compared: Sequence[str],
    strata: Sequence[str],
    everyone: Sequence[str],
) -> Comparison:
    """What a measure compares within each stratum, of a table by both sets of attributes.

    Of all strata, by name, those in which fewer than two groups have rows are left out.

    Raises:
        ValueError: if none remains.
    """
    groups, size = table.groups, table.size
    stratum, found = groups.parents(*strata), []
    left_out = dict.fromkeys(everyone)
    for index, name in enumerate(groups.marginal(*strata).names):
        inside = (stratum == index) & (size > 0)
        if inside.sum() > 1:
            left_out.pop(name)
            # Within a stratum the groups are those of the compared attributes alone.
            own = table.take(inside).view(*compared)
            place = np.flatnonzero(inside)
            place = place[np.argsort(table.take(inside).groups.parents(*compared))]
            comparison = compare(measure, own, desirable)
            names = tuple(f"{level} in {name}" for level in comparison.names)
            found.append((replace(comparison, names=names), place))
    if not found:
        raise ValueError(
            f"measures: no value of {' x '.join(strata)} has rows of two groups of "
            f"{' x '.join(compared)} to compare (with min_group rows each)."
        )
    return replace(_joined(found), left_out=tuple(left_out), n_groups=groups.n_groups)


def _joined(parts: list[tuple[Comparison, Ints]]) -> Comparison:
    """Several comparisons as one; each with its groups, by number."""
    own = [comparison for comparison, _ in parts]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in own])

    definitions = [
        (one.lower, one.upper) if one.definition is None else one.definition for one in own
    ]
    return replace(
        own[0],
        names=tuple(name for one in own for name in one.names),
        group=np.concatenate([np.where(c.group < 0, -1, place[c.group]) for c, place in parts]),
        label=joined("label"),
        cells=Proportion(
            *(np.concatenate(p) for p in zip(*(one.cells for one in own), strict=True))
        ),
        cell_group=np.concatenate([place[c.cell_group] for c, place in parts]),
        n_free=sum(one.n_free for one in own),
        tested=joined("tested"),
        map=JoinedMap(tuple(one.map for one in own), tuple(len(one.cells.total) for one in own)),
        lower=joined("lower"),
        upper=joined("upper"),
        good=joined("good"),
        definition=tuple(np.concatenate(side) for side in zip(*definitions, strict=True)),  # type: ignore[arg-type]  # a pair
        ratio_row=None,
        cell_label=np.concatenate([labels_of_cells(one) for one in own]),
        parts=tuple(parts),
    )


def labels_of_cells(comparison: Comparison) -> Ints:
    """(K,) the index of the label each cell speaks of, -1 for none."""
    if comparison.cell_label is not None:
        return comparison.cell_label
    n_groups = int(comparison.cell_group.max()) + 1
    row = np.arange(len(comparison.cell_group)) // n_groups
    if comparison.only_label >= 0:
        return np.full(len(row), comparison.only_label)
    return row if row.max() > 0 else np.full(len(row), -1)


def compare(measure: Any, table: CountTable, desirable: Sequence[int]) -> Comparison:
    """What a single measure compares on the groups of a table, by indices of desirable labels."""
    measure = measures.as_measure(measure)
    name = measure if isinstance(measure, str) else None
    bound = measure if isinstance(measure, (measures.AtLeast, measures.AtMost)) else None
    of_predictions = bound.rate == "selection_rate" if bound else name in WITHOUT_LABELS
    if not table.has_labels and not of_predictions:
        raise ValueError(
            f"measures: {measures.measure_name(measure)} compares predictions with true labels, "
            "and there are none (y_true=, --target); without them an audit takes "
            f"{', '.join(WITHOUT_LABELS)}."
        )
    if bound:
        return _bounded(bound, table, desirable)
    if name in BUILT_IN:
        return BUILT_IN[name](table, desirable)
    return _user_defined(measure, table, desirable)


def _between_groups(
    table: CountTable,
    rate: str,
    source: CellRates | CellHits,
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
    size = np.atleast_2d(cells.squares).sum(axis=1, keepdims=True)
    outside: Floats | float = 0.0
    variance: Floats | float = 0.0
    if table.others is not None:
        rest = Proportion(*(np.atleast_2d(part) for part in source.of(table.others)))
        everyone, size = everyone + rest.total, size + rest.squares
        weight = rest.total / np.where(everyone > 0, everyone, 1.0)
        x = np.nan_to_num(rest.value)
        outside = weight * x
        variance = weight**2 * x * (1 - x) / np.where(rest.total > 0, rest.trials, 1.0)
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
        map=GapToMean(
            total / np.where(everyone > 0, everyone, 1.0),
            applied,
            factor,
            outside,
            variance,
            np.where(size > 0, everyone**2, np.inf) / np.where(size > 0, size, 1.0),
        ),
        lower=np.zeros(n_rows * n_groups),
        upper=np.full(n_rows * n_groups, upper),
        good=np.repeat(is_good, n_groups).astype(np.float64),
        ratio_row=None if row is None else slice(row * n_groups, (row + 1) * n_groups),
    )


def _hits_of(n_labels: int, sets: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """(R, L, L) that one of each set of labels is predicted, whatever the true one."""
    chosen = np.array([np.isin(np.arange(n_labels), labels) for labels in sets])
    return np.repeat(chosen[:, None], n_labels, axis=1)


def _bounded(measure: Any, table: CountTable, desirable: Sequence[int]) -> Comparison:
    """A rate of each group, less its bound."""
    groups, n_labels = table.groups, table.n_labels
    wanted = groups.labels[list(desirable)] if len(desirable) else None
    asked = measures.constraints_of(measure, groups, y_desirable=wanted)  # raises what there is
    labels = list(desirable)
    if measure.labels is not None:
        labels = list(measures.desirable_labels(groups.labels, measure.labels))
    only = labels[0] if len(labels) == 1 else -1
    if measure.rate == "accuracy":
        hits, of_rows = np.eye(n_labels, dtype=bool)[None], [-1]
    elif measure.rate == "recall":
        hits, of_rows = np.zeros((len(labels), n_labels, n_labels), dtype=bool), labels
        hits[np.arange(len(labels)), labels, labels] = True
    else:
        hits, of_rows = _hits_of(n_labels, [labels]), [only]
        if measure.rate == "false_positive_rate":
            hits = hits & ~np.isin(np.arange(n_labels), labels)[None, :, None]
    source = CellHits(hits)
    total = source.of(table).total.ravel()
    own = MatrixMap(np.where(total > 0, -measure.bound, np.nan), np.eye(len(total)))
    found = _of_rates(table, measure.rate.replace("_", " "), source, own, asked.names)
    label = np.repeat(of_rows, groups.n_groups)
    good = np.full(len(total), 1.0 if isinstance(measure, measures.AtLeast) else -1.0)
    lower, upper = asked.definition
    return replace(found, lower=lower, upper=upper, cell_label=label, label=label, good=good)


def _of_rates(
    table: CountTable,
    rate: str,
    source: CellHits,
    own: MatrixMap,
    names: Sequence[str],
    upper: float = 0.0,
) -> Comparison:
    """Levels that are linear in rates of the groups."""
    cells, n, n_groups = source.of(table).flat(), len(names), table.groups.n_groups
    group = np.tile(np.arange(n_groups), len(source.hits))
    return Comparison(
        rate=rate,
        names=tuple(names),
        group=group if len(group) == n else np.full(n, -1),
        label=np.full(n, -1),
        cells=cells,
        source=source,
        cell_group=group,
        n_free=max(int((cells.total > 0).sum()), 1),
        tested=~np.isnan(own.c0),
        map=own,
        lower=np.zeros(n),
        upper=np.full(n, upper),
        good=np.zeros(len(group)),
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
    if asked.n_outcomes > 1:
        return _on_outcomes(asked, table)
    source = CellRates(POSITIVES if by_label else "accuracy", are_errors=True)
    cells = source.of(table).flat()
    used = np.isin(np.arange(asked.n_cells), asked.coefficients.cell) & (cells.total > 0)
    return Comparison(
        rate="error rate",
        cells=cells,
        source=source,
        cell_group=np.tile(np.arange(groups.n_groups), table.n_labels if by_label else 1),
        good=-used.astype(np.float64),
        **_of_constraints(asked, used),
    )


def _on_outcomes(asked: Constraints, table: CountTable) -> Comparison:
    """Constraints on the rates of the predicted labels in the cells."""
    every = equalized_odds_all(table, ())
    used = np.isin(np.arange(len(every.names)), asked.coefficients.cell) & (every.cells.total > 0)
    return replace(every, good=np.zeros(len(used)), **_of_constraints(asked, used))


def _of_constraints(asked: Constraints, used: NDArray[np.bool_]) -> dict[str, Any]:
    """What a comparison takes from constraints, of which none is about one group."""
    nobody = np.full(len(asked.names), -1)
    return {
        "names": asked.names,
        "group": nobody,
        "label": nobody,
        "n_free": max(int(used.sum()), 1),
        "tested": _directions(asked),
        "map": MatrixMap(asked.c0, asked.C),
        "lower": np.asarray(asked.lower),
        "upper": np.asarray(asked.upper),
        "definition": asked.definition,
    }
