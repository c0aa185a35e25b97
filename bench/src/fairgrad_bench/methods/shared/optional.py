"""Libraries that only some methods need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, package: str) -> Any:
    """A module of an optional package.

    Raises:
        ImportError: naming the package and the extra that installs it.
    """
    try:
        return import_module(module)
    except ImportError as missing:
        raise ImportError(
            f"{package}: this method needs it; pip install 'fairgrad[bench]'."
        ) from missing
