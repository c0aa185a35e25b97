"""Data sets as users see them: readable columns, and the matrix made from them.

Adult, in two forms, and German credit come with the package.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairgrad.splitting import SplitRows, three_parts
from fairgrad.tables.features import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sklearn.compose import ColumnTransformer

FILES = Path(__file__).with_name("files")

#: Columns of each table. Categories are in the order of the matrix's columns; those of German
#: credit are the names of its codes.
COLUMNS = json.loads((FILES / "columns.json").read_text(encoding="utf-8"))

#: The levels below a high-school degree are merged into two, as in the paper's experiments.
ADULT_SCHOOLING = {
    **dict.fromkeys(["Preschool", "1st-4th", "5th-6th", "7th-8th"], "Preschool-8th"),
    **dict.fromkeys(["9th", "10th", "11th", "12th"], "9th-12th"),
}

#: Sex is part of the codes for marital status.
GERMAN_SEX = {"A91": "male", "A92": "female", "A93": "male", "A94": "male", "A95": "female"}

#: Seeds of the paper's five repetitions.
PAPER_SEEDS = (10, 20, 30, 40, 50)


@dataclass(frozen=True, eq=False)
class Encoded:
    """Arrays ready for training; ``X, y, s = encoded`` unpacks the three that matter most.

    Attributes:
        X: Features, one row per example.
        y: Labels 0, 1, ..., positions in ``label_names``.
        s: Groups 0, 1, ..., positions in ``group_names``; -1 is unknown.
        attributes: One column of codes per sensitive attribute; -1 is unknown.
        feature_names: Names of the columns of ``X``.
        label_names: Names of the labels.
        group_names: Names of the groups, such as "sex=Female, race=White".
        attribute_names: Values of each sensitive attribute, by its name.

    Example:
        >>> from fairgrad.datasets import load
        >>> encoded = load("german").encode()
        >>> encoded
        <Encoded: 1,000 rows, groups ['sex=female', 'sex=male']>
        >>> X, y, s = encoded
        >>> X.shape, encoded.rows(slice(10)).y.tolist()
        ((1000, 57), [1, 0, 1, 1, 0, 1, 1, 1, 1, 0])
    """

    X: Any
    y: np.ndarray
    s: np.ndarray
    attributes: np.ndarray
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    group_names: tuple[str, ...]
    attribute_names: Mapping[str, tuple[str, ...]]

    def __iter__(self) -> Iterator[Any]:
        """Yield X, y and s."""
        return iter((self.X, self.y, self.s))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.y)

    def __repr__(self) -> str:
        """Return one line with the sizes."""
        return f"<Encoded: {len(self):,} rows, groups {list(self.group_names)}>"

    def rows(self, index: np.ndarray | slice) -> Encoded:
        """The chosen rows: numbers, a mask or a slice."""
        chosen = np.arange(len(self))[index]
        return replace(
            self,
            X=self.X.take(chosen, axis=0),
            y=self.y[chosen],
            s=self.s[chosen],
            attributes=self.attributes[chosen],
        )


class Split(NamedTuple):
    """The three parts of a data set; ``train, validation, test = split`` unpacks them.

    Example:
        >>> from fairgrad.datasets import load
        >>> [len(part) for part in load("german").split(seed=10)]
        [600, 200, 200]
    """

    train: Encoded
    validation: Encoded
    test: Encoded


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows about people: features, the label to predict, and the groups to treat equally.

    Attributes:
        name: Short name, as passed to ``load``.
        frame: Features, with readable values; neither label nor sensitive columns are in it.
        label: The label to predict, as named categories.
        sensitive: One column per sensitive attribute, as named categories; missing is unknown.
        left_out: Number of rows left out, by reason.
        source: Where the data come from.
        licence: The licence.
        citation: What to cite.
        notes: Further remarks for readers.

    Example:
        >>> from fairgrad.datasets import load
        >>> load("german")
        <Dataset german: 1,000 rows, 19 features, label 'credit', sensitive ['sex']>
        >>> load("german").group_names
        ('sex=female', 'sex=male')
    """

    name: str
    frame: pd.DataFrame
    label: pd.Series
    sensitive: pd.DataFrame
    left_out: Mapping[str, int] = field(default_factory=dict)
    source: str = ""
    licence: str = ""
    citation: str = ""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.label)

    def __repr__(self) -> str:
        """Return one line with the name and the sizes."""
        return (
            f"<Dataset {self.name}: {len(self):,} rows, {self.frame.shape[1]} features, "
            f"label {self.label.name!r}, sensitive {list(self.sensitive)}>"
        )

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels; the position of a name is its code in ``y``."""
        return tuple(self.label.cat.categories)

    @property
    def attribute_names(self) -> dict[str, tuple[str, ...]]:
        """Names of the values of each sensitive attribute, in the order of their codes."""
        return {str(name): tuple(self.sensitive[name].cat.categories) for name in self.sensitive}

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups, one per combination of the sensitive attributes' values."""
        values = [[f"{name}={v}" for v in names] for name, names in self.attribute_names.items()]
        return tuple(", ".join(combination) for combination in product(*values))

    @property
    def y(self) -> np.ndarray:
        """Labels as codes 0, 1, ..., positions in ``label_names``."""
        return self.label.cat.codes.to_numpy(dtype=np.int64)

    @property
    def attributes(self) -> np.ndarray:
        """Codes of the sensitive attributes, one column each; -1 is unknown."""
        codes = [self.sensitive[name].cat.codes.to_numpy(dtype=np.int64) for name in self.sensitive]
        return np.stack(codes, axis=1)

    @property
    def s(self) -> np.ndarray:
        """Groups as codes 0, 1, ..., positions in ``group_names``; -1 is unknown."""
        codes = self.attributes
        sizes = [len(values) for values in self.attribute_names.values()]
        joint = np.ravel_multi_index(tuple(np.maximum(codes, 0).T), sizes)
        return np.where((codes < 0).any(axis=1), -1, joint)

    def encoder(self) -> ColumnTransformer:
        """An unfitted scikit-learn transformer from ``frame`` to the matrix, for pipelines.

        Categories become one 0/1 column per value, in the order of the column's categories; a value
        never seen there gives zeros. Numbers are scaled to [-1, 1] by the smallest and largest
        value seen in ``fit``. Where ``frame`` has missing values, a categorical column gets one
        more 0/1 column for them, and a missing number becomes the median, with one more column that
        marks it.
        """
        from sklearn.compose import ColumnTransformer  # noqa: PLC0415 - slow to import, as below
        from sklearn.impute import SimpleImputer  # noqa: PLC0415
        from sklearn.pipeline import make_pipeline  # noqa: PLC0415
        from sklearn.preprocessing import MinMaxScaler, OneHotEncoder  # noqa: PLC0415

        frame = self.frame

        def one_hot(names: list[str], *more: str) -> OneHotEncoder:
            values = [[*frame[name].cat.categories, *more] for name in names]
            options = {"handle_unknown": "ignore", "sparse_output": False, "dtype": np.float32}
            return OneHotEncoder(categories=values, **options)

        columns: dict[str, list[str]] = defaultdict(list)
        for name in frame:
            is_named = isinstance(frame[name].dtype, pd.CategoricalDtype)
            state = "incomplete" if frame[name].isna().any() else "complete"
            columns[f"{'categorical' if is_named else 'numeric'} {state}"].append(str(name))
        named, gappy = columns["categorical complete"], columns["categorical incomplete"]
        filled = SimpleImputer(strategy="constant", fill_value=MISSING)
        median = SimpleImputer(strategy="median", add_indicator=True)
        scaler = MinMaxScaler((-1, 1))
        steps = {
            "categorical complete": one_hot(named),
            "categorical incomplete": make_pipeline(filled, one_hot(gappy, MISSING)),
            "numeric complete": scaler,
            "numeric incomplete": make_pipeline(median, scaler),
        }
        used = [(name, step, columns[name]) for name, step in steps.items() if columns[name]]
        return ColumnTransformer(used, verbose_feature_names_out=False)

    def encode(self) -> Encoded:
        """The matrix of the paper's experiments, with labels and groups as codes.

        Categories become one 0/1 column per value, and numbers are scaled to [-1, 1].
        """
        encoder = self.encoder()
        X = encoder.fit_transform(self.frame).astype(np.float32, copy=False)
        return self.encoded(X, tuple(encoder.get_feature_names_out()))

    def encoded(self, X: Any, feature_names: tuple[str, ...] = ()) -> Encoded:
        """These features, with the labels and groups as codes."""
        return Encoded(
            X=X,
            y=self.y,
            s=self.s,
            attributes=self.attributes,
            feature_names=feature_names,
            label_names=self.label_names,
            group_names=self.group_names,
            attribute_names=self.attribute_names,
        )

    def indices(self, seed: int = 10, *, stratified: bool = False) -> SplitRows:
        """Row numbers of the train, validation and test parts, as ``split`` uses them.

        Raises:
            ValueError: There are fewer than five rows.
        """
        if len(self) < 5:
            raise ValueError(f"{len(self)} rows cannot be split into train, validation and test")
        if stratified:
            cells = self.y * (len(self.group_names) + 1) + self.s
            return three_parts(cells, seed, may_be_empty=True)
        # The legacy generator's stream is frozen: a seed always means the same rows.
        order = np.random.RandomState(seed).permutation(len(self))
        n_kept = int(0.8 * len(self))
        n_training = int(0.75 * n_kept)
        return SplitRows(order[:n_training], order[n_training:n_kept], order[n_kept:])

    def split(self, seed: int = 10, *, stratified: bool = False) -> Split:
        """The encoded data in three parts: 60 % train, 20 % validation, 20 % test.

        Every feature gets mean 0 and variance 1 over the training rows. A feature that is constant
        over the training rows is only centred.

        Args:
            seed: Seed of the shuffle; the paper's are 10, 20, 30, 40 and 50.
            stratified: Give every label of every group its share in every part, instead of the
                paper's plain shuffle: right for small data and small groups.
        """
        encoded = self.encode()
        subsets = [encoded.rows(rows) for rows in self.indices(seed, stratified=stratified)]
        mean = subsets[0].X.mean(axis=0, dtype=np.float64)
        scale = subsets[0].X.std(axis=0, dtype=np.float64)
        scale[scale == 0] = 1.0
        scaled = (((subset.X - mean) / scale).astype(subset.X.dtype) for subset in subsets)
        return Split(*(replace(subset, X=X) for subset, X in zip(subsets, scaled, strict=True)))


def names() -> tuple[str, ...]:
    """Names of the bundled data sets.

    Example:
        >>> names()
        ('adult', 'adult_multigroup', 'german')
    """
    return tuple(_LOADERS)


def load(name: str) -> Dataset:
    """Load a bundled data set; fairgrad-bench loads the other data sets of the paper.

    Args:
        name: ``"adult"`` (census income), ``"adult_multigroup"`` (the same with four groups of
            sex and race) or ``"german"`` (German credit).

    Raises:
        ValueError: No bundled data set has this name.

    Example:
        >>> load("adult")
        <Dataset adult: 45,222 rows, 12 features, label 'income', sensitive ['sex']>
    """
    if name not in _LOADERS:
        raise ValueError(
            f"name is {name!r}; the bundled data sets are {', '.join(_LOADERS)}. "
            "The package fairgrad-bench has the paper's other data sets."
        )
    return _LOADERS[name]()


def _adult(name: str = "adult", sensitive: Sequence[str] = ("sex",)) -> Dataset:
    table = pd.read_csv(FILES / "adult.csv.xz", na_values=["?"], keep_default_na=False)
    rows = table.dropna(ignore_index=True)
    rows["education"] = rows["education"].replace(ADULT_SCHOOLING)
    was_born_here = rows["native-country"] == "United-States"
    rows["native-country"] = rows["native-country"].where(was_born_here, "Other")
    rows["race"] = rows["race"].where(rows["race"] == "White", "Not white")
    columns = COLUMNS["adult"]
    groups = {"sex": ["Female", "Male"], "race": ["Not white", "White"]}
    return Dataset(
        name=name,
        frame=_categories(rows, columns["categories"]).join(rows[columns["numbers"]]),
        label=_categories(rows, {"income": ["<=50K", ">50K"]})["income"],
        sensitive=_categories(rows, {column: groups[column] for column in sensitive}),
        left_out={"an unknown feature": len(table) - len(rows)},
        source="UCI Machine Learning Repository, Adult, https://doi.org/10.24432/C5XW20",
        licence="CC BY 4.0",
        citation="Barry Becker and Ronny Kohavi. Adult. UCI Machine Learning Repository, 1996.",
        notes=("Race is not among the features, as in the paper's experiments.",),
    )


def _german() -> Dataset:
    rows = pd.read_csv(FILES / "german_credit.csv.xz", keep_default_na=False)
    rows["sex"] = rows["personal_status"].map(GERMAN_SEX)
    rows["credit"] = rows["credit"].map({1: "good", 2: "bad"})
    codes = COLUMNS["german"]["categories"]
    rows = rows.assign(**{column: rows[column].map(names) for column, names in codes.items()})
    values = {column: list(names.values()) for column, names in codes.items()}
    return Dataset(
        name="german",
        frame=_categories(rows, values).join(rows[COLUMNS["german"]["numbers"]]),
        label=_categories(rows, {"credit": ["bad", "good"]})["credit"],
        sensitive=_categories(rows, {"sex": ["female", "male"]}),
        source=(
            "UCI Machine Learning Repository, Statlog (German Credit Data), "
            "https://doi.org/10.24432/C5NC77"
        ),
        licence="CC BY 4.0",
        citation=(
            "Hans Hofmann. Statlog (German Credit Data). UCI Machine Learning Repository, 1994."
        ),
        notes=(
            (
                "Later work found the published table of codes wrong for several columns, "
                "including sex. The names here follow that table, as the paper's experiments do."
            ),
        ),
    )


def _categories(rows: pd.DataFrame, values: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The named columns as categories in the given order."""
    types = {column: pd.CategoricalDtype(pd.Index(names)) for column, names in values.items()}
    return rows[list(values)].astype(types)


_LOADERS: dict[str, Callable[[], Dataset]] = {
    "adult": _adult,
    "adult_multigroup": partial(_adult, "adult_multigroup", ("sex", "race")),
    "german": _german,
}
