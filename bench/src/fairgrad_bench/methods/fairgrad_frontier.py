"""FairGrad's estimator at several epsilons, each kept on the training rows.

Where `fairgrad_epsilon` is the paper's training with slack, with every batch size and weight decay,
this one is what users of the estimator have: an epsilon, and the defaults for all else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad_bench.methods import decision
from fairgrad_bench.methods.fairgrad_stable import train_estimators
from fairgrad_bench.methods.interface import Method
from fairgrad_bench.methods.support import unfit_measure

if TYPE_CHECKING:
    from fairgrad_bench.methods.interface import Candidate, MethodTask


def _train(task: MethodTask) -> list[Candidate]:
    return train_estimators(task, METHOD.combinations(task))


METHOD = Method(
    name="fairgrad_frontier",
    version=1,
    description="FairGrad's estimator at several epsilons, one chosen on validation rows.",
    unsupported=unfit_measure,
    settings=decision.METHOD.settings,
    train=_train,
)
