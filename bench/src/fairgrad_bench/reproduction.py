"""Everything from nothing: all plans, tables, overhead and the page, resumable.

Stages are ordered by value: first the paper's results of FairGrad, then the other methods, then
experiments that are not in the paper. Finished stages are not repeated: units have records, and
the overhead has its table.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairgrad_bench.overhead import measure_overhead, write_overhead
from fairgrad_bench.plan import PLANS, ExperimentPlan
from fairgrad_bench.records import read_records
from fairgrad_bench.results import BenchResults
from fairgrad_bench.running import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad_bench.running import RunOutcome

SMALL = ("german", "compas", "crime")
TREES = ("compas", "adult", "dutch", "folktables")
WITH_TREES = (
    "unconstrained",
    "reduction",
    "plug_in",
    "threshold",
    "fairgrad",
    "fairgrad_stable",
    "fairgrad_aware",
    "decision",
    "decision_aware",
)
"""Methods that work with any scikit-learn learner, and those of boosting."""

STAGES = (
    ExperimentPlan(name="linear", models=("linear",)),
    ExperimentPlan(name="fairgrad", models=("nonlinear",), methods=("fairgrad", "fairgrad_stable")),
    PLANS["batch-size"],
    PLANS["epsilon"],
    PLANS["fairness-rate"],
    PLANS["fairness-rate-networks"],
    ExperimentPlan(name="trees", models=("lightgbm",), datasets=TREES, methods=WITH_TREES),
    ExperimentPlan(
        name="nonlinear",
        models=("nonlinear",),
        methods=("constant", "unconstrained", "weighted_erm", "fairbatch"),
    ),
    ExperimentPlan(
        name="small", models=("nonlinear",), datasets=SMALL, methods=("fairret", "threshold")
    ),
    ExperimentPlan(
        name="costly",
        models=("nonlinear",),
        methods=("adversarial", "bifair", "reduction"),
        grid="quick",
    ),
)
"""All results on the page, with the paper's grid unless a method's full grid takes days."""


def narrowed_stages(
    datasets: Sequence[str] | None = None, seeds: Sequence[int] | None = None
) -> list[ExperimentPlan]:
    """The stages on some data sets or seeds only; stages on none of them are left out.

    Example:
        >>> [stage.name for stage in narrowed_stages(["german"])]
        ['linear', 'fairgrad', 'nonlinear', 'small', 'costly']
    """
    wanted = None if datasets is None else set(datasets)
    stages = []
    for stage in STAGES:
        names = tuple(name for name in stage.datasets if wanted is None or name in wanted)
        if names:
            stages.append(stage.narrowed(datasets=names, seeds=tuple(seeds or ())))
    return stages


def reproduce(
    records: str | Path,
    out: str | Path,
    page: str | Path,
    *,
    jobs: int = 1,
    epochs: int = 20,
    stages: Sequence[ExperimentPlan] = STAGES,
) -> list[RunOutcome]:
    """Runs all stages, and writes tables, overhead and the page.

    The page is written after every stage, so that first results can be read early.

    Args:
        records: folder of the records.
        out: folder of the results.
        page: file of the summary; the page of all figures is written beside it.
        jobs: processes on this machine.
        epochs: of the overhead; 0 leaves it out.
        stages: the plans to run, one after the other.
    """
    outcomes = []
    for stage in stages:
        outcomes.append(run(stage, records, jobs=jobs))
        _write(records, out, page)
    if epochs and not (Path(out) / "overhead_paper.csv").is_file():
        write_overhead(measure_overhead(epochs), out)
    return outcomes


def _write(records: str | Path, out: str | Path, page: str | Path) -> None:
    """Everything that follows from the records."""
    results = BenchResults.from_records(read_records(records))
    results.write(out)
    results.write_pages(page)
