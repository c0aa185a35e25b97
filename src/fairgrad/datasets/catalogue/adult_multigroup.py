"""Adult with four groups: sex and race together."""

from __future__ import annotations

from dataclasses import replace

from fairgrad.datasets.catalogue import adult
from fairgrad.datasets.schema import Attribute

RACE = Attribute(
    "race",
    "race, as recorded in the census survey, in two groups",
    {"White": "White"},
    other="Not white",
)

SCHEMA = replace(
    adult.SCHEMA,
    name="adult_multigroup",
    title="Adult (census income), four groups",
    sensitive=(adult.SEX, RACE),
)
