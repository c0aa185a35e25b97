"""What boosting libraries share: each round is one step of the method on all rows.

`fairgrad.lightgbm` and `fairgrad.xgboost` are leaves on top of this: they hand over the scores of
a round and take its gradients (`objective`), and their estimators share arguments, fitted
attributes, eval sets and files (`estimator`).
"""

from fairgrad.boosting.objective import BoostingObjective

__all__ = ["BoostingObjective"]
