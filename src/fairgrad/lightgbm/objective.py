"""The objective for `lightgbm.train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.boosting import BoostingObjective

if TYPE_CHECKING:
    from fairgrad.groups import Floats


class FairObjective(BoostingObjective):
    """The log loss with fairness, as LightGBM takes it: ``params={"objective": objective}``.

    The arguments are those of `fairgrad.boosting.BoostingObjective`. The rows are those of the
    training data set, whose labels are 0, 1, ...; its weights weigh the loss. As with any function
    for an objective, the booster then predicts scores: the margin of the second of two classes
    (above 0 speaks for it), or one score per class.

    Example:
        >>> import lightgbm, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> s = rng.integers(2, size=1000)
        >>> X = rng.normal(size=(1000, 3)) + np.outer(s, [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=1000) > 0.5).astype(int)
        >>> objective = FairObjective(y, s, "demographic_parity")
        >>> params = {"objective": objective, "num_threads": 1, "verbose": -1}
        >>> booster = lightgbm.train(params, lightgbm.Dataset(X, y), num_boost_round=100)
        >>> chosen = booster.predict(X) > 0
        >>> bool(abs(chosen[s == 0].mean() - chosen[s == 1].mean()) < 0.1)
        True
    """

    def __call__(self, scores: Any, dataset: Any) -> tuple[Floats, Floats]:
        """Gradients and hessians of a round."""
        self.meet_rows(dataset.get_label())
        single = np.asarray(scores, dtype=np.float32)  # as LightGBM keeps gradients; twice as fast
        return self.gradients(single, dataset.get_weight())

    def __deepcopy__(self, memo: dict[int, Any]) -> FairObjective:
        """Itself: LightGBM copies its parameters, and the copy's multipliers would be lost."""
        return self
