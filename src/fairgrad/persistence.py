"""Saves fitted models to files that can be loaded without running code from them.

A file is a skops archive (plain values and arrays) with a header, followed by a checksum. Types of
this library are stored as tags, not as modules, so that code can move: see `TYPES`.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from fairgrad.archive import SCHEMA, UnusualArchive, read_archive
from fairgrad.files import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping


__all__ = ["FORMAT_VERSION", "load", "save"]

FORMAT, FORMAT_VERSION = "fairgrad.model", 6
"""The content of a file's header. The version changes with the content of models; files of other
versions are refused."""

TYPES = {
    "fairgrad.AtLeast": "fairgrad.measures.AtLeast",
    "fairgrad.AtMost": "fairgrad.measures.AtMost",
    "fairgrad.Constraints": "fairgrad.constraints.Constraints",
    "fairgrad.DatePart": "fairgrad.tables.features.DatePart",
    "fairgrad.FairDecisionClassifier": "fairgrad.sklearn.decision.FairDecisionClassifier",
    "fairgrad.FairGradClassifier": "fairgrad.sklearn.classifier.FairGradClassifier",
    "fairgrad.FairGradLGBMClassifier": "fairgrad.lightgbm.FairGradLGBMClassifier",
    "fairgrad.FairGradXGBClassifier": "fairgrad.xgboost.FairGradXGBClassifier",
    "fairgrad.FoldMean": "fairgrad.sklearn.cell_models.FoldMean",
    "fairgrad.Groups": "fairgrad.groups.Groups",
    "fairgrad.On": "fairgrad.measures.On",
    "fairgrad.SensitiveEncoder": "fairgrad.aware.SensitiveEncoder",
    "fairgrad.TableEncoder": "fairgrad.tables.encoder.TableEncoder",
    "fairgrad.TableFeature": "fairgrad.tables.features.TableFeature",
}
"""The tag in files of each type that a file may contain -> the module and name of its class now.

Tags never change. Only classes whose construction does no more than set attributes are allowed.
"""

ALSO_TRUSTED = (
    "builtins.object",
    *(f"numpy.{kind}" for kind in ("dtype", "number", "integer", "floating", "object_", "str_")),
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
)
"""Trusted in addition to the types that skops trusts: NumPy's arrays and numbers, Python's plain
values and containers, and scikit-learn's estimators except trees, whose indices are not checked in
predict. Selectors of columns contain types of numbers."""

HEADER = "fairgrad.json"
MAX_UNPACKED, MAX_RATIO = 2**28, 200
"""The largest size of an unpacked file, in bytes and as a multiple of the file's size; the larger
limit applies. It stops files that are made to fill the memory."""

MAX_JSON = 2**24
"""The most bytes of a JSON file in an archive, enough for 30,000 texts. Parsed, the three bytes
``{},`` become 72."""

SEAL, SEALED = b"fairgrad sha256 ", 64
"""The text before the checksum, and the checksum's length; both are the archive's comment."""

BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError)
NO_ARCHIVE = (*BROKEN_ZIP, KeyError, RuntimeError, ValueError, MemoryError)
DAMAGE = (*NO_ARCHIVE, TypeError, IndexError, AttributeError, ImportError)
"""Errors that reading an altered file can raise, as an archive and as a model."""

TREES = "fairgrad_saved_trees"
"""The attribute that stores boosted trees as bytes, in files only."""


class RefusedFileError(ValueError):
    """The file contains types that are not trusted."""


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Writes a fitted model to a file; an existing file is replaced only by a complete file.

    Files contain plain values and arrays. Metadata requests (``set_fit_request``) are not saved.

    Args:
        model: a fitted `FairGradClassifier`, `FairDecisionClassifier`, `FairGradLGBMClassifier` or
            `FairGradXGBClassifier`, or a scikit-learn Pipeline or estimator that contains one.
        path: the file; by convention it ends in ``.skops``.

    Raises:
        TypeError: if the model is not an estimator, or contains something that cannot be loaded
            safely, such as a function or a type of another library.
        ValueError: if it has more categories or groups than a file allows, about 30,000.
        sklearn.exceptions.NotFittedError: if it is not fitted.

    Example:
        >>> import tempfile, numpy as np
        >>> from fairgrad.sklearn import FairGradClassifier
        >>> X, y, s = np.eye(4).repeat(5, 0), [0, 0, 1, 1] * 5, [0, 1] * 10
        >>> model = FairGradClassifier(None, max_iter=1)
        >>> model = model.fit(X, y, sensitive_features=s)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same = load(save(model, f"{folder}/model.skops"))
        >>> bool((same.predict_proba(X) == model.predict_proba(X)).all())
        True
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"model: expected a scikit-learn estimator, got {type(model).__name__}.")
    check_is_fitted(model)
    import skops.io  # noqa: PLC0415 - imports all of scikit-learn

    packed = _packed(model, {})
    tags = {place: tag for tag, place in TYPES.items()}
    try:
        data = _renamed(skops.io.dumps(packed, compression=zipfile.ZIP_DEFLATED), tags)
        untrusted = set(skops.io.get_untrusted_types(data=data)) - {*TYPES, *ALSO_TRUSTED}
    except (TypeError, RecursionError) as wrong:
        raise TypeError(f"model: contains something that cannot be saved: {wrong}.") from wrong
    if untrusted:
        raise TypeError(
            f"model: contains {', '.join(sorted(untrusted))}, which cannot be loaded safely. Files "
            "may contain values and estimators of fairgrad and scikit-learn only. Pass measures "
            "and rules by name, and apply your own functions before the model."
        )
    archive = io.BytesIO(data)
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": type(model).__name__,
        "versions": {name: version(name) for name in ("fairgrad", "scikit-learn", "skops")},
    }
    with zipfile.ZipFile(archive, "a") as file:
        try:
            _check_json(file.getinfo(SCHEMA))
        except ValueError as wrong:
            raise ValueError(f"model: has too many texts to be saved: {wrong}.") from wrong
        file.writestr(HEADER, json.dumps(header, indent=2))
        file.comment = SEAL + bytes(SEALED)
    content = archive.getvalue()[:-SEALED]
    write_whole(Path(path), content + hashlib.sha256(content).hexdigest().encode())
    return Path(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Reads a model that `save` wrote. No code from the file is run.

    Args:
        path: the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not a saved model, has changed since it was written, was written
            in another format version, or contains types that are not trusted.

    See `save` for an example.
    """
    data = Path(path).read_bytes()
    content, seal = data[:-SEALED], data[-SEALED:]
    is_sealed = content.endswith(SEAL)  # the oldest files have no checksum
    if is_sealed and hashlib.sha256(content).hexdigest().encode() != seal:
        raise ValueError(
            f"path: {path} is damaged: it has changed since it was written (its checksum differs). "
            "Copy it again, or save the model again."
        )
    _check_header(data, path)
    if not is_sealed:
        raise ValueError(f"path: {path} is damaged: its end, with the checksum, is missing.")
    try:
        _check_sizes(data)
    except NO_ARCHIVE as wrong:
        raise ValueError(f"path: {path} was refused: {wrong}.") from wrong
    try:
        try:
            model = read_archive(data, TYPES)
        except UnusualArchive:
            model = _by_skops(data, path)
        _unpack(model)
    except RefusedFileError:
        raise
    except ModuleNotFoundError as lacking:
        install = f"pip install 'fairgrad[{lacking.name}]'"
        raise ValueError(f"path: {path} needs {lacking.name}: {install}.") from lacking
    except DAMAGE as wrong:
        raise ValueError(f"path: {path} is damaged: {wrong!r}.") from wrong
    if not isinstance(model, BaseEstimator):
        raise ValueError(  # noqa: TRY004 - the file is wrong, not an argument's type
            f"path: {path} contains a {type(model).__name__}, not an estimator."
        )
    return model


def _check_sizes(data: bytes) -> None:
    """Raises an error, before anything is unpacked, if an archive would need too much memory.

    Sparse matrices are archives within the file's archive.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        for info in file.infolist():
            _check_json(info)
        unpacked = sum(info.file_size for info in file.infolist())
        if unpacked > max(MAX_UNPACKED, MAX_RATIO * len(data)):
            raise ValueError(f"its {len(data):,} bytes unpack to {unpacked:,}")
        for name in file.namelist():
            if name.endswith(".npz"):
                _check_sizes(file.read(name))
            elif name.endswith(".npy"):
                _check_shape(name, file.read(name))


def _check_json(info: zipfile.ZipInfo) -> None:
    if info.filename.endswith(".json") and info.file_size > MAX_JSON:
        raise ValueError(
            f"{info.filename} has {info.file_size:,} bytes, at most {MAX_JSON:,} are allowed"
        )


def _check_shape(name: str, content: bytes) -> None:
    """Raises an error if an array's header declares more data than there are."""
    stream = io.BytesIO(content)
    read = np.lib.format.read_array_header_2_0
    if np.lib.format.read_magic(stream) == (1, 0):
        read = np.lib.format.read_array_header_1_0
    shape, _, dtype = read(stream)
    size = len(content) - stream.tell()
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} has {size:,} bytes for an array of shape {shape}")


def _by_skops(data: bytes, path: Any) -> Any:
    """Reads an archive with skops, if all its types are trusted."""
    import skops.io  # noqa: PLC0415 - imports all of scikit-learn
    from skops.io.exceptions import UntrustedTypesFoundException  # noqa: PLC0415 - as above

    try:
        return skops.io.loads(_renamed(data, TYPES), trusted=[*TYPES.values(), *ALSO_TRUSTED])
    except UntrustedTypesFoundException as wrong:
        raise RefusedFileError(
            f"path: {path} was refused; nothing of it was loaded. {wrong}"
        ) from wrong


def _renamed(archive: bytes, names: Mapping[str, str]) -> bytes:
    """Renames the types in a skops archive; nothing is imported or built."""

    def rename(node: dict[str, Any]) -> dict[str, Any]:
        name = names.get(f"{node.get('__module__')}.{node.get('__class__')}")
        if name is not None:
            node["__module__"], _, node["__class__"] = name.rpartition(".")
        return node

    renamed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(renamed, "w") as new:
        for name in dict.fromkeys(old.namelist()):
            content = old.read(name)
            if name == SCHEMA:
                content = json.dumps(json.loads(content, object_hook=rename), indent=2).encode()
            new.writestr(name, content, old.getinfo(name).compress_type)
    return renamed.getvalue()


def _check_header(data: bytes, path: Any) -> None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            _check_json(file.getinfo(HEADER))
            header = json.loads(file.read(HEADER))
    except NO_ARCHIVE as wrong:
        raise ValueError(f"path: {path} is not a model saved by fairgrad ({wrong}).") from wrong
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"path: {path} is not a model saved by fairgrad (it has another header).")
    number = header.get("format_version")
    if number != FORMAT_VERSION:
        remedy = "Fit the model again and save it."
        if isinstance(number, int) and number > FORMAT_VERSION:
            remedy = "Update fairgrad: pip install -U fairgrad."
        raise ValueError(
            f"path: {path} has format version {number!r}; this fairgrad {version('fairgrad')} "
            f"reads version {FORMAT_VERSION}. {remedy}"
        )


def _packed(value: Any, copies: dict[int, Any]) -> Any:
    """Copies an estimator, or a container of estimators, as plain values.

    Two attributes of estimators are not plain values: metadata requests, which refer to the
    estimator itself and are left out, and boosted trees. `copies` holds the copies by id, so that
    shared objects stay shared.
    """
    if id(value) in copies:
        return copies[id(value)]
    made = value
    if isinstance(value, BaseEstimator):
        state = dict(vars(value))
        state.pop("_metadata_request", None)
        if getattr(value, "_Booster", None) is not None and hasattr(value, "tree_bytes"):  # boosted
            trees = np.frombuffer(value.tree_bytes(), dtype=np.uint8)
            state |= {**value.not_packed, TREES: trees}
        made = object.__new__(type(value))
        vars(made).update({name: _packed(inner, copies) for name, inner in state.items()})
    elif type(value) is dict:
        made = {key: _packed(inner, copies) for key, inner in value.items()}
    elif type(value) is tuple or isinstance(value, list):
        made = type(value)(_packed(inner, copies) for inner in value)
    copies[id(value)] = made
    return made


def _unpack(model: Any) -> None:
    """Restores the trees of a loaded estimator and of all estimators in it, in place."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, BaseEstimator):
            state = vars(item)
            if TREES in state and hasattr(item, "load_trees"):
                item.load_trees(np.asarray(state.pop(TREES), dtype=np.uint8).tobytes())
            waiting += state.values()
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, (list, tuple)):
            waiting += item
