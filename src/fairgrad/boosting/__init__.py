"""What boosting libraries share: each round is one step of the method on all rows.

A leaf's foundation: `fairgrad.lightgbm` and `fairgrad.xgboost` give it their scores and take its
gradients; their estimators share what they read (`inputs`), judge eval sets by (`judging`) and keep
and save (`fitted`).
"""

from fairgrad.boosting.gradients import log_loss_gradients, probabilities, weigh
from fairgrad.boosting.objective import BoostingObjective
from fairgrad.boosting.rounds import Rounds

__all__ = [
    "BoostingObjective",
    "Rounds",
    "log_loss_gradients",
    "probabilities",
    "weigh",
]
