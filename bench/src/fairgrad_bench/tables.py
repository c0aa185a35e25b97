"""Writes what the records say: CSV for programs, Markdown for readers, LaTeX for papers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.bench import latex
from fairgrad.bench.compare import compared
from fairgrad.bench.experiments import batch_sizes, epsilons
from fairgrad.bench.layout import sections
from fairgrad.bench.page import as_markdown
from fairgrad.bench.record import FINISHED, Record, newest
from fairgrad.bench.select import per_seed
from fairgrad.bench.summary import COLUMNS, summarise
from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that tables and figures show.

    Attributes:
        seeds: one row per unit, measure and seed.
        comparison: means over seeds, the paper's figures and verdicts.
        units: every unit with its outcome.
        batch_sizes: the experiment over the batch size; may be empty.
        epsilons: the experiment over epsilon; may be empty.
        settings: what made the results, whatever the machine.

    Example:
        >>> import tempfile
        >>> from fairgrad.bench import Plan, run
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",),
        ...             seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = results_of(run(plan, folder).new)
        >>> results.summary[["method", "measure"]].shape
        (4, 2)
    """

    seeds: pd.DataFrame
    comparison: pd.DataFrame
    units: pd.DataFrame
    batch_sizes: pd.DataFrame
    epsilons: pd.DataFrame
    settings: dict[str, Any]

    @property
    def summary(self) -> pd.DataFrame:
        """The very columns of the paper's results."""
        return self.comparison.reindex(columns=list(COLUMNS))


def results_of(records: Sequence[Record]) -> Results:
    """Selects, summarises and compares; of each unit the last record counts.

    Raises:
        ValueError: if there are no records.

    Example:
        >>> import tempfile
        >>> from fairgrad.bench import Plan, run
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",),
        ...             seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results_of(run(plan, folder).new).seeds["seed"].unique()
        array([10])
    """
    if not records:
        raise ValueError("records: expected at least one, got none; run a plan first.")
    latest = newest(records)
    seeds = per_seed([record for record in latest if record.unit.varies is None])
    return Results(
        seeds=seeds.drop(columns=["varies", "value"], errors="ignore"),
        comparison=compared(summarise(seeds)),
        units=pd.DataFrame([_unit_row(record) for record in latest]),
        batch_sizes=batch_sizes(latest),
        epsilons=epsilons(latest),
        settings=_settings(latest),
    )


def write_tables(results: Results, folder: str | Path) -> list[Path]:
    """Writes all tables into a folder, which is made if it is not there; gives the files.

    - ``results.csv``: the paper's columns and names.
    - ``comparison.csv``: with the paper's figures, verdicts, grids and times.
    - ``seeds.csv``: one row per seed, with the settings of the chosen model.
    - ``units.csv``: what was run, skipped or failed, and why.
    - ``batch_size.csv`` and ``epsilon.csv``, if those experiments were run.
    - ``tables.md``, ``tables.tex``: the tables of the paper's appendix.
    - ``settings.json``: what made the results, whatever the machine.

    Example:
        >>> import tempfile
        >>> from fairgrad.bench import Plan, run
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",),
        ...             seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = write_tables(results_of(run(plan, folder).new), f"{folder}/tables")
        ...     "results.csv" in [path.name for path in files]
        True
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    frames = {
        "results.csv": results.summary,
        "comparison.csv": results.comparison,
        "seeds.csv": results.seeds,
        "units.csv": results.units,
        "batch_size.csv": results.batch_sizes,
        "epsilon.csv": results.epsilons,
    }
    texts = {name: frame.to_csv(index=False) for name, frame in frames.items() if not frame.empty}
    texts["tables.md"] = as_markdown(results)
    if not results.comparison.empty:
        texts["tables.tex"] = latex.document(sections(results.comparison))
    texts["settings.json"] = json.dumps(results.settings, indent=2) + "\n"
    for name, text in texts.items():
        write_whole(place / name, text)
    return [place / name for name in texts]


def _unit_row(record: Record) -> dict[str, Any]:
    unit = record.unit
    return {
        "dataset": unit.dataset,
        "model": unit.model,
        "method": unit.method,
        "measure": unit.measure,
        "varies": unit.varies,
        "grid": unit.grid,
        "status": record.status,
        "reason": record.reason,
        "candidates": len(record.kept),
        "seconds": record.seconds,
        "code": record.code,
    }


def _settings(records: Sequence[Record]) -> dict[str, Any]:
    """What made the results: protocol, seeds, and for every unit its version of the code."""
    done = [record for record in records if record.status == FINISHED]
    versions = {name: {r.environment[name] for r in done} for name in _packages(done)}
    return {
        "selection": "of the models of the last 5 epochs of every combination, the fairest on the "
        "validation part among those within 0.03 of the best validation accuracy",
        "seeds": sorted({seed for record in done for seed in record.unit.seeds}),
        "epochs": sorted({record.unit.epochs for record in done}),
        "grids": sorted({record.unit.grid for record in done}),
        "versions": {name: sorted(found) for name, found in versions.items()},
        "code": {str(record.unit): record.code for record in done},
    }


def _packages(records: Sequence[Record]) -> list[str]:
    return sorted({name for record in records for name in record.environment})
