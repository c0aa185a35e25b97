"""What a fair fit leaves in an estimator, and how it is told in a file beside the trees."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.boosting.objective import BoostingObjective

FORMAT_VERSION = 1
"""Of the file beside. It grows when older programs cannot read it."""


def keep(model: Any, objective: BoostingObjective | None) -> None:
    """Sets the fitted attributes about fairness; None for all of them if nothing was fair."""
    rounds = None if objective is None else objective.rounds
    model.groups_ = None if objective is None else objective.groups
    model.fairness_state_ = None if rounds is None else rounds.state()
    model.levels_ = None if rounds is None else rounds.levels
    model.multipliers_ = None if rounds is None else rounds.net_multipliers
    model.cell_weights_ = None if rounds is None else rounds.weights
    model.constraint_names_ = None if rounds is None else rounds.constraints.names
    model.cell_names_ = None
    if objective is not None:
        model.cell_names_ = objective.groups.cell_names(objective.rounds.constraints.by_label)


def beside(path: str | os.PathLike[str]) -> Path:
    """The file of the fairness state of a model's file.

    Example:
        >>> beside("model.txt").name
        'model.txt.fairness.json'
    """
    return Path(f"{os.fspath(path)}.fairness.json")


def notes_of(model: Any, form: str) -> dict[str, Any]:
    """What is to be known of a fitted model besides its trees, as plain values for JSON.

    Args:
        model: fitted.
        form: the name of the format.
    """
    measure = model.fairness_measure
    return {
        "format": form,
        "version": FORMAT_VERSION,
        "fairness_measure": measure if isinstance(measure, str) else None,
        "epsilon": np.asarray(model.epsilon, dtype=np.float64).tolist(),
        "levels": None if model.levels_ is None else model.levels_.tolist(),
        "net_multipliers": None if model.multipliers_ is None else model.multipliers_.tolist(),
        "cells": None if model.cell_names_ is None else list(model.cell_names_),
        "state": model.fairness_state_,
    }


def restore(model: Any, notes: Mapping[str, Any]) -> None:
    """Sets again what `keep` had set, but for the groups."""
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


def read_notes(path: Path, form: str) -> dict[str, Any]:
    """What `notes_of` gave, from its file.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it holds something else, or is of a newer version.
    """
    try:
        notes = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        notes = None
    if not isinstance(notes, dict) or notes.get("format") != form:
        raise ValueError(f"{path}: expected the fairness state of a saved model, in JSON.")
    if notes.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{path}: written in version {notes.get('version')} of the format; this program reads "
            f"version {FORMAT_VERSION}."
        )
    return notes


def state_to_go_on_from(start: Any, form: str) -> Mapping[str, Any] | None:
    """The multipliers of a fitted model, or of what lies beside a model's file; None if none do."""
    state: Mapping[str, Any] | None = None
    if isinstance(start, (str, os.PathLike)):
        if beside(start).exists():
            state = read_notes(beside(start), form)["state"]
    else:
        state = getattr(start, "fairness_state_", None)
    return state
