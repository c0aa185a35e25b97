"""What the user gives to a boosted classifier -> a checked objective."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from fairgrad.boosting.objective import BoostingObjective
from fairgrad.columns import as_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Objective = TypeVar("Objective", bound=BoostingObjective)

MAX_SEED = 2**31 - 1
OWN = (
    "fairness_measure",
    "epsilon",
    "fairness_rate",
    "proportional_rate",
    "error_memory",
    "held_out",
    "y_desirable",
    "negative_weights",
)
"""Parameters of the estimators that the boosting libraries do not know."""


def refuse_what_cannot_be_fair(
    params: Mapping[str, Any],
    sensitive_features: Any,
    *,
    objectives: Sequence[str | None],
    unbalanced: Mapping[str, str],
) -> None:
    """Refuses parameters that would have no effect in a fair fit.

    Args:
        params: of the estimator.
        sensitive_features: as given to fit.
        objectives: the library's names of the log loss.
        unbalanced: its parameters that weigh the classes, and what to use instead.

    Raises:
        ValueError: naming the first of them, or the sensitive values if they are missing.
    """
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features: required, one value per row, as fairness_measure is "
            f"{params['fairness_measure']!r}; pass fit(X, y, sensitive_features=...), or "
            "fairness_measure=None for a plain model."
        )
    if params.get("objective") not in objectives:
        raise ValueError(
            f"objective: expected one of {tuple(objectives)} (the log loss), got "
            f"{params['objective']!r}."
        )
    for name, instead in unbalanced.items():
        if params.get(name) not in {None, False, 1.0}:
            raise ValueError(f"{name}: not together with fairness_measure; use {instead}.")


def objective_of(
    make: type[Objective], model: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> Objective:
    """The objective that a classifier's parameters (`OWN`) ask for, for these rows."""
    label = column_or_1d(y)
    check_classification_targets(label)
    classes = np.unique(label)
    if len(classes) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {classes.tolist()}.")
    return make(
        label,
        named_columns(sensitive_features, len(label), "sensitive_features", "X"),
        model.fairness_measure,
        epsilon=model.epsilon,
        y_desirable=desirable_labels(model.y_desirable, classes),
        fairness_rate=model.fairness_rate,
        proportional_rate=model.proportional_rate,
        error_memory=model.error_memory,
        negative_weights=model.negative_weights,
        held_out=model.held_out,
        sample_weight=sample_weight,
        seed=_seed(model.random_state),
    )


def desirable_labels(y_desirable: Any, classes: NDArray[Any]) -> Any:
    """The labels some measures speak of: the given ones, or the second of two classes."""
    if y_desirable is not None:
        return y_desirable
    return classes[1:2] if len(classes) == 2 else ()


def named_columns(sensitive: Any, n_rows: int, argument: str, other: str) -> dict[str, Any]:
    """Named columns of sensitive values.

    Raises:
        ValueError: if there is not one value per row.
    """
    columns = as_columns(sensitive, argument)
    for name, column in columns.items():
        if len(column) != n_rows:
            raise ValueError(
                f"{argument}: expected one value per row of {other} ({n_rows}), got {len(column)} "
                f"in {name!r}."
            )
    return {"s": columns[argument]} if list(columns) == [argument] else columns


def _seed(random_state: Any) -> int:
    """A seed, without using up a generator from which the library draws its own."""
    if isinstance(random_state, np.random.Generator):
        return int(copy.deepcopy(random_state).integers(MAX_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(copy.deepcopy(random_state).randint(MAX_SEED))
    return 0 if random_state is None else int(random_state)
