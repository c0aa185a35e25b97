"""FairGrad as the estimator trains it by default: one model, nothing chosen among.

The benchmark's other methods train several combinations and keep the fairest of the accurate by
the validation rows; this one looks at the training rows only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.shared.fair import unsupported_by_networks
from fairgrad.methods.shared.learners import HIDDEN
from fairgrad.sklearn import FairGradClassifier

if TYPE_CHECKING:
    from fairgrad.datasets import Split


def _settings(model: str, grid: str) -> list[Settings]:  # noqa: ARG001 - nothing to set
    return [{}]


def _train(task: Task) -> list[Candidate]:
    return [_candidate(task, seed, split) for seed, split in task.splits.items()]


def _candidate(task: Task, seed: int, split: Split) -> Candidate:
    model = FairGradClassifier(
        task.measure,
        hidden_layer_sizes=HIDDEN if task.model == "nonlinear" else (),
        y_desirable=np.asarray(task.y_desirable),
        compare_plain=False,  # only warns
        random_state=seed,
    )
    X, y, s = split.train
    model.fit(X, y, sensitive_features=s)
    validation, test = (model.predict(part.X) for part in (split.validation, split.test))
    return Candidate(seed, {}, 0, validation, test)


METHOD = Method(
    name="fairgrad_stable",
    description="FairGrad with the estimator's defaults: one model, no selection.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=unsupported_by_networks,
    settings=_settings,
    train=_train,
)
