"""Each fairness definition: a short function from the groups to its constants.

Every definition compares a rate of each group with the mean of that rate over all groups,

    F_r = rate_r - mean_r' rate_r',     rate = rate0 + R e,

where e are the error rates of the cells. Only the rate differs from measure to measure, and
`gaps_to_mean` makes constraints of it. A measure of your own is any function from `Groups` (those
whose attributes are known) to `Constraints`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fairgrad.columns import as_array
from fairgrad.constraints import Coefficients, Constraints, lift, stack
from fairgrad.groups import Floats, Groups, Ints

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
    return gaps_to_mean(_accuracies(groups.mass.sum(axis=0)), by_label=False, names=groups.names)


def equalized_odds(groups: Groups) -> Constraints:
    """Within each label, the chance of predicting it is the same in every group.

    ``F_(l,r) = P(h = l | y = l, s = r) - P(h = l | y = l)``, one constraint per label and group.
    With more than two labels this constrains each label's recall only, not which of the other
    labels a mistake falls on.

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
        _accuracies(groups.mass.ravel()), by_label=True, names=names, block=label_of(groups)
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


def demographic_parity(groups: Groups) -> Constraints:
    """Each label is predicted at the same rate in every group. Two labels only.

    ``F_(l,r) = P(h = l | s = r) - P(h = l)``, one constraint per label and group.

    Raises:
        ValueError: if there are not two labels.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> measure = demographic_parity(groups)
        >>> measure.c0
        array([ 0.25, -0.25, -0.25,  0.25])
        >>> measure.c0 + measure.C @ [0.0, 0.0, 1.0, 0.0]  # a's people with label 1 are missed
        array([ 0.375, -0.375, -0.375,  0.375])
    """
    _require_binary(groups, "demographic_parity")
    rates = Rates.concatenate([_selection_rates(groups, label) for label in (0, 1)])
    names = groups.cell_names(by_label=True)
    return gaps_to_mean(rates, by_label=True, names=names, block=label_of(groups))


def four_fifths_rule(groups: Groups, y_desirable: Any = None) -> Constraints:
    """Each group's selection rate is at least 0.8 of the overall one. Two labels only.

    ``F_r = P(h = 1 | s = r) - 0.8 P(h = 1) >= 0``, one one-sided constraint per group, where 1
    stands for the desirable label.

    Raises:
        ValueError: if there are not two labels, or not exactly one of them is desirable.

    Example:
        >>> groups = Groups.from_counts({(0, "a"): 30, (1, "a"): 10, (0, "b"): 10, (1, "b"): 30})
        >>> rule = four_fifths_rule(groups)
        >>> rule.c0, rule.lower, rule.upper
        (array([-0.15,  0.35]), array([0., 0.]), array([inf, inf]))
    """
    _require_binary(groups, "four_fifths_rule")
    desirable = _required_labels(groups, y_desirable, "four_fifths_rule")
    if len(desirable) != 1:
        raise ValueError(
            f"y_desirable: four_fifths_rule needs exactly one label, got {len(desirable)}."
        )
    rates = _selection_rates(groups, desirable[0])
    return gaps_to_mean(rates, by_label=True, names=groups.names, ratio=0.8, upper=np.inf)


def desirable_labels(labels: Any, y_desirable: Any = None) -> tuple[int, ...]:
    """Indices of the desirable labels: the one rule of the library.

    They are those given; if none is given, of two labels the second in sorted order, and of more
    labels none: measures that need to know then ask for them.

    Args:
        labels: all labels, sorted.
        y_desirable: one label or several; None to go by the rule.

    Raises:
        ValueError: if a given label is none of the labels.

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
    strangers = [label for label in wanted if label not in known]
    if strangers or not wanted:
        raise ValueError(f"y_desirable: expected labels among {known}, got {wanted}.")
    return tuple(sorted({known.index(label) for label in wanted}))


MEASURES: dict[str, Callable[..., Constraints]] = {
    "accuracy_parity": accuracy_parity,
    "equalized_odds": equalized_odds,
    "equality_of_opportunity": equality_of_opportunity,
    "demographic_parity": demographic_parity,
    "four_fifths_rule": four_fifths_rule,
}
ALIASES = {"equal_odds": "equalized_odds", "equal_opportunity": "equality_of_opportunity"}


@dataclass(frozen=True)
class On:
    """A measure for some of the attributes only, with its own slack.

    A list of these constrains several attributes separately, or by several measures at once.

    Attributes:
        attributes: names of sensitive attributes; their combinations are the groups.
        measure: a name, a function, or matrices.
        epsilon: the slack of these constraints.

    Example:
        >>> groups = Groups.from_data([0, 1, 0, 1], {"sex": [0, 0, 1, 1], "race": [0, 1, 1, 0]})
        >>> constraints_of([On("sex", "accuracy_parity"), On("race", "accuracy_parity", 0.1)],
        ...                groups).names
        ('sex=0', 'sex=1', 'race=0', 'race=1')
    """

    attributes: str | tuple[str, ...]
    measure: Any
    epsilon: float = 0.0


def constraints_of(
    measure: Any, groups: Groups, *, epsilon: Any = 0.0, y_desirable: Any = None
) -> Constraints:
    """The constraints a measure puts on the cells of these groups.

    Constraints that are not defined on these groups (a group without rows) are rows of NaN;
    `Constraints.drop_undefined` leaves them out.

    Args:
        measure: a name; a function from `Groups` to `Constraints`; `Constraints`, or a pair
            (c0, C) for the cells by label and group; an `On`; or a list of any of these.
        groups: of the training set, or of an evaluation set.
        epsilon: slack of all constraints, or one per constraint.
        y_desirable: the desirable labels, for measures that ask for them; by default the second
            of two labels.

    Raises:
        ValueError: if the measure is not known or does not fit the groups.

    Example:
        >>> groups = Groups.from_data([0, 1, 0, 1], [0, 0, 1, 1])
        >>> constraints = constraints_of("accuracy_parity", groups, epsilon=0.02)
        >>> constraints.lower, constraints.upper
        (array([-0.02, -0.02]), array([0.02, 0.02]))
    """
    if isinstance(measure, list):
        if not measure:
            raise ValueError("fairness_measure: expected at least one measure, got an empty list.")
        parts = [constraints_of(part, groups, y_desirable=y_desirable) for part in measure]
        return stack(parts, groups).slacken(epsilon)
    on = measure if isinstance(measure, On) else On(groups.attributes, measure)
    attributes = (on.attributes,) if isinstance(on.attributes, str) else tuple(on.attributes)
    coarse = groups.marginal(*attributes)
    if not coarse.is_known.any():
        raise ValueError(f"s: no row has a known value of {' and '.join(attributes)}.")
    constraints = _as_function(on.measure, y_desirable)(coarse.known())
    if not isinstance(constraints, Constraints):
        raise TypeError(
            "fairness_measure: expected a function that gives Constraints, "
            f"got {type(constraints).__name__}."
        )
    known_index = np.where(coarse.is_known, np.cumsum(coarse.is_known) - 1, -1)
    member = known_index[groups.parents(*attributes)]
    return lift(constraints, coarse.known(), groups, member).slacken(on.epsilon).slacken(epsilon)


def check_several_groups(measure: Any, groups: Groups, argument: str) -> None:
    """Refuses to train for a comparison of groups where there is only one: nothing would happen.

    Raises:
        ValueError: if the measure is one of `MEASURES` and fewer than two groups are known.
    """
    known = groups.known().names
    if isinstance(measure, str) and len(known) < 2:
        raise ValueError(
            f"{argument}: fairness compares at least two groups with known values, "
            f"got {list(known)}."
        )


def uses_desirable(measure: Any) -> bool:
    """Whether a measure looks at the desirable labels."""
    if isinstance(measure, list):
        return any(uses_desirable(part) for part in measure)
    if isinstance(measure, On):
        return uses_desirable(measure.measure)
    if isinstance(measure, str):
        measure = MEASURES.get(ALIASES.get(measure, measure))
    return callable(measure) and "y_desirable" in inspect.signature(measure).parameters


def measure_name(measure: Any) -> str:
    """A short readable name of a measure.

    Example:
        >>> measure_name("equal_odds"), measure_name(On("sex", "demographic_parity"))
        ('equalized_odds', 'demographic_parity on sex')
    """
    if isinstance(measure, str):
        return ALIASES.get(measure, measure)
    if isinstance(measure, On):
        attributes = (
            [measure.attributes] if isinstance(measure.attributes, str) else measure.attributes
        )
        return f"{measure_name(measure.measure)} on {' x '.join(attributes)}"
    if isinstance(measure, list):
        return " and ".join(measure_name(part) for part in measure)
    return str(getattr(measure, "__name__", "user-defined"))


def _as_function(measure: Any, y_desirable: Any) -> MeasureFunction:
    if isinstance(measure, Constraints):
        return lambda _: measure
    if isinstance(measure, tuple) and len(measure) == 2:
        c0, C = measure
        return lambda _: Constraints(c0=as_array(c0), C=as_array(C), by_label=True)
    if isinstance(measure, str) and ALIASES.get(measure, measure) in MEASURES:
        measure = MEASURES[ALIASES.get(measure, measure)]
    if not callable(measure):
        raise ValueError(  # noqa: TRY004 - mostly a name that is not known
            f"fairness_measure: got {measure!r}; expected one of {[*MEASURES, *ALIASES]}, a "
            "function from Groups to Constraints, Constraints, a pair (c0, C), or a list of these."
        )
    if uses_desirable(measure):
        return partial(measure, y_desirable=y_desirable)
    return measure  # type: ignore[no-any-return]  # whatever it gives is checked by the caller


@dataclass(frozen=True, eq=False)
class Rates:
    """J rates ``r = r0 + R e``, one per group (or per label and group), by the entries of R.

    Attributes:
        r0: (J,) constants.
        cell: (J, W) the cells each rate depends on.
        value: (J, W) their coefficients.
        mass: (J,) the rows each rate is a rate of: its weight in the mean, and 0 if there are none.

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

    @staticmethod
    def concatenate(parts: Sequence[Rates]) -> Rates:
        """Several lots of rates, one after the other."""
        names = ("r0", "cell", "value", "mass")
        return Rates(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def gaps_to_mean(
    rates: Rates,
    *,
    by_label: bool,
    names: Sequence[str],
    block: Ints | None = None,
    ratio: float = 1.0,
    upper: float = 0.0,
) -> Constraints:
    """Constraints on ``F_j = r_j - ratio * (mean of r over the block of j)``.

    The mean is weighted by the rates' rows. A rate of no rows is not defined: its c0 is NaN.

    Args:
        rates: of the groups.
        by_label: whether their cells are (label, group) pairs or groups.
        names: (J,) what each level speaks of.
        block: (J,) which levels have a mean in common; by default all.
        ratio: what share of the mean is subtracted.
        upper: the upper bound of all levels; the lower one is 0.

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
    n_cells = int(rates.cell.max()) + 1
    C = Coefficients(row, rates.cell.ravel(), rates.value.ravel(), block, share, n_cells)
    return Constraints(c0=c0, C=C, by_label=by_label, names=names, lower=0.0, upper=upper)


def label_of(groups: Groups) -> Ints:
    """(K,) the label index of each (label, group) cell."""
    return np.repeat(np.arange(len(groups.labels)), groups.n_groups)


def _accuracies(mass: Floats) -> Rates:
    """``-e_k``: the accuracy less 1, which no gap sees, so that c0 is exactly 0."""
    n = len(mass)
    return Rates(np.zeros(n), np.arange(n)[:, None], -np.ones((n, 1)), mass)


def _selection_rates(groups: Groups, label: int) -> Rates:
    """``P(h = label | s = r)`` for two labels: hits in it and misses in the other.

    ``P(h = l | r) = P(y = l | r) (1 - e_(l,r)) + P(y = l' | r) e_(l',r)``.
    """
    total = groups.mass.sum(axis=0)
    share = groups.mass / np.where(total > 0, total, 1.0)
    group = np.arange(groups.n_groups)
    cell = np.stack([label * groups.n_groups + group, (1 - label) * groups.n_groups + group], 1)
    return Rates(share[label], cell, np.stack([-share[label], share[1 - label]], 1), total)


def _required_labels(groups: Groups, y_desirable: Any, measure: str) -> tuple[int, ...]:
    found = desirable_labels(groups.labels, y_desirable)
    if not found:
        raise ValueError(
            f"y_desirable: {measure} needs the desirable labels named where there are more than "
            f"two; the labels are {groups.labels.tolist()}."
        )
    return found


def _require_binary(groups: Groups, measure: str) -> None:
    if len(groups.labels) != 2:
        raise ValueError(
            f"fairness_measure: {measure} is defined for two labels, got {len(groups.labels)}: "
            f"{groups.labels.tolist()}."
        )
