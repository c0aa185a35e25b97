"""Which of the models kept is the best: the paper's rule and simple alternatives.

A rule is a function from the validation accuracy and unfairness of candidates, each (n,), to the
index of the chosen one. Candidates may be the epochs of one member or of many.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fairgrad.groups import Floats

Rule = Callable[["Floats", "Floats"], int]


def fairest_of_accurate(accuracy: Floats, unfairness: Floats, slack: float = 0.03) -> int:
    """The paper's rule: the fairest of those within `slack` of the best accuracy.

    Example:
        >>> fairest_of_accurate(np.array([0.85, 0.83, 0.70]), np.array([0.05, 0.01, 0.0]))
        1
    """
    unfairness = np.where(np.isnan(unfairness), 0.0, unfairness)  # no measure: all are alike
    return _least(unfairness, -accuracy, among=accuracy >= np.nanmax(accuracy) - slack)


def most_accurate(accuracy: Floats, unfairness: Floats) -> int:  # noqa: ARG001 - a rule takes both
    """The most accurate.

    Example:
        >>> most_accurate(np.array([0.85, 0.83]), np.array([0.05, 0.01]))
        0
    """
    return _least(-accuracy, -accuracy)


def fairest(accuracy: Floats, unfairness: Floats) -> int:
    """The fairest; of equally fair ones the most accurate.

    Example:
        >>> fairest(np.array([0.85, 0.83]), np.array([0.05, 0.01]))
        1
    """
    return _least(np.where(np.isnan(unfairness), 0.0, unfairness), -accuracy)


def last(accuracy: Floats, unfairness: Floats) -> int:  # noqa: ARG001 - a rule takes both
    """The last candidate."""
    return len(accuracy) - 1


def most_accurate_within(accuracy: Floats, unfairness: Floats, bound: float) -> int:
    """The most accurate of those with an unfairness of at most `bound`.

    Raises:
        ValueError: if none is fair enough; it names the fairest.

    Example:
        >>> most_accurate_within(np.array([0.85, 0.83]), np.array([0.05, 0.01]), bound=0.02)
        1
    """
    if not (unfairness <= bound).any():
        raise ValueError(
            f"bound: no candidate has an unfairness of at most {bound:g}; "
            f"the fairest has {np.nanmin(unfairness):.4g}."
        )
    return _least(-accuracy, unfairness, among=unfairness <= bound)


RULES: dict[str, Rule] = {
    "fairest_of_accurate": fairest_of_accurate,
    "most_accurate": most_accurate,
    "fairest": fairest,
    "last": last,
}


def as_rule(rule: Any, **arguments: float) -> Rule:
    """A rule by its name, or the user's own function, with some of its arguments given.

    Raises:
        ValueError: if there is no rule of that name.
    """
    found = RULES.get(rule) if isinstance(rule, str) else rule
    if not callable(found):
        raise ValueError(  # noqa: TRY004 - mostly a name that is not known
            f"rule: expected one of {list(RULES)} or a function, got {rule!r}."
        )
    return partial(found, **arguments) if arguments else found


def _least(key: Floats, tie: Floats, among: Any = None) -> int:
    """The candidate with the least key; of equal ones that with the least tie, then the first."""
    allowed = np.ones(len(key), dtype=bool) if among is None else among
    key = np.where(allowed & ~np.isnan(key), key, np.inf)
    return int(np.lexsort((np.where(np.isnan(tie), np.inf, tie), key))[0])
