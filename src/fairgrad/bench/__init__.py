"""The paper's experiments as a program: plan -> run -> select -> tables and figures.

Example:
    >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",))
    >>> [str(unit) for unit in units_of(plan)]
    ['german linear constant']
"""

from fairgrad.bench.plan import Plan, narrowed, units_of
from fairgrad.bench.record import Record, newest, read_records
from fairgrad.bench.run import Outcome, run
from fairgrad.bench.select import per_seed
from fairgrad.bench.unit import MEASURES, Unit

__all__ = [
    "MEASURES",
    "Outcome",
    "Plan",
    "Record",
    "Unit",
    "narrowed",
    "newest",
    "per_seed",
    "read_records",
    "run",
    "units_of",
]
