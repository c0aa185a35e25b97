"""Tables as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.bench.compare import MEANING
from fairgrad.bench.layout import HEADINGS, NEEDS_S, SHORT, Cell, Line, Section
from fairgrad.bench.naming import MEASURES, dataset_title

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PLUS_MINUS = "\u00a0±\u00a0"
"""With spaces that no line is broken at: a figure and its deviation stay side by side."""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    Example:
        >>> print(table(["a", "b"], [["1", "2"]]))
        | a | b |
        | --- | --- |
        | 1 | 2 |
    """
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in line)} |" for line in lines)


def section(found: Section) -> str:
    """One table under its title."""
    headings = ["METHOD", "MEASURE", "VERDICT"]
    for name in HEADINGS.values():
        headings += [name, "paper"]
    rows = [_row(line) for block in found.blocks for line in block]
    return f"### {found.title}\n\n{table([*headings, 'SECONDS'], rows)}\n"


def legend() -> str:
    """What the columns, marks and verdicts mean."""
    verdicts = "\n".join(f"- **{name}**: {meaning}." for name, meaning in MEANING.items())
    return (
        "Figures are means over seeds ± standard deviations on the test part. MEAN ABS. is the "
        "mean absolute level of fairness, MAXIMUM the level of the best-off and MINIMUM that of "
        f"the worst-off group. † {NEEDS_S}. ‡ {SHORT}. SECONDS is the processor time of all models "
        "that the row was chosen from, over all seeds, on one core; methods that do not use the "
        "measure are trained once for all of them.\n\nVerdicts, the first that fits:\n\n"
        f"{verdicts}\n"
    )


def frame_table(frame: pd.DataFrame) -> str:
    """Any frame; figures with four digits."""
    rows = [[_text(value) for value in row] for row in frame.itertuples(index=False, name=None)]
    return table([str(name) for name in frame.columns], rows)


def experiment(found: pd.DataFrame, varies: str) -> str:
    """The table of an experiment over one setting."""
    columns: dict[str, Any] = {
        "DATASET": found["dataset"].map(dataset_title),
        "MODEL": found["model"],
        "MEASURE": found["measure"].map(MEASURES),
        varies.replace("_", " ").upper(): found[varies].map("{:g}".format),
    }
    for name in ("accuracy", "mean_abs_fairness"):
        for own, who in ((name, ""), (f"paper_{name}", ", paper")):
            if own in found:
                columns[HEADINGS[name] + who] = _with_deviation(found[own], found[f"{own}_std"])
    if "within_epsilon" in found:
        columns["AT MOST EPSILON"] = found["within_epsilon"].map({True: "yes", False: "no"})
    return frame_table(pd.DataFrame(columns))


def _with_deviation(values: pd.Series[float], deviations: pd.Series[float]) -> list[str]:
    known = zip(values.notna(), values, deviations, strict=True)
    return [_figure(Cell(*pair) if is_known else Cell(None, None)) for is_known, *pair in known]


def _row(line: Line) -> list[str]:
    marks = " †" * line.needs_s + " ‡" * line.short
    cells = [f"{line.method}{marks}", line.measure, line.verdict]
    for ours, paper in zip(line.ours, line.paper, strict=True):
        cells += [_figure(ours), _figure(paper)]
    return [*cells, f"{line.seconds:.0f}"]


def _figure(cell: Cell) -> str:
    return "" if cell.value is None else f"{cell.value:.4f}{PLUS_MINUS}{cell.deviation:.4f}"


def _text(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
