"""A leaf for scikit-learn: ``from fairgrad.sklearn import FairGradClassifier``."""

from fairgrad.sklearn.classifier import FairGradClassifier

__all__ = ["FairGradClassifier"]
