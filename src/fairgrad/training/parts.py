"""StackParts that a stack may have in place of its own: other batches, another objective or network.

Baselines that train small networks by gradient steps differ from the method in one of these. Each
part is made by a function of the stack, whose members are then in their final order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from fairgrad.training.network import Network
    from fairgrad.training.stack import Stack
    from fairgrad.training.streams import Indices


class Objective(Protocol):
    """What is descended, by its gradient."""

    def __call__(self, scores: Tensor, indices: Indices) -> Tensor:
        """(S, T, outputs, B) the gradient of each member's loss by its scores, same shape.

        An objective with a dictionary `state` of tensors (M, ...) has it kept with the models'.
        """


class Batches(Protocol):
    """Where the rows of the steps come from.

    Attributes:
        n_steps: batches per epoch.
    """

    n_steps: int

    def epoch(self) -> Iterator[Indices]:
        """The batches of one epoch."""


@dataclass(frozen=True, kw_only=True)
class StackParts:
    """Functions that make a stack's parts; None leaves the stack its own.

    Attributes:
        network: the models; the stack gives them no shape, so that whoever made them reads their
            scores off the states kept.
        objective: the gradient by the scores.
        batches: the rows of each step. Every member then has a stream of its own.

    Example:
        >>> from fairgrad.training import Member, TrainingPlan, TrainingTable, train
        >>> class Plain:  # the gradient of the plain cross-entropy of two labels
        ...     def __init__(self, stack):
        ...         self.label = stack.table.label
        ...     def __call__(self, scores, indices):
        ...         wanted = self.label[indices.row][:, None, None]
        ...         return (scores.sigmoid() - wanted) / wanted.shape[-1]
        >>> table = TrainingTable.from_data([[0.0], [1.0]] * 50, [0, 1] * 50, [0, 0, 1, 1] * 25)
        >>> training = train(table, [Member()], TrainingPlan(epochs=20), parts=StackParts(objective=Plain))
        >>> bool(training.history.accuracy[-1, 0] == 1)
        True
    """

    network: Callable[[Stack], Network] | None = None
    objective: Callable[[Stack], Objective] | None = None
    batches: Callable[[Stack], Batches] | None = None
