"""Labels and sensitive values of the rows a network is fine-tuned on, as integers for the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairgrad.columns import encode, sensitive_columns
from fairgrad.evaluate import fairness_levels
from fairgrad.finetune.inputs import as_inputs
from fairgrad.groups import group_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from fairgrad.finetune.inputs import Inputs


@dataclass(frozen=True, eq=False)
class Labelled:
    """Rows with their labels and, where fairness is asked for, their sensitive values.

    Attributes:
        inputs: what the network is fed.
        label: (n,) positions among the classes.
        classes: the labels, sorted; the network's outputs are in this order.
        columns: sensitive columns by name, as the user gave them; None if there are none.
    """

    inputs: Inputs
    label: Tensor
    classes: NDArray[Any]
    columns: dict[str, Any] | None

    def __len__(self) -> int:
        return len(self.label)

    @property
    def sensitive_codes(self) -> dict[str, Any] | None:
        """Each sensitive column as whole numbers, -1 where it is unknown."""
        if self.columns is None:
            return None
        return {name: encode(column, name).codes for name, column in self.columns.items()}

    def figures(self, predicted: NDArray[Any], measure: Any, desirable: Any) -> dict[str, float]:
        """Accuracy, and the mean of |F| if there are sensitive values, of predicted positions."""
        true = self.label.numpy()
        found = {"accuracy": float((predicted == true).mean())}
        if self.columns is not None and measure is not None:
            levels = fairness_levels(true, predicted, self.columns, measure, y_desirable=desirable)
            found["unfairness"] = levels.unfairness
        return found


def labelled(
    X: Any,
    y: Any,
    sensitive_features: Any,
    transform: Callable[[Any], Any] | None,
    classes: Any = None,
) -> Labelled:
    """Checks lengths and labels before anything is computed.

    Raises:
        ValueError: if lengths differ, there is one class only, or a class is not known.
    """
    inputs = as_inputs(X, transform)
    n = len(inputs)
    if len(y) != n:
        raise ValueError(f"y: expected one label per row of X ({n}), got {len(y)}.")
    rows = group_rows(y, np.zeros(n, dtype=np.int64), labels=classes)
    known = rows.groups.labels
    if len(known) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {known.tolist()}.")
    columns = None
    if sensitive_features is not None:
        columns = sensitive_columns(sensitive_features, n)
    return Labelled(inputs, torch.from_numpy(rows.label), known, columns)
