"""A leaf for XGBoost: ``from fairgrad.xgboost import FairGradXGBClassifier``."""

from fairgrad.xgboost.classifier import FairGradXGBClassifier
from fairgrad.xgboost.files import load, save
from fairgrad.xgboost.objective import FairObjective

__all__ = ["FairGradXGBClassifier", "FairObjective", "load", "save"]
