"""What is recorded after every epoch: how accurate and how fair each member is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.groups import Floats, Ints


@dataclass(frozen=True, eq=False)
class Record:
    """M models after one epoch, judged on their validation rows.

    Attributes:
        accuracy: (M,).
        loss: (M,) mean cross-entropy, without fairness weights.
        unfairness: (M,) mean of |F| over the levels defined; NaN without a measure.
        levels: (M, J) levels of fairness, NaN where not defined.
        multipliers: (M, J) net multipliers, lambda - delta.
    """

    accuracy: Floats
    loss: Floats
    unfairness: Floats
    levels: Floats
    multipliers: Floats

    def reorder(self, order: Ints) -> Record:
        """The same with the members in another order."""
        return Record(**{f.name: getattr(self, f.name)[order] for f in fields(self)})


@dataclass(frozen=True, eq=False)
class History:
    """All epochs: the fields of `Record` with one more leading axis, (epochs, M, ...).

    Example:
        >>> from fairgrad.training import Member, TrainingPlan, TrainingTable, train
        >>> table = TrainingTable.from_data([[0.0], [1.0]] * 50, [0, 1] * 50, [0, 0, 1, 1] * 25)
        >>> members = [Member(fairness_measure="accuracy_parity")]
        >>> history = train(table, members, TrainingPlan(epochs=3)).history
        >>> len(history), history.levels.shape
        (3, (3, 1, 2))
    """

    accuracy: Floats
    loss: Floats
    unfairness: Floats
    levels: Floats
    multipliers: Floats

    @classmethod
    def of(cls, records: Sequence[Record]) -> History:
        """Stacks the records of the epochs."""
        names = [f.name for f in fields(cls)]
        return cls(**{name: np.stack([getattr(r, name) for r in records]) for name in names})

    def __len__(self) -> int:
        return len(self.accuracy)
