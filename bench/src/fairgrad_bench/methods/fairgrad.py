"""FairGrad as in the paper: exact fairness, no memory, no proportional term.

Boosted trees, which the paper does not have, are trained with the defaults of
`fairgrad.lightgbm.FairGradLGBMClassifier`.
"""

from __future__ import annotations

from fairgrad.methods.interface import Candidate, Method, Task
from fairgrad.methods.shared.fair import train_fair, unsupported
from fairgrad.methods.shared.grids import combinations, usual
from fairgrad.methods.shared.trees import train_trees


def _train(task: Task) -> list[Candidate]:
    if task.model == "lightgbm":
        return train_trees(task, combinations(METHOD, task))
    return train_fair(task, combinations(METHOD, task))


METHOD = Method(
    name="fairgrad",
    description="Weighs cells by multipliers that ascend with their unfairness in every batch.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=unsupported,
    settings=usual,
    train=_train,
)
