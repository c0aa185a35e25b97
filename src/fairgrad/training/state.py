"""The state of a stack: named tensors with a leading member axis, kept, restored and held."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

State = dict[str, Tensor]
"""Everything that training changes, each tensor (M, ...)."""


class StackState:
    """Reads and writes the state of a stack's parts as one.

    Args:
        parts: the dictionaries of tensors that the network, the method and the optimiser keep. The
            entries may be replaced or changed in place, the dictionaries stay the same.
    """

    def __init__(self, parts: Mapping[str, dict[str, Tensor]]) -> None:
        self.parts = parts

    def copy(self) -> State:
        """The state as it is now."""
        return {
            f"{part}.{name}": tensor.clone()
            for part, tensors in self.parts.items()
            for name, tensor in tensors.items()
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over the tensors or arrays that `state` has; the others stay as they are.

        Raises:
            ValueError: if a shape does not fit.
        """
        found = []
        for key, value in state.items():
            part, name = key.split(".", 1)
            own = self.parts.get(part, {}).get(name)
            if own is None:
                continue
            new = torch.as_tensor(value, dtype=own.dtype)
            if new.shape != own.shape:
                raise ValueError(
                    f"start: expected {key} of shape {tuple(own.shape)}, got {tuple(new.shape)}."
                )
            found.append((own, new))
        for own, new in found:  # only now that all of them fit
            own.copy_(new)

    @contextmanager
    def held(self, members: Tensor | None) -> Iterator[None]:
        """What happens inside leaves these members (M,) as they were."""
        if members is None or not bool(members.any()):
            yield
            return
        before = [
            (tensors, name, tensor[members].clone())
            for tensors in self.parts.values()
            for name, tensor in tensors.items()
        ]
        yield
        for tensors, name, old in before:
            tensors[name][members] = old


def of_member(state: State, member: int) -> State:
    """One member's part, as a stack of one."""
    return {name: tensor[member : member + 1].clone() for name, tensor in state.items()}
