"""What the head of a network sees: its features, computed once for all rows."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad.checks import check_count
from fairgrad.finetune.heads import find_head
from fairgrad.finetune.inputs import as_inputs, run
from fairgrad.finetune.outputs import evaluating, logits_of
from fairgrad.finetune.storage import features_key, in_file, in_memory, in_passing_file, opened
from fairgrad.training import EpochBar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from fairgrad.finetune.heads import Head
    from fairgrad.finetune.inputs import Inputs
    from fairgrad.finetune.outputs import Reading

LARGE = 2**30
"""Bytes of features beyond which they are kept in a file."""


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
    progress: bool | None = None,
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
        progress: True shows a bar, None only when it takes long and on a terminal.

    Raises:
        ValueError: if no head is found, or what it gives is not what the network returns.

    Example:
        >>> network = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
        >>> compute_features(network, torch.zeros(4, 3)).shape
        (4, 5)
    """
    check_count("batch_size", batch_size)
    inputs, found = as_inputs(X, transform), find_head(module, head)
    shape = (len(inputs), found.layer.in_features)
    check_head(module, found, inputs, output)

    def fill(features: Any) -> None:
        bar = EpochBar(-(-len(inputs) // batch_size), enabled=progress, unit="features")
        with evaluating(module), torch.no_grad(), seen_by(found.layer) as seen:
            for _, (place, batch) in zip(bar, inputs.pieces(batch_size), strict=True):
                run(module, batch)
                features[place] = seen.pop().float().cpu().numpy()

    if cache is not None:
        folder = Path(cache)
        folder.mkdir(parents=True, exist_ok=True)
        key = features_key(module, found.name, inputs, batch_size)
        path = folder / f"features-{key}.npy"
        return opened(path) if path.exists() else in_file(path, shape, fill)
    is_large = shape[0] * shape[1] * 4 > large
    return in_passing_file(shape, fill) if is_large else in_memory(shape, fill)


def check_head(module: nn.Module, head: Head, inputs: Inputs, output: Reading | None) -> None:
    """Refuses a head that is not the network's last step, by the first rows.

    Raises:
        ValueError: if the head is used otherwise than once per batch, on one vector per row, or if
            its outputs are not the logits that the network returns.
    """
    rows = np.arange(min(4, len(inputs)))
    with evaluating(module), torch.no_grad(), seen_by(head.layer) as seen:
        logits = logits_of(run(module, inputs.batch(rows)), output)
        if len(seen) != 1:
            raise ValueError(f"head: {head.name!r} is used {len(seen)} times per batch, not once.")
        (features,) = seen
        if features.ndim != 2 or len(features) != len(rows):
            raise ValueError(
                f"head: expected one vector of features per row at {head.name!r}, got shape "
                f"{tuple(features.shape)} for {len(rows)} rows; name another head."
            )
        own = head.layer(features)
    if logits.shape != own.shape or not torch.equal(logits, own):
        raise ValueError(
            f"head: the outputs of {head.name!r} are not the logits that the network returns, so "
            "that replacing it would not do; name the last linear layer with head=, or give "
            "output=, a function from what the network returns to its logits."
        )


@contextmanager
def seen_by(layer: nn.Module) -> Iterator[list[Tensor]]:
    """Inside, the inputs of a layer are put into a list."""
    seen: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    try:
        yield seen
    finally:
        handle.remove()
