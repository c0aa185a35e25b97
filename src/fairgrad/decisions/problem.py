"""What is to be decided: labelled rows, the probabilities of their cells, and the constraints."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad import dual
from fairgrad.constraints import warn_of_undefined
from fairgrad.groups import GroupedRows
from fairgrad.measures import LargeGroups, On, constraints_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Groups, Ints

TOLERANCE = 1e-3
"""Exact fairness, on rows that can be counted, is a level of at most this; or of one row, where one
row moves a level by more."""

ROUNDING = 1e-12


class MeasuredAttributes(NamedTuple):
    """One measure, and the sensitive attributes that it speaks of.

    Attributes:
        attributes: their names; their combinations are the groups.
        groups: of these attributes alone.
        constraints: on the cells of these groups.
    """

    attributes: tuple[str, ...]
    groups: Groups
    constraints: Constraints


def measured_apart(
    measure: Any,
    groups: Groups,
    *,
    epsilon: Any = 0.0,
    y_desirable: Any = None,
    rows: GroupedRows | None = None,
) -> list[MeasuredAttributes]:
    """Each of one or several measures with the constraints on the cells of its own attributes.

    These are the constraints of `fairgrad.measures.constraints_of`, in the same order, but written
    for the groups of each measure's own attributes, not for all combinations of attributes. Those
    that are not defined on these groups are left out, with a warning.

    Args:
        measure: as `fairgrad.measures.constraints_of` takes it.
        groups: of all attributes.
        epsilon: slack of all constraints, or one per constraint.
        y_desirable: the desirable labels, for measures that ask for them.
        rows: whose levels are constrained. If given, a level of few rows gets the slack that its
            sampling error explains (`fairgrad.constraints.Constraints.slacken_for`).

    Raises:
        ValueError: if the measure is not known or does not fit the groups.

    Example:
        >>> from fairgrad.groups import Groups
        >>> groups = Groups.from_data([0, 1, 0, 1], {"sex": [0, 0, 1, 1], "race": [0, 1, 1, 0]})
        >>> both = [On("sex", "accuracy_parity"), On("race", "accuracy_parity")]
        >>> [part.constraints.names for part in measured_apart(both, groups)]
        [('sex=0', 'sex=1'), ('race=0', 'race=1')]
    """
    sets: list[MeasuredAttributes] = []
    large = measure if isinstance(measure, LargeGroups) else None
    for one in _flat(measure if large is None else large.measure):
        is_on = isinstance(one, On)
        attributes = (*one.compared, *one.strata) if is_on else groups.attributes
        coarse = groups.marginal(*attributes)
        among = one if large is None else replace(large, measure=one)
        constraints = constraints_of(among, coarse, y_desirable=y_desirable)
        sets.append(MeasuredAttributes(attributes, coarse, constraints))
    ends = np.cumsum([len(one.constraints.c0) for one in sets])
    try:
        slack = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), (ends[-1],))
    except (TypeError, ValueError):
        raise ValueError(
            f"epsilon: expected a number or one per constraint ({ends[-1]}), got {epsilon!r}."
        ) from None
    warn_of_undefined([one.constraints for one in sets])
    measured = []
    for one, own_slack in zip(sets, np.split(slack, ends[:-1]), strict=True):
        slackened = one.constraints.slacken(own_slack)
        if rows is not None:
            group = groups.parents(*one.attributes)[rows.group]
            people = GroupedRows(one.groups, rows.label, group, rows.weight)
            slackened = one.constraints.slacken_for(people, own_slack)
        kept = slackened.select(one.constraints.is_defined)
        measured.append(one._replace(constraints=kept))
    return measured


def _flat(measure: Any) -> Iterator[Any]:
    if not isinstance(measure, list):
        yield measure
        return
    if not measure:
        raise ValueError("fairness_measure: expected at least one measure, got an empty list.")
    for one in measure:
        yield from _flat(one)


def added_scores(probability: Floats, pull: Floats) -> Floats:
    """(L, n) ``sum_r (w_(l,r) - 1) P(y = l, s = r | x)``: what weights add to the labels' scores.

    Costs of predicted labels take from them: ``-sum_(y,r) pull[l, y, r] P(y, s = r | x)``.

    Args:
        probability: (L, G, n) of the cells.
        pull: (L, G) the weights less 1, or (L, L, G) what is added to the costs of predicting each
            label (the first axis) in each cell.
    """
    if pull.ndim == 3:
        n_labels, n_groups, n = probability.shape
        by_cell = probability.reshape(n_labels * n_groups, n)
        return -(pull.reshape(n_labels, n_labels * n_groups) @ by_cell)
    return np.stack([weights @ cells for weights, cells in zip(pull, probability, strict=True)])


def largest(scores: Floats) -> Ints:
    """(n,) the label with the largest score, the first of equal ones; fast for two labels."""
    if len(scores) == 2:
        is_second: Ints = (scores[1] > scores[0]).astype(np.int64)
        return is_second
    decided: Ints = scores.argmax(0)
    return decided


def as_costs(pull: Floats) -> Floats:
    """(L, L, G) what weights, (L, G) less 1, add to costs: being right costs so much less."""
    if pull.ndim == 3:
        return pull
    costs = np.zeros((len(pull), *pull.shape))
    diagonal = np.arange(len(pull))
    costs[diagonal, diagonal] = -pull
    return costs


def weighted_scores(
    probabilities: Sequence[Floats], pulls: Sequence[Floats], costs: Floats | None = None
) -> Floats:
    """(L, n) ``P(y = l | x) + sum_a sum_r (w_a(l,r) - 1) P(y = l, s_a = r | x)``.

    The first term is the mean of what the attributes' models say of it; with costs, minus what the
    label is expected to cost.

    Args:
        probabilities: of each set of attributes (L, G, n).
        pulls: what the weights add, of each of the first sets.
        costs: (L, L) of each prediction (columns) of each true label (rows), or None.
    """
    mean: Floats = np.mean([probability.sum(1) for probability in probabilities], axis=0)
    scores = mean if costs is None else -(costs.T @ mean)
    for probability, pull in zip(probabilities, pulls, strict=False):
        scores = scores + added_scores(probability, pull)
    return scores


class JudgedCells:
    """Constraints and the cells they speak of, to judge what is decided on labelled rows.

    Args:
        constraints: all of them defined.
        rows: labels and groups of the rows, with their frequencies.
        room: how far from a level of 0 exact fairness is; None for `TOLERANCE`, or one row where
            one row moves a level by more.
    """

    def __init__(
        self, constraints: Constraints, rows: GroupedRows, room: float | None = None
    ) -> None:
        self.constraints, self.groups = constraints, rows.groups
        self.n_outcomes = constraints.n_outcomes
        self.cell = rows.cell(constraints.by_label)
        self.mass = rows.groups.cell_mass(constraints.by_label) / rows.groups.mass.sum()
        self._per_mass = np.where(self.mass > 0, 1.0 / np.where(self.mass > 0, self.mass, 1.0), 0.0)
        self.lower, self.upper = self._bounds(rows, room)

    def _bounds(self, rows: GroupedRows, room: float | None) -> tuple[Floats, Floats]:
        """The bounds to keep; where they are equal, or nearly so, what can be told apart."""
        C, lower, upper = (
            self.constraints.coefficients,
            self.constraints.lower,
            self.constraints.upper,
        )
        rooms = np.full(len(lower), TOLERANCE if room is None else room)
        if room is None:
            weight = np.ones(len(rows)) if rows.weight is None else rows.weight
            heaviest = np.zeros(len(self.mass))
            np.maximum.at(heaviest, self.cell, weight / weight.sum())
            one_row = heaviest * self._per_mass
            np.maximum.at(rooms, C.row, np.abs(C.value) * one_row[C.cell % len(one_row)])
        with np.errstate(invalid="ignore"):
            middle = (lower + upper) / 2
        is_two_sided = np.isfinite(middle)
        return (
            np.where(is_two_sided, np.minimum(lower, middle - rooms), lower) - ROUNDING,
            np.where(is_two_sided, np.maximum(upper, middle + rooms), upper) + ROUNDING,
        )

    def count(self, decided: Ints, wrong: Floats, weight: Floats) -> Floats:
        """(K, 1) the weights of the wrong rows of each cell, or (L * K, 1) of each label decided.

        Args:
            decided: (n,) labels.
            wrong: (n,) the weights of rows decided wrongly, 0 of the others.
            weight: (n,) of all rows.
        """
        n_cells = len(self.mass)
        place, counted = self.cell, wrong
        if self.n_outcomes > 1:
            place, counted = decided * n_cells + self.cell, weight
        sums = np.bincount(place, counted, minlength=self.n_outcomes * n_cells)
        return sums.astype(np.float64, copy=False)[:, None]

    def levels(self, counted: Floats) -> Floats:
        """(J, m) levels where such shares of all rows, (K, m) or (L * K, m), were counted."""
        rates = counted.T * np.tile(self._per_mass, self.n_outcomes)
        levels: Floats = self.constraints.levels(rates).T
        return levels


class Decision(NamedTuple):
    """Multipliers, and how the rows they were found on fare.

    Attributes:
        multipliers: (J,) net multipliers of all constraints.
        pulls: of each measure, (L, G) the weights of its cells less 1; (L, L, G) what the costs of
            each label grow by in each cell, for measures of what is predicted.
        levels: (J,) of the labelled rows.
        error: the share of these rows that is decided wrongly, or the mean of their costs.
        beyond: by how much the worst level is beyond its bounds; 0 if all are kept.
        constant: the index of the label that everybody gets, if that is the best decision; the
            multipliers are then 0.
        lottery: the share and the pulls of each decision of a mixture; empty for a single one.
            Multipliers, levels and error are then means, and `pulls` those of the largest share.
    """

    multipliers: Floats
    pulls: tuple[Floats, ...]
    levels: Floats
    error: float
    beyond: float
    constant: int | None = None
    lottery: tuple[tuple[float, tuple[Floats, ...]], ...] = ()


class Figures(NamedTuple):
    """Of m decisions: the error, the sum of squares and the largest of what is beyond bounds."""

    error: Floats
    squares: Floats
    worst: Floats

    def penalised(self, penalty: float) -> Floats:
        """(m,) what to minimise."""
        return self.error + penalty * self.squares


class JudgedDecisions:
    """Labelled rows and constraints: what is decided on them can be counted and judged.

    Args:
        label: (n,) the index of each row's label.
        weight: (n,) sample weights, or None.
        parts: one or several sets of constraints.
        costs: (L, L) of each prediction (columns) of each true label (rows); None for errors.
    """

    def __init__(
        self,
        label: Ints,
        weight: Floats | None,
        parts: Sequence[JudgedCells],
        costs: Floats | None = None,
    ) -> None:
        self.label, self.costs = label, costs
        weight = np.ones(len(label)) if weight is None else weight
        self.weight = weight / weight.sum()
        self.parts: tuple[JudgedCells, ...] = tuple(parts)
        self.lower = np.concatenate([cells.lower for cells in parts])
        self.upper = np.concatenate([cells.upper for cells in parts])

    def widened(self, width: float) -> JudgedDecisions | None:
        """The same rows with bounds at least so far from their middle; None if all are."""
        with np.errstate(invalid="ignore"):  # one side may be open
            middle = (self.lower + self.upper) / 2
            narrow = self.upper - middle < width
        if not narrow.any():
            return None
        wide = copy(self)
        wide.lower = np.where(narrow, middle - width, self.lower)
        wide.upper = np.where(narrow, middle + width, self.upper)
        return wide

    def judged(self, decided: Ints) -> tuple[list[Floats], float]:
        """What is counted of decided labels, and what they cost.

        Returns:
            (K, 1) for each part the wrong rows of its cells, or (L * K, 1) those of each label; and
            the share of the rows decided wrongly, or the mean of their costs.
        """
        wrong = np.where(decided != self.label, self.weight, 0.0)
        counted = [cells.count(decided, wrong, self.weight) for cells in self.parts]
        cost = wrong if self.costs is None else self.weight * self.costs[self.label, decided]
        return counted, float(cost.sum())

    def levels(self, counted: Sequence[Floats]) -> Floats:
        """(J,) levels of all parts, from what was counted of decided labels."""
        pairs = zip(self.parts, counted, strict=True)
        return np.concatenate([cells.levels(wrong)[:, 0] for cells, wrong in pairs])

    def violations(self, levels: Floats) -> Floats:
        """(..., J) by how much levels are beyond their bounds; 0 for those that are within."""
        off: Floats = np.maximum(np.maximum(levels - self.upper, self.lower - levels), 0.0)
        return off

    def figures(self, wrong: Sequence[Floats], error: Floats) -> Figures:
        """Figures of m decisions, from what was counted, (K, m), in each part's cells."""
        pairs = zip(self.parts, wrong, strict=True)
        off = self.violations(np.concatenate([cells.levels(errors) for cells, errors in pairs]).T)
        return Figures(error, (off**2).sum(1), off.max(1))


class DecisionProblem(JudgedDecisions):
    """Labelled rows, the probabilities of their cells, and the constraints.

    Args:
        label: (n,) the index of each row's label.
        weight: (n,) sample weights, or None.
        parts: one or several sets of constraints.
        probabilities: of each part (L, G, n) ``P(y = l, s = r | x)``, r among its groups.
        costs: (L, L) of each prediction (columns) of each true label (rows); None for errors.
    """

    def __init__(
        self,
        label: Ints,
        weight: Floats | None,
        parts: Sequence[JudgedCells],
        probabilities: Sequence[Floats],
        costs: Floats | None = None,
    ) -> None:
        super().__init__(label, weight, parts, costs)
        self.probabilities = [np.ascontiguousarray(one, dtype=np.float64) for one in probabilities]
        self.base = weighted_scores(self.probabilities, (), costs)
        self._constants = [dual.make_constants(one.constraints, one.groups) for one in parts]
        self._cuts = np.cumsum([len(single.constraints.c0) for single in parts])

    @property
    def n_levels(self) -> int:
        """J."""
        return int(self._cuts[-1])

    def pulls(self, net: Floats) -> tuple[Floats, ...]:
        """Of each part (L, G) the weights less 1; (L, L, G) what the costs of labels grow by."""
        n_labels, pulls = len(self.base), []
        nets = np.split(net, self._cuts[:-1])
        for measured, constants, multiplier in zip(self.parts, self._constants, nets, strict=True):
            if measured.n_outcomes > 1:
                pull = dual.net_pulls(constants, multiplier).reshape(n_labels, n_labels, -1)
            else:
                pull = dual.net_weights(constants, multiplier) - 1.0
                by_label = measured.constraints.by_label
                pull = np.tile(
                    pull.reshape(-1, measured.groups.n_groups), (1 if by_label else n_labels, 1)
                )
            pulls.append(pull)
        return tuple(pulls)

    def added(self, net: Floats) -> Floats:
        """(L, n) what net multipliers add to the scores."""
        pairs = zip(self.probabilities, self.pulls(net), strict=True)
        return sum((added_scores(*pair) for pair in pairs), start=np.zeros_like(self.base))

    def scores(self, net: Floats) -> Floats:
        """(L, n) the scores whose argmax is the decision."""
        return self.base + self.added(net)

    def decide(self, net: Floats) -> Decision:
        """The decisions of these multipliers, judged on the labelled rows."""
        return self._decision(net, self.pulls(net), largest(self.scores(net)))

    def decide_constant(self, label: int) -> Decision:
        """One label for everybody, written as weights: all others get scores below any."""
        net = np.zeros(self.n_levels)
        pulls = tuple(np.zeros_like(pull) for pull in self.pulls(net))
        far = 2.0 if self.costs is None else 2.0 + float(np.ptp(self.costs))
        others = np.arange(len(self.base)) != label
        if self.costs is not None:  # weights reach only labels that may be true
            pulls = (as_costs(pulls[0]), *pulls[1:])
        pulls[0][others] = -far if pulls[0].ndim == 2 else far
        return self._decision(net, pulls, np.full(len(self.label), label), constant=label)

    def _decision(
        self, net: Floats, pulls: tuple[Floats, ...], decided: Ints, constant: int | None = None
    ) -> Decision:
        counted, error = self.judged(decided)
        levels = self.levels(counted)
        return Decision(net, pulls, levels, error, float(self.violations(levels).max()), constant)
