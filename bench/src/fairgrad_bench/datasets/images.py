"""Images in a folder or zip archive, decoded only when one is asked for."""

from __future__ import annotations

import importlib
import io
import os
import zipfile
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, eq=False)
class Images:
    """A sequence of images: ``len``, ``images[i]``, and ``batch`` for many at once.

    It opens its archive anew in every process, so data loaders may copy it to their workers.

    Attributes:
        path: A folder, or a zip archive.
        names: File names inside it, one per image.
        size: Height and width to scale to; None leaves every image as it is.
    """

    path: Path
    names: np.ndarray
    size: tuple[int, int] | None = None

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.names)

    def __getitem__(self, index: int) -> np.ndarray:
        """Decode one image: height x width x 3, values 0 to 255."""
        return _decoded(_content(self.path, str(self.names[index])), self.size)

    def take(self, index: np.ndarray | Sequence[int], axis: int = 0) -> Images:
        """The chosen images, still undecoded.

        Raises:
            ValueError: if the axis is not 0.
        """
        if axis != 0:
            raise ValueError(f"axis is {axis}; images are chosen along axis 0")
        return replace(self, names=self.names[np.asarray(index)])

    def batch(self, index: np.ndarray | Sequence[int] | slice) -> np.ndarray:
        """Decode many images: number x 3 x height x width, float32 in [0, 1], as PyTorch has it."""
        chosen = np.arange(len(self))[index]
        pixels = np.stack([self[int(i)] for i in chosen])
        return pixels.transpose(0, 3, 1, 2).astype(np.float32) / 255


def image_names(path: Path) -> list[str]:
    """Sorted names of the JPEG and PNG files in a folder or zip archive."""
    if path.is_dir():
        found = [str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()]
    else:
        try:
            found = _archive(path, os.getpid()).namelist()
        except zipfile.BadZipFile as error:
            raise ValueError(f"{path} is neither a folder nor a zip archive") from error
    return sorted(name for name in found if name.lower().endswith((".jpg", ".jpeg", ".png")))


def _content(path: Path, name: str) -> bytes:
    if path.is_dir():
        return (path / name).read_bytes()
    return _archive(path, os.getpid()).read(name)


@lru_cache(maxsize=8)
def _archive(path: Path, _process: int) -> zipfile.ZipFile:
    # Kept open: opening reads the whole directory of the archive. The process number is part of
    # the key because a forked process must not share the file's position with its parent.
    return zipfile.ZipFile(path)


def _decoded(content: bytes, size: tuple[int, int] | None) -> np.ndarray:
    with _pillow().open(io.BytesIO(content)) as image:
        pixels = image.convert("RGB")
        if size is not None:
            pixels = pixels.resize((size[1], size[0]))
        return np.asarray(pixels)


def _pillow() -> Any:
    """Pillow's Image module, imported when an image is decoded: it is optional."""
    try:
        return importlib.import_module("PIL.Image")
    except ImportError as error:
        raise ImportError("decoding images needs Pillow: pip install pillow") from error
