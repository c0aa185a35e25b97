"""Optimizers that compute the loss several times per step, such as L-BFGS.

Their steps compare losses and gradients at several parameters, so the weights must not change
between these. PyTorch gives such an optimizer a closure. Here its calls are numbered within each
step: only the first one moves the multipliers.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from fairgrad.checks import warn
from fairgrad.torch.multipliers import check_can_update
from fairgrad.usefulness import FairnessWarning

N_UPDATES = 25
"""Updates at once after a step in which the loss was computed three times or more, as by L-BFGS.
The model follows the weights far within such a step, so they may move further."""

MANY_EVALUATIONS = 100
"""Evaluations in one step from which on there is a warning."""

TOO_FEW_STEPS = (
    "The optimizer has computed the loss {n} times in one step, in which multipliers move once. "
    "Take more steps, with a smaller max_iter of the optimizer."
)


class Evaluation(threading.local):
    """The number of the present call of a closure in its step; 1 outside of closures."""

    number = 1


EVALUATION = Evaluation()


class UpdateCounter:
    """Counts how often a call of a loss moves its multipliers."""

    def __init__(self) -> None:
        self._n_skipped = 0  # calls since the last update

    def is_usual(self) -> bool:
        """Whether a call moves the multipliers once."""
        return EVALUATION.number == 1 and self._n_skipped == 0

    def count(self, *, is_auto: bool) -> int:
        """The updates of this call: 0 if an earlier one in the same step has moved them.

        Raises:
            RuntimeError: if PyTorch transforms the call so that an update has no meaning.
        """
        check_can_update()
        if torch.compiler.is_compiling() or self.is_usual():
            return 1
        if EVALUATION.number > 1:
            self._n_skipped += 1
            if self._n_skipped == MANY_EVALUATIONS:
                warn(TOO_FEW_STEPS.format(n=self._n_skipped), FairnessWarning)
            return 0
        n_skipped, self._n_skipped = self._n_skipped, 0
        return N_UPDATES if is_auto and n_skipped > 1 else 1


def _number_evaluations(optimizer: Optimizer, args: Any, kwargs: Any) -> Any:  # noqa: ARG001 - a hook
    """Puts a closure that counts its calls in the place of the one that a step was given."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if not callable(closure):
        return None
    n_calls = 0

    def numbered() -> Any:
        nonlocal n_calls
        n_calls += 1
        before, EVALUATION.number = EVALUATION.number, n_calls
        try:
            return closure()
        finally:
            EVALUATION.number = before

    if "closure" in kwargs:
        return args, {**kwargs, "closure": numbered}
    return (args[0], numbered, *args[2:]), kwargs


register_optimizer_step_pre_hook(_number_evaluations)
