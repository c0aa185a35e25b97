"""A network as a body and a head: the head is found, the features before it are computed once."""

from __future__ import annotations

import copy
import hashlib
import tempfile
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad.checks import check_count
from fairgrad.files import whole_file
from fairgrad.finetune.rows import evaluating, read_inputs, read_logits, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from fairgrad.finetune.rows import NetworkInputs, Reading

LARGE = 2**30
"""Bytes of features beyond which they are kept in a file."""


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
