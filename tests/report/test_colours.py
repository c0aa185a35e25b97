"""Colours everybody can read and tell apart."""

from itertools import combinations

import numpy as np
import pytest

from fairgrad.report.figure import DARK, LIGHT, SERIES, filled_in, var

# How protanopes and deuteranopes see linear RGB (Viénot, Brettel and Mollon 1999).
TO_LMS = np.array(
    [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.02996, 0.18431, 1.467]]
)
PROTAN = np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]])
DEUTAN = np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]])


def linear(colour):
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """The ratio of the web content accessibility guidelines."""
    light = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("name", ["ink", "muted", "accent", "good", "bad", "open", "before"])
@pytest.mark.parametrize("ground", ["page", "card"])
def test_text_stands_out(colours, name, ground):
    assert contrast(colours[name], colours[ground]) >= 4.5


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("name", SERIES)
def test_marks_stand_out(colours, name):
    assert contrast(colours[name], colours["page"]) >= 3


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("sight", [np.eye(3), PROTAN, DEUTAN])
def test_the_first_series_differ_for_colour_blind_people(colours, sight):
    seen = [
        np.clip(np.linalg.inv(TO_LMS) @ sight @ TO_LMS @ linear(colours[name]), 0, 1) ** (1 / 2.2)
        for name in SERIES[:4]
    ]
    assert min(np.abs(a - b).max() for a, b in combinations(seen, 2)) > 0.12


def test_both_grounds_have_the_same_colours():
    assert set(LIGHT) == set(DARK)


def test_pictures_have_real_colours():
    assert filled_in({"a": [var("ink")]}) == {"a": [LIGHT["ink"]]}
