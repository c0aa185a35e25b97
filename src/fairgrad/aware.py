"""Sensitive values as features, for models that may look at them: *aware* models.

For all estimators, this module decides which columns encode a sensitive value, how an unknown value
is encoded at prediction, and how the columns are joined to the features. The law may forbid such
models: see the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.checks import warn
from fairgrad.columns import UNKNOWN, codes_among, encode, sensitive_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, GroupedRows, Groups, Ints

SMALLEST_GROUP = 20
"""A combination of several attributes gets a column if it has at least this many rows."""

HIDDEN = 0.05
"""Share of the rows whose value `hide_some` hides, so that "unknown" is learnt as a category."""

AWARE_METHODS = ("predict", "predict_proba", "decision_function", "score")
"""The methods of an aware model that take the sensitive values."""

NOT_GIVEN = (
    "sensitive_features: not passed, so every value counts as unknown. The model was fitted with "
    "use_sensitive=True: call predict(X, sensitive_features=...)."
)
NOT_USED = (
    "sensitive_features: this model does not use them to predict; leave them out, or fit it "
    "with use_sensitive=True."
)


@dataclass(frozen=True, eq=False)
class SensitiveEncoder:
    """Sensitive values -> columns of features.

    Every value of an attribute has a column that is 1 in its rows and 0 in others. If some values
    were unknown in fit, "unknown" has a column, too, and is learnt like any other value. If none
    were, an unknown value is encoded by the shares of the values, ``p_v`` in the column of value v:
    a linear model then gives it the mean of the values' coefficients. A value that fit never saw is
    unknown, with a warning: predictions do not fail.

    Several attributes also have one column for each combination of at least 20 rows, so that a
    linear model can treat the combinations differently. If some of a row's values are unknown,
    these columns hold the shares of the combinations that are possible.

    Attributes:
        attributes: names of the A sensitive attributes.
        values: for each attribute its values, sorted.
        codes: (G, A) the value index of each combination in fit, -1 where it is unknown.
        rows: (G,) rows of each combination (with weights, the sum of the sample weights).
        crossed: whether combinations have columns.

    Example:
        >>> from fairgrad.groups import Groups
        >>> encoder = SensitiveEncoder.of(Groups.from_data([0, 1, 1, 0], ["F", "M", "M", "M"]))
        >>> encoder.names
        ('s=F', 's=M')
        >>> encoder.encode(["M", None, "F"], 3)
        array([[0.  , 1.  ],
               [0.25, 0.75],
               [1.  , 0.  ]])
    """

    attributes: tuple[str, ...]
    values: tuple[NDArray[Any], ...]
    codes: Ints
    rows: Floats
    crossed: bool = True

    @classmethod
    def of(cls, groups: Groups, *, crossed: bool = True) -> SensitiveEncoder:
        """The encoder for the groups of the rows that a model is fitted to.

        Args:
            groups: of all rows of the fit.
            crossed: whether combinations of attributes get columns; trees do not need them.
        """
        rows = groups.mass.sum(axis=0)
        return cls(groups.attributes, groups.values, groups.codes, rows, crossed)

    @property
    def names(self) -> tuple[str, ...]:
        """(d,) what each column stands for: ``"sex=Female"``; unknown is ``?``."""
        names = [
            f"{name}={value}"
            for a, name in enumerate(self.attributes)
            for value in [*self.values[a].tolist(), *(["?"] if self._has_unknown(a) else [])]
        ]
        return (*names, *(self._combination(codes) for codes in self.codes[self._with_column]))

    def encode(self, s: Any, n_rows: int, argument: str = "sensitive_features") -> Floats:
        """(n, d) the columns of some rows.

        Args:
            s: sensitive values as in fit; None if all are unknown.
            n_rows: how many rows there are.
            argument: what to call the values in messages.

        Raises:
            ValueError: if there are other attributes, or another number of rows.
        """
        if s is None:
            codes = [np.full(n_rows, UNKNOWN) for _ in self.attributes]
        else:
            codes = self._read(sensitive_columns(s, n_rows, argument), argument)
        present, row = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
        return self._columns(present)[row.ravel()]

    def _read(self, columns: Mapping[str, Any], argument: str) -> list[Ints]:
        if len(columns) != len(self.attributes):
            raise ValueError(
                f"{argument}: expected the attributes {list(self.attributes)} of the fit, got "
                f"{list(columns)}."
            )
        if set(columns) == set(self.attributes):
            columns = {name: columns[name] for name in self.attributes}
        named = zip(self.attributes, columns.values(), self.values, strict=True)
        return [
            codes_among(encode(column, f"{argument} ({name})"), values, argument, name)
            for name, column, values in named
        ]

    def _has_unknown(self, attribute: int) -> bool:
        return bool((self.codes[:, attribute] == UNKNOWN).any())

    @property
    def _with_column(self) -> Ints:
        """The combinations that have a column."""
        if not self.crossed or len(self.attributes) == 1:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.rows >= SMALLEST_GROUP)

    def _columns(self, present: Ints) -> Floats:
        """(m, d) the columns of m different combinations of codes, (m, A)."""
        blocks = []
        for a, values in enumerate(self.values):
            n = len(values)
            onehot = np.eye(n + 1) if self._has_unknown(a) else np.eye(n + 1, n)
            if not self._has_unknown(a):
                onehot[n] = np.bincount(self.codes[:, a], self.rows, minlength=n) / self.rows.sum()
            blocks.append(onehot[present[:, a]])  # unknown is -1, the last row
        if len(self._with_column):
            blocks.append(np.stack([self._shares(codes) for codes in present]))
        return np.concatenate(blocks, axis=1)

    def _shares(self, codes: Ints) -> Floats:
        """How likely each combination with a column is, by the values that are known."""
        is_same = (self.codes == codes).all(axis=1)
        if not is_same[self._with_column].any():
            is_same = ((self.codes == codes) | (codes == UNKNOWN)).all(axis=1)
        if not is_same.any():  # values that never occurred together
            is_same[:] = True
        rows = np.where(is_same, self.rows, 0.0)
        shares: Floats = (rows / max(rows.sum(), np.finfo(float).tiny))[self._with_column]
        return shares

    def _combination(self, codes: Ints) -> str:
        pairs = zip(self.attributes, self.values, codes, strict=True)
        return ", ".join(f"{name}={values[c] if c >= 0 else '?'}" for name, values, c in pairs)


def hide_some(rows: GroupedRows, random_state: Any = 0) -> dict[str, Any]:
    """The sensitive columns of rows, with some values hidden, so that trees learn "unknown".

    A tree cannot average its predictions over the values. So a share of each attribute's values is
    hidden at random, unless as many are unknown anyway. The constraints still use them.

    Args:
        rows: of the fit.
        random_state: a seed, or anything else that ``numpy.random.default_rng`` takes.
    """
    source = np.random.default_rng(random_state)
    hidden = rows.sensitive_values()
    for a, (name, column) in enumerate(hidden.items()):
        is_unknown = rows.groups.codes[rows.group, a] == UNKNOWN
        lacking = HIDDEN - float(is_unknown.mean())
        if lacking > 0:
            chosen = source.random(len(column)) < lacking
            chosen[source.integers(len(column))] = True  # at least one
            nothing: Any = UNKNOWN if column.dtype.kind == "i" else None
            hidden[name] = np.where(chosen, nothing, column)
    return hidden


def beside(
    X: Any, encoder: SensitiveEncoder, sensitive_features: Any, names: Sequence[str] | None = None
) -> Any:
    """Features with the encoded sensitive values to their right.

    Args:
        X: (n, features): array-like, a sparse matrix or a data frame.
        encoder: encodes the sensitive values.
        sensitive_features: as the encoder takes them; None if all are unknown.
        names: of the new columns in a data frame; by default the encoder's.

    Raises:
        ValueError: if the data frame already has a column of that name.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    columns = encoder.encode(sensitive_features, X.shape[0])
    names = encoder.names if names is None else names
    if hasattr(X, "tocsr"):
        from scipy import sparse  # noqa: PLC0415 - X is a matrix of scipy, so it is loaded

        return sparse.hstack([X, columns.astype(X.dtype)], format="csr")
    if not hasattr(X, "columns"):
        array = np.asarray(X)
        dtype = array.dtype if array.dtype.kind == "f" else np.float64
        return np.concatenate([array, columns.astype(dtype)], axis=1)
    taken = [name for name in names if name in X.columns]
    if taken:
        raise ValueError(f"X: has a column {taken[0]!r}, which use_sensitive adds; rename it.")
    frame = X.copy(deep=False)
    for name, column in zip(names, columns.T, strict=True):
        frame[name] = column
    return frame


def to_predict(model: Any, sensitive_features: Any) -> dict[str, Any]:
    """The arguments that pass the sensitive values to a model's `predict`, if it uses them.

    In a pipeline, the last step decides.
    """
    last = model[-1] if hasattr(model, "steps") else model
    is_aware = getattr(last, "use_sensitive", False)
    return {"sensitive_features": sensitive_features} if is_aware else {}


def with_values(
    encoder: SensitiveEncoder | None,
    X: Any,
    sensitive_features: Any,
    names: Sequence[str] | None = None,
) -> Any:
    """Features of rows to predict; for an aware model, with the encoded sensitive values.

    Args:
        encoder: the fitted model's; None if it is not aware.
        X: (n, features), as `beside` takes it.
        sensitive_features: (n,) or a table; with None all are unknown, with a warning.
        names: of the columns in a data frame; by default the encoder's.

    Raises:
        ValueError: if sensitive values are given although the model does not use them.
    """
    if encoder is None:
        if sensitive_features is not None:
            raise ValueError(NOT_USED)
        return X
    if sensitive_features is None:
        warn(NOT_GIVEN)
    return beside(X, encoder, sensitive_features, names)


class AwareRouting:
    """The metadata requests of aware estimators, and their score.

    Estimators list this class before scikit-learn's base classes. Methods that predict request
    `sensitive_features` if `use_sensitive` is set, unless the user has set the request. `fit`
    requests them only if the user sets it.
    """

    use_sensitive: bool

    def get_metadata_routing(self) -> Any:
        """The requests, for scikit-learn."""
        routing = super().get_metadata_routing()  # type: ignore[misc]  # of BaseEstimator
        return ask_for_values(routing, self.use_sensitive)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """The accuracy; sensitive values as in `predict`."""
        from sklearn.metrics import accuracy_score  # noqa: PLC0415 - the core works without it

        predicted = self.predict(X, sensitive_features=sensitive_features)  # type: ignore[attr-defined]  # of the estimator
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))


def ask_for_values(routing: Any, use_sensitive: bool) -> Any:
    """Adds the requests of aware models to those that the user has set."""
    for method in AWARE_METHODS:
        request = getattr(routing, method, None)
        if request is not None and request.requests.get("sensitive_features", True) is None:
            request.add_request(param="sensitive_features", alias=bool(use_sensitive))
    return routing
