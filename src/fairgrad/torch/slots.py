"""Where the rows of a batch are counted: each *slot* holds rows of one cell, right or wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Ints

FEW_CLASSES = 128
"""Up to so many classes labels and predictions are looked up at once, in a table of all pairs."""

FEW_SLOTS = 128
"""Up to so many slots in all there may be one for every label and predicted class."""


class GroupSlots(NamedTuple):
    """The slots of one group: what its rows can come to.

    Attributes:
        label_row: (stride,) which row of cells each slot belongs to.
        is_wrong: (stride,) whether it counts wrong predictions.
        labels: (L,) the labels.
        by_flag: (L, 2) the slot of each label with a right and with a wrong prediction.
        by_class: (L, classes) the slot of each label and predicted class, if they are few.
        is_key: whether the entries of ``by_class`` are just ``label * classes + class``.
    """

    label_row: Ints
    is_wrong: NDArray[Any]
    labels: Ints
    by_flag: Ints
    by_class: Ints | None
    is_key: bool


def group_slots(labels: Ints, label_row: Ints, n_groups: int) -> GroupSlots:
    """One slot for every label and predicted class if that makes few slots, else two per row.

    Args:
        labels: (L,) different integers.
        label_row: (L,) the row of cells that each label belongs to.
        n_groups: how many groups have such slots.

    Example:
        >>> import numpy as np
        >>> group_slots(np.array([0, 1]), np.array([0, 1]), n_groups=2).is_wrong
        array([False,  True,  True, False])
    """
    classes = np.arange(labels.max() + 1)
    n = len(classes)
    if n >= 2 and np.array_equal(labels, classes) and n * n * n_groups <= FEW_SLOTS:
        is_wrong = labels[:, None] != classes
        by_class = np.arange(n * n).reshape(n, n)
        by_flag = np.stack([by_class[labels, labels], by_class[labels, (labels + 1) % n]], axis=1)
        rows = np.repeat(label_row, n)
        return GroupSlots(rows, is_wrong.ravel(), labels, by_flag, by_class, is_key=True)
    rows = np.arange(label_row.max() + 1)
    by_flag = 2 * label_row[:, None] + np.arange(2)
    of_class: Ints | None = None
    if labels.min() >= 0 and n <= FEW_CLASSES:
        of_class = 2 * label_row[:, None] + (labels[:, None] != classes)
    is_wrong = np.tile([False, True], len(rows))
    return GroupSlots(np.repeat(rows, 2), is_wrong, labels, by_flag, of_class, is_key=False)
