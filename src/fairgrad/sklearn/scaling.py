"""Features with mean 0 and variance 1 inside the estimator, so that one learning rate suits all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from fairgrad.groups import Floats


class Scaling(NamedTuple):
    """``(X - offset) / scale``; sparse features are not centred, so that they stay sparse."""

    offset: Floats
    scale: Floats

    def apply(self, X: Any) -> Any:
        """The scaled features, in the precision of X."""
        if hasattr(X, "tocsr"):
            scaled = X.tocsr(copy=True)
            scaled.data = scaled.data / self.scale.astype(X.dtype)[scaled.indices]
            return scaled
        return (X - self.offset.astype(X.dtype)) / self.scale.astype(X.dtype)


def no_scaling(n_features: int) -> Scaling:
    """Leaves features as they are."""
    return Scaling(np.zeros(n_features), np.ones(n_features))


def fit_scaling(X: Any, weight: Floats | None) -> Scaling:
    """The (weighted) mean and standard deviation of each feature; constant ones are not scaled."""
    share = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight / weight.sum()
    mean = np.asarray(share @ X, dtype=np.float64).ravel()
    if hasattr(X, "tocsr"):
        variance = np.asarray(share @ X.multiply(X), dtype=np.float64).ravel() - mean**2
        offset = np.zeros_like(mean)
    else:
        variance = np.asarray(share @ (X - mean) ** 2, dtype=np.float64)
        offset = mean
    smallest = 10 * np.finfo(X.dtype).eps * np.maximum(np.abs(mean), 1.0)
    spread = np.sqrt(np.maximum(variance, 0.0))
    return Scaling(offset, np.where(spread > smallest, spread, 1.0))
