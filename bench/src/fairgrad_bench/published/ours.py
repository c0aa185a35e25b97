"""FairGrad's rows, the same in all tables: estimator, fair decisions and boosted trees.

All settings but the measure are the defaults. The names of rows with another epsilon include it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad_bench.published.source import AWARE, BLIND, Method, Rows, Split

if TYPE_CHECKING:
    from collections.abc import Mapping

EPSILONS = (None, 0.02, 0.0)
"""The default and two stricter ones."""


def learnt_from(split: Split) -> Rows:
    """All rows but those of the test: nothing is chosen, so no validation rows are set aside."""
    if split.validation is None:
        return split.train
    joined = zip(split.train, split.validation, strict=True)
    return Rows(*(np.concatenate(parts) for parts in joined))


def fit_estimator(
    kind: str, epsilon: float | None, inputs: str, split: Split, measure: str, seed: int
) -> Any:
    """Fits one of the estimators and predicts the test rows."""
    rows, is_aware = learnt_from(split), inputs == AWARE
    model = our_estimator(kind, measure, seed)
    model.set_params(use_sensitive=is_aware)
    if epsilon is not None:
        model.set_params(epsilon=epsilon)
    model.fit(rows.X, rows.y, sensitive_features=rows.s)
    values = {"sensitive_features": split.test.s} if is_aware else {}
    return model.predict(split.test.X, **values)


def our_estimator(kind: str, measure: str, seed: int) -> Any:
    """One of the estimators of `KINDS` and `OTHER_BASE`, with its defaults."""
    from lightgbm import LGBMClassifier  # noqa: PLC0415 - an extra, slow to import
    from sklearn.ensemble import GradientBoostingClassifier  # noqa: PLC0415 - as above

    from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: PLC0415 - as above
    from fairgrad.sklearn import (  # noqa: PLC0415 - as above
        FairDecisionClassifier,
        FairGradClassifier,
    )

    quiet: dict[str, Any] = {"n_jobs": 1, "verbose": -1, "random_state": seed}
    if kind == "linear":
        return FairGradClassifier(measure, random_state=seed, verbose=False)
    if kind == "trees":
        return FairGradLGBMClassifier(measure, **quiet)
    bases = {
        "decisions": None,
        "tree decisions": LGBMClassifier(**quiet),
        "boosting decisions": GradientBoostingClassifier(random_state=seed),
    }
    return FairDecisionClassifier(bases[kind], measure, random_state=seed)


KINDS = {
    "linear": "FairGradClassifier",
    "decisions": "FairDecisionClassifier (logistic)",
    "tree decisions": "FairDecisionClassifier (LightGBM)",
    "trees": "FairGradLGBMClassifier",
}
OTHER_BASE = {"boosting decisions": "FairDecisionClassifier (scikit-learn's boosting)"}
"""For tables whose authors used this base model."""


def our_methods(
    inputs: str = BLIND,
    epsilons: tuple[float | None, ...] = EPSILONS,
    kinds: Mapping[str, str] = KINDS,
) -> dict[str, Method]:
    """The rows of all estimators, or of those of some kinds.

    Example:
        >>> [name for name in our_methods(epsilons=(None,))][:2]
        ['FairGradClassifier', 'FairDecisionClassifier (logistic)']
    """
    return {
        title if epsilon is None else f"{title}, epsilon {epsilon:g}": Method(
            partial(fit_estimator, kind, epsilon, inputs),
            inputs=inputs,
            is_default=epsilon is None,
        )
        for epsilon in epsilons
        for kind, title in kinds.items()
    }
