"""The paper's experiments as a program: plan -> run -> select -> tables and figures.

Example:
    >>> from fairgrad_bench import ExperimentPlan
    >>> plan = ExperimentPlan(datasets=("german",), models=("linear",), methods=("constant",))
    >>> [str(unit) for unit in plan.units()]
    ['german linear constant']
"""

import importlib
from typing import Any

_HOMES = {
    "MEASURES": "plan",
    "PLANS": "plan",
    "VERDICTS": "comparison",
    "BenchResults": "results",
    "ExperimentPlan": "plan",
    "RunOutcome": "running",
    "Unit": "plan",
    "UnitRecord": "records",
    "measure_overhead": "overhead",
    "named_plan": "plan",
    "newest": "records",
    "paper_results": "paper",
    "per_seed": "selection",
    "read_records": "records",
    "run": "running",
    "summarise": "selection",
    "verdict": "comparison",
    "write_figures": "figures",
    "write_overhead": "overhead",
}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use: what only trains need not load what draws."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
