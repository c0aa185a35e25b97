"""Which types a file may hold, besides the numbers, containers and estimators skops trusts itself.

What skops trusts are NumPy's arrays and numbers, Python's plain values and containers, and the
estimators of scikit-learn, trees excepted: their indices are not checked when they predict. Only
classes are listed here, whose construction does nothing but set attributes; functions never are.
"""

from __future__ import annotations

TRUSTED = (
    "fairgrad.constraints.Constraints",
    "fairgrad.groups.Groups",
    "fairgrad.measures.On",
    "fairgrad.sklearn.classifier.FairGradClassifier",
    "fairgrad.training.networks.Shape",
    "numpy.dtype",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.compose._column_transformer.make_column_selector",
)
