"""A fine-tuning in progress on disk, so that it can go on after an interruption."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any

import torch

from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import nn


def weights_key(module: nn.Module, *more: Any) -> str:
    """A hash of a network's structure, weights and buffers, and of what else matters.

    Of its code, only what ``repr`` shows of its layers is in it.
    """
    key = hashlib.blake2b(digest_size=16)
    key.update(repr((type(module).__qualname__, module, more)).encode())
    for name, tensor in module.state_dict().items():
        key.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        key.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return key.hexdigest()


def save(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a dictionary of tensors and plain values."""
    buffer = io.BytesIO()
    torch.save(dict(content), buffer)
    write_whole(path, buffer.getvalue())


def restore(path: Path, key: str) -> dict[str, Any] | None:
    """What was saved; None if there is no file.

    Raises:
        ValueError: if the file belongs to another network or other settings.
    """
    if not path.exists():
        return None
    # Tensors and plain values only: no code is run, whoever wrote the file.
    content: dict[str, Any] = torch.load(path, weights_only=True)
    if content.get("key") != key:
        raise ValueError(
            f"checkpoint: {path.name} is of another network, other data or other settings; delete "
            "it, or name another file."
        )
    return content
