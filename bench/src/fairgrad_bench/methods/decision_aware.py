"""Fair decisions that look at the sensitive value, which predictions then need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad_bench.methods import decision
from fairgrad_bench.methods.interface import Method
from fairgrad_bench.methods.support import unfit_measure

if TYPE_CHECKING:
    from fairgrad_bench.methods.interface import Candidate, MethodTask


def _train(task: MethodTask) -> list[Candidate]:
    return decision.train_decisions(task, METHOD.combinations(task), use_sensitive=True)


METHOD = Method(
    name="decision_aware",
    version=2,
    description="Fair decisions on a plain model's probabilities given s; needs s to predict.",
    unsupported=unfit_measure,
    settings=decision.METHOD.settings,
    train=_train,
    needs_s_to_predict=True,
)
