"""Reads common model files without skops, which makes loading 2.5 times faster.

skops imports all of scikit-learn, and PyTorch with it, to know which types it trusts. This takes
longer than predicting a small table. The format itself is small: files of plain values, arrays and
a few well-known classes are read here, and all other files by skops (`UnusualArchive`). This reader
trusts fewer types than skops, and the tests compare both readers.
"""

from __future__ import annotations

import io
import json
import zipfile
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

__all__ = ["SCHEMA", "UnusualArchive", "read_archive"]

SCHEMA = "schema.json"
PROTOCOL = 2
"""The newest protocol of skops that this reader supports; older ones do not differ here."""

CLASSES = (
    "sklearn.compose._column_transformer.ColumnTransformer",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.preprocessing._encoders.OneHotEncoder",
    "sklearn.preprocessing._encoders.OrdinalEncoder",
    "sklearn.preprocessing._label.LabelEncoder",
)
"""Classes of scikit-learn that occur in the program's models."""

KEYS = {"builtins.str": str, "builtins.int": int, "builtins.float": float}
NUMBERS = {
    f"numpy.{kind.__name__}": kind
    for kind in (np.bool_, np.int32, np.int64, np.float32, np.float64)
}


class UnusualArchive(Exception):  # noqa: N818 - not an error: skops reads the file
    """The archive contains something that only skops can read."""


def read_archive(data: bytes, places: Mapping[str, str]) -> Any:
    """Reads an archive.

    Args:
        data: the archive.
        places: for each tag of this library's types, where the type is imported from.

    Raises:
        UnusualArchive: if it contains other types. Nothing was created then.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return _Reading(file, places).result()


class _Reading:
    """An archive: a tree of nodes, each with a type.

    All types are checked before any object is created.
    """

    def __init__(self, file: zipfile.ZipFile, places: Mapping[str, str]) -> None:
        self.file = file
        self.places = {**{name: name for name in CLASSES}, **places}
        self.made: dict[Any, Any] = {}
        self.begun: set[Any] = set()
        self.makers: dict[str, tuple[Callable[[dict[str, Any]], Any], Container[str]]] = {
            "JsonNode": (lambda node: json.loads(node["content"]), {"builtins.str"}),
            "ListNode": (lambda node: [*map(self.make, node["content"])], {"builtins.list"}),
            "TupleNode": (lambda node: (*map(self.make, node["content"]),), {"builtins.tuple"}),
            "DictNode": (self._dict, {"builtins.dict"}),
            "TypeNode": (lambda node: {**KEYS, **NUMBERS}[_name(node)], {*KEYS, *NUMBERS}),
            "SliceNode": (_slice, {"builtins.slice"}),
            "NdArrayNode": (self._array, {"numpy.ndarray", *NUMBERS}),
            "ObjectNode": (self._object, self.places),
        }
        """For each kind of node, the function that creates the object, and the allowed types."""

    def result(self) -> Any:
        """The object of the tree's root."""
        schema = json.loads(self.file.read(SCHEMA), object_hook=self._checked)
        protocol = schema.get("protocol")
        if type(protocol) is not int or not 0 <= protocol <= PROTOCOL:
            raise UnusualArchive(f"protocol {protocol!r}")
        return self.make(schema)

    def make(self, node: dict[str, Any]) -> Any:
        """Creates the object of a node; nodes with the same id are the same object."""
        saved = node.get("__id__")
        if saved in self.made:
            return self.made[saved]
        if saved in self.begun:
            raise UnusualArchive("an object that contains itself")
        if saved:
            self.begun.add(saved)
        made = self.makers[node["__loader__"]][0](node)
        if saved:
            self.made[saved] = made
        return made

    def _checked(self, node: dict[str, Any]) -> dict[str, Any]:
        if "__loader__" in node:
            loader = str(node["__loader__"])
            if loader not in self.makers or _name(node) not in self.makers[loader][1]:
                raise UnusualArchive(f"{loader} of {_name(node)}")
        return node

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        kinds = self.make(node["key_types"])
        items = zip(kinds, node["content"].items(), strict=True)
        return {kind(key): self.make(inner) for kind, (key, inner) in items}

    def _array(self, node: dict[str, Any]) -> Any:
        kind = NUMBERS.get(_name(node))
        if node["type"] == "numpy":
            array = np.load(io.BytesIO(self.file.read(node["file"])), allow_pickle=False)
            return array if kind is None else kind(array)
        shape = self.make(node["shape"])
        if node["type"] != "json" or kind is not None or len(shape) != 1:
            raise UnusualArchive(f"an array of type {node['type']!r} and shape {shape}")
        array = np.empty(len(node["content"]), dtype=object)
        for i, inner in enumerate(node["content"]):
            array[i] = self.make(inner)
        return array

    def _object(self, node: dict[str, Any]) -> Any:
        module, _, name = self.places[_name(node)].rpartition(".")
        kind = getattr(import_module(module), name)
        made = kind.__new__(kind)
        state = None if node.get("content") is None else self.make(node["content"])
        if state is not None and hasattr(made, "__setstate__"):
            made.__setstate__(state)
        elif state is not None:
            vars(made).update(state)
        return made


def _slice(node: Mapping[str, Any]) -> slice:
    return slice(*(node["content"][end] for end in ("start", "stop", "step")))


def _name(node: Mapping[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"
