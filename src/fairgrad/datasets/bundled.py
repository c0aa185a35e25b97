"""The data sets that come with the package: Adult, in two forms, and German credit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.datasets.dataset import Dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FILES = Path(__file__).with_name("files")

#: Categorical features of Adult, with their values in the order of the matrix's columns.
ADULT_CATEGORIES = {
    "workclass": [
        "Federal-gov", "Local-gov", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov",
        "Without-pay",
    ],
    "education": [
        "Preschool-8th", "9th-12th", "HS-grad", "Some-college", "Assoc-voc", "Assoc-acdm",
        "Bachelors", "Masters", "Prof-school", "Doctorate",
    ],
    "marital-status": [
        "Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent",
        "Never-married", "Separated", "Widowed",
    ],
    "occupation": [
        "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing",
        "Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv",
        "Prof-specialty", "Protective-serv", "Sales", "Tech-support", "Transport-moving",
    ],
    "relationship": [
        "Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife",
    ],
    "native-country": ["United-States", "Other"],
}  # fmt: skip
ADULT_NUMBERS = [
    "age", "education-num", "capital-gain", "capital-loss", "hours-per-week", "fnlwgt",
]  # fmt: skip
#: The levels below a high-school degree are merged into two, as in the paper's experiments.
ADULT_SCHOOLING = {
    **dict.fromkeys(["Preschool", "1st-4th", "5th-6th", "7th-8th"], "Preschool-8th"),
    **dict.fromkeys(["9th", "10th", "11th", "12th"], "9th-12th"),
}

#: Categorical features of German credit: the name of each code, in the order of the codes.
GERMAN_CODES = {
    "status": {
        "A11": "overdrawn", "A12": "under 200 DM", "A13": "200 DM or more", "A14": "no account",
    },
    "credit_history": {
        "A30": "none", "A31": "all here paid back", "A32": "paid back so far",
        "A33": "late before", "A34": "critical or elsewhere",
    },
    "purpose": {
        "A40": "new car", "A41": "used car", "A42": "furniture", "A43": "radio or television",
        "A44": "household appliance", "A45": "repairs", "A46": "education", "A48": "retraining",
        "A49": "business", "A410": "other",
    },
    "savings": {
        "A61": "under 100 DM", "A62": "100 to 500 DM", "A63": "500 to 1000 DM",
        "A64": "1000 DM or more", "A65": "none or unknown",
    },
    "employment": {
        "A71": "unemployed", "A72": "under 1 year", "A73": "1 to 4 years", "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate", "A122": "building savings or life insurance",
        "A123": "car or other", "A124": "none or unknown",
    },
    "installment_plans": {"A141": "bank", "A142": "shops", "A143": "none"},
    "housing": {"A151": "rented", "A152": "owned", "A153": "free"},
    "skill_level": {
        "A171": "unskilled, not resident", "A172": "unskilled, resident", "A173": "skilled",
        "A174": "highly skilled or self-employed",
    },
    "telephone": {"A191": "no", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
}  # fmt: skip
GERMAN_NUMBERS = [
    "month", "credit_amount", "investment_as_income_percentage", "residence_since", "age",
    "number_of_credits", "people_liable_for",
]  # fmt: skip
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
    groups = {"sex": ["Female", "Male"], "race": ["Not white", "White"]}
    return Dataset(
        name=name,
        frame=_categories(rows, ADULT_CATEGORIES).join(rows[ADULT_NUMBERS]),
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
    for column, codes in GERMAN_CODES.items():
        rows[column] = rows[column].map(codes)
    values = {column: list(codes.values()) for column, codes in GERMAN_CODES.items()}
    return Dataset(
        name="german",
        frame=_categories(rows, values).join(rows[GERMAN_NUMBERS]),
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
