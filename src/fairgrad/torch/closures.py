"""Optimizers that compute the loss several times per step, such as L-BFGS.

Their steps compare losses and gradients at several parameters, so the weights must not change
between these. PyTorch gives such an optimizer a closure. Here its calls are numbered within each
step: only the first one moves the multipliers.
"""

from __future__ import annotations

import threading
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook


class Evaluation(threading.local):
    """The number of the present call of a closure in its step; 1 outside of closures."""

    number = 1


EVALUATION = Evaluation()


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
