"""FairGrad as the estimator trains it for exact fairness: one model, nothing chosen among.

The benchmark's other methods train several combinations and keep the fairest of the accurate by
the validation rows; this one looks at the training rows only.
"""

from __future__ import annotations

import numpy as np

from fairgrad.sklearn import FairGradClassifier
from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, nothing_to_set
from fairgrad_bench.methods.models import HIDDEN
from fairgrad_bench.methods.support import no_network_or_unfit_measure


def train_estimator(task: MethodTask, *, use_sensitive: bool = False) -> list[Candidate]:
    """One model for every seed.

    Args:
        task: what to train.
        use_sensitive: whether the sensitive value is a feature, which predictions then need.
    """
    candidates = []
    for seed, split in task.splits.items():
        model = FairGradClassifier(
            task.measure,
            hidden_layer_sizes=HIDDEN if task.model == "nonlinear" else (),
            y_desirable=np.asarray(task.y_desirable),
            compare_plain=False,  # only warns
            epsilon=0.0,  # exact fairness; on small tables what costs at most 3 points
            selection="fairest_of_accurate",
            use_sensitive=use_sensitive,
            random_state=seed,
        )
        X, y, s = split.train
        model.fit(X, y, sensitive_features=s)
        validation, test = (
            model.predict(part.X, **({"sensitive_features": part.s} if use_sensitive else {}))
            for part in (split.validation, split.test)
        )
        candidates.append(Candidate(seed, {}, 0, validation, test))
    return candidates


METHOD = Method(
    name="fairgrad_stable",
    version=1,
    description="FairGrad's estimator asked for exact fairness: one model, no selection.",
    unsupported=no_network_or_unfit_measure,
    settings=nothing_to_set,
    train=train_estimator,
)
