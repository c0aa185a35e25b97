"""The comparison as the tables of the paper's appendix: one per data set and model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.bench.naming import MEASURES, MODELS, dataset_title, method_title
from fairgrad.bench.select import FIGURES
from fairgrad.datasets import PAPER_SEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADINGS = {
    "accuracy": "ACCURACY",
    "mean_abs_fairness": "MEAN ABS.",
    "max_fairness": "MAXIMUM",
    "min_fairness": "MINIMUM",
}
PAPER_EPOCHS = 50
NEEDS_S = "needs the sensitive value to predict"
SHORT = "fewer combinations of hyper-parameters, epochs or seeds than the paper's"


@dataclass(frozen=True)
class Cell:
    """A figure and its standard deviation; None where there is none."""

    value: float | None
    deviation: float | None


@dataclass(frozen=True)
class Line:
    """One row of a table."""

    method: str
    measure: str
    needs_s: bool
    short: bool
    ours: tuple[Cell, ...]
    paper: tuple[Cell, ...]
    verdict: str
    seconds: float


@dataclass(frozen=True)
class Section:
    """One table: a data set and a model, with a block of rows per measure."""

    dataset: str
    model: str
    blocks: tuple[tuple[Line, ...], ...]

    @property
    def title(self) -> str:
        """As the paper's captions begin."""
        return f"Results for the {self.dataset} dataset with {self.model}"


def sections(comparison: pd.DataFrame) -> Iterator[Section]:
    """The tables, in the order of the rows."""
    for key, rows in comparison.groupby(["dataset", "model"], sort=False):
        dataset, model = map(str, key)
        blocks = tuple(
            tuple(_line(row) for row in block.to_dict(orient="records"))
            for _, block in rows.groupby("measure", sort=False)
        )
        yield Section(dataset_title(dataset), MODELS[model], blocks)


def _line(row: dict[Any, Any]) -> Line:
    return Line(
        method=method_title(row["method"]),
        measure=MEASURES.get(row["measure"], row["measure"]),
        needs_s=bool(row["needs_s_to_predict"]),
        short=_is_short(row),
        ours=tuple(_cell(row, figure) for figure in FIGURES),
        paper=tuple(_cell(row, f"paper_{figure}") for figure in FIGURES),
        verdict=row["verdict"],
        seconds=float(row["seconds"]),
    )


def _is_short(row: dict[Any, Any]) -> bool:
    fewer = row["epochs"] < PAPER_EPOCHS or row["seeds"] < len(PAPER_SEEDS)
    return bool(row["grid"] != "paper" or fewer)


def _cell(row: dict[Any, Any], name: str) -> Cell:
    value, deviation = row[name], row[f"{name}_std"]
    return Cell(None, None) if pd.isna(value) else Cell(float(value), float(deviation))
