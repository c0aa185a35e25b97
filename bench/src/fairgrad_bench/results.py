"""The results of the records: CSV for programs and a page for readers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.files import write_whole
from fairgrad_bench.comparison import NOT_IN_PAPER, compared, duel, tally, together
from fairgrad_bench.paper import MEASURES, dataset_title, method_title, paper_results
from fairgrad_bench.provenance import estimated_cost, made_by_plan, made_by_runs, outdated
from fairgrad_bench.records import FAILED, FINISHED, SKIPPED, UnitRecord, newest
from fairgrad_bench.running import duration
from fairgrad_bench.selection import (
    BATCH_SIZE,
    COLUMNS,
    EPSILON,
    FAIRNESS_RATE,
    KEYS,
    batch_sizes,
    epsilons,
    fairness_rates,
    per_seed,
    summarise,
)
from fairgrad_bench.tables import (
    ABBREVIATIONS,
    by_dataset,
    collapsed,
    markdown_experiment,
    markdown_frame,
    markdown_legend,
    markdown_section,
    verdict_grid,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INTRODUCTION = (
    "`fairgrad-bench reproduce` makes this page and its summary, and resumes an interrupted run. "
    "Below each table are the command that made it, the processor time and the versions. "
    "`results/` has all figures as CSV, those of every seed, and the settings.\n\n"
    "Reduction is fairlearn's, with settings that favour it: scikit-learn's logistic regression as "
    "the base model, 50 rounds, and the best of three bounds by validation rows. Its rows are "
    "therefore often better than the paper's.\n"
)
COST = "data sets and cost"
COSTS = (
    "## Not run, or not as in the paper\n\n"
    "In brackets: estimated processor time on one core for one measure and five seeds. Twitter "
    "sentiment is left out, because its data could not be obtained.\n"
)
NOT_OBTAINED = ("twitter",)
PICTURE = "pictures/reproduction.svg"
ALT = "Accuracy and mean |F| of FairGrad minus those of the paper, one point per result"
EXPERIMENTS = {
    FAIRNESS_RATE: "The paper's rate is 0.01. In some cells it does not give the paper's figures. "
    "This table shows which rate does; the paper's rule chooses the models of each rate. On "
    "Gaussian data, linear models need a twentieth of the rate: the paper's models seem to have "
    "stopped before their multipliers settled. Adult multigroup by accuracy parity needs a fifth "
    "or half of the rate. On Adult by accuracy parity the paper's figures lie between two rates.",
}
"""Text above the table of an experiment."""
FILES = {
    "comparison": "comparison.csv",
    "seeds": "seeds.csv",
    "units": "units.csv",
    "batch_sizes": "batch_size.csv",
    "epsilons": "epsilon.csv",
    "fairness_rates": "fairness_rate.csv",
}
"""The files of the tables in a folder; those of experiments may be missing."""


@dataclass(frozen=True, eq=False)
class BenchResults:
    """All results that tables and figures show.

    Attributes:
        seeds: one row per unit, measure and seed.
        comparison: means over seeds, the paper's figures and verdicts.
        units: every unit with its outcome, and the versions of the method and the packages.
        batch_sizes: the experiment over the batch size; may be empty.
        epsilons: the experiment over epsilon; may be empty.
        fairness_rates: the experiment over the rate of the multipliers; may be empty.
        settings: how the results were made, apart from the machine.

    Example:
        >>> import tempfile
        >>> from fairgrad_bench import ExperimentPlan, run
        >>> plan = ExperimentPlan(datasets=("german",), models=("linear",), methods=("constant",),
        ...                       seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     results = BenchResults.from_records(run(plan, folder).new)
        ...     written = results.write(f"{folder}/tables")
        >>> results.summary[["method", "measure"]].shape
        (4, 2)
        >>> "results.csv" in [path.name for path in written]
        True
    """

    seeds: pd.DataFrame
    comparison: pd.DataFrame
    units: pd.DataFrame
    batch_sizes: pd.DataFrame
    epsilons: pd.DataFrame
    fairness_rates: pd.DataFrame
    settings: dict[str, Any]

    @classmethod
    def from_records(cls, records: Sequence[UnitRecord]) -> BenchResults:
        """Selects, summarises and compares; the last record of each unit counts.

        Raises:
            ValueError: if there are no records.
        """
        if not records:
            raise ValueError("records: expected at least one, got none; run a plan first.")
        latest = newest(records)
        seeds = per_seed([record for record in latest if record.unit.varies is None])
        return cls(
            seeds=seeds.drop(columns=["varies", "value"], errors="ignore"),
            comparison=compared(summarise(seeds)),
            units=pd.DataFrame([_unit_row(record) for record in latest]),
            batch_sizes=batch_sizes(latest),
            epsilons=epsilons(latest),
            fairness_rates=compared(fairness_rates(latest)),
            settings=_settings(latest),
        )

    @classmethod
    def from_folder(cls, folder: str | Path) -> BenchResults:
        """Reads the results that `write` wrote.

        Raises:
            ValueError: if the folder holds no results.
        """
        place = Path(folder)
        if not (place / "settings.json").is_file():
            raise ValueError(f"results: there are none in {folder}; `tables` writes them.")
        frames = {
            name: pd.read_csv(place / file) if (place / file).is_file() else pd.DataFrame()
            for name, file in FILES.items()
        }
        settings = json.loads((place / "settings.json").read_text(encoding="utf-8"))
        return cls(**frames, settings=settings)

    def merged(self, kept: BenchResults) -> BenchResults:
        """These results, and those of other units that were kept without their records.

        A unit that is in both is taken from these, unless it failed. Means, verdicts and tables are
        made anew from the figures of the seeds; `units` says by which versions every unit was made.

        Args:
            kept: the earlier results, as `from_folder` reads them.
        """
        before = _with_environment(kept.units, kept.settings)
        is_done = self.units["status"] != FAILED
        done, failed = self.units[is_done], _others(self.units[~is_done], before)
        seeds = pd.concat([_others(kept.seeds, done), self.seeds], ignore_index=True)
        units = pd.concat([_others(before, done), done, failed], ignore_index=True)
        made = units[units["status"] == FINISHED].groupby("method")["version"].unique()
        versions = {name: sorted(map(int, numbers)) for name, numbers in made.items()}
        return BenchResults(
            seeds=seeds,
            comparison=compared(summarise(seeds)),
            units=units,
            batch_sizes=_newer(kept.batch_sizes, self.batch_sizes),
            epsilons=_newer(kept.epsilons, self.epsilons),
            fairness_rates=_newer(kept.fairness_rates, self.fairness_rates),
            settings=_united(kept.settings, self.settings) | {"methods": versions},
        )

    @property
    def summary(self) -> pd.DataFrame:
        """The columns of the paper's results."""
        return self.comparison.reindex(columns=list(COLUMNS))

    def write(self, folder: str | Path) -> list[Path]:
        """Writes all tables into a folder, which is created if necessary; returns the files.

        - ``results.csv``: the paper's columns and names.
        - ``comparison.csv``: with the paper's figures, verdicts, grids and times.
        - ``seeds.csv``: one row per seed, with the settings of the chosen model.
        - ``units.csv``: what was run, skipped or failed, and why.
        - ``batch_size.csv``, ``epsilon.csv``, ``fairness_rate.csv``, if those experiments were run.
        - ``tables.md``: the tables of the paper's appendix.
        - ``settings.json``: how the results were made, apart from the machine.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        frames = {"results.csv": self.summary}
        frames |= {file: getattr(self, name) for name, file in FILES.items()}
        texts = {
            name: frame.to_csv(index=False) for name, frame in frames.items() if not frame.empty
        }
        texts["tables.md"] = self.figures_page()
        texts["settings.json"] = json.dumps(self.settings, indent=2) + "\n"
        for name, text in texts.items():
            write_whole(place / name, text)
        return [place / name for name in texts]

    def write_pages(self, path: str | Path) -> list[Path]:
        """Writes the summary and a page of all figures beside it; returns the files."""
        page = Path(path)
        figures = page.with_name(f"{page.stem}_figures{page.suffix}")
        has_picture = (page.parent / PICTURE).is_file()
        write_whole(page, self.page(figures.name, PICTURE if has_picture else None))
        write_whole(figures, self.figures_page())
        return [page, figures]

    def page(self, figures: str, picture: str | None = None) -> str:
        """The summary as Markdown: verdicts as a grid, where others win, and what was not run.

        Args:
            figures: file of all figures, to link to.
            picture: file of the chart to show first.
        """
        paragraphs = ["# Comparison with the paper\n"]
        if not self.comparison.empty:
            comparison = self.comparison
            counts = tally(comparison)
            sentences = [*counts.sentences(), together(comparison), duel(comparison)]
            sentences.append(together(comparison, trees=True))
            words = [f"{sentence}\n" for sentence in sentences if sentence]
            link = f"[All figures]({figures}), with the meaning of the verdicts. {ABBREVIATIONS}\n"
            chart = [f"![{ALT}]({picture})\n"] if picture else []
            paragraphs += [*words[:1], *chart, verdict_grid(comparison), link, *words[1:]]
            if counts.beaten:
                lost = [f"- {cell}: {', '.join(by)}" for cell, by in counts.beaten.items()]
                title = f"Where another method beats it: {len(lost)} cells"
                paragraphs.append(collapsed(title, "\n".join(lost) + "\n"))
        return "\n".join([*paragraphs, *self._gaps()])

    def figures_page(self) -> str:
        """All figures as Markdown: the tables of each data set are collapsed."""
        paragraphs = ["# Comparison with the paper: all figures\n", INTRODUCTION, markdown_legend()]
        for tables in by_dataset(self.comparison):
            rows = sum(len(table.lines) for table in tables)
            words = [
                markdown_section(table, made_by_runs(self.units, *table.key)) for table in tables
            ]
            paragraphs.append(collapsed(f"{tables[0].dataset}: {rows} rows", *words))
        for title, frame, varies in (
            ("Batch size", self.batch_sizes, BATCH_SIZE),
            ("Epsilon", self.epsilons, EPSILON),
            ("Rate of the multipliers", self.fairness_rates, FAIRNESS_RATE),
        ):
            if not frame.empty:
                words = [EXPERIMENTS.get(varies, ""), markdown_experiment(frame, varies)]
                words.append(made_by_plan(self.units, varies))
                paragraphs.append(collapsed(title, "\n\n".join(filter(None, words)) + "\n"))
        done = self.units[self.units["status"] == FINISHED]
        others = {
            "What was run": _datasets_by(done, ["model", "method", "grid"]),
            "Not offered by the method": self._reasons(SKIPPED),
            "Failed": self._reasons(FAILED),
        }
        paragraphs += [
            collapsed(f"{title}: {len(table)} lines", markdown_frame(table) + "\n")
            for title, table in others.items()
            if len(table) or title == "What was run"
        ]
        return "\n".join(paragraphs)

    def _gaps(self) -> list[str]:
        """What is missing, outdated or shorter than in the paper, each a table with its cost."""
        tables = {
            "Never run": self._missing(),
            "Made by an earlier version of the method": self._outdated(),
            "Fewer combinations than the paper's": self._short(),
        }
        shown = [
            f"### {title}\n\n{markdown_frame(table)}\n"
            for title, table in tables.items()
            if len(table)
        ]
        return [COSTS, *shown] if shown else []

    def _reasons(self, status: str) -> pd.DataFrame:
        rows = self.units[self.units["status"] == status]
        return rows[["dataset", "model", "method", "measure", "reason"]]

    def _missing(self) -> pd.DataFrame:
        """The data sets for which the paper has a row that is neither here nor skipped."""
        skipped = self.units[self.units["status"] == SKIPPED].fillna({"measure": ""})
        known = pd.concat([self.comparison, skipped])[[*KEYS]]
        here = set(known.itertuples(index=False, name=None))
        paper = paper_results()
        rows = paper[[*KEYS]].itertuples(index=False, name=None)
        missing = paper[[here.isdisjoint({row, (*row[:-1], "")}) for row in rows]]
        missing = missing[~missing["dataset"].isin(NOT_OBTAINED)]
        return self._with_costs(missing, "quick")

    def _outdated(self) -> pd.DataFrame:
        """The data sets that an earlier version of a method was run on, and how long that took."""
        rows = outdated(self.units)
        if rows.empty:
            return rows
        keys = ["model", "method", "version", "now"]
        rows = rows.groupby([*keys, "dataset"], sort=False)["seconds"].mean().reset_index()
        named = [
            f"{dataset_title(name)} ({duration(seconds)})"
            for name, seconds in zip(rows["dataset"], rows["seconds"], strict=True)
        ]
        rows = rows.assign(dataset=named, method=rows["method"].map(method_title))
        return _datasets_by(rows, keys).rename(columns={"datasets": COST})

    def _short(self) -> pd.DataFrame:
        """The data sets of which the paper's rows have a quick grid here."""
        rows = self.comparison
        if rows.empty:
            return rows
        is_short = (rows["grid"] == "quick") & (rows["verdict"] != NOT_IN_PAPER)
        return self._with_costs(rows[is_short], "paper")

    def _with_costs(self, rows: pd.DataFrame, grid: str) -> pd.DataFrame:
        """The data sets of rows, and about how long a grid of each would take for a measure."""
        if rows.empty:
            return rows
        named = [
            f"{dataset_title(dataset)} ({estimate})" if estimate else dataset_title(dataset)
            for dataset, model, method in zip(
                rows["dataset"], rows["model"], rows["method"], strict=True
            )
            for estimate in [estimated_cost(self.units, dataset, model, method, grid)]
        ]
        shown = rows.assign(dataset=named, method=rows["method"].map(method_title))
        shown["measure"] = rows["measure"].map(MEASURES)
        keys = ["model", "method"]
        measures = shown.groupby(keys)["measure"].agg(lambda names: ", ".join(names.unique()))
        table = _datasets_by(shown, keys)
        table.insert(2, "measures", measures.to_numpy())
        return table.rename(columns={"datasets": COST})


def _datasets_by(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The names of the data sets, one after the other, for every combination of the keys."""
    grouped = rows["dataset"].groupby([rows[key] for key in keys], sort=True)
    names = grouped.agg(lambda values: ", ".join(values.unique()))
    return names.rename("datasets").reset_index()


def _others(rows: pd.DataFrame, units: pd.DataFrame) -> pd.DataFrame:
    """The rows, of seeds or of units, that are not of these units."""
    if rows.empty:
        return rows
    of_unit = [name for name in (*KEYS, "varies", "grid") if name in rows]
    if "varies" not in rows:
        units = units[units["varies"].isna()]
    keys = {tuple(row) for row in units[of_unit].fillna("").itertuples(index=False, name=None)}
    measure = of_unit.index("measure")
    is_among = [
        row in keys or (*row[:measure], "", *row[measure + 1 :]) in keys
        for row in rows[of_unit].fillna("").itertuples(index=False, name=None)
    ]
    return rows[~pd.Series(is_among, index=rows.index)]


def _newer(kept: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """The earlier rows of an experiment, except those of cells that were run again."""
    if kept.empty or new.empty:
        return kept if new.empty else new
    cells = set(new[[*KEYS]].itertuples(index=False, name=None))
    others = [row not in cells for row in kept[[*KEYS]].itertuples(index=False, name=None)]
    return pd.concat([kept[others], new], ignore_index=True)


def _with_environment(units: pd.DataFrame, settings: dict[str, Any]) -> pd.DataFrame:
    """Adds the environment to units of older results, which had one environment for all units."""
    if "environment" in units:
        return units
    versions = settings["versions"]
    is_one = all(len(numbers) == 1 for numbers in versions.values())
    made_by = (
        _environment({name: numbers[0] for name, numbers in versions.items()}) if is_one else ""
    )
    return units.assign(environment=made_by)


def _environment(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def _united(first: Any, second: Any) -> Any:
    """Settings of two sets of results: all values of each list, and of each key."""
    if isinstance(first, dict):
        return {
            name: _united(first[name], second[name]) if name in first and name in second else value
            for name, value in {**second, **first}.items()
        }
    return sorted({*first, *second}) if isinstance(first, list) else second


def _unit_row(record: UnitRecord) -> dict[str, Any]:
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
        "version": record.version,
        "environment": _environment(record.environment),
    }


def _settings(records: Sequence[UnitRecord]) -> dict[str, Any]:
    """What made the results: protocol, seeds, and the versions of methods and packages."""
    done = [record for record in records if record.status == FINISHED]
    packages = sorted({name for record in done for name in record.environment})
    by_method = sorted({record.unit.method for record in done})
    return {
        "selection": "of the models of the last 5 epochs of every combination, the fairest on the "
        "validation part among those within 0.03 of the best validation accuracy",
        "seeds": sorted({seed for record in done for seed in record.unit.seeds}),
        "epochs": sorted({record.unit.epochs for record in done}),
        "grids": sorted({record.unit.grid for record in done}),
        "versions": {
            name: sorted({r.environment[name] for r in done if name in r.environment})
            for name in packages
        },
        "methods": {
            name: sorted({r.version for r in done if r.unit.method == name}) for name in by_method
        },
    }
