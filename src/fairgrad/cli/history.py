"""The training history of a classifier as the report takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.measures import constraints_of

if TYPE_CHECKING:
    from fairgrad.groups import Floats
    from fairgrad.sklearn import FairGradClassifier

MOST_EPOCHS = 60
"""More would not be told apart on a chart."""


def history_frame(model: Any) -> pd.DataFrame | None:
    """Levels, multipliers and weights after some epochs, first and last included.

    None for plain models, and for boosted trees, which keep no history.

    The weights are those that the multipliers give, ``w_k = 1 + (C' lambda)_k / p_k``; the
    proportional term, which comes on top in every step, vanishes as the levels settle.
    """
    if model.groups_ is None or not hasattr(model, "history_"):
        return None
    n = len(model.history_["accuracy"])
    epochs = np.unique(np.linspace(0, n - 1, min(n, MOST_EPOCHS)).round().astype(int))
    levels, multipliers = (model.history_[name][epochs] for name in ("levels", "multipliers"))
    weights, share = _weights(model, multipliers)
    frames = [
        _long("level", model.constraint_names_, epochs, levels),
        _long("multiplier", model.constraint_names_, epochs, multipliers),
        _long("weight", model.cell_names_, epochs, weights),
    ]
    shares = dict(zip(model.cell_names_, share, strict=True))
    frames[2] = frames[2].assign(share=frames[2]["name"].map(shares))
    return pd.concat(frames, ignore_index=True)


def _weights(model: FairGradClassifier, multipliers: Floats) -> tuple[Floats, Floats]:
    assert model.groups_ is not None  # noqa: S101 - the caller looked
    constraints = constraints_of(
        model.fairness_measure,
        model.groups_,
        epsilon=model.epsilon,
        y_desirable=model.y_desirable,
    )
    mass = model.groups_.cell_mass(constraints.by_label)
    share = mass / mass.sum()
    per_cell = multipliers @ np.nan_to_num(constraints.C)
    weights = 1 + np.divide(per_cell, share, out=np.zeros_like(per_cell), where=share > 0)
    return weights, share


def _long(kind: str, names: Any, epochs: Any, values: Floats) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "epoch": np.repeat(epochs + 1, len(names)),
            "quantity": kind,
            "name": np.tile(np.asarray(names, dtype=object), len(epochs)),
            "value": values.ravel(),
        }
    ).dropna(subset="value")
