"""The rows an estimator is fitted to: read, checked, held out and scaled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, validate_data

from fairgrad.aware import SensitiveEncoder, beside
from fairgrad.checks import naming_rows
from fairgrad.columns import as_array, as_column, as_columns, as_pandas, encode, sensitive_columns
from fairgrad.groups import check_weights, group_rows
from fairgrad.measures import among_large, check_several_groups
from fairgrad.membership import spread_rows
from fairgrad.splitting import hold_out, unpack_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, GroupedRows, Groups, Ints
    from fairgrad.membership import SpreadRows
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

    def apply(self, *parts: Any) -> Any:
        """The scaled features of all parts, one below the other, in the precision of the first."""
        dtype = parts[0].dtype
        offset, scale = self.offset.astype(dtype), self.scale.astype(dtype)
        if sparse.issparse(parts[0]):
            scaled = sparse.vstack(parts, format="csr", dtype=dtype)
            scaled.data = scaled.data / scale[scaled.indices]
            return scaled
        scaled = np.concatenate(parts, dtype=dtype)  # the one copy: tables may be large
        scaled -= offset
        scaled /= scale
        return scaled

    def in_single_precision(self, *parts: Any) -> Any:
        """The same, scaled before it is rounded; None if some features are too large for it."""
        with np.errstate(over="ignore"):
            if sparse.issparse(parts[0]):
                scaled = self.apply(*parts).astype(np.float32)
                return scaled if np.isfinite(scaled.data).all() else None
            n, first = sum(len(rows) for rows in parts), 0
            scaled = np.empty((n, parts[0].shape[1]), dtype=np.float32)
            for rows in parts:
                for start in range(0, len(rows), PIECE):
                    piece = (rows[start : start + PIECE] - self.offset) / self.scale
                    rounded = scaled[first : first + len(piece)]
                    rounded[:] = piece
                    if not np.isfinite(rounded).all():
                        return None
                    first += len(piece)
        return scaled


@dataclass(frozen=True, eq=False)
class FittingRows:
    """What an estimator is fitted to, and the rows it is judged on if they are given.

    Attributes:
        X: (n, features) array or CSR matrix; of an aware model the encoded sensitive values are
            its last columns.
        everyone: labels, groups and weights of the n rows, then of those to judge on. For a plain
            model all are in one group.
        classes: the class labels as the user has them.
        is_plain: whether no sensitive values are needed.
        X_judged: features of the rows given to judge on; None if there are none.
        encoder: of the sensitive values, for an aware model; None for others.
        measure: the model's measure among the groups of enough rows; None for a plain model.
        n_known: how many of the n rows, the first ones, have a known group, if the others are
            there once per group; None if each row is there once.
    """

    X: Any
    everyone: GroupedRows
    classes: NDArray[Any]
    is_plain: bool
    X_judged: Any = None
    encoder: SensitiveEncoder | None = None
    measure: Any = None
    n_known: int | None = None

    def __len__(self) -> int:
        n: int = self.X.shape[0]
        return n

    def groups(self, rows: Ints | None = None) -> Groups | None:
        """Groups with the frequencies of some rows, or of all n; None for a plain model."""
        if self.is_plain:
            return None
        return self._all_groups if rows is None else self.everyone.take(rows).groups

    @cached_property
    def _all_groups(self) -> Groups:
        return self.everyone.take(slice(len(self))).groups

    @cached_property
    def scaling(self) -> Scaling:
        """The (weighted) mean and standard deviation of each feature; constant ones stay as is."""
        X, weight = self.X, self.everyone.weight
        weight = None if weight is None else np.ascontiguousarray(weight[: len(self)])
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(X):
                ones = np.ones(len(self)) if weight is None else weight
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
        """The features of some rows, which may be among those to judge on; None: the n rows."""
        if rows is None:
            return self.X
        is_judged = rows >= len(self)
        if not is_judged.any():
            return self.X[rows]
        judged = self.X_judged[rows[is_judged] - len(self)]
        if is_judged.all():
            return judged
        parts = [self.X[rows[~is_judged]], judged]  # rows to judge on come last
        return sparse.vstack(parts, format="csr") if sparse.issparse(judged) else np.vstack(parts)

    def people(self, rows: Ints | None) -> GroupedRows:
        """Who some rows are; None: the n rows."""
        return self.everyone.take(slice(len(self)) if rows is None else rows)

    def judged_rows(self, trained: Ints | None, held: Ints | None) -> Ints | None:
        """Those of levels: held-out rows, or all; of known group, if groups are partly known."""
        if held is None and self.n_known is not None:
            return np.arange(self.n_known)
        return trained if held is None else held

    def as_unknown(self, rows: Ints | None) -> Any:
        """Features of some rows of an aware model (None: the n rows) without sensitive values."""
        assert self.encoder is not None  # noqa: S101 - for type checkers
        X = self.features(rows)
        n_own = X.shape[1] - len(self.encoder.names)
        unknown = self.encoder.encode(None, X.shape[0])
        return beside(X[:, :n_own], unknown, self.encoder.names)

    def split(self, fraction: float, seed: int) -> tuple[Ints | None, Ints | None]:
        """Numbers of the rows to train on and to judge on; None for all rows."""
        if self.X_judged is None:
            training, held = hold_out(self.everyone.cell()[: self.n_known], fraction, seed)
            if self.n_known is not None:  # the same row must not be on both sides
                training = np.append(training, np.arange(self.n_known, len(self)))
            return (training, held) if len(held) else (None, None)
        if fraction:
            raise ValueError(
                "validation: not together with validation_fraction; leave the fraction at 0 to be "
                "judged on the rows given."
            )
        return np.arange(len(self)), np.arange(len(self), len(self.everyone))

    def table(self, scaling: Scaling) -> TrainingTable:
        """All rows as networks see them.

        Features in double precision are trained on in single precision, twice to five times as
        fast: what that loses is far less than what the steps leave to chance. That is a copy of
        half the size.
        """
        import torch  # noqa: PLC0415 - linear models predict without it

        from fairgrad.training import TrainingTable  # noqa: PLC0415 - as above

        parts = [self.X] if self.X_judged is None else [self.X, self.X_judged]
        kind = torch.from_numpy(np.empty(0, dtype=self.X.dtype)).dtype
        is_large = math.prod(self.X.shape) > FEW_NUMBERS
        if kind == torch.float64 and is_large:
            single = scaling.in_single_precision(*parts)
            if single is not None:  # a tensor is not copied
                X = single if sparse.issparse(single) else torch.from_numpy(single)
                return TrainingTable.from_rows(X, self.everyone)
        X = scaling.apply(*parts)
        X = X if sparse.issparse(X) else torch.from_numpy(X)  # a tensor is not copied
        return TrainingTable.from_rows(X, self.everyone, dtype=kind)


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
    sensitive_features: Any,
    sample_weight: Any,
    validation: Any = None,
    *,
    membership: Any = None,
) -> FittingRows:
    """Checks the arguments of `FairGradClassifier.fit` before the model changes.

    Only the model's attributes about features change here.
    """
    rows = (X, as_column(y), sensitive_features, sample_weight)
    (X, y, sensitive_features, sample_weight), spread = spread_over_groups(rows, membership)
    with naming_rows():  # some of scikit-learn's errors name neither X nor y
        X, checked = validate_data(model, as_pandas(X), y, **FEATURES)
    check_labels(checked)
    weight = check_weights(sample_weight, X.shape[0])
    is_plain = model.fairness_measure is None
    columns = _sensitive_columns(model, sensitive_features, X.shape[0])
    arguments = ("y", "sensitive_features", "sample_weight")
    encoder = None
    if model.use_sensitive:
        encoder = SensitiveEncoder.of(group_rows(y, columns, weight, arguments=arguments).groups)
        X = beside(X, encoder.encode(sensitive_features, X.shape[0]), encoder.names)
    if is_plain:  # all rows are in one group
        columns = sensitive_columns(np.zeros(X.shape[0], dtype=np.int64), X.shape[0])
    known = np.unique(checked)
    if len(known) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {known.tolist()}.")
    X_judged = None
    if validation is not None:
        X_judged, y_judged, s_judged, w_judged = _read_validation(model, validation, known, encoder)
        (name,) = as_columns(y, "y")
        y = {name: np.concatenate([checked, y_judged])}
        columns = _joined(columns, s_judged)
        n, m = X.shape[0], X_judged.shape[0]
        if weight is not None or w_judged is not None:
            parts = [(weight, n), (check_weights(w_judged, m, "validation"), m)]
            weight = np.concatenate([np.ones(k) if w is None else w for w, k in parts])
    everyone = group_rows(y, columns, weight, labels=known, arguments=arguments)
    measure = model.fairness_measure
    if not is_plain:
        check_several_groups(measure, everyone.groups, "sensitive_features")
        measure = among_large(measure, everyone.take(slice(X.shape[0])), model.min_group)
    n_known = None if spread is None else spread.n_known
    return FittingRows(X, everyone, known, is_plain, X_judged, encoder, measure, n_known)


def spread_over_groups(
    rows: tuple[Any, ...], membership: Any
) -> tuple[tuple[Any, ...], SpreadRows | None]:
    """Features, labels, sensitive values and weights with rows of unknown group once per group."""
    X, y, sensitive_features, weight = rows
    if membership is None or sensitive_features is None:
        return rows, None
    spread = spread_rows(sensitive_features, membership)
    weight = check_weights(weight, _num_samples(y))
    weight = spread.share if weight is None else weight[spread.source] * spread.share
    X, y = (_safe_indexing(column, spread.source) for column in (as_pandas(X), as_column(y)))
    return (X, y, spread.columns, weight), spread


def _sensitive_columns(model: Any, values: Any, n: int) -> dict[str, Any]:
    """Named sensitive columns of n rows; all rows are in one group if no values are needed."""
    if model.fairness_measure is None and not model.use_sensitive:
        return sensitive_columns(np.zeros(n, dtype=np.int64), n)
    if values is None:
        why = f"fairness_measure is {model.fairness_measure!r}"
        instead = "fairness_measure=None for a plain model"
        if model.fairness_measure is None:
            why, instead = "use_sensitive is set", "use_sensitive=False"
        raise ValueError(
            f"sensitive_features: required, one value per row, as {why}; pass fit(X, y, "
            f"sensitive_features=...), or {instead}."
        )
    return sensitive_columns(values, n)


def _read_validation(
    model: Any, validation: Any, classes: NDArray[Any], encoder: SensitiveEncoder | None
) -> tuple[Any, NDArray[Any], dict[str, Any], Any]:
    """Features, labels, sensitive columns and weights of the validation rows."""
    X, y, s, weight = unpack_rows(validation, "validation")
    try:
        X, y = validate_data(model, as_pandas(X), as_column(y), reset=False, **FEATURES)
        columns = _sensitive_columns(model, s, X.shape[0])
        if encoder is not None:
            X = beside(X, encoder.encode(s, X.shape[0]), encoder.names)
        if model.fairness_measure is None:
            columns = sensitive_columns(np.zeros(X.shape[0], dtype=np.int64), X.shape[0])
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


def take_rows(
    X: Any, y: Any, sensitive: Mapping[str, Any], weight: Any, rows: Ints
) -> tuple[Any, Any, dict[str, Any], Any]:
    """Features, labels, sensitive columns and weights (or None) of some of the rows of a table."""
    return (
        _safe_indexing(X, rows),
        _safe_indexing(y, rows),
        {name: _safe_indexing(column, rows) for name, column in sensitive.items()},
        None if weight is None else as_array(weight)[rows],
    )


def check_labels(y: NDArray[Any]) -> None:
    """Refuses labels that are not classes, or that mix kinds, which have no order."""
    if y.dtype == object:
        encode(y, "y")
    with naming_rows("y"):
        check_classification_targets(y)
