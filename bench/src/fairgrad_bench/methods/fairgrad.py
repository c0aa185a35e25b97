"""FairGrad as in the paper: exact fairness, no memory, no proportional term.

Boosted trees, which the paper does not have, are trained with the defaults of
`fairgrad.lightgbm.FairGradLGBMClassifier`.
"""

from __future__ import annotations

from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, usual
from fairgrad_bench.methods.models import train_fair, train_trees
from fairgrad_bench.methods.support import unfit_measure


def _train(task: MethodTask) -> list[Candidate]:
    if task.model == "lightgbm":
        return train_trees(task, METHOD.combinations(task))
    return train_fair(task, METHOD.combinations(task))


METHOD = Method(
    name="fairgrad",
    version=1,
    description="Weighs cells by multipliers that ascend with their unfairness in every batch.",
    unsupported=unfit_measure,
    settings=usual,
    train=_train,
)
