"""Finds the methods: every module of the package that defines METHOD is one."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairgrad.methods.interface import Method


@cache
def _listing() -> tuple[Method, ...]:
    package = import_module("fairgrad.methods")
    modules = [
        import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules(package.__path__)
        if not found.ispkg
    ]
    return tuple(module.METHOD for module in modules if hasattr(module, "METHOD"))


def methods() -> dict[str, Method]:
    """All methods by their names, sorted.

    Example:
        >>> methods()["constant"].description
        'Predicts the most frequent label of the training rows for everybody.'
    """
    return {method.name: method for method in sorted(_listing(), key=lambda found: found.name)}
