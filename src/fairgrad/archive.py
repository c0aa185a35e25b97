"""Model files that hold nothing unusual, read without skops.

To know which types it trusts, skops imports all of scikit-learn, and PyTorch with it: that takes
longer than predicting a small table. The format itself is small. What a file of plain values,
arrays and a few well-known classes says is read here; a file with anything else in it is left to
skops (`UnusualArchive`). So fewer types are trusted here than there, and the tests hold both
readers against each other.
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
"""The newest protocol of skops that is known here; nothing used here was otherwise before."""

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
"""Of scikit-learn: those that the program's own models are made of."""

KEYS = {"builtins.str": str, "builtins.int": int, "builtins.float": float}
NUMBERS = {
    f"numpy.{kind.__name__}": kind
    for kind in (np.bool_, np.int32, np.int64, np.float32, np.float64)
}


class UnusualArchive(Exception):  # noqa: N818 - not an error: somebody else reads it
    """The archive holds something that is not read here."""


def read_archive(data: bytes, places: Mapping[str, str]) -> Any:
    """What an archive holds.

    Args:
        data: the archive.
        places: of each type of this library, by its name in files, where it is imported from.

    Raises:
        UnusualArchive: if it holds anything but what is known here. Nothing was made of it then.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return _Reading(file, places).result()


class _Reading:
    """One archive: a tree of nodes, each with the type of what it holds.

    The whole tree is checked before anything is made of it.
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
        """Of each kind of node what makes it, and the types it may have."""

    def result(self) -> Any:
        """What the tree's root stands for."""
        schema = json.loads(self.file.read(SCHEMA), object_hook=self._checked)
        protocol = schema.get("protocol")
        if type(protocol) is not int or not 0 <= protocol <= PROTOCOL:
            raise UnusualArchive(f"protocol {protocol!r}")
        return self.make(schema)

    def make(self, node: dict[str, Any]) -> Any:
        """What a node stands for; nodes of one id are one object."""
        saved = node.get("__id__")
        if saved in self.made:
            return self.made[saved]
        if saved in self.begun:
            raise UnusualArchive("something that holds itself")
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
        parts = zip(kinds, node["content"].items(), strict=True)
        return {kind(key): self.make(inner) for kind, (key, inner) in parts}

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
