"""The data sets that come with the package: Adult, in two forms, and German credit."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.datasets.dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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


def names() -> tuple[str, ...]:
    """Names of the bundled data sets.

    Example:
        >>> names()
        ('adult', 'adult_multigroup', 'german')
    """
    return tuple(_LOADERS)


def load(name: str) -> Dataset:
    """Load a bundled data set; fairgrad-bench loads the paper's other ones.

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
