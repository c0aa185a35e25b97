"""Dutch census of 2001: has a person a low-level or a high-level occupation?"""

from __future__ import annotations

from functools import partial

from fairgrad_bench.datasets.convert import table_from_arff
from fairgrad_bench.datasets.schema import Attribute, Carrier, DataFile, FeatureColumn, Schema

SCHEMA = Schema(
    name="dutch",
    title="Dutch census of 2001",
    label=Attribute(
        "occupation",
        "level of the occupation: groups 1 and 2 of the census, or 4, 5 and 9",
        {"2_1": "high level", "5_4_9": "low level"},
    ),
    sensitive=(Attribute("sex", "sex, as recorded in the census", {1: "male", 2: "female"}),),
    features=(
        FeatureColumn(
            "household_position",
            "position in the household, census code",
            ("1110", "1121", "1122", "1131", "1132", "1140", "1210", "1220"),
        ),
        FeatureColumn(
            "household_size",
            "size of the household, census code",
            ("111", "112", "113", "114", "125", "126"),
        ),
        FeatureColumn("citizenship", "citizenship, census code; 1: Dutch", ("1", "2", "3")),
        FeatureColumn(
            "country_birth", "country of birth, census code; 1: Netherlands", ("1", "2", "3")
        ),
        FeatureColumn("economic_status", "economic status, census code", ("111", "112", "120")),
        FeatureColumn(
            "cur_eco_activity",
            "branch of the economy, census code",
            (
                "111", "122", "124", "131", "132", "133", "134", "135", "136", "137", "138", "139",
            ),
        ),
        FeatureColumn("marital_status", "marital status, census code", ("1", "2", "3", "4")),
        FeatureColumn("age", "age group, 4 (youngest) to 15 (oldest)"),
        FeatureColumn("prev_residence_place", "place of residence a year ago; 1: the same"),
        FeatureColumn("edu_level", "level of schooling, 0 (lowest) to 5 (highest)"),
    ),
    files=(
        DataFile(
            "dutch_census_2001.csv",
            "805cc61e26c875f91945793e96bc3ddf82c6df56627d50e6d621443937824e84",
            convert=partial(table_from_arff, rename={"Marital_status": "marital_status"}),
        ),
    ),
    carriers=(
        Carrier(
            "publisher",
            "https://raw.githubusercontent.com/tailequy/fairness_dataset/"
            "43157fba374c1722daf209f493438a44620fa496/Dutch_census/dutch_census_2001.arff",
        ),
    ),
    source=(
        "Statistics Netherlands, virtual census of 2001; prepared copy: "
        "https://github.com/tailequy/fairness_dataset"
    ),
    licence="none stated with the prepared copy",
    citation=(
        "Indre Zliobaite, Faisal Kamiran and Toon Calders. "
        "Handling conditional discrimination. ICDM 2011."
    ),
)  # fmt: skip
