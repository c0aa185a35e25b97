"""What is said of boosted trees that came out as nobody wants them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairgrad.boosting.choice import BY_HEART
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from fairgrad.boosting.choice import JudgedRounds
    from fairgrad.boosting.objective import BoostingObjective
    from fairgrad.groups import GroupedRows, Ints

CHANCE_ERRORS, OTHER_SHARE = 3.0, 0.1
"""Standard errors, and a share of a group beyond them, by which the trees of all rows may decide
otherwise than those of the folds before something is said."""


def warn_of_choice(chosen: JudgedRounds, objective: BoostingObjective) -> None:
    """Says what new rows will see of the fairness asked for, where that is little."""
    worst = float(np.nanmax(np.abs(chosen.levels)))
    records = objective.rounds.records
    learnt = records[min(chosen.n_rounds, len(records) - 1)].accuracy if records else 0.0
    if chosen.violation <= 0:
        return
    if chosen.shifts is not None:
        return
    if chosen.is_plain:
        warnings.warn(
            "Weights of the groups do not make trees fairer on rows that they have not learnt "
            "from, by more than chance would do, so the model is a plain one: accuracy "
            f"{chosen.accuracy:.3f} and largest |F| {worst:.3f} there. Use more rows, fewer "
            "groups, smaller trees or a larger epsilon.",
            FairnessWarning,
            stacklevel=4,
        )
    elif objective.bag is None and learnt >= BY_HEART > chosen.accuracy:
        warnings.warn(
            f"The trees know the training rows by heart (accuracy {learnt:.4f}), so that levels of "
            "fairness there say little of new rows: on rows they have not learnt from the accuracy "
            f"is {chosen.accuracy:.4f} and the largest |F| {worst:.3f}. Grow smaller trees.",
            FairnessWarning,
            stacklevel=4,
        )


def warn_of_other_decisions(chosen: JudgedRounds, rows: GroupedRows, fitted: Ints) -> None:
    """Says so if the trees of all rows treat a group otherwise than those of the folds.

    Then what was found in the folds does not hold: few trees give whole groups one score, which is
    on one side of the threshold in the folds and on the other in the end, and weights may swing.

    Args:
        chosen: what the folds were judged by.
        rows: those of the fit.
        fitted: (n,) their labels by the model fitted to all of them.
    """
    if chosen.predicted is None:
        return
    shape = rows.groups.mass.shape
    size = np.bincount(rows.group, minlength=shape[1])
    shares = []
    for predicted in (chosen.predicted, fitted):
        counts = np.bincount(predicted * shape[1] + rows.group, minlength=shape[0] * shape[1])
        shares.append(counts.reshape(shape) / np.maximum(size, 1))
    off = shares[1] - shares[0] - CHANCE_ERRORS * np.sqrt(0.5 / np.maximum(size, 1))
    off[:, ~rows.groups.is_known | (size == 0)] = -1.0
    label, group = np.unravel_index(int(np.argmax(off)), off.shape)
    if off[label, group] <= OTHER_SHARE:
        return
    before, after = (f"{100 * share[label, group]:.0f} %" for share in shares)
    warnings.warn(
        "The trees fitted to all rows decide otherwise than those of the folds, so that levels of "
        f"the folds do not hold for this model: of the group {rows.groups.names[group]} they give "
        f"{after} the label {rows.groups.labels.tolist()[label]!r}, in the folds {before}. Compare "
        "it with the plain model on rows of its own; try more trees, another random_state, a "
        "larger epsilon or FairDecisionClassifier.",
        FairnessWarning,
        stacklevel=4,
    )


def warn_by_heart(accuracy: float) -> None:
    """Says that levels on the training rows say little, as they are known by heart."""
    warnings.warn(
        f"The trees know the training rows by heart (accuracy {accuracy:.4f}), so that levels of "
        "fairness there say little of new rows, on which it may be as unfair as a plain model. "
        "Measure them on rows the trees have not learnt (out_of_bag=5), or grow smaller trees.",
        FairnessWarning,
        stacklevel=4,
    )
