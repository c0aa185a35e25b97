"""The measures under the names of fairgrad 0.2.0, for code that was written for that version.

New code passes the name of a measure, or one of `fairgrad.measures`, to the losses and computes
levels with `fairgrad.evaluate.fairness_levels`. Everything here calls these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fairgrad.columns import as_array
from fairgrad.evaluate import levels_of, predicted_index
from fairgrad.groups import Floats, Groups
from fairgrad.measures import constraints_of, measure_name

__all__ = [
    "NAMES",
    "AccuracyParity",
    "DemographicParity",
    "EqualityOpportunity",
    "EqualizedOdds",
    "FairnessMeasure",
    "instantiate_fairness",
]


class FairnessMeasure:
    r"""A measure and its training data: ``F = C0 + C e`` for each label l and group r.

    Args:
        y_unique: ignored; the labels are those of `y`.
        s_unique: ignored; the sensitive values are those of `s`.
        y: labels of the training set.
        s: sensitive values of the training set.
        y_desirable: the desirable labels, for equality of opportunity.

    Attributes:
        measure: a fairness_measure as for `fairgrad.torch.FairLoss`.
        groups: of the training set.
        y_desirable: the desirable labels.

    Example:
        >>> y, s = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        >>> odds = EqualizedOdds(np.unique(y), np.unique(s), y, s)
        >>> odds.groupwise(np.array([0, 1, 1, 1]), y, s)
        array([[ 0.5, -0.5],
               [ 0. ,  0. ]])
    """

    measure: Any = None

    def __init__(
        self,
        y_unique: Any,  # noqa: ARG002 - the signature of 0.2.0
        s_unique: Any,  # noqa: ARG002 - the signature of 0.2.0
        y: Any,
        s: Any,
        y_desirable: Any = None,
    ) -> None:
        self.groups = Groups.from_data(y, s)
        self.y_desirable = y_desirable

    @staticmethod
    def of(groups: Groups, measure: Any, y_desirable: Any = None) -> FairnessMeasure:
        """Creates the object of a measure on these groups."""
        name = measure_name(measure)
        kinds = [kind for kind in NAMES.values() if kind.measure == name]
        kind = kinds[0] if kinds else FairnessMeasure
        instance = kind.__new__(kind)
        instance.groups, instance.measure, instance.y_desirable = groups, measure, y_desirable
        return instance

    @property
    def y_unique(self) -> Any:
        """(L,) the labels."""
        return self.groups.labels

    @property
    def s_unique(self) -> Any:
        """(R,) the integers that stand for the groups."""
        ids = self.groups.ids
        return ids[:, 0] if ids.shape[1] == 1 else np.arange(len(ids))

    @property
    def C(self) -> Floats:  # noqa: N802 - the paper's name
        """(L * R, L * R) coefficients of the error rates."""
        constraints = constraints_of(self.measure, self.groups, y_desirable=self.y_desirable)
        if constraints.by_label:
            return constraints.C
        n_labels = len(self.groups.labels)  # a group's rate is repeated for each label
        return np.tile(constraints.C, (n_labels, n_labels)) / n_labels

    @property
    def C0(self) -> Floats:  # noqa: N802 - the paper's name
        """(L * R,) constants of the levels."""
        constraints = constraints_of(self.measure, self.groups, y_desirable=self.y_desirable)
        return self._table(constraints.c0, by_label=constraints.by_label).ravel()

    @property
    def P(self) -> Floats:  # noqa: N802 - the paper's name
        """(L, R) the shares of the cells."""
        constraints = constraints_of(self.measure, self.groups, y_desirable=self.y_desirable)
        mass = self.groups.cell_mass(constraints.by_label)
        return self._table(mass / mass.sum(), by_label=constraints.by_label)

    def groupwise(self, preds: Any, y: Any, s: Any) -> Floats:
        """(L, R) the levels of predictions, with the frequencies of these rows.

        Groups with unknown values have no level. Measures that are new since 0.2.0 have one level
        per constraint.

        Args:
            preds: predicted labels, or scores of the classes.
            y: labels.
            s: sensitive values.
        """
        predicted = as_array(preds)
        predicted = predicted.argmax(axis=1) if predicted.ndim > 1 else predicted
        rows = self.groups.place(y, s)
        constraints = constraints_of(self.measure, rows.groups, y_desirable=self.y_desirable)
        levels = levels_of(constraints, rows, predicted_index(rows, predicted))
        return self._table(levels, by_label=constraints.by_label)

    def _table(self, values: Floats, *, by_label: bool) -> Floats:
        """(L, R) from one value per label and group, or per group; new measures are unchanged."""
        if type(self) is FairnessMeasure:
            return values
        n_labels = len(self.groups.labels)
        table = values.reshape(n_labels if by_label else 1, -1)
        return np.broadcast_to(table, (n_labels, table.shape[1])).copy()


class EqualizedOdds(FairnessMeasure):
    """See `fairgrad.measures.equalized_odds`."""

    measure = "equalized_odds"


class AccuracyParity(FairnessMeasure):
    """See `fairgrad.measures.accuracy_parity`."""

    measure = "accuracy_parity"


class EqualityOpportunity(FairnessMeasure):
    """See `fairgrad.measures.equality_of_opportunity`."""

    measure = "equality_of_opportunity"


class DemographicParity(FairnessMeasure):
    """See `fairgrad.measures.demographic_parity`."""

    measure = "demographic_parity"


NAMES: dict[str, type[FairnessMeasure]] = {
    "equal_odds": EqualizedOdds,
    "equal_opportunity": EqualityOpportunity,
    "accuracy_parity": AccuracyParity,
    "demographic_parity": DemographicParity,
}


def is_older_class(measure: Any) -> bool:
    """Whether a measure is one of the classes of 0.2.0."""
    return isinstance(measure, type) and issubclass(measure, FairnessMeasure)


def instantiate_fairness(
    fairness_function: Any, y_train: Any = None, s_train: Any = None, y_desirable: Any = None
) -> FairnessMeasure:
    """Creates a measure from its name in fairgrad 0.2.0 or its class; an object is returned as is.

    Raises:
        NotImplementedError: if the name is unknown.
        ValueError: if it is neither name nor class, or the data are missing or do not fit.

    Example:
        >>> instantiate_fairness("accuracy_parity", [0, 1, 0, 1], [0, 0, 0, 1]).P
        array([[0.75, 0.25],
               [0.75, 0.25]])
    """
    if isinstance(fairness_function, FairnessMeasure):
        return fairness_function
    if isinstance(fairness_function, str):
        if fairness_function not in NAMES:
            raise NotImplementedError(
                f"fairness_function: expected one of {list(NAMES)}, got {fairness_function!r}."
            )
        fairness_function = NAMES[fairness_function]
    if not is_older_class(fairness_function):
        raise ValueError(
            f"fairness_function: expected one of {list(NAMES)}, or a class of "
            f"fairgrad.fairness_functions; got {fairness_function!r}."
        )
    if y_train is None or s_train is None:
        raise ValueError(f"y_train, s_train: needed for {fairness_function.__name__}.")
    made: FairnessMeasure = fairness_function(None, None, y_train, s_train, y_desirable)
    constraints_of(made.measure, made.groups, y_desirable=y_desirable)  # checks the data
    return made
