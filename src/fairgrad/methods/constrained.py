"""Constraints by a two-player game (Cotter et al., 2019), with the cooper library.

The model descends its loss plus multipliers times proxies of the constraints; the multipliers
ascend by the true violations and stay at or above 0. With levels ``F = c0 + C e`` there are two
constraints per level, ``F <= slack`` and ``-F <= slack``. A proxy bounds the violation from above
by hinges of the margin m, which is positive where a row is predicted rightly:

    e_k <= mean of max(0, 1 - m),        -e_k <= mean of max(0, 1 + m) - 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.shared.fair import unsupported as unfit
from fairgrad.methods.shared.game import Game
from fairgrad.methods.shared.grids import combinations, crossed
from fairgrad.methods.shared.stacked import train_stacked
from fairgrad.training import StackParts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.training import Stack

LEARNING_RATE = 0.01
SLACKS = (0.0, 0.03)
DUAL_RATES = (0.001, 0.003, 0.01)
"""By the validation rows of Adult, COMPAS and Dutch: large data swing beyond the second, small data
need the third, and with 0.05 the game falls apart on Adult."""


def _unsupported(task: Task) -> str | None:
    nonlinear = task.model != "linear"
    return unfit(task) or ("it is for linear models only, as in the paper" if nonlinear else None)


def _settings(model: str, grid: str) -> list[Settings]:  # noqa: ARG001 - linear only
    if grid == "quick":
        return crossed(batch_size=(512,), dual_rate=DUAL_RATES[1:2], slack=SLACKS)
    return crossed(batch_size=(128, 512), dual_rate=DUAL_RATES, slack=SLACKS)


def _train(task: Task) -> list[Candidate]:
    def parts_of(settings: Sequence[Settings]) -> StackParts:
        def objective(stack: Stack) -> Game:
            own = [settings[i] for i in stack.order]
            slacks, rates = ([one[name] for one in own] for name in ("slack", "dual_rate"))
            return Game(stack, task.measure or "", task.y_desirable, slacks, rates)

        return StackParts(objective=objective)

    return train_stacked(
        task,
        combinations(METHOD, task),
        parts_of=parts_of,
        solver="adam",
        learning_rate=LEARNING_RATE,
    )


METHOD = Method(
    name="constrained",
    description="Descends proxies of the constraints; multipliers ascend by true violations.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
