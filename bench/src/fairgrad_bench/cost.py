"""How much work a unit is, relative to others: what the time left is estimated by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.bench.sources import find_method, parse_dataset

if TYPE_CHECKING:
    from fairgrad.bench.unit import Unit

ROWS = {
    "adult": 45_222,
    "adult_multigroup": 45_222,
    "celeba": 202_599,
    "compas": 6_172,
    "crime": 1_994,
    "dutch": 60_420,
    "folktables": 78_266,
    "gaussian": 100_000,
    "german": 1_000,
    "twitter": 200_000,
    "utkface": 23_708,
}
OTHER_ROWS, LEAST_ROWS = 10_000, 2_000
AT_ALL_AND_EACH = {"linear": (45, 1), "nonlinear": (160, 110), "lightgbm": (0, 10)}
"""What a row costs, and what it costs more for each combination: networks are trained together.

As measured on Adult: 6 and 30 combinations of linear models, 2 and 6 of nonlinear ones.
"""


def cost_of(unit: Unit) -> float:
    """A rough measure of work, in no unit of time, whatever the method.

    Example:
        >>> from fairgrad.bench.unit import Unit
        >>> cost_of(Unit("adult", "linear", "constant"))
        2080212.0
    """
    name, options = parse_dataset(unit.dataset)
    rows = max(options.get("rows", ROWS.get(name, OTHER_ROWS)), LEAST_ROWS)
    settings = unit.combinations or find_method(unit.method).settings(unit.model, unit.grid)
    at_all, each = AT_ALL_AND_EACH[unit.model]
    return float(rows) * (at_all + each * len(settings))
