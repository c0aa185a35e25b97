"""How good the members of a stack are after each epoch, and which of the models kept is the best.

A rule of selection is a function from the validation accuracy and unfairness of candidates, each
(n,), to the index of the chosen one. Candidates may be the epochs of one member or of many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairgrad import dual
from fairgrad.evaluate import unfairness
from fairgrad.training import heads
from fairgrad.training.constants import level_constants, member_constraints
from fairgrad.training.streams import RowBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from fairgrad.groups import Floats, Ints
    from fairgrad.training.fairness import StackedFairness
    from fairgrad.training.networks import Network
    from fairgrad.training.table import Member, TrainingTable

Rule = Callable[["Floats", "Floats"], int]

MAX_ACTIVATIONS = 2**21
"""Rows are judged in pieces of so many activations, which stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class EpochRecord:
    """M models after one epoch, judged on their validation rows.

    Attributes:
        accuracy: (M,).
        loss: (M,) mean cross-entropy, without fairness weights.
        unfairness: (M,) as `fairgrad.evaluate.unfairness` has it; NaN without a measure.
        levels: (M, J) levels of fairness, NaN where not defined.
        multipliers: (M, J) net multipliers, lambda - delta.
    """

    accuracy: Floats
    loss: Floats
    unfairness: Floats
    levels: Floats
    multipliers: Floats

    def reorder(self, order: Ints) -> EpochRecord:
        """The same with the members in another order."""
        return EpochRecord(**{f.name: getattr(self, f.name)[order] for f in fields(self)})


@dataclass(frozen=True, eq=False)
class History:
    """All epochs: the fields of `EpochRecord` with one more leading axis, (epochs, M, ...).

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
    def of(cls, records: Sequence[EpochRecord]) -> History:
        """Stacks the records of the epochs."""
        names = [f.name for f in fields(cls)]
        return cls(**{name: np.stack([getattr(r, name) for r in records]) for name in names})

    def __len__(self) -> int:
        return len(self.accuracy)


class Evaluation:
    """Accuracy, loss and levels of M members, with the frequencies of their validation rows.

    Args:
        table: the rows.
        members: M of them, ordered by stream.
        rows: the validation rows of each stream.
        fairness: the stack's method, whose cells are used.
        widest: units of the network's widest layer.
    """

    def __init__(
        self,
        table: TrainingTable,
        members: Sequence[Member],
        rows: Sequence[Ints],
        fairness: StackedFairness,
        widest: int,
    ) -> None:
        self.table, self.fairness = table, fairness
        self.rows = [torch.from_numpy(part) for part in rows]
        self.n_streams, self.n_members = len(rows), len(members)
        per_stream = self.n_members // self.n_streams
        groups = [table.groups_of(part) for part in rows for _ in range(per_stream)]
        # Unfairness is judged by the definition: without slack.
        constraints = member_constraints([replace(m, epsilon=0.0) for m in members], groups)
        self.constants = level_constants(
            constraints, fairness.cells.n_cells, by_label=fairness.cells.n_label_rows > 1
        )
        self.constraints = constraints
        self.piece = max(256, MAX_ACTIVATIONS // (self.n_members * widest))

    def record(self, network: Network) -> EpochRecord:
        """Judges the network's models as they are."""
        counts = torch.zeros(self.n_members, 2, self.fairness.cells.n_cells, dtype=torch.float64)
        loss = torch.zeros(self.n_members, dtype=torch.float64)
        for index, valid in self._pieces():
            scores = network.scores(self.table.take(index))
            scores = scores.view(self.n_streams, -1, *scores.shape[1:])
            batch = self.fairness.cells.take(index, valid)
            label = batch.label if scores.shape[2] == 1 else batch.label.long()
            counts += batch.count(heads.wrong(scores, label)).view(counts.shape)
            losses = heads.losses(scores, label)
            if batch.weight is None:
                loss += losses.sum(-1).view(-1)
            else:
                loss += (losses @ batch.weight[:, :, None]).view(-1)
        return self._record(counts, loss)

    def _record(self, counts: Tensor, loss: Tensor) -> EpochRecord:
        total = counts.sum((1, 2)).numpy()
        n_wrong = counts[:, 1].sum(1).numpy()
        levels = self._levels(counts)
        return EpochRecord(
            accuracy=1 - n_wrong / total,
            loss=loss.numpy() / total,
            unfairness=unfairness(self._gaps(levels)),
            levels=levels,
            multipliers=self.fairness.net_multipliers.numpy().astype(np.float64),
        )

    def _gaps(self, levels: Floats) -> Floats:
        """(M, J) how unfair each level is; NaN where it is not defined."""
        found = np.full(levels.shape, np.nan)
        for own, part, level in zip(found, self.constraints, levels, strict=True):
            if part is not None:
                own[: len(part.c0)] = part.gaps(level[: len(part.c0)])
        return found

    def _levels(self, counts: Tensor) -> Floats:
        if self.fairness.mixing is not None:
            counts = counts @ self.fairness.mixing.to(counts.dtype)
        right, wrong = counts.numpy().swapaxes(0, 1)
        errors = wrong / np.maximum(right + wrong, dual.NOTHING)
        levels: Floats = dual.levels(self.constants.c0, self.constants.C, errors)
        return np.where(self.constants.defined, levels, np.nan)

    def _pieces(self) -> Iterator[RowBatch]:
        """The validation rows of all streams, in order, padded where some have fewer."""
        sizes = torch.tensor([len(rows) for rows in self.rows])
        longest = int(sizes.max())
        for start in range(0, longest, self.piece):
            place = torch.arange(start, min(start + self.piece, longest))
            valid = place < sizes[:, None]
            index = torch.stack(
                [
                    rows[place.clamp(max=int(n) - 1)]
                    for rows, n in zip(self.rows, sizes, strict=True)
                ]
            )
            yield RowBatch(index, None if bool(valid.all()) else valid)


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
