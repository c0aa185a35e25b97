"""What is said of boosted trees that came out as nobody wants them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairgrad.boosting.choice import BY_HEART
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.boosting.judged import JudgedRounds, OtherDecisions
    from fairgrad.boosting.objective import BoostingObjective


def warn_of_choice(
    chosen: JudgedRounds, refused: Sequence[OtherDecisions], objective: BoostingObjective
) -> None:
    """Says what new rows will see of the fairness asked for, where that is little.

    Args:
        chosen: what was taken.
        refused: what was wrong with models that were better in the folds.
        objective: of the fit that counts.
    """
    if refused:
        warn_of_next_best(chosen, refused)
        return
    worst = float(np.nanmax(np.abs(chosen.levels)))
    records = objective.rounds.records
    learnt = records[min(chosen.n_rounds, len(records) - 1)].accuracy if records else 0.0
    if chosen.violation <= 0 or chosen.shifts is not None:
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


def warn_of_next_best(chosen: JudgedRounds, refused: Sequence[OtherDecisions]) -> None:
    """Says what was tried before the model that was taken, why not that, and which one it is.

    Args:
        chosen: what was taken.
        refused: why those that were better in the folds were not.
    """
    first, *others = refused
    nor = ""
    if others:
        were = "was 1" if len(others) == 1 else f"were {len(others)}"
        nor = f" Nor {were} more, for the same reason."
    kind, joined = ("a plain one", "with") if chosen.is_plain else ("one with weights", "and")
    if chosen.shifts is not None:
        kind = f"{kind} {joined} scores shifted by group"
    worst = float(np.nanmax(np.abs(chosen.levels)))
    warnings.warn(
        "The model that was best in the folds is not kept: fitted to all rows, it gives "
        f"{100 * first.found:.0f} % of the group {first.group} the label {first.label!r}; in the "
        f"folds {100 * first.expected:.0f} % got it.{nor} The model is now {kind}: accuracy "
        f"{chosen.accuracy:.3f} and largest |F| {worst:.3f} on rows that its trees have not learnt "
        "from. Try more trees, another random_state, a larger epsilon or FairDecisionClassifier.",
        FairnessWarning,
        stacklevel=5,
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
