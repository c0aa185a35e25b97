"""Saved models: LightGBM's own text format, and the fairness state beside it as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lightgbm import Booster
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.validation import check_is_fitted

from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.lightgbm.classifier import FairGradLGBMClassifier

FORMAT, FORMAT_VERSION = "fairgrad.lightgbm", 1
"""What stands in the file beside. The version grows when older programs cannot read it."""


def beside(path: str | os.PathLike[str]) -> Path:
    """The file of the fairness state of a model's file.

    Example:
        >>> beside("model.txt").name
        'model.txt.fairness.json'
    """
    return Path(f"{os.fspath(path)}.fairness.json")


def save(model: FairGradLGBMClassifier, path: str | os.PathLike[str]) -> Path:
    """Writes a fitted model: the trees as LightGBM's text, classes and multipliers beside.

    Any program that reads LightGBM's files gets the probabilities from the first file alone.

    Args:
        model: a fitted `FairGradLGBMClassifier`.
        path: the file of the trees; `beside` names the other one.

    Raises:
        TypeError: if the classes are neither strings nor numbers.
        sklearn.exceptions.NotFittedError: if the model is not fitted.
    """
    check_is_fitted(model)
    text = model.booster_.model_to_string(num_iteration=-1)
    notes = json.dumps(_notes(model), indent=1)
    write_whole(beside(path), notes.encode())
    write_whole(Path(path), text.encode())
    return Path(path)


def load(path: str | os.PathLike[str]) -> FairGradLGBMClassifier:
    """A model that `save` wrote: it predicts, and training goes on from it (``init_model=``).

    Parameters of the training, such as the number of leaves, are not restored: give them to the
    estimator that goes on.

    Raises:
        FileNotFoundError: if one of the two files is missing.
        ValueError: if they are not what `save` wrote.
    """
    from fairgrad.lightgbm.classifier import FairGradLGBMClassifier  # noqa: PLC0415 - it uses us

    notes = _read_notes(beside(path))
    booster = Booster(model_file=os.fspath(path))
    classes = np.asarray(notes["classes"], dtype=notes["dtype"])
    n_outputs = booster.num_model_per_iteration()
    if n_outputs != (1 if len(classes) == 2 else len(classes)):
        raise ValueError(
            f"{path}: the trees have {n_outputs} outputs, which does not fit the classes "
            f"{classes.tolist()} in {beside(path).name}; the files are not of one model."
        )
    booster.best_iteration = notes["best_iteration"]
    measure = notes["fairness_measure"]
    model = FairGradLGBMClassifier(measure, epsilon=notes["epsilon"])
    _restore(model, booster, classes, notes)
    return model


def state_beside(init_model: Any) -> Mapping[str, Any] | None:
    """The state saved beside a model's file; None if there is none, or it is no file."""
    if not isinstance(init_model, (str, os.PathLike)) or not beside(init_model).exists():
        return None
    state: Mapping[str, Any] | None = _read_notes(beside(init_model))["state"]
    return state


def _notes(model: FairGradLGBMClassifier) -> dict[str, Any]:
    classes = model.classes_
    if classes.dtype.kind not in "biufUO" or not all(
        isinstance(value, (str, int, float)) for value in classes.tolist()
    ):
        raise TypeError(f"classes: expected strings or numbers, got {classes.tolist()}.")
    measure = model.fairness_measure
    epsilon = np.asarray(model.epsilon, dtype=np.float64)
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "fairness_measure": measure if isinstance(measure, str) else None,
        "epsilon": epsilon.tolist(),
        "classes": classes.tolist(),
        "dtype": classes.dtype.str if classes.dtype.kind != "O" else "object",
        "best_iteration": model.booster_.best_iteration,
        "levels": None if model.levels_ is None else model.levels_.tolist(),
        "net_multipliers": None if model.multipliers_ is None else model.multipliers_.tolist(),
        "cells": None if model.cell_names_ is None else list(model.cell_names_),
        "state": model.fairness_state_,
    }


def _restore(
    model: FairGradLGBMClassifier, booster: Booster, classes: Any, notes: Mapping[str, Any]
) -> None:
    """Sets what a fit would have set."""
    model._Booster = booster  # noqa: SLF001 - LightGBM has no public way to give a model its trees
    model._classes, model._n_classes = classes, len(classes)  # noqa: SLF001 - as above
    model._le = LabelEncoder().fit(classes)  # noqa: SLF001 - as above
    model._class_map = {label: i for i, label in enumerate(classes.tolist())}  # noqa: SLF001 - as above
    model._objective = "binary" if len(classes) == 2 else "multiclass"  # noqa: SLF001 - as above
    model._n_features = model.n_features_in_ = booster.num_feature()  # noqa: SLF001 - as above
    model._best_iteration = booster.best_iteration  # noqa: SLF001 - as above
    model.fitted_ = True
    state = notes["state"]
    model.groups_ = None
    model.fairness_state_ = state
    model.levels_, model.multipliers_ = (
        None if notes[name] is None else np.asarray(notes[name], dtype=np.float64)
        for name in ("levels", "net_multipliers")
    )
    model.cell_weights_ = None if state is None else np.asarray(state["weights"])
    model.constraint_names_ = None if state is None else tuple(state["constraints"])
    model.cell_names_ = None if notes["cells"] is None else tuple(notes["cells"])


def _read_notes(path: Path) -> dict[str, Any]:
    try:
        notes = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        notes = None
    if not isinstance(notes, dict) or notes.get("format") != FORMAT:
        raise ValueError(f"{path}: expected the fairness state of a saved model, in JSON.")
    if notes.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{path}: written in version {notes.get('version')} of the format; this program reads "
            f"version {FORMAT_VERSION}."
        )
    return notes
