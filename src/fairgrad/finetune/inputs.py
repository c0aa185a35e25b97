"""What a network is fed: rows of any kind, gathered batch by batch.

Rows come as a tensor or array, as a mapping of arrays (a tokeniser's output), as anything with a
method ``batch(rows)`` (the images of `fairgrad.datasets`), or as any sequence of examples, which
PyTorch's own collation puts together. Only one batch is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairgrad.groups import Ints


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows for a network, and how a batch of them is made.

    Attributes:
        rows: what the user gave.
        n: how many rows there are.
        transform: applied to every batch, such as a normalisation or a tokeniser; None for none.

    Example:
        >>> inputs = as_inputs(np.eye(3), transform=lambda x: 2 * x)
        >>> inputs.batch(np.array([0, 2]))
        tensor([[2., 0., 0.],
                [0., 0., 2.]], dtype=torch.float64)
    """

    rows: Any
    n: int
    transform: Callable[[Any], Any] | None = None

    def __len__(self) -> int:
        return self.n

    def batch(self, index: Ints) -> Any:
        """The rows of these numbers as the network takes them: a tensor, or named tensors."""
        found = _gather(self.rows, index)
        return found if self.transform is None else self.transform(found)

    def pieces(self, size: int) -> Iterator[tuple[slice, Any]]:
        """All rows in their order, so many at a time, each with its place."""
        for start in range(0, self.n, size):
            place = slice(start, min(start + size, self.n))
            yield place, self.batch(np.arange(place.start, place.stop))


def as_inputs(X: Any, transform: Callable[[Any], Any] | None = None) -> Inputs:
    """The user's rows.

    Raises:
        TypeError: if they are of no kind that can be read.
        ValueError: if there are none, or named columns differ in length.
    """
    if isinstance(X, Mapping):
        X = {str(name): _plain(column) for name, column in X.items()}
        lengths = {name: len(column) for name, column in X.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"X: expected named columns of one length, got {lengths}.")
        n = next(iter(lengths.values()))
    else:
        X = _plain(X)
        n = len(X)
    if n == 0:
        raise ValueError("X: expected at least one row, got none.")
    return Inputs(X, n, transform)


def run(module: torch.nn.Module, batch: Any) -> Any:
    """What a module gives for a batch; named inputs are passed by name."""
    place = next((p.device for p in module.parameters()), torch.device("cpu"))
    if isinstance(batch, Mapping):
        return module(**{name: _moved(value, place) for name, value in batch.items()})
    return module(_moved(batch, place))


def _plain(rows: Any) -> Any:
    """Frames as arrays; everything else that has a length as it is."""
    if hasattr(rows, "to_numpy"):
        return rows.to_numpy()
    if not hasattr(rows, "__len__") or isinstance(rows, (str, bytes)):
        raise TypeError(
            "X: expected a tensor, an array, a mapping of these, or a sequence of examples, got "
            f"{type(rows).__name__}."
        )
    return rows


def _gather(rows: Any, index: Ints) -> Any:
    if isinstance(rows, Mapping):
        return {name: _gather(column, index) for name, column in rows.items()}
    if hasattr(rows, "batch"):
        return _as_tensor(rows.batch(index))
    if isinstance(rows, Tensor):
        return rows[torch.from_numpy(index).to(rows.device)]
    if isinstance(rows, np.ndarray):
        return _as_tensor(rows[index])
    examples = [rows[int(i)] for i in index]
    # Texts are left to the transform, which is their tokeniser.
    return examples if isinstance(examples[0], str) else default_collate(examples)


def _as_tensor(array: Any) -> Any:
    """Numbers as a tensor, anything else (texts) as a list."""
    if isinstance(array, np.ndarray):
        return torch.from_numpy(np.array(array)) if array.dtype.kind in "biuf" else array.tolist()
    return array


def _moved(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, Tensor) else value
