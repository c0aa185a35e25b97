"""A network as a body and a head: what it is fed, what it returns, the features before its head."""

from __future__ import annotations

import copy
import hashlib
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import default_collate

from fairgrad.checks import check_count
from fairgrad.columns import as_columns, sensitive_columns
from fairgrad.dual import cost_shares
from fairgrad.evaluate import cell_rates, levels_of
from fairgrad.files import whole_file
from fairgrad.groups import GroupedRows, group_rows
from fairgrad.measures import constraints_of
from fairgrad.training import EpochBar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Ints

LARGE = 2**30
"""Bytes of features beyond which they are kept in a file."""

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


class Head(NamedTuple):
    """The layer that turns features into logits.

    Attributes:
        name: its path in the network; "" if the network is this layer alone.
        layer: the layer itself.
    """

    name: str
    layer: nn.Linear


def find_head(module: nn.Module, head: str | None = None) -> Head:
    """The last linear layer of a network, or of the part of it with that name.

    Args:
        module: the network.
        head: name of the head, as in ``module.named_modules()``. If it names a larger part, such
            as a sequence of dropout and a linear layer, its last linear layer is the head.

    Raises:
        ValueError: if there is no such part, or no linear layer in it.
    """
    parts = dict(module.named_modules(remove_duplicate=False))
    if head is not None and head not in parts:
        linear = [name for name, part in parts.items() if isinstance(part, nn.Linear)]
        raise ValueError(
            f"head: expected the name of a part of {type(module).__name__}, got {head!r}; "
            f"its linear layers are {linear[-10:]}."
        )
    start = head or ""
    inside = [
        Head(name, part)
        for name, part in parts.items()
        if isinstance(part, nn.Linear)
        and (not start or name == start or name.startswith(f"{start}."))
    ]
    if not inside:
        where = type(parts[start]).__name__
        raise ValueError(
            f"head: expected a linear layer (torch.nn.Linear) in {start or 'the module'}, a "
            f"{where}, which has none; name one with head=, or put one behind the network."
        )
    return inside[-1]


def with_head(module: nn.Module, name: str, layer: nn.Module) -> nn.Module:
    """A deep copy of a network with another layer in the place of its head."""
    if not name:
        return layer
    changed = copy.deepcopy(module)
    parent, _, last = name.rpartition(".")
    setattr(changed.get_submodule(parent), last, layer)
    return changed


def new_head(head: Head, n_outputs: int) -> nn.Linear:
    """A linear layer with fresh weights, where the old one is."""
    weight = head.layer.weight
    return nn.Linear(head.layer.in_features, n_outputs, device=weight.device, dtype=weight.dtype)


def count_outputs(head: Head, n_classes: int) -> int:
    """Outputs of the new head: one per class, or one for both of two if the old one had one."""
    return 1 if n_classes == 2 and head.layer.out_features == 1 else n_classes


def network_key(module: nn.Module, *more: Any) -> str:
    """A hash of a network's structure, weights and buffers, and of what else matters.

    Of its code, only what ``repr`` shows of its layers is in it.
    """
    key = hashlib.blake2b(digest_size=16)
    key.update(repr((type(module).__qualname__, module, more)).encode())
    for name, tensor in module.state_dict().items():
        key.update(f"{name} ".encode() + _content(tensor))
    return key.hexdigest()


def compute_features(
    module: nn.Module,
    X: Any,
    *,
    head: str | None = None,
    transform: Callable[[Any], Any] | None = None,
    output: Reading | None = None,
    batch_size: int = 256,
    cache: str | Path | None = None,
    large: int = LARGE,
    verbose: bool | str = "auto",
) -> NDArray[np.float32]:
    """(n, features) what reaches the head of a network, in evaluation mode.

    Memory stays bounded: features that are large, or have a cache, are written to a NumPy file
    batch by batch and read from there as they are needed.

    Args:
        module: the network, which is left as it is.
        X: rows, as in `finetune`.
        head: name of the head; by default the last linear layer.
        transform: applied to every batch.
        output: how to read logits off what the network returns.
        batch_size: rows at a time.
        cache: a folder in which features are kept for the next time, under a hash of the network's
            weights and of all batches.
        large: bytes of features beyond which they are kept in a file.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Raises:
        ValueError: if no head is found, or what it gives is not what the network returns.

    Example:
        >>> network = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
        >>> compute_features(network, torch.zeros(4, 3)).shape
        (4, 5)
    """
    check_count("batch_size", batch_size)
    inputs, found = read_inputs(X, transform), find_head(module, head)
    shape = (len(inputs), found.layer.in_features)
    _check_head(module, found, inputs, output)

    def fill(features: Any) -> None:
        with evaluating(module), torch.no_grad(), _seen_by(found.layer) as seen:
            for place, batch in inputs.pieces(batch_size, verbose, "features"):
                run(module, batch)
                features[place] = seen.pop().float().cpu().numpy()

    if cache is not None:
        key = _features_key(module, found.name, inputs, batch_size)
        return _in_file(Path(cache) / f"features-{key}.npy", shape, fill)
    if shape[0] * shape[1] * 4 > large:  # a file that goes when the features do
        passing = tempfile.TemporaryDirectory(
            prefix="fairgrad-features-", ignore_cleanup_errors=True
        )
        mapped = _in_file(Path(passing.name) / "features.npy", shape, fill)
        weakref.finalize(mapped, passing.cleanup)
        return mapped
    features: NDArray[np.float32] = np.empty(shape, dtype=np.float32)
    fill(features)
    return features


def _check_head(
    module: nn.Module, head: Head, inputs: NetworkInputs, output: Reading | None
) -> None:
    """Refuses a head that is not the network's last step, by the first rows."""
    n = min(4, len(inputs))
    with evaluating(module), torch.no_grad(), _seen_by(head.layer) as seen:
        logits = read_logits(run(module, inputs.batch(slice(n))), output)
        if len(seen) != 1:
            raise ValueError(f"head: {head.name!r} is used {len(seen)} times per batch, not once.")
        (features,) = seen
        if features.ndim != 2 or len(features) != n:
            raise ValueError(
                f"head: expected one vector of features per row at {head.name!r}, got shape "
                f"{tuple(features.shape)} for {n} rows; name another head."
            )
        own = head.layer(features)
    if logits.shape != own.shape or not torch.equal(logits, own):
        raise ValueError(
            f"head: the outputs of {head.name!r} are not the logits that the network returns. Name "
            "the last linear layer with head=, or give output=, a function from what the network "
            "returns to its logits."
        )


@contextmanager
def _seen_by(layer: nn.Module) -> Iterator[list[Tensor]]:
    """Inside, the inputs of a layer are put into a list."""
    seen: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    try:
        yield seen
    finally:
        handle.remove()


def _in_file(
    path: Path, shape: tuple[int, int], fill: Callable[[Any], None]
) -> NDArray[np.float32]:
    """Features of a file, read from disk as they are needed.

    If there is no such file, it is filled piece by piece, and gets its name when it is whole.
    """
    if not path.exists():
        with whole_file(path, private=True) as beside:
            writing = np.lib.format.open_memmap(beside, mode="w+", dtype=np.float32, shape=shape)
            fill(writing)
            writing.flush()
            del writing  # closes the file
    found: NDArray[np.float32] = np.load(path, mmap_mode="r")
    return found


def _features_key(module: nn.Module, head: str, inputs: NetworkInputs, piece: int) -> str:
    """A hash of the network's weights and of every batch it is going to see.

    Batches are hashed as the network gets them, after the transform: a change of that counts, too.
    """
    key = hashlib.blake2b(network_key(module, head).encode(), digest_size=16)
    for _, batch in inputs.pieces(piece, verbose=False, unit=""):
        named = batch.items() if hasattr(batch, "items") else [("", batch)]
        for name, value in named:
            key.update(str(name).encode() + _content(value))
    return key.hexdigest()


def _content(value: Any) -> bytes:
    if isinstance(value, Tensor):
        flat = value.detach().cpu().contiguous().view(-1).view(torch.uint8)
        return f"{value.dtype} {tuple(value.shape)}".encode() + flat.numpy().tobytes()
    return repr(value).encode()
