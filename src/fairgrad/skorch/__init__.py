"""A leaf for skorch: ``from fairgrad.skorch import FairNeuralNetClassifier``."""

from fairgrad.skorch.classifiers import FairNeuralNetBinaryClassifier, FairNeuralNetClassifier

__all__ = ["FairNeuralNetBinaryClassifier", "FairNeuralNetClassifier"]
