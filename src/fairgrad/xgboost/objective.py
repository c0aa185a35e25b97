"""The objective for `xgboost.train`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.boosting import BoostingObjective

if TYPE_CHECKING:
    from fairgrad.groups import Floats


class FairObjective(BoostingObjective):
    """The log loss with fairness, as XGBoost takes it: ``xgboost.train(..., obj=objective)``.

    The arguments are those of `fairgrad.boosting.BoostingObjective`. The rows are those of the
    training matrix, whose labels are 0, 1, ...; its weights weigh the loss. Name XGBoost's own log
    loss in the parameters as well ("binary:logistic", or "multi:softprob" with num_class): it then
    knows what the scores mean, so that metrics, predictions and saved models are in probabilities.

    To go on from a saved model, keep ``objective.rounds.state()`` beside it (it is JSON), give it
    to ``objective.rounds.load_state`` and the model to ``xgb_model``.

    Example:
        >>> import xgboost, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> s = rng.integers(2, size=1000)
        >>> X = rng.normal(size=(1000, 3)) + np.outer(s, [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=1000) > 0.5).astype(int)
        >>> objective = FairObjective(y, s, "demographic_parity")
        >>> params = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1}
        >>> data = xgboost.DMatrix(X, y)
        >>> booster = xgboost.train(params, data, num_boost_round=100, obj=objective)
        >>> chosen = booster.predict(data) > 0.5
        >>> bool(abs(chosen[s == 0].mean() - chosen[s == 1].mean()) < 0.1)
        True
    """

    def __call__(self, scores: Any, matrix: Any) -> tuple[Floats, Floats]:
        """Gradients and hessians of a round."""
        self.meet_rows(matrix.get_label())
        weight = matrix.get_weight()
        return self.gradients(scores, weight if len(weight) else None)
