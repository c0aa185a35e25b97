"""Groups that are known for only some rows: how likely each other row is in each group.

Counts of groups are linear in membership. So a row of unknown group counts in every group with the
probability that it belongs there, and nothing else about training changes. An audit corrects the
errors of these probabilities by the rows whose group is known (`fairgrad.audit.Audit`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.columns import UNKNOWN, as_array, as_column, as_columns, as_pandas, encode
from fairgrad.groups import check_weights
from fairgrad.splitting import fold_of_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.groups import Floats, Ints


MANY_UNKNOWN = 0.2
"""If more than this share of the groups is unknown, these rows count in every group by its
probability. Otherwise they are left out, because the gain would not be worth the time."""


class PartlyKnown(NamedTuple):
    """An attribute that is unknown for some rows.

    Attributes:
        attribute: its name.
        values: (V,) its values.
        code: (N,) the index of each row's value, -1 if it is unknown.
        probability: (N, V) how likely each row has each value.
    """

    attribute: str
    values: NDArray[Any]
    code: Ints
    probability: Floats


@dataclass(frozen=True, eq=False)
class Membership:
    """How likely each row has each value of a sensitive attribute that some rows lack.

    Args:
        probability: (N, V) one column per value: an array in the sorted order of the values, or a
            data frame whose columns are the values. For audits, the probabilities of the rows of
            known value must come from a model that has not learnt from these rows;
            `MembershipModel` ensures it.
        attribute: the name of the attribute; by default the only attribute, or the only one with
            missing values.
        known_probability: (N,) the probability that the value of each row is known, if it differs
            between rows; None if it is the same for all.
        difference: used by audits. Among rows with the same label and prediction, the share of a
            group may differ by up to this much between rows of unknown and of known group.

    Example:
        >>> membership = Membership([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
        >>> membership.read({"sex": ["F", "M", None]}).code
        array([ 0,  1, -1])
    """

    probability: Any
    attribute: str | None = None
    known_probability: Any = None
    difference: float = 0.0

    @classmethod
    def of(cls, membership: Any) -> Membership:
        """Wraps probabilities as a membership; a membership is returned unchanged."""
        return membership if isinstance(membership, cls) else cls(membership)

    def read(self, columns: Mapping[str, Any]) -> PartlyKnown:
        """Finds the attribute with missing values among the sensitive columns.

        Raises:
            ValueError: if there is no such attribute, or the probabilities do not fit.
        """
        codes = {name: encode(column, f"s ({name})") for name, column in columns.items()}
        lacking = [name for name, encoded in codes.items() if (encoded.codes == UNKNOWN).any()]
        named = codes if self.attribute is None else [self.attribute]
        names = lacking if len(named) > 1 else [name for name in named if name in codes]
        if len(names) != 1:
            raise ValueError(
                "membership: expected one sensitive attribute with missing values, got "
                f"{names or 'none'} of {list(codes)}; name it with Membership(..., attribute=)."
            )
        code, values = codes[names[0]]
        frame, texts = as_pandas(self.probability), [str(value) for value in values]
        if hasattr(frame, "columns"):
            frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
            frame = frame[texts] if sorted(frame.columns) == sorted(texts) else frame.iloc[:, :0]
        probability = np.asarray(frame, dtype=np.float64)
        if probability.shape != (len(code), len(values)):
            raise ValueError(
                f"membership: expected {len(code)} rows and a column for each of the values "
                f"{texts} of {names[0]}, got the shape {np.shape(self.probability)}."
            )
        is_off = (probability < 0).any(axis=1) | ~(np.abs(probability.sum(axis=1) - 1) < 1e-3)
        if is_off.any():
            row = int(is_off.argmax())
            raise ValueError(
                f"membership: row {row} has {probability[row]}; probabilities must sum to 1."
            )
        return PartlyKnown(names[0], values, code, probability)

    def weight_of_known(self, n_rows: int) -> Floats:
        """(N,) how many rows each row of known value represents, up to a factor.

        Raises:
            ValueError: if a probability is not above 0.
        """
        if self.known_probability is None:
            return np.ones(n_rows)
        chance = as_array(as_column(self.known_probability)).astype(np.float64)
        if chance.shape != (n_rows,) or not ((chance > 0) & (chance <= 1)).all():
            raise ValueError(f"known_probability: expected {n_rows} numbers above 0 and up to 1.")
        return 1 / chance


class SpreadRows(NamedTuple):
    """The rows of known group, then a copy of each other row for every group it may be in.

    Attributes:
        source: (M,) the number of each row's original.
        columns: the sensitive values.
        share: (M,) the probability of the row's group: 1 if the group is known.
        n_known: how many of the original rows have a known group.

    Example:
        >>> spread_rows({"sex": ["F", None, "M"]}, [[1, 0], [0.2, 0.8], [0, 1]]).n_known
        2
    """

    source: Ints
    columns: dict[str, Any]
    share: Floats
    n_known: int


def spread_rows(sensitive_features: Any, membership: Any) -> SpreadRows:
    """Repeats the rows of unknown group once per group.

    Training on these rows with weights ``sample_weight[source] * share`` uses the expected counts
    of the groups. One sensitive column has missing values; the membership is an array, a data frame
    or a `Membership`.

    Example:
        >>> rows = spread_rows({"sex": ["F", None, "M"]}, [[1, 0], [0.2, 0.8], [0, 1]])
        >>> rows.source.tolist(), rows.columns["sex"].tolist(), rows.share.tolist()
        ([0, 2, 1, 1], ['F', 'M', 'F', 'M'], [1.0, 1.0, 0.2, 0.8])
    """
    columns = as_columns(sensitive_features, "sensitive_features")
    attribute, values, code, probability = Membership.of(membership).read(columns)
    is_known = code != UNKNOWN
    share = np.where(is_known[:, None], code[:, None] == np.arange(len(values)), probability)
    source, value = np.nonzero(share > 0)
    order = np.argsort(~is_known[source], kind="stable")
    source, value = source[order], value[order]
    spread = {name: as_array(column)[source] for name, column in columns.items()}
    spread[attribute] = values[value]
    return SpreadRows(source, spread, share[source, value], int(is_known.sum()))


def spread_over_groups(
    rows: tuple[Any, ...], membership: Any
) -> tuple[tuple[Any, ...], SpreadRows]:
    """Features, labels, sensitive values and weights with rows of unknown group once per group."""
    from sklearn.utils import _safe_indexing  # noqa: PLC0415 - the core works without it
    from sklearn.utils.validation import _num_samples  # noqa: PLC0415 - as above

    X, y, sensitive_features, weight = rows
    spread = spread_rows(sensitive_features, membership)
    weight = check_weights(weight, _num_samples(y))
    weight = spread.share if weight is None else weight[spread.source] * spread.share
    X, y = (_safe_indexing(column, spread.source) for column in (as_pandas(X), as_column(y)))
    return (X, y, spread.columns, weight), spread


class MembershipModel:
    """Estimates the groups of rows from those whose group is known, out of fold.

    Args:
        estimator: a classifier with `predict_proba`; by default logistic regression on scaled
            numbers and encoded categories.
        n_folds: each row of known group gets the probabilities of a model that has learnt from the
            other folds; rows of unknown group get the mean of all models.
        random_state: the seed of the folds.

    Attributes:
        models_: the fitted models, one per fold.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 400).astype(object)
        >>> height = rng.normal(165, 7, 400) + 13 * (sex == "M")
        >>> sex[100:] = None
        >>> probability = MembershipModel().fit_predict({"height": height}, sex)
        >>> probability.shape, list(probability.columns)
        ((400, 2), ['F', 'M'])
    """

    def __init__(self, estimator: Any = None, *, n_folds: int = 5, random_state: Any = 0) -> None:
        self.estimator, self.n_folds, self.random_state = estimator, n_folds, random_state

    def fit_predict(self, X: Any, s: Any, y: Any = None) -> Any:
        """The probabilities of the rows it is fitted to, as a data frame with a column per value.

        Args:
            X: features: a data frame, an array or a mapping of columns.
            s: one sensitive value per row; missing values are unknown.
            y: labels. Pass them if you train a classifier, because errors are counted by label and
                group.

        Raises:
            ValueError: if fewer than two values are known, or a value in fewer rows than folds.
        """
        import pandas as pd  # noqa: PLC0415 - the core works without it
        from sklearn.base import clone  # noqa: PLC0415 - as above

        (column,) = as_columns(s, "s").values()
        code, values = encode(column, "s")
        known = np.flatnonzero(code != UNKNOWN)
        size = np.bincount(code[known], minlength=len(values))
        if len(values) < 2 or size.min() < self.n_folds:
            raise ValueError(
                f"s: expected at least two values with {self.n_folds} known rows each, got "
                f"{dict(zip(values.tolist(), size.tolist(), strict=True))}."
            )
        features = as_pandas(X)
        table = pd.DataFrame(features.toarray() if hasattr(features, "toarray") else features)
        table = table.reset_index(drop=True).set_axis([str(name) for name in table.columns], axis=1)
        if y is not None:
            table = table.assign(**{"label of the row": as_array(as_column(y)).astype(str)})
        probability = np.zeros((len(code), len(values)))
        fold = fold_of_rows(code[known], self.n_folds, self.random_state)
        unknown, self.models_ = np.flatnonzero(code == UNKNOWN), []
        for held_out in range(self.n_folds):
            learnt, held = known[fold != held_out], known[fold == held_out]
            model = clone(self.estimator or _default_estimator())
            self.models_.append(model.fit(table.iloc[learnt], code[learnt]))
            probability[held] = model.predict_proba(table.iloc[held])
        if len(unknown):
            each = [model.predict_proba(table.iloc[unknown]) for model in self.models_]
            probability[unknown] = np.mean(each, axis=0)
        return pd.DataFrame(probability, columns=pd.Index(values))


def group_membership(X: Any, y: pd.Series, s: pd.DataFrame) -> Membership | None:
    """Probabilities of the groups, if one attribute is unknown for many rows; else None."""
    unknown = s.isna().mean()
    names = unknown.index[unknown > MANY_UNKNOWN]
    if len(names) != 1:
        return None
    model = MembershipModel()
    if s[names[0]].value_counts().min() < model.n_folds:
        return None
    return Membership(model.fit_predict(X, s[names[0]], y), attribute=names[0])


def _default_estimator() -> Any:
    """Logistic regression on scaled numbers and encoded categories."""
    from sklearn import compose, impute, linear_model, pipeline, preprocessing  # noqa: PLC0415

    numbers = pipeline.make_pipeline(
        impute.SimpleImputer(keep_empty_features=True), preprocessing.StandardScaler()
    )
    others = preprocessing.OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5)
    kinds = ["number", "bool"]
    encoder = compose.make_column_transformer(
        (numbers, compose.make_column_selector(dtype_include=kinds)),
        (others, compose.make_column_selector(dtype_exclude=kinds)),
    )
    return pipeline.make_pipeline(encoder, linear_model.LogisticRegression(max_iter=1000))
