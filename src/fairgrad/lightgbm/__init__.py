"""A leaf for LightGBM: ``from fairgrad.lightgbm import FairGradLGBMClassifier``."""

from fairgrad.lightgbm.classifier import FairGradLGBMClassifier
from fairgrad.lightgbm.files import load, save
from fairgrad.lightgbm.objective import FairObjective

__all__ = ["FairGradLGBMClassifier", "FairObjective", "load", "save"]
