"""What each measure compares: which rates of which groups, and how levels follow from them.

The library's own measures are read off the count table directly. That makes the intervals
narrower: a selection rate is one proportion, not a sum of several. Any other measure is taken as
constraints on the error rates of the cells, or on the rates of the labels predicted there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray  # noqa: TC002 - a dataclass's fields are read at run time

from fairgrad import measures
from fairgrad.audit.counts import POSITIVES, rate_masks
from fairgrad.audit.intervals import Interval, Proportion, in_a_row
from fairgrad.audit.verdicts import FOUR_FIFTHS, VerdictRule, tolerated_ratio
from fairgrad.checks import is_number
from fairgrad.constraints import Constraints, gaps
from fairgrad.groups import Floats, Ints, count_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit.counts import CountTable
    from fairgrad.audit.known import SoftCells

DEFAULT_MEASURES = (
    "demographic_parity",
    "equalized_odds",
    "equality_of_opportunity",
    "accuracy_parity",
)
WITHOUT_LABELS = ("demographic_parity", "four_fifths_rule")
"""Measures that look at predictions alone."""
DEFAULT_TOLERANCE = 0.05


@dataclass(frozen=True, eq=False)
class GapToReference:
    """``F_k = x_k - reference`` of the block of k: the library's own measures.

    A block holds one rate of several groups. Its reference is the mean over all rows,
    ``sum share_q x_q + outside``, in which groups with too few rows to be compared count as well;
    or the rate of one group, whose share is 1.

    Attributes:
        block: (K,) the block of each rate; rates of a block follow each other.
        share: (K,) the weight of each rate in the reference of its block.
        present: (K,) whether there are rows; without them a level is not defined.
        applies: (K,) whether a level is constrained; the others are 0.
        outside: (K,) what groups that are not compared add to the reference.
        outside_variance: (K,) the variance of that.
        n_rows: (K,) rows of all groups of the block: shares are estimates, too.
        with_reference: (K,) correlation of each rate and its reference; None if rates are
            independent.
        reference_sd: (K,) the standard error of a mean whose rates are not independent.
    """

    block: Ints
    share: Floats
    present: NDArray[np.bool_]
    applies: NDArray[np.bool_]
    outside: Floats
    outside_variance: Floats
    n_rows: Floats
    with_reference: Floats | None = None
    reference_sd: Floats | None = None

    def levels(self, rate: Floats) -> Floats:
        """(..., K) the levels of these rates; NaN where they are not defined."""
        x = np.where(self.present, rate, 0.0)
        return self._defined(x - self.sums(self.share * x) - self.outside)

    def combine(self, rate: Floats, ends: Interval, z: float) -> Interval:
        """The MOVER interval of each level, from rates and the intervals of each of them.

        A group's own rate is also in the mean, so it counts once, with what is left of it:
        ``F_r = (1 - share_r) x_r - sum_(q != r) share_q x_q``. What the shares of the groups and
        the groups outside add to the variance of the mean reaches z times its root.
        """
        x, low, high = (np.where(self.present, values, 0.0) for values in (rate, *ends))
        mean = self.sums(self.share * x) + self.outside
        around = self.sums(self.share * (x - mean) ** 2)
        more = z**2 * (around / self.n_rows + self.outside_variance)

        reach = np.stack([x - low, high - x])  # how far each rate reaches down and up
        others = reach[::-1]
        if self.with_reference is not None:
            sd = self.reference_sd
            other = self.sums(self.share * others) if sd is None else z * sd
            both = reach**2 + other**2 - 2 * self.with_reference * reach * other
            down, up = np.sqrt(np.maximum(both, 0.0))
        else:
            squares = (self.share * others) ** 2
            beyond = np.maximum(self.sums(squares) - squares, 0.0)
            down, up = np.sqrt(((1 - self.share) * reach) ** 2 + beyond + more)
        return Interval(self._defined(x - mean - down), self._defined(x - mean + up))

    @property
    def range(self) -> Interval:
        """(K,) the least and the greatest level that any rates have."""
        others = self.sums(self.share) - self.share
        return Interval(
            self._defined(-others - self.outside), self._defined(1 - self.share - self.outside)
        )

    def sums(self, values: Floats) -> Floats:
        """(..., K) the sum over the block of each rate."""
        starts = np.searchsorted(self.block, np.arange(self.block[-1] + 1))
        sums: Floats = np.add.reduceat(values, starts, axis=-1)[..., self.block]
        return sums

    def _defined(self, gap: Floats) -> Floats:
        return np.where(self.applies, np.where(self.present, gap, np.nan), 0.0)


@dataclass(frozen=True, eq=False)
class MatrixMap:
    """``F = c0 + C e``: any constraints on the error rates of the cells.

    Attributes:
        c0: (J,) constants, NaN where a level is not defined.
        row: (E,) the level of each entry of C that is not 0.
        cell: (E,) its cell.
        value: (E,) the entry.
        correlation: (K, K) of the cells' rates; None if they are independent.
    """

    c0: Floats
    row: Ints
    cell: Ints
    value: Floats
    correlation: Floats | None = None

    @classmethod
    def of_matrix(cls, c0: Floats, C: Floats) -> MatrixMap:
        """The map of a matrix, (J, K)."""
        row, cell = np.nonzero(C)
        return cls(c0, row, cell, C[row, cell])

    @classmethod
    def of_pairs(cls, first: Ints, other: Ints, ratio: float, c0: Floats) -> MatrixMap:
        """``rate_first - ratio * rate_other`` of pairs of cells, (J,)."""
        n = len(first)
        row, value = np.tile(np.arange(n), 2), np.repeat([1.0, -ratio], n)
        return cls(c0, row, np.append(first, other), value)

    def _sums(self, values: Floats) -> Floats:
        """(J,) the sums of what the entries, (E,), add to each level."""
        sums: Floats = count_rows(self.row, len(self.c0), values)
        return sums

    def levels(self, rate: Floats) -> Floats:
        """(J,) the levels."""
        return self.c0 + self._sums(self.value * np.nan_to_num(rate)[self.cell])

    def combine(self, rate: Floats, ends: Interval, z: float) -> Interval:
        """The MOVER interval of each level, from rates and their limits."""
        del z  # a user's coefficients are no estimates
        x = np.nan_to_num(rate)
        levels, down, up = self.levels(x), x - ends.low, ends.high - x

        def reach(of_rising: Floats, of_falling: Floats) -> Floats:
            side = np.where(self.value > 0, of_rising[self.cell], of_falling[self.cell])
            if self.correlation is None:
                return np.sqrt(self._sums((self.value * side) ** 2))
            moved = np.zeros((len(self.c0), len(x)))
            moved[self.row, self.cell] = self.value * side
            squares: Floats = np.maximum((moved @ self.correlation * moved).sum(axis=1), 0.0)
            return np.sqrt(squares)

        return Interval(levels - reach(down, up), levels + reach(up, down))

    @property
    def range(self) -> Interval:
        """(J,) the least and the greatest level that any rates have."""
        falling, rising = (self._sums(np.clip(self.value, *e)) for e in ((None, 0), (0, None)))
        return Interval(self.c0 + falling, self.c0 + rising)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A measure on given data.

    Attributes:
        rate: the name of the rate that is compared.
        names: (J,) what each level speaks of.
        group: (J,) the index of the group each level speaks of, -1 for none in particular.
        label: (J,) the index of the label each level speaks of, -1 for none.
        hits: (R, L, L) which predicted labels (last axis) of which true labels count in each rate;
            it is among the rows of all true labels of which some do.
        cells: (K,) the proportions the levels are made of.
        cell_group: (K,) the group each cell lies in.
        cell_label: (K,) the index of the label each cell speaks of, -1 for none.
        block: (K,) cells with the same number are compared with each other; modulo R it is the
            rate of the cell.
        tested: (J,) the levels that vary independently. Of two groups or labels, one determines the
            other. A verdict has as many chances to be wrong as there are such levels.
        map: the levels as a function of the cells' rates.
        bounds: (J,) the least and the greatest level that is fair without any tolerance.
        definition: the same without a user's slack.
        good: (K,) 1 where people gain by a higher rate, -1 where by a lower one, 0 where neither.
        ratio_row: where the cells of the rates lie whose ratio the four-fifths rule looks at.
        reference: the group that all others are compared with; -1 for the mean of all rows.
        left_out: names of strata in which there is nothing to compare.
    """

    rate: str
    names: tuple[str, ...]
    group: Ints
    label: Ints
    hits: NDArray[np.bool_]
    cells: Proportion
    cell_group: Ints
    cell_label: Ints
    block: Ints
    tested: NDArray[np.bool_]
    map: GapToReference | MatrixMap
    bounds: Interval
    definition: Interval
    good: Floats
    ratio_row: slice | None = None
    reference: int = -1
    left_out: tuple[str, ...] = ()

    def gaps(self, level: Interval) -> Interval:
        """How unfair each level is when it lies anywhere in its interval: least and most.

        As `Constraints.gaps`: ``|F|``, or, where there is one bound only, by how much it is broken.
        """
        ends = [gaps(F, *self.definition) for F in level]
        # The gap is convex in F: most at an end, least at an end or as near to 0 as F comes.
        nearest = gaps(np.clip(0.0, *level), *self.definition)
        return Interval(np.minimum(np.minimum(*ends), nearest), np.maximum(*ends))

    @property
    def valued(self) -> NDArray[np.bool_]:
        """(J,) the levels that show who is better off: not those of undesirable labels."""
        is_good = self.good > 0
        if len(self.good) == len(self.names) and is_good.any():
            return is_good
        return np.ones(len(self.names), dtype=bool)


def four_fifths_rule(table: CountTable, desirable: Sequence[int], reference: int) -> Comparison:
    """Selection rates of the desirable labels; a level is a group's less 0.8 of another's."""
    if not desirable or len(desirable) == table.n_labels:
        measures.four_fifths_rule(  # raises the library's one error
            table.together().groups, [table.groups.labels[index] for index in desirable] or None
        )
    hits = rate_masks(table.n_labels)["selection_rate"][0][list(desirable)].any(0, keepdims=True)
    cells = table.shares(hits)
    n, names = table.groups.n_groups, table.groups.names
    first, other = np.nonzero(~np.eye(n, dtype=bool))
    if reference >= 0:
        first, other = first[other == reference], other[other == reference]
    defined = (cells.total[0, first] > 0) & (cells.total[0, other] > 0)
    return _of_rates(
        table,
        "selection rate",
        hits,
        cells,
        MatrixMap.of_pairs(first, other, 0.8, np.where(defined, 0.0, np.nan)),
        labels=[desirable[0] if len(desirable) == 1 else -1],
        names=tuple(f"{names[i]} against {names[j]}" for i, j in zip(first, other, strict=True)),
        group=first,
        bounds=Interval(np.zeros(len(first)), np.full(len(first), np.inf)),
        tested=defined,
        good=np.ones(n),
        ratio_row=slice(0, n),
        reference=reference,
    )


OWN_RATES = {
    "accuracy_parity": ("accuracy", "accuracy"),
    "equalized_odds": ("recall", POSITIVES),
    "equality_of_opportunity": ("recall", POSITIVES),
    "demographic_parity": ("selection rate", "selection_rate"),
    "equalized_odds_all": ("recall", POSITIVES),  # with two labels; more need prediction rates
}
"""Measures that compare one rate of each label: what it is called, and its key in `rate_masks`."""


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
    """
    groups, size = table.groups, table.size
    stratum, comparisons = groups.parents(*strata), []
    left_out = dict.fromkeys(everyone)
    for index, name in enumerate(groups.marginal(*strata).names):
        inside = (stratum == index) & (size > 0)
        if inside.sum() > 1:
            left_out.pop(name)
            # Within a stratum the groups are those of the compared attributes alone.
            inner = table.take(inside)
            place = np.flatnonzero(inside)[np.argsort(inner.groups.parents(*compared))]
            comparison = compare(measure, inner.view(*compared), desirable)
            within = replace(
                comparison,
                names=tuple(f"{level} in {name}" for level in comparison.names),
                group=np.where(comparison.group < 0, -1, place[comparison.group]),
                cell_group=place[comparison.cell_group],
            )
            comparisons.append(within)
    if not comparisons:
        raise ValueError(
            f"measures: no value of {' x '.join(strata)} has rows of two groups of "
            f"{' x '.join(compared)} to compare (with min_group rows each)."
        )
    return replace(_joined(comparisons), left_out=tuple(left_out))


def _joined(comparisons: list[Comparison]) -> Comparison:
    """Joins the comparisons of several strata."""

    def joined(owners: Sequence[Any], names: Sequence[str]) -> dict[str, Any]:
        return {name: in_a_row([getattr(owner, name) for owner in owners]) for name in names}

    def shifted(owners: Sequence[Any], name: str, sizes: Sequence[int]) -> Ints:
        """Indices of one stratum after the other."""
        starts = zip(owners, np.cumsum([0, *sizes[:-1]]), strict=True)
        return np.concatenate([getattr(owner, name) + start for owner, start in starts])

    blocks = shifted(comparisons, "block", [int(each.block.max()) + 1 for each in comparisons])
    maps: list[Any] = [comparison.map for comparison in comparisons]
    merged: GapToReference | MatrixMap
    if isinstance(maps[0], MatrixMap):
        row = shifted(maps, "row", [len(each.c0) for each in maps])
        cell = shifted(maps, "cell", [len(each.cell_group) for each in comparisons])
        merged = MatrixMap(**joined(maps, ["c0", "value"]), row=row, cell=cell)
        if maps[0].correlation is not None:
            from scipy.linalg import block_diag  # noqa: PLC0415 - slow to import

            merged = replace(merged, correlation=block_diag(*(each.correlation for each in maps)))
    else:
        of_map = [field.name for field in fields(GapToReference)]
        merged = GapToReference(**{**joined(maps, of_map), "block": blocks})
    of_levels = ["group", "label", "tested", "bounds", "definition"]
    of_cells = ["cells", "cell_group", "cell_label", "good"]
    return replace(
        comparisons[0],
        **joined(comparisons, of_levels + of_cells),
        names=tuple(name for comparison in comparisons for name in comparison.names),
        block=blocks,
        map=merged,
        ratio_row=None,
    )


def compare(
    measure: Any, table: CountTable, desirable: Sequence[int], reference: int = -1
) -> Comparison:
    """What a single measure compares on the groups of a table: with a group, or the mean (-1)."""
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
    if name == "four_fifths_rule":
        return four_fifths_rule(table, desirable, reference)
    if name in OWN_RATES:
        return _between_groups(name, table, desirable, reference)
    return _user_defined(measure, table, desirable)


def _between_groups(
    measure: str, table: CountTable, desirable: Sequence[int], reference: int
) -> Comparison:
    """Each group's rate, one per label, against the mean over all or a reference group."""
    if measure == "equality_of_opportunity" and not desirable:
        measures.equality_of_opportunity(table.together().groups)  # raises the library's one error
    (rate, key), n_labels = OWN_RATES[measure], table.n_labels
    hits = rate_masks(n_labels)[key][0]
    labels = np.arange(n_labels) if len(hits) > 1 else np.array([-1])
    names = table.groups.cell_names(len(hits) > 1)
    applied = is_good = np.ones(len(hits), dtype=bool)
    only = None
    if measure == "equality_of_opportunity":  # levels of the other labels are 0
        applied = is_good = np.isin(labels, desirable)
    elif measure == "demographic_parity":
        is_good = np.isin(labels, desirable)
        only = desirable[0] if len(desirable) == 1 else None
    elif measure == "equalized_odds_all" and n_labels > 2:
        rate, hits = "prediction rate", _predictions(n_labels)
        labels, true = np.divmod(np.arange(n_labels**2), n_labels)
        names = tuple(f"{h} predicted, {name}" for h in table.groups.labels for name in names)
        applied, is_good = np.ones(len(hits), dtype=bool), labels == true  # to be right is good
    cells = table.shares(hits)
    total, (n_rows, n_groups) = cells.total, cells.total.shape
    row = np.repeat(np.arange(n_rows), n_groups)
    everyone, size = (counts.sum(axis=1) for counts in (total, cells.squares))
    outside, variance = np.zeros(n_rows), np.zeros(n_rows)
    if table.others is not None and reference < 0:
        others = table.others.shares(hits).pick(np.s_[:, 0])
        everyone, size = everyone + others.total, size + others.squares
        weight = others.total / np.where(everyone > 0, everyone, 1.0)
        x = np.nan_to_num(others.value)
        outside = weight * x
        variance = weight**2 * x * (1 - x) / np.where(others.total > 0, others.trials, 1.0)
    share = total / np.where(everyone > 0, everyone, 1.0)[:, None]
    effective = np.where(size > 0, everyone**2, np.inf) / np.where(size > 0, size, 1.0)
    present = share > 0
    if reference >= 0:
        share = np.zeros(total.shape)
        share[:, reference], effective = 1.0, np.full(n_rows, np.inf)
        present &= present[:, [reference]]
    correlation = sd = None
    if table.soft is not None:  # rates are not independent then
        correlation, sd = _with_reference(
            table.soft, hits, cells, share, reference, everyone, outside
        )
    # Only levels that say something no other level says: of two groups the smaller one's.
    tested = (total > 0) & applied[:, None]
    if reference >= 0:
        tested[:, reference] = False
    else:
        two = np.flatnonzero(tested.sum(axis=1) == 2)  # the smaller is the farther from the mean
        tested[two, total[two].argmax(axis=1)] = False
    if measure == "demographic_parity" and n_labels == 2:  # one rate determines the other
        tested[1] = False
    levels = GapToReference(
        block=row,
        share=share.ravel(),
        present=present.ravel(),
        applies=applied[row],
        outside=outside[row],
        outside_variance=variance[row],
        n_rows=effective[row],
        with_reference=correlation,
        reference_sd=None if sd is None else sd[row],
    )
    return _of_rates(
        table,
        rate,
        hits,
        cells,
        levels,
        labels=labels,
        names=names,
        tested=tested.ravel(),
        good=is_good[row].astype(np.float64),
        ratio_row=None if only is None else slice(only * n_groups, (only + 1) * n_groups),
        reference=reference,
    )


def _with_reference(
    soft: SoftCells,
    hits: NDArray[np.bool_],
    cells: Proportion,
    share: Floats,
    reference: int,
    everyone: Floats,
    outside: Floats,
) -> tuple[Floats, Floats | None]:
    """(K,) the correlation of each rate with its reference; (R,) the error if it is a mean."""
    rate, (n_rows, n_groups) = np.nan_to_num(cells.value), cells.total.shape
    mean = (rate * share).sum(axis=1) + outside
    places = np.append(np.arange(n_groups), n_groups if reference < 0 else reference)
    extended, sd = np.zeros(rate.shape), np.zeros(n_rows)
    for r in range(n_rows):
        row = np.append(rate[r], mean[r])
        extended[r] = soft.correlation(hits, places, np.full(len(row), r), row)[-1, :-1]
        off = hits[r] - mean[r] * hits[r].any(axis=-1, keepdims=True)
        sd[r] = np.sqrt((soft.products[-1, -1] * off**2).sum()) / max(everyone[r], 1e-300)
    return extended.ravel(), sd if reference < 0 else None


def _predictions(n_labels: int) -> NDArray[np.bool_]:
    """(L * L, L, L) that each label is predicted of each true one, the true one varying fastest."""
    masks = rate_masks(n_labels)
    both: NDArray[np.bool_] = masks["selection_rate"][0][:, None] & masks["base_rate"][0][None]
    return both.reshape(-1, n_labels, n_labels)


def _bounded(measure: Any, table: CountTable, desirable: Sequence[int]) -> Comparison:
    """A rate of each group, less its bound."""
    groups, masks = table.groups, rate_masks(table.n_labels)
    wanted = groups.labels[list(desirable)] if len(desirable) else None
    asked = measures.constraints_of(measure, groups, y_desirable=wanted)  # raises what there is
    labels = list(desirable)
    if measure.labels is not None:
        labels = list(measures.desirable_labels(groups.labels, measure.labels))
    of_rows = [labels[0] if len(labels) == 1 else -1]
    if measure.rate == "accuracy":
        hits, of_rows = masks["accuracy"][0], [-1]
    elif measure.rate == "recall":
        hits, of_rows = masks[POSITIVES][0][labels], labels
    else:
        hits = masks["selection_rate"][0][labels].any(axis=0, keepdims=True)
        if measure.rate == "false_positive_rate":
            hits = hits & ~np.isin(np.arange(table.n_labels), labels)[None, :, None]
    cells = table.shares(hits)
    total = cells.total.ravel()
    return _of_rates(
        table,
        measure.rate.replace("_", " "),
        hits,
        cells,
        MatrixMap.of_matrix(np.where(total > 0, -measure.bound, np.nan), np.eye(len(total))),
        labels=of_rows,
        names=asked.names,
        bounds=Interval(*asked.definition),
        tested=total > 0,
        good=np.full(len(total), 1.0 if isinstance(measure, measures.AtLeast) else -1.0),
    )


def _of_rates(
    table: CountTable,
    rate: str,
    hits: NDArray[np.bool_],
    cells: Proportion,
    levels: GapToReference | MatrixMap,
    *,
    labels: Sequence[int] | Ints,
    names: Sequence[str],
    group: Ints | None = None,
    bounds: Interval | None = None,
    **more: Any,
) -> Comparison:
    """Levels that are functions of rates of the groups, by default one level of each rate.

    Args:
        table: the counts.
        rate: what the rates are called.
        hits: (R, L, L) what counts in each rate.
        cells: (R, G) the rates.
        levels: how levels follow from them.
        labels: (R,) the label of each rate.
        names: of the levels.
        group: (J,) the group of each level, if there is not one level of each rate.
        bounds: of the levels; 0 by default.
        more: further fields of the comparison.
    """
    n, (n_rows, n_groups) = len(names), cells.total.shape
    row, cell_group = np.repeat(np.arange(n_rows), n_groups), np.tile(np.arange(n_groups), n_rows)
    cells, cell_label = cells.pick((row, cell_group)), np.repeat(labels, n_groups)
    if table.soft is not None and isinstance(levels, MatrixMap):
        between = table.soft.correlation(hits, cell_group, row, np.nan_to_num(cells.value))
        levels = replace(levels, correlation=between)
    bounds = Interval(np.zeros(n), np.zeros(n)) if bounds is None else bounds
    fields_of = {
        "group": cell_group if group is None else group,
        "label": cell_label if group is None else np.full(n, -1),
        "bounds": bounds,
        "definition": bounds,
        "names": tuple(names),
        "cell_group": cell_group,
        "cell_label": cell_label,
        "block": row,
    }
    return Comparison(rate=rate, hits=hits, cells=cells, map=levels, **{**fields_of, **more})


def _tested_rows(asked: Constraints) -> NDArray[np.bool_]:
    """(J,) the user's constraints that are not multiples of an earlier constraint."""
    rows = np.column_stack([np.nan_to_num(asked.c0), asked.C])
    size = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    first = np.take_along_axis(rows, np.argmax(rows != 0, axis=1)[:, None], axis=1)
    unit = np.round(rows / np.where(size > 0, size, 1.0) * np.sign(first), 9)
    # The largest multiple stands for all, as it is the farthest from 0.
    order = np.argsort(-size[:, 0], kind="stable")
    _, place = np.unique(unit[order], axis=0, return_index=True)
    is_first = np.isin(np.arange(len(rows)), order[place])
    is_two_sided = np.array_equal(np.asarray(asked.lower), -np.asarray(asked.upper))
    tested: NDArray[np.bool_] = np.any(asked.C != 0, axis=1) & ~np.isnan(asked.c0)
    return tested & is_first if is_two_sided else tested


def _user_defined(measure: Any, table: CountTable, desirable: Sequence[int]) -> Comparison:
    """Constraints on error rates, or on the rates of the labels predicted in the cells."""
    groups, n_labels = table.groups, table.n_labels
    wanted = groups.labels[list(desirable)] if desirable else None
    asked = measures.constraints_of(measure, groups, y_desirable=wanted)
    masks = rate_masks(n_labels)
    labels = np.arange(n_labels) if asked.by_label else np.array([-1])
    are_outcomes = asked.n_outcomes > 1
    if are_outcomes:
        rate, hits = "prediction rate", _predictions(n_labels)
        labels = np.repeat(labels, n_labels)
    else:
        rate, hits = "error rate", ~masks["accuracy"][0]
        if asked.by_label:
            hits = hits & masks["base_rate"][0]
    levels, cells = MatrixMap.of_matrix(asked.c0, asked.C), table.shares(hits)
    if are_outcomes and table.soft is None:
        levels = replace(levels, correlation=_multinomial(cells, hits))
    total = cells.total.ravel()
    used = np.isin(np.arange(len(total)), asked.coefficients.cell) & (total > 0)
    return _of_rates(
        table,
        rate,
        hits,
        cells,
        levels,
        labels=labels,
        names=asked.names,
        group=np.full(len(asked.names), -1),
        bounds=Interval(np.asarray(asked.lower), np.asarray(asked.upper)),
        definition=Interval(*asked.definition),
        tested=_tested_rows(asked),
        good=np.zeros(len(total)) if are_outcomes else -used.astype(np.float64),
    )


def _multinomial(cells: Proportion, hits: NDArray[np.bool_]) -> Floats:
    """(K, K) correlations of the rates p, q of labels among the same n rows, ``cov = -p q / n``."""
    x = np.clip(np.nan_to_num(cells.value), 0.0, 1.0)
    true = np.repeat(hits.any(axis=2).argmax(axis=1), x.shape[1])
    group = np.tile(np.arange(x.shape[1]), len(hits))
    odds = np.sqrt(x / np.maximum(1.0 - x, 1e-9)).ravel()
    same = (true[:, None] == true) & (group[:, None] == group)
    within: Floats = np.where(same, -np.minimum(np.outer(odds, odds), 1.0), 0.0)
    np.fill_diagonal(within, 1.0)
    return within


@dataclass(frozen=True)
class AskedMeasure:
    """One measure to be checked.

    Attributes:
        measure: a name, a function, `Constraints`, or a pair (c0, C).
        name: a short readable name.
        attributes: whose groups to compare, one tuple per comparison; empty for each attribute
            alone and all crossed.
        tolerance: a number for levels, or a text such as "80%" for ratios.
        strata: attributes within whose values groups are compared; none for everyone together.
    """

    measure: Any
    name: str
    attributes: tuple[tuple[str, ...], ...]
    tolerance: float | str
    strata: tuple[str, ...] = ()

    def rule(self, comparison: Comparison) -> VerdictRule:
        """The rule of the verdict; measures with bounds of their own are judged by these."""
        ratio, is_of_ratios = tolerated_ratio(self.tolerance), self.name == "four_fifths_rule"
        if is_of_ratios and comparison.ratio_row is None:
            return VerdictRule("bounds", 0.0)  # within strata: no rate is below 0.8 of another
        if ratio is not None and comparison.ratio_row is None:
            raise ValueError(
                f"tolerance: {self.tolerance!r} is a ratio of the selection rates of one "
                f"desirable label; it serves demographic_parity, not {self.name}. Name what it "
                f"is for: tolerance={{'demographic_parity': {self.tolerance!r}}}."
            )
        if is_of_ratios or ratio is not None:
            return VerdictRule("ratio", float(self.tolerance) if ratio is None else ratio)
        if np.any(comparison.bounds):
            return VerdictRule("bounds", 0.0)
        return VerdictRule("level", float(self.tolerance))


def asked_measures(
    wanted: Any, others: Any, tolerance: Any, attributes: Sequence[str]
) -> tuple[tuple[AskedMeasure, ...], tuple[AskedMeasure, ...]]:
    """The measures of the verdict and those beside it, each with its groups and its tolerance."""
    asked, beside = (
        [_asked(item, tolerance, tuple(attributes)) for item in _flatten(measures_of)]
        for measures_of in (wanted, others)
    )
    if not asked:
        raise ValueError("measures: expected at least one measure, got none.")
    names = [item.name for item in (*asked, *beside)]
    if isinstance(tolerance, Mapping):
        unknown = [key for key in tolerance if measures.ALIASES.get(key, key) not in names]
        if unknown:
            raise ValueError(f"tolerance: got {unknown[0]!r}; the measures asked are {names}.")
    # Demographic parity with a tolerance of 80% is the four-fifths rule: the first one is judged.
    first: dict[Any, AskedMeasure] = {}
    for item in (*asked, *beside):
        by_ratio = item.name == "demographic_parity" and tolerated_ratio(item.tolerance) is not None
        name = "four_fifths_rule" if by_ratio else item.name
        same = (name, item.attributes, item.tolerance, item.strata)
        first.setdefault(same if isinstance(item.measure, str) else id(item), item)
    kept = {id(item) for item in first.values()}
    return (
        tuple(item for item in asked if id(item) in kept),
        tuple(item for item in beside if id(item) in kept),
    )


def _flatten(wanted: Any) -> list[Any]:
    """One level list of measures; a pair (c0, C) and a name are single measures."""
    is_pair = isinstance(wanted, tuple) and any(hasattr(item, "shape") for item in wanted)
    if isinstance(wanted, (list, tuple)) and not is_pair:
        return [single for item in wanted for single in _flatten(item)]
    return [wanted]


def _asked(entry: Any, tolerance: Any, attributes: tuple[str, ...]) -> AskedMeasure:
    """A measure as users name it, with the groups to compare and what is tolerated."""
    measure, epsilon, wanted = entry, None, None
    strata: tuple[str, ...] = ()
    if isinstance(entry, measures.On):
        measure, wanted, strata = entry.measure, entry.compared, entry.strata
        epsilon = entry.epsilon or None
    elif isinstance(entry, (Constraints, tuple)):
        wanted = attributes  # matrices fit one set of cells only: those of all attributes
    unknown = [name for name in (*(wanted or ()), *strata) if name not in attributes]
    if unknown:
        raise ValueError(
            f"measures: got the attribute {unknown[0]!r}; the sensitive attributes are "
            f"{list(attributes)}."
        )
    measure = measures.as_measure(measure)
    is_own = isinstance(measure, (Constraints, tuple)) or callable(measure)
    if not is_own and measure not in measures.MEASURES:
        raise ValueError(
            f"measures: got {measure!r}; expected one of "
            f"{[*measures.MEASURES, *measures.ALIASES]}, a function from Groups to Constraints, "
            "AtLeast, AtMost, Constraints, a pair (c0, C), an On, or a list of these."
        )
    name = measures.measure_name(measure)
    default: float | str = FOUR_FIFTHS if name == "four_fifths_rule" else DEFAULT_TOLERANCE
    # The tolerance named for this measure, else its own slack, else the common one.
    if isinstance(tolerance, Mapping):
        named = {measures.ALIASES.get(key, key): value for key, value in tolerance.items()}
        chosen: Any = named.get(name, epsilon)
    else:  # a common number is about levels, not ratios
        chosen = tolerance if epsilon is None and default != FOUR_FIFTHS else epsilon
    chosen = default if chosen is None else chosen
    is_ratio = tolerated_ratio(chosen) is not None
    if not is_ratio and not (is_number(chosen) and 0 <= chosen <= 1):
        raise ValueError(
            "tolerance: expected a number from 0 to 1, such as 0.05 for 5 points, or a text from "
            f"'50%' to '100%' for ratios of selection rates, got {chosen!r}."
        )
    compared = () if wanted is None else (wanted,)
    return AskedMeasure(measure, name, compared, chosen if is_ratio else float(chosen), strata)
