"""The method, algorithm 1 of the paper, as one function: `step`.

The problem ``min error subject to lower <= F <= upper``, ``F = c0 + C e``, has the Lagrangian

    sum_k p_k e_k + sum_j lambda_j (F_j - upper_j) + delta_j (lower_j - F_j).

A step takes the predictions of a batch, counted per cell, and

1. estimates the error rate e_k of each cell,
2. moves the multipliers by the violations of the bounds: ``lambda += rate (F - upper)``, kept at or
   above 0, and delta likewise; where the bounds are equal, one signed multiplier takes the place of
   both,
3. gives the weight of each cell, which collects the terms of e_k: ``w_k = 1 + (C' (lambda -
   delta))_k / p_k``. Weights may be negative, and must be: without negative ones some problems have
   no fair solution (the paper's Lemma 1).

The losses, the stack of networks and boosting differ only in where the counts come from and what
the weights are used for. All functions but `opposed` take NumPy arrays as well as PyTorch tensors,
and are linear in the number of cells (see `fairgrad.constraints`).

A stack of models is one large problem whose cells and levels stand side by side, so there is no
second version for it.

What is counted of a batch are the *outcomes* in each cell: right and wrong. For constraints on the
rates of each predicted label, ``F = c0 + C q``, ``q[k, l] = P(h = l | cell k)``, they are the
predicted labels. The Lagrangian then puts a cost on every label in every cell,

    a[k, l] = cost[y_k, l] + (C' (lambda - delta))[k, l] / p_k,

where the cost of a mistake is 1, or what a user says. The loss of a row in cell k is ``sum_l
t[k, l] (-log p_l)`` with weights ``t[k, l] = max_m a[k, m] - a[k, l]``, never negative: its best
probabilities are in proportion to the weights a row can expect, so that the most probable label is
the one of the least cost. With all multipliers at 0 it is the cross-entropy.

**The automatic rate.** With a number as fairness rate a step is the paper's. Its multipliers travel
the rate times the number of steps, the noise of small batches accumulates in them, and 1/p_k
amplifies it for rare cells. With ``fairness_rate="auto"`` a step is composed of these parts:

- *estimate*: errors are pooled over about `AutoRate.pool` rows, however small the batches are,
- *ascend*: the rate is per row, not per step, up to `AutoRate.per_rows` rows; more rows in one
  step would move the multipliers before the model can follow. It decays as rows accumulate
  (``1 / sqrt(1 + seen / horizon)``); a proportional term reacts at once. Small training sets have
  a higher rate per row (`AutoRate.fitting`): it is the number of epochs that matters,
- *bound*: rates and multipliers of a level that could move a weight far, as it speaks of few rows,
  are limited (`with_steady_rates`, `Constants.ceiling`),
- *normalize*: weights are divided by their mean absolute value where that is above 1, so that
  fairness does not change the learning rate,
- *oppose* (`opposed`): a row of negative weight learns any label but its own. Its loss
  ``w (-log p_y)`` has no lower bound, and lets networks diverge.

A caller of `step` needs nothing else for it: `make_constants(..., fairness_rate="auto")`, then
`step` with the counts of the rows of each (label, group) cell; where cells are groups, split the
constraints first (`constraints.split_by_label`), so that the sampling of labels does not matter.
Rows of negative weight then use `opposed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.checks import relative_costs
from fairgrad.constraints import Coefficients, times, times_transposed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Groups

NEVER = 1e6
"""Stands for an infinite bound: levels are at most a few units, so it is never reached."""

TINY = 1e-8
"""Rows that a remembered estimate weighs: one row of a batch outweighs it entirely."""

BORROWED = 1e-24
"""Rows that an error borrowed from the label weighs, per row: any memory outweighs it entirely."""

NOTHING = 1e-30
"""Rows that the starting value weighs, which anything outweighs; not 0, to divide by it."""

COEFFICIENTS = ("row", "cell", "value", "block", "share", "n_blocks")
"""The attributes of `Coefficients` that `Constants` have, too."""

LEAST_LOSS = 1e-6
"""Log loss below which a row counts as certain of its label; it keeps slopes finite."""

Array = Any
"""A NumPy array or a PyTorch tensor; all arguments of one call are of one kind."""


class AutoRate(NamedTuple):
    """Numbers of the automatic rate.

    Attributes:
        rate: of the multipliers, for a step of `per_rows` rows or more; less in proportion for
            smaller batches.
        per_rows: see `rate`.
        horizon: rows after which the rate starts to decay.
        pool: rows over which errors are pooled.
        proportional: share of the current violation that is added to the multipliers in use.
        gain: a level that can move a weight by more than this gets lower rates.
        most: by how much one multiplier may change a weight.
    """

    rate: float = 0.03
    per_rows: float = 512.0
    horizon: float = 131_072.0
    pool: float = 2_048.0
    proportional: float = 0.3
    gain: float = 5.0
    most: float = 5.0

    @classmethod
    def fitting(cls, n_rows: float | None, n_outcomes: int = 1) -> AutoRate:
        """The numbers for a training set of so many rows; None for an unknown number.

        An epoch moves a multiplier by the violation, until training sets are so large that a step
        of 512 rows does with the full rate. Fewer rows than 1,000 count as 1,000. Levels of
        predicted labels have half the rates: a label predicted instead of another moves two of
        them, but one level of errors.
        """
        large = cls()
        if n_outcomes > 1:
            large = large._replace(rate=large.rate / 2, proportional=large.proportional / 2)
        if n_rows is None:
            return large
        n_rows = max(n_rows, 1_000.0)
        share = min(1.0, cls().rate * n_rows / large.per_rows)
        return large._replace(
            per_rows=share * large.per_rows,
            horizon=share * large.horizon,
            pool=min(large.pool, n_rows / 2),
        )


@dataclass(frozen=True, eq=False)
class Constants:
    """What does not change from step to step, of J levels and K cells.

    Attributes:
        c0: (J,) constants of the levels.
        row, cell, value, block, share, n_blocks: the coefficients, as `Coefficients` has them; with
            further outcomes, cells are ``outcome * K + cell``.
        sign: (S, 1) 1 for the side of the upper bounds, -1 for that of the lower ones. There is
            one side if all bounds are equal.
        bound: (S, J) ``sign * F`` beyond it is a violation.
        floor: (S, J) the least value of each multiplier, 0, or -inf where it is signed; None if
            all are signed.
        per_share: (K,) ``1 / p_k``, and 0 for cells without rows, whose weight stays 1.
        n_label_rows: the cells are (n_label_rows, K / n_label_rows), a row for each label.
        fairness_rate, proportional_rate: as in `make_constants`, one number or (J,).
        error_memory: as there, one number or (K,).
        least_weight: what weights are clipped at, one number or (K,); -inf for no clipping.
        n_outcomes: O, how many outcomes have rates; 1 for errors, else the number of labels.
        cost: (O * K,) what predicting each label costs in each cell; None for errors.
        ceiling: (J,) the largest absolute value of each multiplier; None for no limit.
        auto: the numbers of the automatic rate; None for the paper's constant rate.
        n_problems: how many problems stand side by side.
        n_cells: O * K, how many rates the levels are made of.
        room: (S, J) ``sign * C e`` beyond it is a violation; it follows from `bound` and `c0`.
        pull: (E,) coefficients divided by the share of their cell.
    """

    c0: Array
    row: Array
    cell: Array
    value: Array
    block: Array
    share: Array
    n_blocks: int
    sign: Array
    bound: Array
    floor: Array | None
    per_share: Array
    n_label_rows: int
    fairness_rate: Array
    proportional_rate: Array
    error_memory: Array
    least_weight: Array
    n_outcomes: int = 1
    cost: Array | None = None
    ceiling: Array | None = None
    auto: AutoRate | None = None
    n_problems: int = 1
    n_cells: int = field(init=False)
    room: Array = field(init=False)
    pull: Array = field(init=False)

    def __post_init__(self) -> None:
        n_cells = len(self.per_share)
        self.__dict__.update(
            n_cells=self.n_outcomes * n_cells,
            room=self.bound - self.sign * self.c0,
            pull=self.value * self.per_share[self.cell % n_cells],
        )

    def convert(self, change: Callable[[Any], Any]) -> Constants:
        """The same, with every array changed by a function, such as ``torch.from_numpy``."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        return replace(self, **{name: change(array) for name, array in arrays.items()})


class State(NamedTuple):
    """What changes from step to step.

    Attributes:
        rows: (K,) rows that the estimate of each cell rests on.
        errors: (K,) the estimates; (O * K,) of O outcomes.
        multipliers: (S, J) one per side of a constraint.
        seen: () rows of each problem so far, which the automatic rate decays with; else 0.
    """

    rows: Array
    errors: Array
    multipliers: Array
    seen: Array = 0.0


def make_constants(
    constraints: Constraints,
    groups: Groups,
    *,
    fairness_rate: float | str = "auto",
    proportional_rate: float = 0.0,
    error_memory: float = 0.0,
    negative_weights: bool = True,
    cost_matrix: Any = None,
    n_rows: float | None = None,
) -> Constants:
    """Constants of one problem, as NumPy arrays.

    Args:
        constraints: on the cells of the groups, all of them defined.
        groups: of the training set: the cells' shares come from here.
        fairness_rate: step size of the multipliers; "auto" for the automatic rate.
        proportional_rate: what of the violation is added to the multipliers in use; it reacts at
            once, and so damps their swings. 0 is the paper.
        error_memory: share of earlier batches kept in the estimates, from 0 (the paper) to below 1.
        negative_weights: whether weights may be negative; if not they are clipped at 0. Weights of
            predicted labels never are.
        cost_matrix: (L, L) what it costs to predict each label (columns) where each is true
            (rows); by default 1 for every mistake. Then the constraints are to be on outcomes.
        n_rows: of the training set, which the automatic rate follows; None if unknown.

    Raises:
        ValueError: if the costs do not fit, or a setting has no effect with the others.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_counts({(0, "a"): 50, (0, "b"): 200})
        >>> make_constants(accuracy_parity(groups), groups).per_share
        array([5.  , 1.25])
    """
    is_auto = is_auto_rate(fairness_rate)
    if is_auto and (proportional_rate or error_memory):
        raise ValueError(
            "proportional_rate, error_memory: have no effect with fairness_rate='auto', got "
            f"{proportional_rate} and {error_memory}; give a number as fairness_rate, or leave "
            "them out."
        )
    lower, upper = constraints.lower, constraints.upper
    exact = lower == upper
    sides = [np.minimum(upper, NEVER), np.minimum(np.where(exact, NEVER, -lower), NEVER)]
    n_sides = 1 if exact.all() else 2
    floor = np.zeros((n_sides, len(exact)))
    floor[0, exact] = -np.inf
    mass = groups.cell_mass(constraints.by_label)
    n_outcomes = constraints.n_outcomes
    cost = None
    if n_outcomes > 1:
        if not negative_weights:
            raise ValueError(
                "negative_weights: has no effect with measures of predicted labels, whose weights "
                "are never negative."
            )
        costs = relative_costs(cost_matrix, len(groups.labels))
        cost = np.repeat(costs.T, groups.n_groups, axis=1).ravel()  # [l, (y, r)]
    constants = Constants(
        c0=constraints.c0,
        **{name: getattr(constraints.coefficients, name) for name in COEFFICIENTS},
        sign=np.array([[1.0], [-1.0]])[:n_sides],
        bound=np.stack(sides[:n_sides]),
        floor=None if exact.all() else floor,
        per_share=np.where(mass > 0, mass.sum() / np.where(mass > 0, mass, 1.0), 0.0),
        n_label_rows=len(groups.labels) if constraints.by_label else 1,
        fairness_rate=0.0 if is_auto else float(fairness_rate),
        proportional_rate=float(proportional_rate),
        error_memory=float(error_memory),
        least_weight=-np.inf if negative_weights else 0.0,
        n_outcomes=n_outcomes,
        cost=cost,
    )
    return with_auto_rate(constants, AutoRate.fitting(n_rows, n_outcomes)) if is_auto else constants


def is_auto_rate(fairness_rate: Any) -> bool:
    """Whether the rate is the automatic one; a ValueError if it is another text."""
    if isinstance(fairness_rate, str) and fairness_rate != "auto":
        raise ValueError(f"fairness_rate: expected a number or 'auto', got {fairness_rate!r}.")
    return isinstance(fairness_rate, str)


def with_auto_rate(constants: Constants, auto: AutoRate) -> Constants:
    """The same with the automatic rate, as the head of this module describes it."""
    constants = replace(
        constants, fairness_rate=auto.rate, proportional_rate=auto.proportional, auto=auto
    )
    gain = _gains(constants)
    return replace(
        with_steady_rates(constants, 1.0 / auto.gain),
        ceiling=np.divide(auto.most, gain, out=np.full(len(gain), NEVER), where=gain > 0),
    )


def with_steady_rates(constants: Constants, share: float) -> Constants:
    """The same with rates that follow the rows of each constraint.

    A level moves the weight of a cell by its coefficient over the cell's share of the rows. So few
    rows, which are known least, would be moved most. Where a level moves a weight by more than
    ``1 / share``, its rates are lowered in proportion. A share of 0 leaves all as it is.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_counts({(0, "a"): 5, (0, "b"): 995})
        >>> constants = make_constants(accuracy_parity(groups), groups, fairness_rate=0.5)
        >>> with_steady_rates(constants, 0.01).fairness_rate.round(4)
        array([0.2513, 0.5   ])
    """
    factor = np.minimum(1.0, 1.0 / np.maximum(share * _gains(constants), NOTHING))
    if (factor == 1).all():
        return constants
    return replace(
        constants,
        fairness_rate=constants.fairness_rate * factor,
        proportional_rate=constants.proportional_rate * factor,
    )


def _gains(constants: Constants) -> Floats:
    """(J,) by how much a multiplier of 1 changes the weight that it changes most."""
    own_share = constants.share[constants.row] * (constants.value != 0)
    moved = np.abs(constants.value) * (1.0 - own_share)
    gain = np.zeros(len(constants.c0))
    place = constants.cell % len(constants.per_share)
    np.maximum.at(gain, constants.row, moved * constants.per_share[place])
    return gain


def side_by_side(problems: Sequence[Constants]) -> Constants:
    """Several problems with equally many cells as one: cells and levels follow each other."""
    if len({c.auto for c in problems}) > 1:
        raise ValueError("fairness_rate: expected 'auto' for all problems of a stack, or for none.")
    matrix, n_outcomes = Coefficients.concatenate(problems, apart=True), problems[0].n_outcomes
    if n_outcomes > 1:  # rates are numbered by problem, then outcome; here by outcome first
        n_cells = len(problems[0].per_share)
        sizes = (len(problems), n_outcomes, n_cells)
        problem, outcome, cell = np.unravel_index(matrix.cell, sizes)
        matrix = replace(matrix, cell=(outcome * len(problems) + problem) * n_cells + cell)
    n_sides = max(len(c.sign) for c in problems)
    n_levels = sum(len(c.c0) for c in problems)
    bound, floor, first = np.full((n_sides, n_levels), NEVER), np.zeros((n_sides, n_levels)), 0
    for c in problems:
        levels = slice(first, first := first + len(c.c0))
        bound[: len(c.sign), levels] = c.bound
        floor[: len(c.sign), levels] = -np.inf if c.floor is None else c.floor

    def per(name: str, size: str) -> Any:
        """One number (or None) if all problems agree, else one per level or cell of each."""
        numbers = [getattr(c, name) for c in problems]
        if all(np.ndim(number) == 0 for number in numbers) and len(set(numbers)) == 1:
            return numbers[0]
        sizes = [len(getattr(c, size)) for c in problems]
        return np.concatenate([np.full(n, value) for n, value in zip(sizes, numbers, strict=True)])

    return Constants(
        c0=np.concatenate([c.c0 for c in problems]),
        **{name: getattr(matrix, name) for name in COEFFICIENTS},
        sign=np.array([[1.0], [-1.0]])[:n_sides],
        bound=bound,
        floor=None if np.isneginf(floor).all() else floor,
        per_share=np.concatenate([c.per_share for c in problems]),
        n_label_rows=sum(c.n_label_rows for c in problems),
        fairness_rate=per("fairness_rate", "c0"),
        proportional_rate=per("proportional_rate", "c0"),
        error_memory=per("error_memory", "per_share"),
        least_weight=per("least_weight", "per_share"),
        n_outcomes=n_outcomes,
        cost=None
        if n_outcomes == 1
        else np.concatenate(
            [np.asarray(c.cost).reshape(n_outcomes, -1) for c in problems], axis=1
        ).ravel(),
        ceiling=per("ceiling", "c0"),
        auto=problems[0].auto,
        n_problems=sum(c.n_problems for c in problems),
    )


def start(constants: Constants, n_labels: int) -> State:
    """The state before the first batch: errors at chance level, which weigh nothing.

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_counts({(0, "a"): 50, (0, "b"): 200})
        >>> start(make_constants(accuracy_parity(groups), groups), n_labels=2).errors
        array([0.5, 0.5])
    """
    n_cells = len(constants.per_share)
    chance = 1 - 1 / n_labels if constants.n_outcomes == 1 else 1 / n_labels
    return State(
        np.full(n_cells, NOTHING),
        np.full(constants.n_outcomes * n_cells, chance),
        np.zeros(constants.bound.shape),
        np.zeros(()),
    )


def step(
    constants: Constants, state: State, counts: Array, n_rows: Array | None = None
) -> tuple[State, Array]:
    """One step of the method: the predictions of a batch in, the weights of the cells out.

    Args:
        constants: of the problem.
        state: before the batch.
        counts: (2, K) rows of each cell predicted rightly, and wrongly, or the sums of their
            sample weights; (1 + O, K) of O predicted labels, the first row for any others.
        n_rows: with sample weights, how many rows these are of each problem: counts are then taken
            relative to the mean weight, so that the scale of the weights does not matter. None
            without weights.

    Returns:
        The state after the batch, and the weights (K,), or, of each predicted label, (O * K,).

    Example:
        >>> from fairgrad.groups import Groups
        >>> from fairgrad.measures import accuracy_parity
        >>> groups = Groups.from_counts({(0, "a"): 50, (0, "b"): 50})
        >>> constants = make_constants(accuracy_parity(groups), groups, fairness_rate=0.5)
        >>> counts = np.array([[9.0, 7.0], [1.0, 3.0]])  # of a 10 % are wrong, of b 30 %
        >>> state, weights = step(constants, start(constants, n_labels=2), counts)
        >>> levels(constants, state.errors).round(4)  # a is better off by 0.1 than the mean
        array([ 0.1, -0.1])
        >>> weights.round(4)
        array([0.9, 1.1])
    """
    total = counts.sum() / constants.n_problems
    if n_rows is None:
        n_rows = total
    else:  # in units of the mean weight
        counts = counts * (n_rows / _at_least(NOTHING, total))
    rows, errors = estimate_errors(constants, state, counts, n_rows)
    violation = violations(constants, errors)
    seen, rate = state.seen, constants.fairness_rate
    if constants.auto is not None:
        _, per_rows, horizon, *_ = constants.auto
        moving = _at_most(per_rows, n_rows)  # rows beyond move nothing, so the rate keeps for them
        seen = seen + moving
        rate = rate * (moving / per_rows / (1 + seen / horizon) ** 0.5)
    multipliers = _within(constants, state.multipliers + rate * violation)
    used = _with_proportional(constants, multipliers, violation)
    return State(rows, errors, multipliers, seen), cell_weights(constants, used)


def current_weights(constants: Constants, state: State) -> Array:
    """(K,) the weights that the last step gave, without another step."""
    violation = violations(constants, state.errors)
    return cell_weights(constants, _with_proportional(constants, state.multipliers, violation))


def estimate_errors(
    constants: Constants, state: State, counts: Array, n_rows: Array = 0.0
) -> tuple[Array, Array]:
    """``e = wrong rows / rows``, of the batch and of what is remembered: (K,) rows and errors.

    With no memory a cell in the batch has its batch error, and an absent one keeps its last
    estimate: what is remembered weighs next to nothing. Otherwise so much of all rows is kept. A
    cell never seen uses the error of its label, so that it changes no weight. With the automatic
    rate what is kept depends on `n_rows`, the rows of the batch.
    """
    n_cells = counts.shape[1]
    by_label = counts.reshape(counts.shape[0] * constants.n_label_rows, -1)
    borrowed = BORROWED * _sum_last(by_label)[:, None]
    counts = (by_label + borrowed).reshape(-1, n_cells)
    known, outcomes, rows = state.errors, counts[1], counts[0] + counts[1]
    if constants.n_outcomes > 1:
        known, outcomes, rows = known.reshape(-1, n_cells), counts[1:], counts.sum(0)
    rows = state.rows + rows
    errors = (state.rows * known + outcomes) / rows
    kept = _at_most(TINY, rows)
    memory = constants.error_memory
    if constants.auto is not None:
        memory = _at_least(0.0, 1 - n_rows / constants.auto.pool)
    if _is_used(memory):
        kept = _at_least(kept, memory * rows)
    return kept, errors.reshape(-1)


def levels(constants: Constants, errors: Array) -> Array:
    """``F = c0 + C e``: (J,)."""
    return constants.c0 + times(constants, errors)


def violations(constants: Constants, errors: Array) -> Array:
    """``F - upper`` and ``lower - F``: (S, J), positive where a bound is broken."""
    level = times(constants, errors).reshape(1, -1)
    return constants.sign * level - constants.room


def net_multipliers(constants: Constants, multipliers: Array) -> Array:
    """``lambda - delta``: (J,) one multiplier per constraint."""
    return (constants.sign * multipliers).sum(0)


def cell_weights(constants: Constants, multipliers: Array) -> Array:
    """``w_k = 1 + (C' (lambda - delta))_k / p_k``: (K,); of predicted labels (O * K,).

    What multipliers add to weights, or to the costs of predicted labels, is ``(C' net)_k / p_k``.
    """
    pulls = times_transposed(constants, constants.pull, net_multipliers(constants, multipliers))
    if constants.cost is None:
        weights = _at_least(constants.least_weight, 1 + pulls)
        return weights if constants.auto is None else _normalized(constants, weights)
    weights = _label_weights(constants, constants.cost + pulls)
    if constants.auto is None:
        return weights
    return _normalized(constants, weights, _label_weights(constants, constants.cost))


def _label_weights(constants: Constants, cost: Array) -> Array:
    """(O * K,) ``t[k, l] = max_m a[k, m] - a[k, l]`` of the costs a, (O * K,)."""
    by_outcome = cost.reshape(constants.n_outcomes, -1)
    largest = by_outcome.max(0) if type(cost) is np.ndarray else by_outcome.amax(0)
    return (largest - by_outcome).reshape(-1)


def opposed(weights: Any, losses: Any) -> tuple[Any, Any]:
    """Lets rows of negative weight learn any label but their own, with a loss that is bounded.

    The loss ``w l`` of such a row, l = -log p_y, is replaced by ``|w| (-log(1 - p_y))``. As that
    depends on l alone, ``-log(1 - exp(-l))``, its gradient is that of l times a number:
    ``w p_y / (1 - p_y)``.

    Returns:
        (n,) what to multiply each loss by, and (n,) what to add for the value of the loss.

    Example:
        >>> import torch
        >>> losses = torch.tensor([4.0, 4.0]).log()
        >>> slope, offset = opposed(torch.tensor([1.0, -1.0]), losses)
        >>> slope
        tensor([ 1.0000, -0.3333])
        >>> slope * losses + offset  # of p = 1/4: log 4, and -log(3/4)
        tensor([1.3863, 0.2877])
    """
    opposes = weights < 0
    certain = losses.clamp(min=LEAST_LOSS)
    slope = weights / certain.expm1()
    offset = weights * (-(-certain).expm1()).log() - slope * certain
    return slope.where(opposes, weights), offset.where(opposes, offset.new_zeros(()))


def _normalized(constants: Constants, weights: Array, plain: Array | None = None) -> Array:
    """Weights divided by their mean absolute value over the training rows, where it is above 1.

    Weights of predicted labels, (O * K,), are compared with those at multipliers of 0: `plain`.
    """
    shape = (constants.n_outcomes, constants.n_problems, -1)
    per_share = constants.per_share.reshape(constants.n_problems, -1)
    share = (per_share > 0) / _at_least(1.0, per_share)

    def mean(values: Array) -> Array:
        return _sum_last(share * abs(values.reshape(shape)).sum(0))[:, None]

    size = mean(weights) if plain is None else mean(weights) / _at_least(NOTHING, mean(plain))
    return (weights.reshape(shape) / _at_least(1.0, size)).reshape(-1)


def _within(constants: Constants, multipliers: Array) -> Array:
    """Multipliers within their limits."""
    if constants.ceiling is not None:
        multipliers = multipliers.clip(min=-constants.ceiling, max=constants.ceiling)
    return _at_least(constants.floor, multipliers)


def _with_proportional(constants: Constants, multipliers: Array, violation: Array) -> Array:
    """The multipliers in use: with what is broken now, times the proportional rate."""
    if not _is_used(constants.proportional_rate):
        return multipliers
    return multipliers + constants.proportional_rate * _at_least(constants.floor, violation)


# NumPy's method ``sum`` takes much longer than its functions where arrays are small, and ``clip``
# than ``maximum`` and ``minimum``.


def _sum_last(values: Array) -> Array:
    """Sums over the last axis."""
    return np.add.reduce(values, -1) if type(values) is np.ndarray else values.sum(-1)


def _at_least(floor: Array | None, values: Array) -> Array:
    if floor is None:
        return values
    return np.maximum(values, floor) if type(values) is np.ndarray else values.clip(min=floor)


def _at_most(ceiling: float, values: Array) -> Array:
    return np.minimum(values, ceiling) if type(values) is np.ndarray else values.clip(max=ceiling)


def _is_used(setting: Any) -> bool:
    """Whether a number, or one of several, is not 0; several always count as used."""
    return not isinstance(setting, float) or setting != 0
