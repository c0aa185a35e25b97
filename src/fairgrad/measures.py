"""Each fairness definition: a short function from the groups to its constants.

Every definition compares a rate of each group with the mean of that rate over all groups,

    F_r = rate_r - mean_r' rate_r',     rate = rate0 + R e,

where e are the error rates of the cells. The rate may be accuracy, recall or, with two labels, the
selection rate. With more labels a selection rate is linear in the *outcomes* ``q[k, l] = P(h = l |
cell k)``, one rate for each cell and predicted label. Precision is linear in neither, because its
denominator depends on the predictions. Measures differ only in the rate; `gaps_to_mean` turns it
into constraints. `AtLeast` and `AtMost` bound a rate itself. Your own measure is any function from
`Groups` (those whose attributes are known) to `Constraints`. To add a measure with a name, write
the function here and describe it in `fairgrad.definitions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairgrad.checks import check_number
from fairgrad.columns import UNKNOWN, as_array
from fairgrad.constraints import Coefficients, Constraints, lift, stack
from fairgrad.definitions import BOUND, BOUNDED_RATES, DEFINITIONS
from fairgrad.groups import MIN_GROUP, GroupedRows, Groups, count_rows, judged_groups

if TYPE_CHECKING:
    from fairgrad.groups import Floats, Ints

MeasureFunction = Callable[[Groups], Constraints]

MOST_COMPARED = 1000
"""The most groups that can be compared pair by pair: a million pairs."""


@dataclass(frozen=True, eq=False)
class Rates:
    """J rates ``r = r0 + R e``, one per group (or per label and group), by the entries of R.

    Attributes:
        r0: (J,) constants.
        cell: (J, W) the cells each rate depends on; for outcomes, ``predicted label * K + cell``.
        value: (J, W) their coefficients.
        mass: (J,) the rows in each rate's denominator, which are its weight in the mean.
        n_cells: how many error rates (or outcomes) there are; by default up to the last one used.
        n_outcomes: 1 for error rates, the number of labels for outcomes.

    Example:
        >>> rates = Rates(  # the accuracies 1 - e of two groups, of 30 and 70 rows
        ...     r0=np.ones(2),
        ...     cell=np.array([[0], [1]]),
        ...     value=np.array([[-1.0], [-1.0]]),
        ...     mass=np.array([30.0, 70.0]),
        ... )
        >>> rates.r0 + rates.value[:, 0] * np.array([0.1, 0.3])  # where e is 10 % and 30 %
        array([0.9, 0.7])
    """

    r0: Floats
    cell: Ints
    value: Floats
    mass: Floats
    n_cells: int | None = None
    n_outcomes: int = 1

    @staticmethod
    def concatenate(several: Sequence[Rates]) -> Rates:
        """Joins several sets of rates of the same cells."""
        arrays = ("r0", "cell", "value", "mass")
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(rates, name) for rates in several]) for name in arrays
        }
        return replace(several[0], **joined)


def gaps_to_mean(
    rates: Rates,
    *,
    by_label: bool,
    names: Sequence[str],
    block: Ints | None = None,
    ratio: float = 1.0,
    lower: float = 0.0,
    upper: float = 0.0,
) -> Constraints:
    """Constraints on ``F_j = r_j - ratio * (mean of r over the block of j)``.

    The mean is weighted by the rates' rows. A rate without rows is not defined: its c0 is NaN.

    Args:
        rates: the rates of the groups.
        by_label: whether their cells are (label, group) pairs or groups.
        names: (J,) the name of each level.
        block: (J,) levels with the same number share a mean; by default all do.
        ratio: the share of the mean that is subtracted; 0 bounds the rates themselves.
        lower: the lower bound of all levels.
        upper: the upper bound of all levels.

    Example:
        >>> rates = Rates(np.zeros(2), np.array([[0], [1]]), -np.ones((2, 1)), np.array([30, 70]))
        >>> gaps_to_mean(rates, by_label=False, names=["a", "b"]).C
        array([[-0.7,  0.7],
               [ 0.3, -0.3]])
    """
    n = len(rates.r0)
    block = np.zeros(n, dtype=np.int64) if block is None else block
    total = np.bincount(block, rates.mass)[block]
    share = ratio * rates.mass / np.where(total > 0, total, 1.0)
    mean = np.bincount(block, share * rates.r0)[block]
    c0 = np.where(rates.mass > 0, rates.r0 - mean, np.nan)
    row = np.repeat(np.arange(n), rates.cell.shape[1])
    n_cells = int(rates.cell.max()) + 1 if rates.n_cells is None else rates.n_cells
    return Constraints(
        c0=c0,
        C=Coefficients(row, rates.cell.ravel(), rates.value.ravel(), block, share, n_cells),
        by_label=by_label,
        names=names,
        lower=lower,
        upper=upper,
        n_outcomes=rates.n_outcomes,
    )


def accuracies(mass: Floats) -> Rates:
    """``-e_k``: the accuracy minus 1. The constant cancels in gaps, so c0 is exactly 0."""
    n = len(mass)
    return Rates(np.zeros(n), np.arange(n)[:, None], -np.ones((n, 1)), mass)


def selection_rates(groups: Groups, labels: Sequence[int]) -> Rates:
    """``P(h in labels | s = r)``, (G,): from error rates for two labels, else from outcomes.

    ``P(h = l | r) = P(y = l | r) (1 - e_(l,r)) + P(y = l' | r) e_(l',r)``, and with more
    labels ``P(h = l | r) = sum_y P(y | r) q[(y,r), l]``.
    """
    if len(groups.labels) > 2:
        return _outcome_rates(groups.mass, labels)
    total, (label,) = groups.mass.sum(axis=0), labels
    share = groups.mass / np.where(total > 0, total, 1.0)
    group = np.arange(groups.n_groups)
    cell = np.stack([label * len(group) + group, (1 - label) * len(group) + group], 1)
    return Rates(share[label], cell, np.stack([-share[label], share[1 - label]], 1), total)


def recalls(groups: Groups, labels: Sequence[int]) -> Rates:
    """``P(h = l | y = l, s = r)``, (len(labels) * G,), label by label."""
    cell = (np.asarray(labels)[:, None] * groups.n_groups + np.arange(groups.n_groups)).ravel()
    n = len(cell)
    mass = groups.mass.ravel()
    return Rates(np.ones(n), cell[:, None], -np.ones((n, 1)), mass[cell], len(mass))


def false_alarm_rates(groups: Groups, labels: Sequence[int]) -> Rates:
    """``P(h in labels | y not in labels, s = r)``, (G,)."""
    others = ~np.isin(np.arange(len(groups.labels)), labels)
    mass, n = groups.mass * others[:, None], groups.n_groups
    if len(groups.labels) > 2:
        return _outcome_rates(mass, labels)
    cell = int(np.flatnonzero(others)[0]) * n + np.arange(n)
    return Rates(np.zeros(n), cell[:, None], np.ones((n, 1)), mass.sum(axis=0), mass.size)


def _outcome_rates(mass: Floats, labels: Sequence[int]) -> Rates:
    """``sum over these predicted labels and all y of share_(y,r) q[(y,r), l]``, (G,).

    The shares of the labels in each group are those of the rows, (L, G).
    """
    (n_labels, n_groups), total = mass.shape, mass.sum(axis=0)
    cell = np.arange(mass.size).reshape(n_labels, n_groups).T  # (G, L) of each group
    share = mass / np.where(total > 0, total, 1.0)
    return Rates(
        r0=np.zeros(n_groups),
        cell=np.concatenate([cell + label * mass.size for label in labels], axis=1),
        value=np.tile(share.T, (1, len(labels))),
        mass=total,
        n_cells=n_labels * mass.size,
        n_outcomes=n_labels,
    )


def accuracy_parity(groups: Groups) -> Constraints:
    """The chance of a correct prediction is the same in every group.

    ``F_r = P(h = y | s = r) - P(h = y)``, one constraint per group.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (0, "b"): 70})
        >>> accuracy_parity(groups).C
        array([[-0.7,  0.7],
               [ 0.3, -0.3]])
    """
    return gaps_to_mean(accuracies(groups.mass.sum(axis=0)), by_label=False, names=groups.names)


def equalized_odds(groups: Groups) -> Constraints:
    """Within each label, the chance of predicting it is the same in every group.

    ``F_(l,r) = P(h = l | y = l, s = r) - P(h = l | y = l)``, one constraint per label and group.
    With more than two labels this constrains each label's recall only, as the paper does, not which
    of the other labels a mistake falls on: that is `equalized_odds_all`.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> equalized_odds(groups).C
        array([[-0.25,  0.25,  0.  ,  0.  ],
               [ 0.75, -0.75,  0.  ,  0.  ],
               [ 0.  ,  0.  , -0.75,  0.75],
               [ 0.  ,  0.  ,  0.25, -0.25]])
    """
    names, mass = groups.cell_names(by_label=True), groups.cell_mass(by_label=True)
    block = np.arange(len(names)) // groups.n_groups
    return gaps_to_mean(accuracies(mass), by_label=True, names=names, block=block)


def equality_of_opportunity(groups: Groups, y_desirable: Any = None) -> Constraints:
    """Equalized odds for the desirable labels alone.

    ``F_(l,r)`` as for equalized odds where l is desirable, 0 elsewhere: the other labels keep
    their (empty) constraints, so that the mean of |F| is over all labels and groups.

    Raises:
        ValueError: if a desirable label is none of the labels, or `y_desirable` is missing and
            there are more than two labels.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> equality_of_opportunity(groups).C
        array([[ 0.  ,  0.  ,  0.  ,  0.  ],
               [ 0.  ,  0.  ,  0.  ,  0.  ],
               [ 0.  ,  0.  , -0.75,  0.75],
               [ 0.  ,  0.  ,  0.25, -0.25]])
    """
    desirable = _desirable_indices(groups, y_desirable, "equality_of_opportunity")
    odds = equalized_odds(groups)
    rows = np.isin(np.arange(len(odds.names)) // groups.n_groups, desirable)
    return odds.replaced(c0=np.where(rows, odds.c0, 0.0), C=odds.coefficients.only(rows))


def equalized_odds_all(groups: Groups) -> Constraints:
    """Within each true label, the chance of predicting any label is the same in every group.

    ``F_(l',l,r) = P(h = l' | y = l, s = r) - P(h = l' | y = l)``, one constraint per predicted
    label, true label and group. With two labels it is `equalized_odds`.

    Example:
        >>> rows = {(y, s): 10 for y in ("no", "maybe", "yes") for s in ("a", "b")}
        >>> equalized_odds_all(Groups.from_counts(rows)).names[:2]
        ('maybe predicted, y=maybe, s=a', 'maybe predicted, y=maybe, s=b')
        >>> len(equalized_odds_all(Groups.from_counts(rows)).names)
        18
    """
    if len(groups.labels) <= 2:
        return equalized_odds(groups)
    names = [
        f"{label} predicted, {cell}"
        for label in groups.labels
        for cell in groups.cell_names(by_label=True)
    ]
    n, mass = len(names), np.tile(groups.mass.ravel(), len(groups.labels))
    block = np.arange(n) // groups.n_groups
    rates = Rates(np.zeros(n), np.arange(n)[:, None], np.ones((n, 1)), mass, n, len(groups.labels))
    return gaps_to_mean(rates, by_label=True, names=names, block=block)


def demographic_parity(groups: Groups) -> Constraints:
    """Each label is predicted at the same rate in every group.

    ``F_(l,r) = P(h = l | s = r) - P(h = l)``, one constraint per label and group. With two labels
    these are constraints on errors, with more on outcomes.

    Raises:
        ValueError: if there is one label only.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> measure = demographic_parity(groups)
        >>> measure.c0
        array([ 0.25, -0.25, -0.25,  0.25])
        >>> measure.c0 + measure.C @ [0.0, 0.0, 1.0, 0.0]  # a's people with label 1 are missed
        array([ 0.375, -0.375, -0.375,  0.375])
    """
    n_labels = len(groups.labels)
    if n_labels < 2:
        raise ValueError(
            f"y: demographic_parity needs at least two labels, got {groups.labels.tolist()}."
        )
    rates = Rates.concatenate([selection_rates(groups, [label]) for label in range(n_labels)])
    names = groups.cell_names(by_label=True)
    block = np.arange(len(names)) // groups.n_groups
    return gaps_to_mean(rates, by_label=True, names=names, block=block)


def four_fifths_rule(groups: Groups, y_desirable: Any = None) -> Constraints:
    """Each group's selection rate is at least 0.8 of every other's, and so of the highest.

    ``F_(r,r') = P(h = 1 | s = r) - 0.8 P(h = 1 | s = r') >= 0``, one one-sided constraint per pair
    of groups, where 1 stands for the desirable label, or for any of them.

    Raises:
        ValueError: if there are more than two labels and none is named as desirable, all of them
            are, or there are more than 1,000 groups.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> rule = four_fifths_rule(groups)
        >>> rule.names
        ('s=a against s=b', 's=b against s=a')
        >>> rule.c0, rule.lower, rule.upper
        (array([-0.35,  0.55]), array([0., 0.]), array([inf, inf]))
    """
    desirable = _desirable_indices(groups, y_desirable, "four_fifths_rule", not_all=True)
    rates, names, n = selection_rates(groups, desirable), groups.names, groups.n_groups
    if n > MOST_COMPARED:
        raise ValueError(
            f"s: the rule compares every group with every other, at most {MOST_COMPARED} of them; "
            f"got {n}. Use demographic_parity, which compares with the mean, and an epsilon."
        )
    first, other = np.nonzero(~np.eye(n, dtype=bool)) if n > 1 else (np.zeros(1, int),) * 2
    pairs = replace(
        rates,
        r0=rates.r0[first] - 0.8 * rates.r0[other],
        cell=np.concatenate([rates.cell[first], rates.cell[other]], axis=1),
        value=np.concatenate([rates.value[first], -0.8 * rates.value[other]], axis=1),
        mass=np.minimum(rates.mass[first], rates.mass[other]),  # not defined if either has no rows
    )
    pair_names = [f"{names[i]} against {names[j]}" for i, j in zip(first, other, strict=True)]
    return gaps_to_mean(pairs, by_label=True, names=pair_names, ratio=0.0, upper=np.inf)


def desirable_labels(labels: Any, y_desirable: Any = None) -> tuple[int, ...]:
    """Indices of the desirable labels; the whole library uses this rule.

    By default it is the second of two labels in sorted order. With more labels there is no default:
    measures that need desirable labels then raise an error that asks for them.

    Args:
        labels: all labels, sorted.
        y_desirable: one label or several; None for the default.

    Raises:
        ValueError: if `y_desirable` has other labels.

    Example:
        >>> desirable_labels(["no", "yes"]), desirable_labels(["no", "yes"], "no")
        ((1,), (0,))
        >>> desirable_labels([1, 2, 3])
        ()
    """
    known = np.asarray(labels).tolist()
    if y_desirable is None:
        return (1,) if len(known) == 2 else ()
    wanted = np.atleast_1d(as_array(y_desirable)).tolist()
    unknown = [label for label in wanted if label not in known]
    if unknown or not wanted:
        raise ValueError(f"y_desirable: expected labels among {known}, got {wanted}.")
    return tuple(sorted({known.index(label) for label in wanted}))


MEASURES: dict[str, Callable[..., Constraints]] = {name: globals()[name] for name in DEFINITIONS}
"""The measures with a name: the functions that `fairgrad.definitions` describes."""

ALIASES = {"equal_odds": "equalized_odds", "equal_opportunity": "equality_of_opportunity"}


@dataclass(frozen=True)
class _Bound:
    """A bound on a rate of every group, used as a measure or in a list of measures."""

    rate: str
    bound: float
    labels: Any = None
    limits: ClassVar[tuple[float, float]]
    words: ClassVar[str]

    def __post_init__(self) -> None:
        if self.rate not in BOUNDED_RATES:
            why = (
                " Precision and other rates among people with the same prediction cannot be "
                "constrained: their denominators depend on the predictions, so they are not "
                "linear."
                if self.rate in {"precision", "false_discovery_rate", "predictive_parity"}
                else ""
            )
            raise ValueError(
                f"rate: expected one of {list(BOUNDED_RATES)}, got {self.rate!r}.{why}"
            )
        check_number("bound", self.bound)
        if self.bound > 1:
            raise ValueError(f"bound: expected a rate from 0 to 1, got {self.bound}.")

    def __call__(self, groups: Groups, y_desirable: Any = None) -> Constraints:
        """The constraints on these groups."""
        wanted, names = y_desirable if self.labels is None else self.labels, groups.names
        if self.rate == "accuracy":
            rates = accuracies(groups.mass.sum(axis=0))
            rates = replace(rates, r0=rates.r0 + 1.0)
        elif self.rate == "recall":
            labels = _desirable_indices(groups, wanted, self.rate)
            of_labels = [f"{groups.label_name}={groups.labels[label]}" for label in labels]
            names = tuple(f"{label}, {name}" for label in of_labels for name in names)
            rates = recalls(groups, labels)
        else:
            labels = _desirable_indices(groups, wanted, self.rate, not_all=True)
            rates_of = selection_rates if self.rate == "selection_rate" else false_alarm_rates
            rates = rates_of(groups, labels)
        return gaps_to_mean(
            replace(rates, r0=rates.r0 - self.bound),
            by_label=self.rate != "accuracy",
            names=[f"{self.rate.replace('_', ' ')}, {name}" for name in names],
            ratio=0.0,
            lower=self.limits[0],
            upper=self.limits[1],
        )

    @property
    def __name__(self) -> str:
        return f"{self.rate} {self.words} {self.bound:g}"


class AtLeast(_Bound):
    """Requires a rate of at least `bound` in every group: ``F_r = rate_r - bound >= 0``.

    Args:
        rate: "accuracy"; "recall", ``P(h = l | y = l, s = r)`` of each of the labels l;
            "selection_rate", ``P(h in labels | s = r)``; "false_positive_rate",
            ``P(h in labels | y not in labels, s = r)``.
        bound: from 0 to 1.
        labels: one label or several; by default the desirable ones.

    Raises:
        ValueError: if the rate is unknown, or the bound is not between 0 and 1.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> least = constraints_of(AtLeast("recall", 0.8), groups)
        >>> least.names
        ('recall, y=1, s=a', 'recall, y=1, s=b')
        >>> least.levels(np.array([0.0, 0.0, 0.1, 0.3])).round(4)  # recalls of 90 % and 70 %
        array([ 0.1, -0.1])
    """

    limits, words = (0.0, np.inf), "at least"


class AtMost(_Bound):
    """Requires a rate of at most `bound` in every group: ``F_r = rate_r - bound <= 0``.

    Arguments as for `AtLeast`.

    Raises:
        ValueError: if the rate is unknown, or the bound is not between 0 and 1.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> most = constraints_of([AtMost("selection_rate", 0.3), AtLeast("recall", 0.8)], groups)
        >>> most.levels(np.zeros(4)).round(4)  # all predictions are right
        array([-0.05,  0.45,  0.2 ,  0.2 ])
    """

    limits, words = (-np.inf, 0.0), "at most"


@dataclass(frozen=True)
class On:
    """Applies a measure to some of the attributes only, with its own slack, or within strata.

    Pass a list of these to constrain several attributes separately, or by several measures.

    Attributes:
        attributes: names of sensitive attributes, whose combinations are compared.
        measure: a name, a bound, a function, or matrices.
        epsilon: the slack of these constraints; 0 uses the slack of the estimator or loss.
        within: names of further attributes whose combinations are the strata: groups are compared
            within each stratum, with its own mean, and not across strata. Rows whose stratum is
            unknown are excluded. Strata with rows of fewer than two groups are left out, with a
            warning.

    Raises:
        ValueError: if it names no attribute.

    Example:
        >>> groups = Groups.from_data([0, 1, 0, 1], {"sex": [0, 0, 1, 1], "race": [0, 1, 1, 0]})
        >>> constraints_of([On("sex", "accuracy_parity"), On("race", "accuracy_parity", 0.1)],
        ...                groups).names
        ('sex=0', 'sex=1', 'race=0', 'race=1')
        >>> constraints_of(On("sex", "accuracy_parity", within="race"), groups).names
        ('sex=0 in race=0', 'sex=1 in race=0', 'sex=0 in race=1', 'sex=1 in race=1')
    """

    attributes: str | tuple[str, ...]
    measure: Any
    epsilon: float = 0.0
    within: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.attributes:
            raise ValueError("attributes: On expected at least one sensitive attribute, got none.")

    @property
    def compared(self) -> tuple[str, ...]:
        """The names of the attributes whose groups are compared."""
        return (self.attributes,) if isinstance(self.attributes, str) else tuple(self.attributes)

    @property
    def strata(self) -> tuple[str, ...]:
        """The names of the attributes that define the strata; empty if there are none."""
        return (self.within,) if isinstance(self.within, str) else tuple(self.within)


def on_groups(measure: Any, attributes: Sequence[str]) -> list[On]:
    """Each measure with its attributes; by default the combinations of all attributes.

    Args:
        measure: a measure or a list of measures.
        attributes: names of all sensitive attributes.
    """
    measures = measure if isinstance(measure, list) else [measure]
    return [item if isinstance(item, On) else On(tuple(attributes), item) for item in measures]


@dataclass(frozen=True, eq=False)
class LargeGroups:
    """A measure that compares only groups with enough rows.

    The training rows decide which groups these are; the choice then holds for other rows, too.
    Measures that define their cells themselves (matrices, functions) do not change.

    Attributes:
        measure: a measure, or a list of measures.
        groups: of the training rows.
        rows: (G,) how many rows each group has.
        min_group: the least number of rows; below 1 a share of all rows.
        set_aside: the groups that are too small to compare, and how many rows each has.
    """

    measure: Any
    groups: Groups
    rows: Floats
    min_group: float
    set_aside: dict[str, int]

    def rows_of(self, groups: Groups) -> Floats:
        """(G,) the number of training rows in groups of some of the attributes."""
        known, parents = self.groups.merged(*groups.attributes)
        sums = count_rows(parents, known.n_groups, self.rows)
        # Matched by values: other rows may lack some groups and number the rest differently.
        rows_by_values = dict(zip(_value_tuples(known), sums.tolist(), strict=True))
        return np.array([rows_by_values.get(values, 0.0) for values in _value_tuples(groups)])


def _value_tuples(groups: Groups) -> list[tuple[Any, ...]]:
    """(G,) the values of each group, one per attribute."""
    columns = [groups.column(place).tolist() for place in range(len(groups.attributes))]
    return list(zip(*columns, strict=True))


def among_large(measure: Any, rows: GroupedRows, min_group: float = MIN_GROUP) -> Any:
    """Restricts a measure to groups of at least `min_group` rows, if some are smaller.

    Args:
        measure: as for `constraints_of`; None stays None.
        rows: of the training set.
        min_group: the least number of rows; below 1 a share of all rows.

    Raises:
        ValueError: if `min_group` is not a number of at least 0.
    """
    check_number("min_group", min_group)
    if measure is None or isinstance(measure, LargeGroups):
        return measure
    set_aside: dict[str, int] = {}
    for on in on_groups(measure, rows.groups.attributes):
        if isinstance(as_measure(on.measure), (str, _Bound)):  # others define their cells
            coarse, parents = rows.groups.merged(*on.compared)
            size = count_rows(parents[rows.group], coarse.n_groups)
            is_small = coarse.is_known & (size > 0)
            is_small[coarse.is_known] &= ~judged_groups(size[coarse.is_known], min_group)
            names = np.asarray(coarse.names, dtype=object)[is_small].tolist()
            set_aside |= dict(zip(names, size[is_small].astype(int).tolist(), strict=True))
    if not set_aside:
        return measure
    counts = count_rows(rows.group, rows.groups.n_groups)
    return LargeGroups(measure, rows.groups, counts, min_group, set_aside)


def constraints_of(
    measure: Any, groups: Groups, *, epsilon: Any = 0.0, y_desirable: Any = None
) -> Constraints:
    """Builds the constraints of a measure on the cells of these groups.

    Constraints that are not defined (a group without rows) have a c0 of NaN;
    `Constraints.drop_undefined` removes them.

    Args:
        measure: a name; `AtLeast` or `AtMost`, or such a bound as a text, "recall>=0.8"; a
            function from `Groups` to `Constraints`; `Constraints`, or a pair (c0, C) for the cells
            by label and group; an `On`; or a list of any of these.
        groups: of the training set, or of an evaluation set.
        epsilon: slack of the constraints without their own slack, or one number per constraint.
        y_desirable: the desirable labels, for measures that need them; by default the second
            of two labels.

    Raises:
        ValueError: if the measure is not known or does not fit the groups.

    Example:
        >>> groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
        >>> constraints = constraints_of("accuracy_parity", groups, epsilon=0.02)
        >>> constraints.lower, constraints.upper
        (array([-0.02, -0.02]), array([0.02, 0.02]))
    """
    large = measure if isinstance(measure, LargeGroups) else None
    problems = []
    for on in on_groups(measure if large is None else large.measure, groups.attributes):
        asked = as_measure(on.measure)
        function = _as_function(asked, y_desirable)
        rows, least = None, 0.0
        if large is not None and isinstance(asked, (str, _Bound)):  # others define their cells
            rows, least = large.rows_of(groups), large.min_group
        if on.strata:
            constraints = _within_strata(on, function, groups, rows, least)
        else:
            every = np.ones(groups.n_groups, dtype=bool)
            constraints = _compared(on.compared, function, groups, every, rows, least)
        problems.append(constraints.slacken(on.epsilon))
    if not problems:
        raise ValueError("fairness_measure: expected at least one measure, got an empty list.")
    constraints = stack(problems, groups) if len(problems) > 1 else problems[0]
    return constraints.slacken(epsilon)


def _compared(
    attributes: tuple[str, ...],
    function: MeasureFunction,
    groups: Groups,
    selected: Any,
    rows: Floats | None,
    least: float,
) -> Constraints:
    """The constraints of a measure on the selected groups, (G,), written for the cells of all.

    With `rows`, (G,), only groups with enough rows are compared (see `judged_groups`).
    """
    among = replace(groups, codes=groups.codes[selected], mass=groups.mass[:, selected])
    coarse, parents = among.merged(*attributes)
    is_compared = coarse.is_known
    if not is_compared.any():
        raise ValueError(f"s: no row has a known value of {' and '.join(attributes)}.")
    if rows is not None:
        size = count_rows(parents, coarse.n_groups, rows[selected])
        is_compared[is_compared] = judged_groups(size[is_compared], least)
    compared = replace(coarse, codes=coarse.codes[is_compared], mass=coarse.mass[:, is_compared])
    constraints = function(compared)
    if not isinstance(constraints, Constraints):
        raise TypeError(
            "fairness_measure: expected a function that gives Constraints, "
            f"got {type(constraints).__name__}."
        )
    index = np.where(is_compared, np.cumsum(is_compared) - 1, -1)
    member = np.full(groups.n_groups, -1)
    member[selected] = index[parents]
    return lift(constraints, compared, groups, member)


def _within_strata(
    on: On, function: MeasureFunction, groups: Groups, sizes: Floats | None, least: float
) -> Constraints:
    """The constraints of a measure within each stratum, joined."""
    twice = [name for name in on.strata if name in on.compared]
    if twice:
        raise ValueError(
            f"within: {twice[0]!r} is also the attribute whose groups are compared; within one of "
            "its values there is nothing to compare."
        )
    strata, stratum = groups.merged(*on.strata)
    coarse, parents = groups.merged(*on.compared)
    group = np.where(coarse.is_known, np.arange(coarse.n_groups), UNKNOWN)[parents]
    rows = groups.mass.sum(axis=0)
    problems, single_group = [], []
    for i, name in enumerate(strata.names):
        inside = stratum == i
        if not strata.is_known[i] or not (inside & (group != UNKNOWN)).any():
            continue
        constraints = _compared(on.compared, function, groups, inside, sizes, least)
        alone = len(np.unique(group[inside & (group != UNKNOWN) & (rows > 0)])) < 2
        if alone:
            single_group.append(name)
        problems.append(
            constraints.replaced(
                names=[f"{level} in {name}" for level in constraints.names],
                c0=np.full(len(constraints.c0), np.nan) if alone else constraints.c0,
                C=constraints.coefficients.only(np.full(len(constraints.c0), not alone)),
            )
        )
    if not problems:
        raise ValueError(f"s: no row has a known value of {' and '.join(on.strata)}.")
    return stack(problems, groups).replaced(single_group=single_group)


def as_measure(measure: Any) -> Any:
    """Replaces an alias by the measure's name, and a text such as "recall>=0.8" by its bound.

    Anything else, including unknown names, is returned unchanged.
    """
    if not isinstance(measure, str):
        return measure
    bound = BOUND.fullmatch(measure.strip())
    if bound is None:
        return ALIASES.get(measure, measure)
    rate, sign, number = bound.groups()
    return (AtLeast if sign == ">=" else AtMost)(rate, float(number))


def check_several_groups(measure: Any, groups: Groups, argument: str) -> None:
    """Raises an error if there are fewer than two groups to compare.

    Raises:
        ValueError: if the measure is one of `MEASURES` and fewer than two groups are known.
    """
    if isinstance(as_measure(measure), str) and groups.is_known.sum() < 2:
        raise ValueError(
            f"{argument}: fairness compares at least two groups with known values, "
            f"got {list(groups.known().names)}."
        )


def uses_desirable(measure: Any) -> bool:
    """Whether a measure depends on the desirable labels."""
    if isinstance(measure, list):
        return any(map(uses_desirable, measure))
    if isinstance(measure, (On, LargeGroups)):
        return uses_desirable(measure.measure)
    measure = as_measure(measure)
    if isinstance(measure, _Bound):
        return measure.rate != "accuracy" and measure.labels is None
    measure = MEASURES.get(measure) if isinstance(measure, str) else measure
    return callable(measure) and "y_desirable" in inspect.signature(measure).parameters


def desirable_in_use(measure: Any, labels: Any, y_desirable: Any = None) -> tuple[Any, ...]:
    """The desirable labels; none if the measure does not use them."""
    if not uses_desirable(measure):
        return ()
    known = labels.tolist()
    return tuple(known[i] for i in desirable_labels(known, y_desirable))


def measure_name(measure: Any) -> str:
    """A short readable name of a measure."""
    measure = as_measure(measure.measure if isinstance(measure, LargeGroups) else measure)
    if isinstance(measure, str):
        return measure
    if isinstance(measure, On):
        within = f" given {' x '.join(measure.strata)}" if measure.strata else ""
        return f"{measure_name(measure.measure)} on {' x '.join(measure.compared)}{within}"
    if isinstance(measure, list):
        return " and ".join(map(measure_name, measure))
    return str(getattr(measure, "__name__", "user-defined"))


def _as_function(measure: Any, y_desirable: Any) -> MeasureFunction:
    if isinstance(measure, tuple) and len(measure) == 2:
        measure = Constraints(as_array(measure[0]), as_array(measure[1]), by_label=True)
    if isinstance(measure, Constraints):
        return lambda _: measure
    if isinstance(measure, str):
        measure = MEASURES.get(measure, measure)
    if not callable(measure):
        raise ValueError(  # noqa: TRY004 - mostly an unknown name
            f"fairness_measure: got {measure!r}; expected one of {[*MEASURES, *ALIASES]}, a bound "
            "such as 'recall>=0.8', a function from Groups to Constraints, AtLeast, AtMost, "
            "Constraints, a pair (c0, C), an On, or a list of these."
        )
    if "y_desirable" in inspect.signature(measure).parameters:
        return partial(measure, y_desirable=y_desirable)
    return measure  # type: ignore[no-any-return]  # whatever it gives is checked by the caller


def _desirable_indices(
    groups: Groups, wanted: Any, measure: str, *, not_all: bool = False
) -> tuple[int, ...]:
    """The desirable labels, for a measure that needs them (and, if `not_all`, others as well)."""
    desirable = desirable_labels(groups.labels, wanted)
    if not desirable:
        raise ValueError(
            f"y_desirable: {measure} needs to know the desirable labels if there are more than "
            f"two. The labels are {groups.labels.tolist()}."
        )
    if not_all and len(desirable) == len(groups.labels):
        raise ValueError(
            f"y_desirable: {measure} needs at least one label that is not desirable, got all of "
            f"{groups.labels.tolist()}."
        )
    return desirable
