"""What training gives: the history of all epochs and the models kept for selection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from fairgrad.training.selection import as_rule
from fairgrad.training.stack import build
from fairgrad.training.state import StackState, of_member

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.groups import Floats
    from fairgrad.training.network import Shape
    from fairgrad.training.records import History
    from fairgrad.training.state import State


class Choice(NamedTuple):
    """A model that was kept.

    Attributes:
        member: which member it is of.
        epoch: after which epoch (counted from 0) it was kept.
        accuracy: on the validation rows.
        unfairness: on the validation rows.

    Example:
        >>> Choice(member=0, epoch=4, accuracy=0.84, unfairness=0.01).epoch
        4
    """

    member: int
    epoch: int
    accuracy: float
    unfairness: float


@dataclass(frozen=True, eq=False)
class Training:
    """The outcome of training a stack of M members.

    Attributes:
        history: records of all epochs, (epochs, M, ...).
        kept: the states of the last epochs, by epoch; members in the order they were given.
        shape: of the networks; None if a module was trained.
        stopped: (M,) why a member was stopped, or None.
        interrupted: whether Ctrl-C ended the training.

    Example:
        >>> from fairgrad.training import Member, TrainingPlan, TrainingTable, train
        >>> table = TrainingTable.from_data([[0.0], [1.0]] * 50, [0, 1] * 50, [0, 0, 1, 1] * 25)
        >>> training = train(table, [Member()], TrainingPlan(epochs=3))
        >>> choice = training.select("most_accurate")
        >>> choice.member, training.scores(choice, [[0.0], [1.0]]).shape
        (0, (2, 1))
    """

    history: History
    kept: dict[int, State]
    shape: Shape | None
    stopped: tuple[str | None, ...]
    interrupted: bool

    def select(
        self,
        rule: Any = "fairest_of_accurate",
        members: Sequence[int] | None = None,
        epochs: Sequence[int] | None = None,
    ) -> Choice:
        """The best of the models kept, of some members or of all.

        Args:
            rule: a name or function of `fairgrad.training.selection`.
            members: whose models are the candidates.
            epochs: of which epochs, among those kept.
        """
        n_members = self.history.accuracy.shape[1]
        chosen = list(range(n_members)) if members is None else list(members)
        candidates = [(member, epoch) for member in chosen for epoch in epochs or self.kept]
        accuracy, unfairness = (
            np.array([values[epoch, member] for member, epoch in candidates])
            for values in (self.history.accuracy, self.history.unfairness)
        )
        best = as_rule(rule)(accuracy, unfairness)
        return Choice(*candidates[best], float(accuracy[best]), float(unfairness[best]))

    @property
    def last_epoch(self) -> int:
        """The last epoch that was completed."""
        return max(self.kept)

    def state(self, choice: Choice) -> State:
        """All tensors of one model, as a stack of one; training can start from them again."""
        return of_member(self.kept[choice.epoch], choice.member)

    def scores(self, choice: Choice, X: Any) -> Floats:
        """(n, outputs) the scores of rows: a margin for two labels, else one logit per label.

        Raises:
            ValueError: if a module was trained, whose scores only the module itself can give.
        """
        if self.shape is None:
            raise ValueError("scores: a module was trained; load the choice's state into it.")
        return network_scores(self.shape, self.state(choice), X)


def network_scores(shape: Shape, state: dict[str, Any], X: Any) -> Floats:
    """Rebuilds a network from its state (tensors or arrays, a stack of one) and runs it.

    Args:
        shape: of the network.
        state: holds ``network.parameters`` and ``buffers.*``.
        X: (n, features) tensor or array.

    Returns:
        (n, outputs) scores.
    """
    dtype = torch.as_tensor(state["network.parameters"]).dtype
    network = build(shape, 1, [0], dtype)
    parts = {"network": {"parameters": network.parameters}, "buffers": network.buffers}
    StackState(parts).load(state)
    scores = network.scores(torch.as_tensor(X, dtype=dtype)[None])[0].T
    return scores.contiguous().numpy()
