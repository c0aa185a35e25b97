"""The paper's experiments as a program: plan -> run -> select -> tables and figures.

Names are loaded on first use, so that processes which only train do not load what draws.

Example:
    >>> from fairgrad.bench import Plan, units_of
    >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",))
    >>> [str(unit) for unit in units_of(plan)]
    ['german linear constant']
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgrad.bench.compare import VERDICTS, verdict
    from fairgrad.bench.figures import write_figures
    from fairgrad.bench.overhead import measure_overhead, write_overhead
    from fairgrad.bench.paper import paper_results
    from fairgrad.bench.plan import Plan, narrowed, units_of
    from fairgrad.bench.plans import PLANS, plan_of
    from fairgrad.bench.record import Record, newest, read_records
    from fairgrad.bench.running import Outcome, run
    from fairgrad.bench.select import per_seed
    from fairgrad.bench.summary import summarise
    from fairgrad.bench.tables import Results, results_of, write_tables
    from fairgrad.bench.unit import MEASURES, Unit

__all__ = [
    "MEASURES",
    "PLANS",
    "VERDICTS",
    "Outcome",
    "Plan",
    "Record",
    "Results",
    "Unit",
    "measure_overhead",
    "narrowed",
    "newest",
    "paper_results",
    "per_seed",
    "plan_of",
    "read_records",
    "results_of",
    "run",
    "summarise",
    "units_of",
    "verdict",
    "write_figures",
    "write_overhead",
    "write_tables",
]

_MODULES = {
    "compare": ("VERDICTS", "verdict"),
    "figures": ("write_figures",),
    "overhead": ("measure_overhead", "write_overhead"),
    "paper": ("paper_results",),
    "plan": ("Plan", "narrowed", "units_of"),
    "plans": ("PLANS", "plan_of"),
    "record": ("Record", "newest", "read_records"),
    "running": ("Outcome", "run"),
    "select": ("per_seed",),
    "summary": ("summarise",),
    "tables": ("Results", "results_of", "write_tables"),
    "unit": ("MEASURES", "Unit"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
