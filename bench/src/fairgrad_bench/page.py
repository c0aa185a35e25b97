"""All results on one page for readers: the tally first, what was not done last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.bench import markdown
from fairgrad.bench.experiments import BATCH_SIZE, EPSILON
from fairgrad.bench.layout import sections
from fairgrad.bench.naming import MEASURES
from fairgrad.bench.paper import paper_results
from fairgrad.bench.pareto import duel, tally
from fairgrad.bench.record import FAILED, FINISHED, SKIPPED
from fairgrad.bench.select import KEYS

if TYPE_CHECKING:
    from fairgrad.bench.tables import Results

INTRODUCTION = (
    "Made by `fairgrad bench run` with the choices listed at the end, and `fairgrad bench tables`. "
    "The figures as CSV, those of every seed and the settings are in `results/`.\n"
)


def as_markdown(results: Results) -> str:
    """All tables on one page, the tally first and what could not be done last."""
    parts = ["# Results beside the paper's\n", INTRODUCTION, markdown.legend()]
    if not results.comparison.empty:
        sentences = [*tally(results.comparison).sentences(), duel(results.comparison)]
        parts += [f"{sentence}\n" for sentence in sentences if sentence]
        parts += [markdown.section(found) for found in sections(results.comparison)]
    for title, found, varies in (
        ("Batch size", results.batch_sizes, BATCH_SIZE),
        ("Epsilon", results.epsilons, EPSILON),
    ):
        if not found.empty:
            parts.append(f"### {title}\n\n{markdown.experiment(found, varies)}\n")
    for status, title in {SKIPPED: "Skipped", FAILED: "Failed"}.items():
        rows = results.units[results.units["status"] == status]
        if len(rows):
            shown = rows[["dataset", "model", "method", "measure", "reason"]]
            parts.append(f"### {title}\n\n{markdown.frame_table(shown)}\n")
    parts.append(f"### What was run\n\n{markdown.frame_table(_what_was_run(results.units))}\n")
    missing = _what_is_missing(results)
    if len(missing):
        parts.append(f"### Rows of the paper not run\n\n{markdown.frame_table(missing)}\n")
    return "\n".join(parts)


def _what_was_run(units: pd.DataFrame) -> pd.DataFrame:
    """The data sets that each method was trained on, by model and grid."""
    return _datasets_by(units[units["status"] == FINISHED], ["model", "method", "grid"])


def _what_is_missing(results: Results) -> pd.DataFrame:
    """The data sets for which the paper has a row that is neither here nor skipped."""
    skipped = results.units[results.units["status"] == SKIPPED].fillna({"measure": ""})
    here = set(pd.concat([results.comparison, skipped])[[*KEYS]].itertuples(index=False, name=None))
    paper = paper_results()
    rows = paper[[*KEYS]].itertuples(index=False, name=None)
    missing = paper[[here.isdisjoint({row, (*row[:-1], "")}) for row in rows]]
    measures = missing["measure"].map(MEASURES)
    return _datasets_by(missing.assign(measure=measures), ["model", "method", "measure"])


def _datasets_by(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The names of the data sets, one after the other, for every combination of the keys."""
    grouped = rows["dataset"].groupby([rows[key] for key in keys], sort=True)
    names = grouped.agg(lambda own: ", ".join(own.unique()))
    return names.rename("datasets").reset_index()
