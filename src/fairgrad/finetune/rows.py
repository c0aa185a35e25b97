"""What a network is fed and what it returns: the user's rows, labels and groups, and logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from fairgrad.columns import as_columns, sensitive_columns
from fairgrad.dual import cost_shares
from fairgrad.evaluate import cell_rates, levels_of
from fairgrad.groups import GroupedRows, group_rows
from fairgrad.measures import constraints_of
from fairgrad.training import EpochBar

if TYPE_CHECKING:
    from torch import nn

    from fairgrad.groups import Ints

Reading = Callable[[Any], Tensor]
"""From what a network returns to its logits."""


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """Rows for a network, gathered batch by batch: only one batch is in memory at a time.

    Attributes:
        rows: what the user gave: a tensor or array, a mapping of these (a tokeniser's output),
            anything with a method ``batch(rows)`` (the images of `fairgrad.datasets`), or a
            sequence of examples, which PyTorch's own collation puts together.
        index: (n,) the numbers of the rows that are meant.
        transform: applied to every batch, such as a normalisation or a tokeniser; None for none.
    """

    rows: Any
    index: Ints
    transform: Callable[[Any], Any] | None = None

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: Ints) -> NetworkInputs:
        """Some of the rows."""
        return replace(self, index=self.index[rows])

    def batch(self, rows: Ints | slice) -> Any:
        """Some rows as the network takes them: a tensor, or named tensors."""
        found = _gather(self.rows, self.index[rows])
        return found if self.transform is None else self.transform(found)

    def pieces(self, size: int, verbose: bool | str, unit: str) -> Iterator[tuple[slice, Any]]:
        """All rows in their order, so many at a time, each piece with its place; under a bar."""
        for piece in progress_bar(-(-len(self) // size), verbose, unit):
            place = slice(piece * size, min((piece + 1) * size, len(self)))
            yield place, self.batch(place)


def read_inputs(X: Any, transform: Callable[[Any], Any] | None = None) -> NetworkInputs:
    """The user's rows; those that were read before as they are.

    Raises:
        TypeError: if they are of no kind that can be read.
        ValueError: if there are none, or named columns differ in length.
    """
    if isinstance(X, NetworkInputs):
        return X
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
    return NetworkInputs(X, np.arange(n), transform)


@dataclass(frozen=True, eq=False)
class LabelledInputs:
    """Rows for a network with their labels and groups.

    Attributes:
        inputs: what the network is fed.
        rows: labels and groups; the network's outputs are in the order of ``rows.groups.labels``.
        has_groups: whether there are sensitive values; if not, all rows are in one group.
    """

    inputs: NetworkInputs
    rows: GroupedRows
    has_groups: bool

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: Ints) -> LabelledInputs:
        """Some of the rows."""
        return replace(self, inputs=self.inputs.take(rows), rows=self.rows.take(rows))

    def judge(
        self, predicted: Ints, measure: Any, y_desirable: Any, cost_matrix: Any = None
    ) -> dict[str, float]:
        """Accuracy, and unfairness if there are sensitive values, of predicted positions.

        With costs also the merit: `fairgrad.dual.cost_shares`.
        """
        rows, wrong = self.rows, predicted != self.rows.label
        found = {"accuracy": float((~wrong).mean())}
        if cost_matrix is not None:
            shares = cost_shares(cost_matrix, len(rows.groups.labels))
            found["merit"] = 1.0 - float(shares[rows.label, predicted].mean())
        if self.has_groups and measure is not None:
            constraints = constraints_of(measure, rows.groups, y_desirable=y_desirable)
            rates = cell_rates(constraints, rows, predicted)
            found["unfairness"] = levels_of(constraints, rates).unfairness
        return found


def read_labelled(
    X: Any,
    y: Any,
    sensitive_features: Any,
    transform: Callable[[Any], Any] | None,
    labels: Any = None,
) -> LabelledInputs:
    """Checks lengths and labels before anything is computed.

    Raises:
        ValueError: if lengths differ, there is one class only, or a label is not among `labels`.
    """
    inputs = read_inputs(X, transform)
    n = len(inputs)
    n_labels = len(next(iter(as_columns(y, "y").values())))
    if n_labels != n:
        raise ValueError(f"y: expected one label per row of X ({n}), got {n_labels}.")
    has_groups = sensitive_features is not None
    s = sensitive_columns(sensitive_features, n) if has_groups else np.zeros(n, dtype=np.int64)
    rows = group_rows(y, s, labels=labels, arguments=("y", "sensitive_features", "sample_weight"))
    found = rows.groups.labels.tolist()
    if len(found) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {found}.")
    return LabelledInputs(inputs, rows, has_groups)


def progress_bar(n: int, verbose: bool | str, unit: str) -> EpochBar:
    """A bar over so many pieces of work; "auto" shows it on terminals, when it takes long."""
    return EpochBar(n, enabled=None if verbose == "auto" else bool(verbose), unit=unit)


def predict_logits(
    module: nn.Module,
    X: Any,
    *,
    transform: Callable[[Any], Any] | None = None,
    output: Reading | None = None,
    batch_size: int = 256,
    verbose: bool | str = "auto",
) -> Tensor:
    """(n, outputs) the logits of many rows, in evaluation mode and without a gradient.

    Args:
        module: the network, which is left as it is.
        X: rows, as in `finetune`.
        transform: applied to every batch.
        output: how to read logits off what the network returns.
        batch_size: rows at a time.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Example:
        >>> predict_logits(torch.nn.Linear(3, 2), torch.zeros(5, 3)).shape
        torch.Size([5, 2])
    """
    inputs = read_inputs(X, transform)
    with evaluating(module), torch.no_grad():
        found = [
            read_logits(run(module, batch), output).float().cpu()
            for _, batch in inputs.pieces(batch_size, verbose, "batches")
        ]
    return torch.cat(found)


def run(module: nn.Module, batch: Any) -> Any:
    """What a module returns for a batch; named inputs are passed by name."""
    device = next((p.device for p in module.parameters()), torch.device("cpu"))

    def moved(value: Any) -> Any:
        return value.to(device) if isinstance(value, Tensor) else value

    if isinstance(batch, Mapping):
        return module(**{name: moved(value) for name, value in batch.items()})
    return module(moved(batch))


def read_logits(returned: Any, output: Reading | None = None) -> Tensor:
    """(n, outputs) the logits of a batch.

    A tensor is taken as it is, and so is the entry or attribute ``logits`` of anything else, as in
    the models of Hugging Face. What has neither needs `output`.

    Raises:
        TypeError: if no logits can be read off it.
    """
    found: Any = None
    if output is not None:
        found = output(returned)
    elif isinstance(returned, Mapping):
        found = returned.get("logits")
    else:
        found = returned if isinstance(returned, Tensor) else getattr(returned, "logits", None)
    if not isinstance(found, Tensor):
        what = type(returned).__name__
        if isinstance(returned, Mapping):
            what = f"{what} with {sorted(map(str, returned))}"
        elif isinstance(returned, (tuple, list)):
            what = f"{what} of {len(returned)}"
        raise TypeError(
            "module: expected it to return a tensor of logits, or something with an entry or "
            f"attribute 'logits', got {what}; give output=, a function from what it returns to "
            "its logits."
        )
    logits: Tensor = found[:, None] if found.ndim == 1 else found
    return logits


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Inside, all layers are in evaluation mode; after it each is in its own again."""
    before = [(layer, layer.training) for layer in module.modules()]
    module.train(mode=False)
    try:
        yield
    finally:
        for layer, training in before:
            layer.training = training


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
    """Numbers as a tensor, other arrays (texts) as a list."""
    if isinstance(array, np.ndarray):
        return torch.from_numpy(np.array(array)) if array.dtype.kind in "biuf" else array.tolist()
    return array
