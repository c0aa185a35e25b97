"""The rows an estimator is fitted to: read, checked, held out and scaled."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from fairgrad.aware import SensitiveEncoder, beside
from fairgrad.checks import naming_rows, require_values
from fairgrad.columns import as_array, as_column, as_columns, as_pandas, sensitive_columns
from fairgrad.groups import check_labels, check_weights, group_rows
from fairgrad.measures import among_large, check_several_groups
from fairgrad.membership import spread_over_groups
from fairgrad.splitting import hold_out, unpack_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.groups import Floats, GroupedRows, Ints
    from fairgrad.training import TrainingTable

FEATURES: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
"""What `validate_data` lets pass."""


PIECE = 1024
"""Rows that are looked at together."""

FEW_NUMBERS = 4096
"""Tables of so few numbers are trained on in the precision they have: it costs a few milliseconds,
and a row of weight 2 is the same as two rows up to the last digits."""


class Scaling(NamedTuple):
    """``(X - offset) / scale``; sparse features are not centred, so that they stay sparse."""

    offset: Floats
    scale: Floats

    def apply(self, X: Any) -> Any:
        """The scaled features, in their own precision."""
        offset, scale = self.offset.astype(X.dtype), self.scale.astype(X.dtype)
        if sparse.issparse(X):
            scaled = X.tocsr(copy=True)
            scaled.data = scaled.data / scale[scaled.indices]
            return scaled
        scaled = X - offset  # the one copy: tables may be large
        scaled /= scale
        return scaled

    def in_single_precision(self, X: Any) -> Any:
        """The same, scaled before it is rounded; None if some features are too large for it."""
        with np.errstate(over="ignore"):
            if sparse.issparse(X):
                scaled = self.apply(X).astype(np.float32)
                return scaled if np.isfinite(scaled.data).all() else None
            scaled = np.empty(X.shape, dtype=np.float32)
            for start in range(0, len(X), PIECE):
                piece = slice(start, start + PIECE)
                scaled[piece] = (X[piece] - self.offset) / self.scale
                if not np.isfinite(scaled[piece]).all():
                    return None
        return scaled


@dataclass(frozen=True, eq=False)
class FittingRows:
    """What an estimator is fitted to, and the rows it is judged on if they are given.

    Attributes:
        X: (N, features) array or CSR matrix: the n rows to fit, then those to judge on. The last
            columns of an aware model are the encoded sensitive values.
        everyone: labels, groups and weights of the N rows. For a plain model all are in one group.
        classes: the class labels as the user has them.
        n: how many rows there are to fit.
        encoder: of the sensitive values, for an aware model; None for others.
        measure: the model's measure among the groups of enough rows; None for a plain model.
        n_known: how many of the n rows, the first ones, have a known group, if the others are
            there once per group; None if each row is there once.
        training: numbers of the rows to train on; None for all of them.
        held: numbers of the rows to judge on, if these are others.
    """

    X: Any
    everyone: GroupedRows
    classes: NDArray[Any]
    n: int
    encoder: SensitiveEncoder | None = None
    measure: Any = None
    n_known: int | None = None
    training: Ints | None = None
    held: Ints | None = None

    @property
    def scaling(self) -> Scaling:
        """The (weighted) mean and standard deviation of each feature; constant ones stay as is."""
        X, weight = self.features(None), self.people(None).weight
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(X):
                ones = np.ones(self.n) if weight is None else weight
                share = ones / ones.sum()
                mean = np.asarray(share @ X, dtype=np.float64).ravel()
                variance = np.asarray(share @ X.multiply(X), dtype=np.float64).ravel() - mean**2
            else:
                mean, variance = moments(X, weight)
        if not np.isfinite(variance).all():
            wide = np.flatnonzero(~np.isfinite(variance)).tolist()
            raise ValueError(
                f"X: values in columns {wide} are too large to be scaled; divide them first."
            )
        smallest = 10 * np.finfo(X.dtype).eps * np.maximum(np.abs(mean), 1.0)
        spread = np.sqrt(np.maximum(variance, 0.0))
        offset = np.zeros_like(mean) if sparse.issparse(X) else mean
        return Scaling(offset, np.where(spread > smallest, spread, 1.0))

    def features(self, rows: Ints | None) -> Any:
        """The features of some rows; None: the n rows."""
        return self.X[: self.n] if rows is None else self.X[rows]

    def people(self, rows: Ints | None) -> GroupedRows:
        """Who some rows are; None: the n rows."""
        return self.everyone.take(slice(self.n) if rows is None else rows)

    @property
    def judged(self) -> Ints | None:
        """Those of levels: held-out rows, or all; of known group, if groups are partly known."""
        if self.held is None and self.n_known is not None:
            return np.arange(self.n_known)
        return self.training if self.held is None else self.held

    def split(self, fraction: float, seed: int) -> FittingRows:
        """The same with rows to train on and others to judge on, if a fraction is held out."""
        if len(self.everyone) > self.n:
            if fraction:
                raise ValueError(
                    "validation: cannot be combined with validation_fraction; leave "
                    "validation_fraction at 0."
                )
            rows = np.arange(len(self.everyone))
            return replace(self, training=rows[: self.n], held=rows[self.n :])
        training, held = hold_out(self.everyone.cell()[: self.n_known], fraction, seed)
        if not len(held):
            return self
        if self.n_known is not None:  # the same row must not be on both sides
            training = np.append(training, np.arange(self.n_known, self.n))
        return replace(self, training=training, held=held)

    def table(self, scaling: Scaling) -> TrainingTable:
        """All rows as networks see them.

        Features in double precision are trained on in single precision, twice to five times as
        fast: what that loses is far less than what the steps leave to chance. That is a copy of
        half the size.
        """
        import torch  # noqa: PLC0415 - linear models predict without it

        from fairgrad.training import TrainingTable  # noqa: PLC0415 - as above

        X = None
        if self.X.dtype == np.float64 and math.prod(self.X.shape) > FEW_NUMBERS:
            X = scaling.in_single_precision(self.X)
        X = scaling.apply(self.X) if X is None else X
        dtype = torch.float32 if X.dtype == np.float32 else torch.float64
        X = X if sparse.issparse(X) else torch.from_numpy(X)  # a tensor is not copied
        return TrainingTable.from_rows(X, self.everyone, dtype=dtype)


def moments(X: NDArray[Any], weight: Floats | None) -> tuple[Floats, Floats]:
    """Mean and variance of each column, in one pass over pieces of the rows.

    A piece with weight q and mean m adds ``q (m - mean)^2`` and its own variance to what was found
    before (Chan, Golub and LeVeque, 1983).
    """
    weight = np.ones(len(X)) if weight is None else weight
    total, mean, variance = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, len(X), PIECE):
        piece, weights = X[start : start + PIECE], weight[start : start + PIECE]
        q = weights.sum()
        if q == 0:
            continue
        centre = weights @ piece / q
        centred = np.asarray(piece - centre, dtype=np.float64)
        step = centre - mean
        variance += weights @ np.square(centred, out=centred) + step**2 * (total * q / (total + q))
        mean += step * (q / (total + q))
        total += q
    return mean, variance / total


def read_rows(
    model: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    validation: Any = None,
    membership: Any = None,
) -> FittingRows:
    """Checks the arguments of `FairGradClassifier.fit` before the model changes.

    Only the model's attributes about features change here.
    """
    y, n_known = as_column(y), None
    if membership is not None and sensitive_features is not None:
        (X, y, sensitive_features, sample_weight), spread = spread_over_groups(
            (X, y, sensitive_features, sample_weight), membership
        )
        n_known = spread.n_known
    with naming_rows():  # some of scikit-learn's errors name neither X nor y
        X, checked = validate_data(model, as_pandas(X), y, **FEATURES)
    known = check_labels(checked)
    weight = check_weights(sample_weight, X.shape[0])
    require_values(model, sensitive_features)
    arguments = ("y", "sensitive_features", "sample_weight")
    encoder = None
    if model.use_sensitive:
        columns = sensitive_columns(sensitive_features, X.shape[0])
        encoder = SensitiveEncoder.of(group_rows(y, columns, weight, arguments=arguments).groups)
    X, columns = _with_sensitive(model, X, sensitive_features, encoder)
    n = X.shape[0]
    if validation is not None:
        X_judged, y_judged, s_judged, w_judged = _read_validation(model, validation, known, encoder)
        (name,) = as_columns(y, "y")
        y = {name: np.concatenate([checked, y_judged])}
        columns = _joined(columns, s_judged)
        if weight is not None or w_judged is not None:
            m = X_judged.shape[0]
            both = [(weight, n), (check_weights(w_judged, m, "validation"), m)]
            weight = np.concatenate([np.ones(k) if w is None else w for w, k in both])
        join = partial(sparse.vstack, format="csr") if sparse.issparse(X) else np.concatenate
        X = join([X, X_judged])
    everyone = group_rows(y, columns, weight, labels=known, arguments=arguments)
    measure = model.fairness_measure
    if measure is not None:
        check_several_groups(measure, everyone.groups, "sensitive_features")
        measure = among_large(measure, everyone.take(slice(n)), model.min_group)
    return FittingRows(X, everyone, known, n, encoder, measure, n_known)


def _with_sensitive(
    model: Any, X: Any, values: Any, encoder: SensitiveEncoder | None
) -> tuple[Any, dict[str, Any]]:
    """Features, those of an aware model with its values beside, and named sensitive columns."""
    if encoder is not None:
        X = beside(X, encoder, values)
    if model.fairness_measure is None:  # all rows are in one group
        values = np.zeros(X.shape[0], dtype=np.int64)
    return X, sensitive_columns(values, X.shape[0])


def _read_validation(
    model: Any, validation: Any, classes: NDArray[Any], encoder: SensitiveEncoder | None
) -> tuple[Any, NDArray[Any], dict[str, Any], Any]:
    """Features, labels, sensitive columns and weights of the validation rows."""
    X, y, s, weight = unpack_rows(validation, "validation")
    try:
        X, y = validate_data(model, as_pandas(X), as_column(y), reset=False, **FEATURES)
        require_values(model, s)
        X, columns = _with_sensitive(model, X, s, encoder)
    except ValueError as wrong:
        raise ValueError(f"validation: {wrong}") from wrong
    unseen = np.setdiff1d(y, classes).tolist()
    if unseen:
        raise ValueError(f"validation: got the labels {unseen}, which are not in y.")
    return X, y, columns, weight


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Columns one below the other, matched by name, or by order if their names differ."""
    if len(first) != len(second):
        raise ValueError(
            f"validation: expected the sensitive attributes {list(first)}, got {list(second)}."
        )
    same = set(first) == set(second)
    below = [second[name] for name in first] if same else second.values()
    return {
        name: np.concatenate([as_array(column), as_array(other)])
        for (name, column), other in zip(first.items(), below, strict=True)
    }
