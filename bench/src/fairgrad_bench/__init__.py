"""The paper's experiments as a program: plan -> run -> select -> tables and figures.

Names are loaded on first use, so that processes which only train do not load what draws.

Example:
    >>> from fairgrad_bench import ExperimentPlan
    >>> plan = ExperimentPlan(datasets=("german",), models=("linear",), methods=("constant",))
    >>> [str(unit) for unit in plan.units()]
    ['german linear constant']
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgrad_bench.comparison import VERDICTS, verdict
    from fairgrad_bench.figures import write_figures
    from fairgrad_bench.overhead import measure_overhead, write_overhead
    from fairgrad_bench.paper import paper_results
    from fairgrad_bench.plan import MEASURES, PLANS, ExperimentPlan, Unit, named_plan
    from fairgrad_bench.records import UnitRecord, newest, read_records
    from fairgrad_bench.results import BenchResults
    from fairgrad_bench.running import RunOutcome, run
    from fairgrad_bench.selection import per_seed, summarise

__all__ = [
    "MEASURES",
    "PLANS",
    "VERDICTS",
    "BenchResults",
    "ExperimentPlan",
    "RunOutcome",
    "Unit",
    "UnitRecord",
    "measure_overhead",
    "named_plan",
    "newest",
    "paper_results",
    "per_seed",
    "read_records",
    "run",
    "summarise",
    "verdict",
    "write_figures",
    "write_overhead",
]

_MODULES = {
    "comparison": ("VERDICTS", "verdict"),
    "figures": ("write_figures",),
    "overhead": ("measure_overhead", "write_overhead"),
    "paper": ("paper_results",),
    "plan": ("MEASURES", "PLANS", "ExperimentPlan", "Unit", "named_plan"),
    "records": ("UnitRecord", "newest", "read_records"),
    "results": ("BenchResults",),
    "running": ("RunOutcome", "run"),
    "selection": ("per_seed", "summarise"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
