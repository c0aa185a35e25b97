"""Where features are kept: in memory, or in a NumPy file that is read as it is needed."""

from __future__ import annotations

import hashlib
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from fairgrad.files import whole_file
from fairgrad.finetune.checkpoint import weights_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import nn

    from fairgrad.finetune.inputs import Inputs


def features_key(module: nn.Module, head: str, inputs: Inputs, piece: int) -> str:
    """A hash of the network's weights and of every batch it is going to see.

    Batches are hashed as the network gets them, after the transform: a change of that counts, too.
    """
    key = hashlib.blake2b(weights_key(module, head).encode(), digest_size=16)
    for _, batch in inputs.pieces(piece):
        named = batch.items() if hasattr(batch, "items") else [("", batch)]
        for name, value in named:
            key.update(str(name).encode())
            key.update(_bytes(value))
    return key.hexdigest()


def in_memory(shape: tuple[int, int], fill: Callable[[Any], None]) -> NDArray[np.float32]:
    """Features in memory, filled by a function."""
    found: NDArray[np.float32] = np.empty(shape, dtype=np.float32)
    fill(found)
    return found


def in_file(path: Path, shape: tuple[int, int], fill: Callable[[Any], None]) -> NDArray[np.float32]:
    """Features in a file, filled piece by piece, and renamed to its name when it is whole."""
    with whole_file(path) as beside:
        writing = np.lib.format.open_memmap(beside, mode="w+", dtype=np.float32, shape=shape)
        fill(writing)
        writing.flush()
        del writing
    return opened(path)


def in_passing_file(shape: tuple[int, int], fill: Callable[[Any], None]) -> NDArray[np.float32]:
    """Features in a file that goes when they do."""
    folder = tempfile.TemporaryDirectory(prefix="fairgrad-features-", ignore_cleanup_errors=True)
    found = in_file(Path(folder.name) / "features.npy", shape, fill)
    weakref.finalize(found, folder.cleanup)
    return found


def opened(path: Path) -> NDArray[np.float32]:
    """Features of a file, read from disk as they are needed."""
    found: NDArray[np.float32] = np.load(path, mmap_mode="r")
    return found


def _bytes(value: Any) -> bytes:
    if isinstance(value, Tensor):
        flat = value.detach().cpu().contiguous().view(-1).view(torch.uint8)
        return f"{value.dtype} {tuple(value.shape)}".encode() + flat.numpy().tobytes()
    return repr(value).encode()
