"""The comparison as the tables of the paper's appendix, in Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.datasets import PAPER_SEEDS
from fairgrad_bench.comparison import (
    BETTER,
    FAIRGRAD,
    MEANING,
    NO_VERDICT,
    REPRODUCED,
    TRADE_OFF,
    WORSE,
)
from fairgrad_bench.paper import MEASURES, MODELS, dataset_title, method_title
from fairgrad_bench.selection import FIGURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HEADINGS = {
    "accuracy": "ACCURACY",
    "mean_abs_fairness": "MEAN ABS.",
    "max_fairness": "MAXIMUM",
    "min_fairness": "MINIMUM",
}
COLOURS = {BETTER: "🟩", REPRODUCED: "🟦", TRADE_OFF: "🟨", WORSE: "🟥"}
PAPER_EPOCHS = 50
NEEDS_S = "needs the sensitive value to predict"
SHORT = "fewer combinations of hyper-parameters, epochs or seeds than the paper's"
ABBREVIATIONS = (
    "AP, EOdds, EOpp and DP are accuracy parity, equalized odds, equality of opportunity and "
    "demographic parity."
)
MARKDOWN_FIGURE = "{:.4f}\u00a0±\u00a0{:.4f}"
"""With spaces that no line is broken at: a figure and its deviation stay side by side."""


@dataclass(frozen=True)
class MeanFigure:
    """A figure and its standard deviation; None where there is none."""

    value: float | None
    deviation: float | None

    def __str__(self) -> str:
        return "" if self.value is None else MARKDOWN_FIGURE.format(self.value, self.deviation)


@dataclass(frozen=True)
class TableLine:
    """One row of a table."""

    method: str
    measure: str
    needs_s: bool
    short: bool
    ours: tuple[MeanFigure, ...]
    paper: tuple[MeanFigure, ...]
    verdict: str
    seconds: float

    def figures(self) -> list[str]:
        """Our figures, each with the paper's behind it."""
        pairs = zip(self.ours, self.paper, strict=True)
        return [str(figure) for pair in pairs for figure in pair]


@dataclass(frozen=True)
class TableSection:
    """One table: a data set and a model.

    Attributes:
        dataset: its title.
        model: likewise.
        lines: its rows.
        key: the names of data set and model.
    """

    dataset: str
    model: str
    lines: tuple[TableLine, ...]
    key: tuple[str, str]

    @property
    def title(self) -> str:
        """As the paper's captions begin."""
        return f"Results for the {self.dataset} dataset with {self.model}"


def sections(comparison: pd.DataFrame) -> Iterator[TableSection]:
    """The tables, in the order of the rows."""
    for key, rows in comparison.groupby(["dataset", "model"], sort=False):
        dataset, model = map(str, key)
        lines = tuple(
            _line(row)
            for _, block in rows.groupby("measure", sort=False)
            for row in block.to_dict(orient="records")
        )
        yield TableSection(dataset_title(dataset), MODELS[model], lines, (dataset, model))


def by_dataset(comparison: pd.DataFrame) -> list[list[TableSection]]:
    """The tables of each data set; none if there are no rows."""
    if comparison.empty:
        return []
    return [list(sections(rows)) for _, rows in comparison.groupby("dataset", sort=False)]


def _line(row: dict[Any, Any]) -> TableLine:
    fewer = row["epochs"] < PAPER_EPOCHS or row["seeds"] < len(PAPER_SEEDS)
    return TableLine(
        method=method_title(row["method"]),
        measure=MEASURES.get(row["measure"], row["measure"]),
        needs_s=bool(row["needs_s_to_predict"]),
        short=bool(row["grid"] != "paper" or fewer),
        ours=tuple(_mean_figure(row, figure) for figure in FIGURES),
        paper=tuple(_mean_figure(row, f"paper_{figure}") for figure in FIGURES),
        verdict=row["verdict"],
        seconds=float(row["seconds"]),
    )


def _mean_figure(row: Any, name: str) -> MeanFigure:
    value, deviation = row[name], row[f"{name}_std"]
    return MeanFigure(None, None) if pd.isna(value) else MeanFigure(float(value), float(deviation))


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    escaped = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)


def markdown_section(section: TableSection, made_by: str = "") -> str:
    """One table under its title.

    Args:
        section: the table.
        made_by: a sentence that follows it.
    """
    headings = ["METHOD", "MEASURE", "VERDICT"]
    for name in HEADINGS.values():
        headings += [name, "paper"]
    rows = []
    for line in section.lines:
        marks = " †" * line.needs_s + " ‡" * line.short
        cells = [f"{line.method}{marks}", line.measure, line.verdict]
        rows.append([*cells, *line.figures(), f"{line.seconds:.0f}"])
    table = markdown_table([*headings, "SECONDS"], rows)
    return "\n\n".join([f"**{section.title}**", table, *([made_by] if made_by else [])]) + "\n"


def verdict_grid(comparison: pd.DataFrame, method: str = FAIRGRAD) -> str:
    """The verdicts of a method as a coloured grid: a row per data set, a column per measure."""
    found = comparison[
        (comparison["method"] == method) & comparison["verdict"].isin([*COLOURS, NO_VERDICT])
    ]
    if found.empty:
        return ""
    shown = found.assign(
        dataset=found["dataset"].map(dataset_title),
        column=found["model"] + ": " + found["measure"].map(MEASURES),
        cell=[f"{COLOURS[word]} {word}" if word in COLOURS else word for word in found["verdict"]],
    )
    grid = shown.pivot_table("cell", "dataset", "column", aggfunc="first").reindex(
        index=shown["dataset"].unique(), columns=shown["column"].unique()
    )
    return markdown_frame(grid.fillna("").rename_axis("data set").reset_index()) + "\n"


def collapsed(title: str, *blocks: str) -> str:
    """Markdown that a click unfolds. It must have no headings: pages would nest them wrongly."""
    return "\n".join([f"<details>\n<summary>{title}</summary>\n", *blocks, "</details>\n"])


def markdown_legend() -> str:
    """What the columns, marks and verdicts mean."""
    verdicts = "\n".join(f"- **{name}**: {meaning}." for name, meaning in MEANING.items())
    return (
        f"Figures are means over seeds ± standard deviations on the test rows. {ABBREVIATIONS} "
        "MEAN ABS. is the mean absolute level of fairness, MAXIMUM the level of the group that is "
        f"best off, MINIMUM that of the group that is worst off. † {NEEDS_S}. ‡ {SHORT}. SECONDS "
        "is the processor time, on one core and over all seeds, of all models that the row was "
        "chosen from. Methods that do not use the measure are trained once for all "
        "measures.\n\nThe verdict is the first of these that is true:\n\n"
        f"{verdicts}\n"
    )


def markdown_frame(frame: pd.DataFrame) -> str:
    """Any frame; figures with four digits."""
    rows = [[_text(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return markdown_table([str(name) for name in frame.columns], rows)


def markdown_experiment(rows: pd.DataFrame, varies: str) -> str:
    """The table of an experiment over one setting."""
    columns: dict[str, Any] = {
        "DATASET": rows["dataset"].map(dataset_title),
        "MODEL": rows["model"],
        "MEASURE": rows["measure"].map(MEASURES),
        varies.replace("_", " ").upper(): rows[varies].map("{:g}".format),
    }
    for name in ("accuracy", "mean_abs_fairness"):
        for column, who in ((name, ""), (f"paper_{name}", ", paper")):
            if column in rows:
                figures = [_mean_figure(row, column) for row in rows.to_dict(orient="records")]
                columns[HEADINGS[name] + who] = [str(figure) for figure in figures]
    if "within_epsilon" in rows:
        columns["AT MOST EPSILON"] = rows["within_epsilon"].map({True: "yes", False: "no"})
    if "verdict" in rows:
        columns["VERDICT"] = rows["verdict"]
    return markdown_frame(pd.DataFrame(columns))


def _text(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)
