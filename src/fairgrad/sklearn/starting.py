"""Starting weights from another fitted classifier, to make it fair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fairgrad.groups import Floats
    from fairgrad.sklearn.scaling import Scaling
    from fairgrad.training import Shape


def parameters_of(classifier: Any, shape: Shape, scaling: Scaling) -> Floats:
    """(1, P) parameters with which our network gives the scores of a fitted classifier.

    Args:
        classifier: with ``coef_`` and ``intercept_`` (a linear model such as LogisticRegression)
            or ``coefs_`` and ``intercepts_`` (an MLPClassifier with ReLU).
        shape: of our network, which must have the same layers.
        scaling: of the features our network sees; the classifier's are not scaled.

    Raises:
        TypeError: if the classifier is not of such a kind.
        ValueError: if its layers do not fit.
    """
    layers = _layers(classifier)
    offset, scale = scaling
    first_weight, first_bias = layers[0]
    layers[0] = (first_weight * scale, first_bias + first_weight @ offset)
    found = [part for layer in layers for part in layer]
    if shape.batch_norm or [part.shape for part in found] != list(shape.pieces.values()):
        sizes = [weight.shape[0] for weight, _ in layers]
        raise ValueError(
            f"init: expected layers of {[*shape.hidden, shape.n_outputs]} units on "
            f"{shape.n_features} features without batch_norm, got {sizes} on "
            f"{first_weight.shape[1]} features."
        )
    return np.concatenate([part.ravel() for part in found])[None]


def _layers(classifier: Any) -> list[tuple[Floats, Floats]]:
    if hasattr(classifier, "coefs_"):
        if getattr(classifier, "activation", "relu") != "relu" and len(classifier.coefs_) > 1:
            raise ValueError(f"init: expected ReLU, got activation={classifier.activation!r}.")
        pairs = zip(classifier.coefs_, classifier.intercepts_, strict=True)
        return [(np.array(weight.T, dtype=np.float64), np.array(bias)) for weight, bias in pairs]
    if hasattr(classifier, "coef_"):
        weight = np.array(np.atleast_2d(classifier.coef_), dtype=np.float64)
        bias = np.broadcast_to(np.atleast_1d(classifier.intercept_), len(weight))
        return [(weight, np.array(bias, dtype=np.float64))]
    raise TypeError(
        "init: expected a fitted linear model (coef_) or MLPClassifier (coefs_), got "
        f"{type(classifier).__name__}; wrap other networks as module=."
    )
