"""Training rows as the user gives them -> checked arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from fairgrad.columns import as_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Floats, Ints


@dataclass(frozen=True, eq=False)
class Rows:
    """What a classifier is fitted to.

    Attributes:
        X: (n, features) array or CSR matrix.
        label: (n,) indices of classes.
        classes: the classes.
        s: named sensitive columns; None for a plain model.
        weight: (n,) sample weights, or None.
        label_name: what the label is called.
    """

    X: Any
    label: Ints
    classes: NDArray[Any]
    s: Any
    weight: Floats | None
    label_name: str = "y"

    def __len__(self) -> int:
        return len(self.label)


def encode_labels(y: Any, classes: Any = None) -> tuple[Ints, NDArray[Any]]:
    """Indices of the classes, and the classes, sorted.

    Args:
        y: (n,) labels.
        classes: the classes already known, if any.

    Raises:
        ValueError: if there are fewer than two classes, or a label is not a known class.
    """
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    known = np.unique(y) if classes is None else np.unique(classes)
    if len(known) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {known.tolist()}.")
    strangers = np.setdiff1d(y, known)
    if len(strangers):
        raise ValueError(
            f"y: got {strangers.tolist()}, which are not among the classes {known.tolist()}."
        )
    return np.searchsorted(known, y), known


def check_weight(sample_weight: Any, X: Any) -> Floats | None:
    """(n,) sample weights in double precision, or None.

    Raises:
        ValueError: if they are negative or sum to 0.
    """
    if sample_weight is None:
        return None
    weight: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if not (weight >= 0).all() or not weight.sum() > 0:
        raise ValueError(
            "sample_weight: expected weights of at least 0 that do not sum to 0, got a minimum of "
            f"{weight.min()} and a sum of {weight.sum()}."
        )
    return weight


def label_name(y: Any) -> str:
    """What a column of labels is called; "y" if it has no name."""
    try:
        (name,) = as_columns(y, "y")
    except (ValueError, TypeError):
        return "y"  # whatever it is, scikit-learn's checks will say what is wrong with it
    return name
