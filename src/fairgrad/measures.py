"""Each fairness definition: a short function from the groups to its constants.

Every definition compares a rate of each group with the mean of that rate over all groups,

    F_r = rate_r - mean_r' rate_r',     rate = rate0 + R e,

where e are the error rates of the cells, or the rates at which each label is predicted there
(`fairgrad.rates`). Only the rate differs from measure to measure, and `gaps_to_mean` makes
constraints of it. `AtLeast` and `AtMost` bound a rate itself. Your own measure is any function from
`Groups` (those whose attributes are known) to `Constraints`. To add a measure with a name, write
the function here and describe it in `fairgrad.definitions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairgrad.checks import check_number
from fairgrad.columns import UNKNOWN, as_array
from fairgrad.constraints import Constraints, lift, stack
from fairgrad.definitions import BOUND, BOUNDED_RATES, DEFINITIONS
from fairgrad.groups import MIN_GROUP, GroupedRows, Groups, count_rows, judged_groups
from fairgrad.rates import (
    Rates,
    accuracies,
    false_alarm_rates,
    gaps_of_pairs,
    gaps_to_mean,
    label_of,
    prediction_rates,
    recalls,
    selection_rates,
)

if TYPE_CHECKING:
    from fairgrad.groups import Floats

MeasureFunction = Callable[[Groups], Constraints]


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
    names = groups.cell_names(by_label=True)
    return gaps_to_mean(
        accuracies(groups.mass.ravel()), by_label=True, names=names, block=label_of(groups)
    )


def equality_of_opportunity(groups: Groups, y_desirable: Any = None) -> Constraints:
    """Equalized odds for the desirable labels alone.

    ``F_(l,r)`` as for equalized odds where l is desirable, 0 elsewhere: the other labels keep
    their (empty) constraints, so that the mean of |F| is over all labels and groups.

    Raises:
        ValueError: if a desirable label is none of the labels, or there are more than two labels
            and none is given.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> equality_of_opportunity(groups).C
        array([[ 0.  ,  0.  ,  0.  ,  0.  ],
               [ 0.  ,  0.  ,  0.  ,  0.  ],
               [ 0.  ,  0.  , -0.75,  0.75],
               [ 0.  ,  0.  ,  0.25, -0.25]])
    """
    desirable = _required_labels(groups, y_desirable, "equality_of_opportunity")
    odds, rows = equalized_odds(groups), np.isin(label_of(groups), desirable)
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
    block = np.arange(len(names)) // groups.n_groups
    return gaps_to_mean(prediction_rates(groups), by_label=True, names=names, block=block)


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
    return gaps_to_mean(rates, by_label=True, names=names, block=label_of(groups))


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
    desirable = _some_labels(groups, y_desirable, "four_fifths_rule")
    return gaps_of_pairs(selection_rates(groups, desirable), groups.names, ratio=0.8)


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
        rates, by_label, names = self.rates(groups, y_desirable)
        return gaps_to_mean(
            replace(rates, r0=rates.r0 - self.bound),
            by_label=by_label,
            names=[f"{self.rate.replace('_', ' ')}, {name}" for name in names],
            ratio=0.0,
            lower=self.limits[0],
            upper=self.limits[1],
        )

    @property
    def __name__(self) -> str:
        return f"{self.rate} {self.words} {self.bound:g}"

    @property
    def uses_desirable(self) -> bool:
        """Whether the bound concerns the desirable labels."""
        return self.rate != "accuracy" and self.labels is None

    def rates(self, groups: Groups, y_desirable: Any = None) -> tuple[Rates, bool, Sequence[str]]:
        """The rates, whether they are of (label, group) cells, and their names."""
        if self.rate == "accuracy":
            rates = accuracies(groups.mass.sum(axis=0))
            return replace(rates, r0=rates.r0 + 1.0), False, groups.names
        wanted = y_desirable if self.labels is None else self.labels
        if self.rate == "recall":
            labels = _required_labels(groups, wanted, self.rate)
            of_labels = [f"{groups.label_name}={groups.labels[label]}" for label in labels]
            names = [f"{label}, {name}" for label in of_labels for name in groups.names]
            return recalls(groups, labels), True, names
        labels = _some_labels(groups, wanted, self.rate)
        made = selection_rates if self.rate == "selection_rate" else false_alarm_rates
        return made(groups, labels), True, groups.names


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
        measure: one, or a list of several.
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
    """

    measure: Any
    groups: Groups
    rows: Floats
    min_group: float

    def rows_of(self, groups: Groups) -> Floats:
        """(G,) the number of training rows in groups of some of the attributes."""
        known = self.groups.marginal(*groups.attributes)
        sums = count_rows(self.groups.parents(*groups.attributes), known.n_groups, self.rows)
        # Matched by values: other rows may lack some groups and number the rest differently.
        rows_by_values = dict(zip(_value_tuples(known), sums.tolist(), strict=True))
        return np.array([rows_by_values.get(values, 0.0) for values in _value_tuples(groups)])

    def set_aside(self) -> dict[str, int]:
        """The groups that are too small to compare, and how many rows each has."""
        small_groups: dict[str, int] = {}
        for on in on_groups(self.measure, self.groups.attributes):
            if not isinstance(as_measure(on.measure), (str, _Bound)):
                continue
            groups = self.groups.marginal(*on.compared).known()
            rows = self.rows_of(groups)
            small = ~judged_groups(rows, self.min_group) & (rows > 0)
            names = np.asarray(groups.names, dtype=object)[small].tolist()
            small_groups |= dict(zip(names, rows[small].astype(int).tolist(), strict=True))
        return small_groups


def _value_tuples(groups: Groups) -> list[tuple[Any, ...]]:
    """(G,) the values of each group, one per attribute."""
    columns = [groups.column(place).tolist() for place in range(len(groups.attributes))]
    return list(zip(*columns, strict=True))


def among_large(measure: Any, rows: GroupedRows, min_group: float = MIN_GROUP) -> Any:
    """Restricts a measure to groups of at least `min_group` rows.

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
    counts = count_rows(rows.group, rows.groups.n_groups)
    large = LargeGroups(measure, rows.groups, counts, min_group)
    return large if large.set_aside() else measure


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
    parts = [
        _constraints_among(on, groups, y_desirable, large)
        for on in on_groups(measure if large is None else large.measure, groups.attributes)
    ]
    if not parts:
        raise ValueError("fairness_measure: expected at least one measure, got an empty list.")
    constraints = stack(parts, groups) if len(parts) > 1 else parts[0]
    return constraints.slacken(epsilon)


def _constraints_among(
    on: On, groups: Groups, y_desirable: Any, large: LargeGroups | None
) -> Constraints:
    """The constraints of a measure on all groups, or on those that are large enough."""
    function = _as_function(on.measure, y_desirable)
    compares = isinstance(as_measure(on.measure), (str, _Bound))  # others define their cells
    rows = large.rows_of(groups) if large is not None and compares else None
    least = 0.0 if large is None else large.min_group
    if on.strata:
        constraints = _within_strata(on, function, groups, rows, least)
    else:
        every = np.ones(groups.n_groups, dtype=bool)
        constraints = _compared(on.compared, function, groups, every, rows, least)
    return constraints.slacken(on.epsilon)


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
    coarse = among.marginal(*attributes)
    if not coarse.is_known.any():
        raise ValueError(f"s: no row has a known value of {' and '.join(attributes)}.")
    parents, is_compared = among.parents(*attributes), coarse.is_known
    if rows is not None:
        size = count_rows(parents, coarse.n_groups, rows[selected])
        is_compared = is_compared.copy()
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
    strata = groups.marginal(*on.strata)
    stratum = groups.parents(*on.strata)
    coarse = groups.marginal(*on.compared)
    group = np.where(coarse.is_known, np.arange(coarse.n_groups), UNKNOWN)[
        groups.parents(*on.compared)
    ]
    rows = groups.mass.sum(axis=0)
    parts, single_group = [], []
    for i, name in enumerate(strata.names):
        inside = stratum == i
        if not strata.is_known[i] or not (inside & (group != UNKNOWN)).any():
            continue
        constraints = _compared(on.compared, function, groups, inside, sizes, least)
        alone = len(np.unique(group[inside & (group != UNKNOWN) & (rows > 0)])) < 2
        if alone:
            single_group.append(name)
        parts.append(
            constraints.replaced(
                names=[f"{level} in {name}" for level in constraints.names],
                c0=np.full(len(constraints.c0), np.nan) if alone else constraints.c0,
                C=constraints.coefficients.only(np.full(len(constraints.c0), not alone)),
            )
        )
    if not parts:
        raise ValueError(f"s: no row has a known value of {' and '.join(on.strata)}.")
    return stack(parts, groups).replaced(single_group=single_group)


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
    known = groups.known().names
    if isinstance(as_measure(measure), str) and len(known) < 2:
        raise ValueError(
            f"{argument}: fairness compares at least two groups with known values, "
            f"got {list(known)}."
        )


def uses_desirable(measure: Any) -> bool:
    """Whether a measure depends on the desirable labels."""
    if isinstance(measure, list):
        return any(map(uses_desirable, measure))
    if isinstance(measure, (On, LargeGroups)):
        return uses_desirable(measure.measure)
    measure = as_measure(measure)
    if isinstance(measure, _Bound):
        return measure.uses_desirable
    if isinstance(measure, str):
        return measure in _of_desirable()
    return callable(measure) and "y_desirable" in inspect.signature(measure).parameters


@cache
def _of_desirable() -> frozenset[str]:
    """Names of measures that depend on the desirable labels; cached, as signatures are slow."""
    return frozenset(name for name, measure in MEASURES.items() if uses_desirable(measure))


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
    if isinstance(measure, Constraints):
        return lambda _: measure
    if isinstance(measure, tuple) and len(measure) == 2:
        c0, C = measure
        return lambda _: Constraints(c0=as_array(c0), C=as_array(C), by_label=True)
    measure = as_measure(measure)
    if isinstance(measure, str) and measure in MEASURES:
        measure = MEASURES[measure]
    if not callable(measure):
        raise ValueError(  # noqa: TRY004 - mostly an unknown name
            f"fairness_measure: got {measure!r}; expected one of {[*MEASURES, *ALIASES]}, a bound "
            "such as 'recall>=0.8', a function from Groups to Constraints, AtLeast, AtMost, "
            "Constraints, a pair (c0, C), an On, or a list of these."
        )
    if "y_desirable" in inspect.signature(measure).parameters:
        return partial(measure, y_desirable=y_desirable)
    return measure  # type: ignore[no-any-return]  # whatever it gives is checked by the caller


def _required_labels(groups: Groups, y_desirable: Any, measure: str) -> tuple[int, ...]:
    desirable = desirable_labels(groups.labels, y_desirable)
    if not desirable:
        raise ValueError(
            f"y_desirable: {measure} needs to know the desirable labels if there are more than "
            f"two. The labels are {groups.labels.tolist()}."
        )
    return desirable


def _some_labels(groups: Groups, wanted: Any, measure: str) -> tuple[int, ...]:
    """The desirable labels; at least one label must not be desirable."""
    desirable = _required_labels(groups, wanted, measure)
    if len(desirable) == len(groups.labels):
        raise ValueError(
            f"y_desirable: {measure} needs at least one label that is not desirable, got all of "
            f"{groups.labels.tolist()}."
        )
    return desirable
