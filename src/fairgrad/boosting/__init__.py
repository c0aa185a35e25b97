"""What boosting libraries share: each round is one step of the method on all rows.

`fairgrad.lightgbm` and `fairgrad.xgboost` are leaves on top of this: they hand over the scores of
a round and take its gradients (`objective`), and their estimators share arguments, fitted
attributes and files (`estimator`) and the metrics of eval sets (`evaluation`).
"""

from fairgrad.boosting.objective import BoostingObjective
from fairgrad.boosting.rounds import Rounds

__all__ = ["BoostingObjective", "Rounds"]
