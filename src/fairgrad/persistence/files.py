"""Saving and loading fitted models: skops for estimators, safetensors for modules, one file."""

from __future__ import annotations

import copy
import io
import json
import math
import zipfile
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors.torch
import skops.io
from safetensors import SafetensorError
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from skops.io.exceptions import UntrustedTypesFoundException

from fairgrad.files import write_whole
from fairgrad.persistence.portable import Packing, unpack
from fairgrad.persistence.trusted import TRUSTED

if TYPE_CHECKING:
    import os

    from torch import nn

FORMAT, FORMAT_VERSION = "fairgrad.model", 1
"""What stands in a file's header. The version grows when older programs cannot read it."""

HEADER, WEIGHTS = "fairgrad.json", "module.safetensors"
NO_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    KeyError,
    RuntimeError,
    EOFError,
    ValueError,
)
DAMAGE = (*NO_ARCHIVE, TypeError, IndexError, AttributeError, ImportError)
"""What reading a file that was altered can end in, as an archive and as a model."""

MAX_HEADER = 2**16
"""Bytes of a header; a longer one is none of ours."""


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Writes a fitted model to a file, whole or not at all; an existing file is replaced.

    The file is a skops archive: plain values and arrays, from which loading rebuilds the model. Of
    a model with `module=`, the weights are saved (as safetensors): give the module to `load`.

    Args:
        model: a fitted `FairGradClassifier`, or a scikit-learn estimator such as a Pipeline that
            holds one.
        path: the file; by convention it ends in ``.skops``.

    Raises:
        TypeError: if the model is no estimator, or holds something that cannot be loaded safely,
            such as a function or a type of neither this library nor scikit-learn.
        sklearn.exceptions.NotFittedError: if it is not fitted.

    Example:
        >>> import tempfile, numpy as np
        >>> from fairgrad.sklearn import FairGradClassifier
        >>> X, y, s = np.eye(4).repeat(5, 0), [0, 0, 1, 1] * 5, [0, 1] * 10
        >>> model = FairGradClassifier(compare_plain=False, fairness_rate=0.01, max_iter=1)
        >>> model = model.fit(X, y, sensitive_features=s)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     same = load(save(model, f"{folder}/model.skops"))
        >>> bool((same.predict_proba(X) == model.predict_proba(X)).all())
        True
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"model: expected a scikit-learn estimator, got {type(model).__name__}.")
    check_is_fitted(model)
    packing = Packing()
    archive = _archive(packing.pack(model))
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": type(model).__name__,
        "module": _module_name(packing.modules),
        "versions": {name: version(name) for name in ("fairgrad", "scikit-learn", "skops")},
    }
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr(HEADER, json.dumps(header, indent=2))
        if packing.modules:
            file.writestr(WEIGHTS, _weights(packing.modules[0]))
    write_whole(Path(path), archive.getvalue())
    return Path(path)


def load(path: str | os.PathLike[str], *, module: nn.Module | None = None) -> Any:
    """Reads a model that `save` wrote. No code from the file is run.

    Args:
        path: the file.
        module: for a model that was made with `module=`: one of the same architecture, which is
            left as it is.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is no saved model, was written by a newer version, holds types that
            are not trusted, or needs a module.

    Example:
        >>> import tempfile
        >>> from fairgrad.sklearn import FairGradClassifier
        >>> X, y, s = [[0.0], [1.0]] * 50, [0, 1] * 50, [0, 0, 1, 1] * 25
        >>> model = FairGradClassifier(max_iter=2, fairness_rate=0.05, compare_plain=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save(model.fit(X, y, sensitive_features=s), f"{folder}/model.fairgrad")
        ...     bool((load(path).predict(X) == model.predict(X)).all())
        True
    """
    data = Path(path).read_bytes()
    header = _header(data, path)
    _check_version(header, path)
    trained = _trained(header, data, path, module)
    model = _estimator(data, path)
    unpack(model, module, trained)
    return model


def _archive(packed: Any) -> io.BytesIO:
    """The estimator as a skops archive; refused here rather than when somebody loads it."""
    try:
        data = skops.io.dumps(packed, compression=zipfile.ZIP_DEFLATED)
        strangers = set(skops.io.get_untrusted_types(data=data)) - set(TRUSTED)
    except (TypeError, RecursionError) as wrong:
        raise TypeError(f"model: holds something that cannot be saved: {wrong}.") from wrong
    if strangers:
        raise TypeError(
            f"model: holds {', '.join(sorted(strangers))}, which could not be loaded safely: files "
            "hold values and the estimators of fairgrad and scikit-learn only. Give measures and "
            "rules by their names, and write functions of your own into a preprocessing step that "
            "runs before the model."
        )
    return io.BytesIO(data)


def _module_name(modules: list[nn.Module]) -> str | None:
    if len(modules) > 1:
        raise TypeError(f"model: expected at most one with module=, got {len(modules)}.")
    return type(modules[0]).__name__ if modules else None


def _weights(module: nn.Module) -> bytes:
    state = {
        name: tensor.detach().cpu().clone().contiguous()
        for name, tensor in module.state_dict().items()
    }
    saved: bytes = safetensors.torch.save(state)
    return saved


def _header(data: bytes, path: Any) -> dict[str, Any]:
    try:
        header = json.loads(_entry(data, HEADER, MAX_HEADER))
    except NO_ARCHIVE as wrong:
        raise ValueError(f"path: {path} is not a model saved by fairgrad ({wrong}).") from wrong
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"path: {path} is not a model saved by fairgrad (its header is not ours).")
    return header


def _entry(data: bytes, name: str, most: float = math.inf) -> bytes:
    """One file of the archive; refused if it is longer than expected."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        info = file.getinfo(name)
        if info.file_size > most:
            raise ValueError(f"{name} is too long")
        return file.read(info)


def _check_version(header: dict[str, Any], path: Any) -> None:
    found = header.get("format_version")
    if not isinstance(found, int) or found < 1:
        raise ValueError(f"path: {path} has no valid format version, got {found!r}.")
    if found > FORMAT_VERSION:
        versions = header.get("versions")
        maker = versions.get("fairgrad") if isinstance(versions, dict) else None
        raise ValueError(
            f"path: {path} has format version {found}, written by fairgrad {maker or '?'}; this "
            f"fairgrad {version('fairgrad')} reads up to version {FORMAT_VERSION}. Update it: "
            "pip install -U fairgrad."
        )


def _trained(
    header: dict[str, Any], data: bytes, path: Any, module: nn.Module | None
) -> nn.Module | None:
    """A copy of the user's module with the weights of the file."""
    name = header.get("module")
    if not name:
        if module is not None:
            raise ValueError("module: the saved model has its own network; leave it out.")
        return None
    if module is None:
        raise ValueError(
            f"module: the file holds the weights of a {name}, not its code; pass "
            f"load(path, module={name}(...)) with the same architecture."
        )
    try:
        weights = safetensors.torch.load(_entry(data, WEIGHTS))
    except (*NO_ARCHIVE, SafetensorError) as wrong:
        raise ValueError(f"path: {path} is damaged: {wrong!r}.") from wrong
    trained = copy.deepcopy(module)
    try:
        trained.load_state_dict(weights)
    except RuntimeError as wrong:
        raise ValueError(f"module: the saved weights of a {name} do not fit: {wrong}") from wrong
    return trained


def _estimator(data: bytes, path: Any) -> BaseEstimator:
    try:
        model = skops.io.loads(data, trusted=list(TRUSTED))
    except UntrustedTypesFoundException as wrong:
        raise ValueError(
            f"path: {path} was refused before anything of it was loaded. {wrong}"
        ) from wrong
    except DAMAGE as wrong:
        raise ValueError(f"path: {path} is damaged: {wrong!r}.") from wrong
    if not isinstance(model, BaseEstimator):
        raise ValueError(  # noqa: TRY004 - the file is wrong, not an argument's type
            f"path: {path} holds a {type(model).__name__}, not an estimator."
        )
    return model
