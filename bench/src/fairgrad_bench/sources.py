"""Names in a plan -> the data, the method and the version of the code they stand for."""

from __future__ import annotations

import ast
import importlib
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from fairgrad.bench.version import digest_of
from fairgrad.datasets import load, names
from fairgrad.methods import Method, methods

if TYPE_CHECKING:
    from fairgrad.bench.unit import Unit
    from fairgrad.datasets import Split


def parse_dataset(text: str) -> tuple[str, dict[str, Any]]:
    """A data set's name and its options.

    Raises:
        ValueError: if there is no data set of that name, or an option is not "name=value".

    Example:
        >>> parse_dataset("gaussian:rows=2000:seed=1")
        ('gaussian', {'rows': 2000, 'seed': 1})
    """
    name, *options = text.split(":")
    if name not in names():
        raise ValueError(f"dataset: got {name!r}; the data sets are {', '.join(names())}.")
    pairs = [option.partition("=") for option in options]
    for key, sign, _ in pairs:
        if not (key and sign):
            raise ValueError(f"dataset: got {text!r}; write options as name:option=value.")
    return name, {key: _value(value) for key, _, value in pairs}


def find_method(name: str) -> Method:
    """A method by its name, or "module:NAME" for one of the user's own.

    Raises:
        ValueError: if there is none.
    """
    module, colon, attribute = name.partition(":")
    if colon:
        return _own_method(module, attribute)
    if name not in methods():
        raise ValueError(
            f"method: got {name!r}; the methods are {', '.join(methods())}, "
            'or "module:NAME" of your own.'
        )
    return methods()[name]


@lru_cache(maxsize=1)  # units of one data set follow each other; more would fill the memory
def splits_of(dataset: str, seeds: tuple[int, ...]) -> dict[int, Split]:
    """The paper's parts for every seed."""
    name, options = parse_dataset(dataset)
    loaded = load(name, **options)
    return {seed: loaded.split(seed) for seed in seeds}


def code_version(unit: Unit) -> str:
    """A digest of the code that this unit's result depends on."""
    return _digest(unit.method, parse_dataset(unit.dataset)[0])


@cache
def _digest(method: str, dataset: str) -> str:
    module, colon, _ = method.partition(":")
    return digest_of(
        {
            module if colon else f"fairgrad.methods.{method}",
            f"fairgrad.datasets.catalogue.{dataset}",
            "fairgrad.datasets.loading",
            "fairgrad.bench.counts",
        }
    )


def _own_method(module: str, attribute: str) -> Method:
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"method: {module}:{attribute} cannot be imported: {error}") from error
    if not isinstance(found, Method):
        raise ValueError(  # noqa: TRY004 - the argument is a name, and the name is wrong
            f"method: expected {module}:{attribute} to be a fairgrad.methods.Method, "
            f"got {type(found).__name__}."
        )
    return found


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
