"""Tables of the committed results: ``{results}``. No figure is copied by hand.

The argument is a file of `results/`, or a pattern of several. Options name the command that made
it, the columns and rows (``column=value``) to show, and columns whose values share a mean. If the
file does not exist, a sentence with its command is shown.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective
from tables import table_of

RESULTS = Path(__file__).parents[2] / "results"


def read(name: str) -> pd.DataFrame:
    """A file of the results."""
    return pd.read_csv(RESULTS / name)


def has(name: str) -> bool:
    """Whether there is such a file."""
    return (RESULTS / name).exists()


def narrowed(frame: pd.DataFrame, columns: list[str], where: list[str]) -> pd.DataFrame:
    """Some columns and rows; empty columns are left out.

    Example:
        >>> frame = pd.DataFrame({"a": [1, 2], "b": [3, 4], "c": [None, None]})
        >>> narrowed(frame, ["b", "c", "d"], ["a=2"])
           b
        1  4
    """
    for condition in where:
        name, _, value = condition.partition("=")
        if name in frame:
            frame = frame[frame[name].astype(str) == value]
    kept = [name for name in columns if name in frame] or list(frame)
    return frame[kept].dropna(axis=1, how="all")


def means(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Means over the rows that share the keys, and the number of these rows.

    Example:
        >>> frame = pd.DataFrame({"method": ["a", "a"], "seed": [1, 2], "accuracy": [0.8, 0.9]})
        >>> means(frame, ["method"])
          method  runs  accuracy
        0      a     2      0.85
    """
    groups = frame.groupby(keys, sort=False)
    figures = frame.select_dtypes("number").columns.difference(["seed", *keys], sort=False)
    table = groups[list(figures)].mean()
    table.insert(0, "runs", groups.size())
    return table.reset_index()


def pair(accuracy: float, unfairness: float) -> str:
    """Accuracy and unfairness as tables show them.

    Example:
        >>> pair(0.8467, 0.0442), pair(float("nan"), 0.1)
        ('.847 / .044', '')
    """
    if pd.isna(accuracy) or pd.isna(unfairness):
        return ""
    return " / ".join(f"{figure:.3f}".lstrip("0") for figure in (accuracy, unfairness))


def methods_by_measure(dataset: str, model: str) -> pd.DataFrame:
    """Every method on a data set: accuracy / unfairness, a column per measure."""
    every = read("comparison.csv")
    rows = every[(every.dataset == dataset) & (every.model == model)]
    shown = rows.assign(
        figures=[pair(*row) for row in zip(rows.accuracy, rows.mean_abs_fairness, strict=True)]
    )
    table = shown.pivot_table("figures", "method", "measure", aggfunc="first")
    table = table.reindex(rows.method.unique()).fillna("not offered").reset_index()
    return table.rename(columns=lambda name: name.replace("_", " ")).rename_axis(columns=None)


def beside_the_paper(measure: str, method: str = "fairgrad") -> pd.DataFrame:
    """One method on every data set, and in brackets the paper's figures."""
    every = read("comparison.csv")
    rows = every[(every.method == method) & (every.measure == measure)]
    here = zip(rows.accuracy, rows.mean_abs_fairness, strict=True)
    paper = zip(rows.paper_accuracy, rows.paper_mean_abs_fairness, strict=True)
    cells = [
        f"{pair(*ours)} ({verdict if verdict.startswith('not') else pair(*theirs)})"
        for ours, theirs, verdict in zip(here, paper, rows.verdict, strict=True)
    ]
    table = rows.assign(cell=cells).pivot_table("cell", "dataset", "model", aggfunc="first")
    table = table.reindex(rows.dataset.unique()).fillna("not run").reset_index()
    return table.rename_axis(columns=None)


class Results(SphinxDirective):
    """The table of a file of results, and the command that made it."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {
        "command": directives.unchanged_required,
        "columns": directives.unchanged,
        "where": directives.unchanged,
        "digits": directives.positive_int,
        "mean-by": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """The tables, or the command that would make them."""
        files = sorted(RESULTS.glob(self.arguments[0]))
        command = self.options["command"]
        if not files:
            self.env.note_reread()  # the file may exist next time
            return [_sentence("There is no committed result yet. The command is {}.", command)]
        shown: list[nodes.Node] = []
        for file in files:
            self.env.note_dependency(str(file))
            shown.append(self.table(file))
            shown.append(_sentence(f"results/{file.name}, made by {{}}.", command))
        return shown

    def table(self, file: Path) -> nodes.Node:
        """One file."""
        frame = pd.read_csv(file)
        keys = [name for name in self.options.get("mean-by", "").split() if name in frame]
        frame = means(frame, keys) if keys else frame
        columns = self.options.get("columns", "").split()
        where = (
            re.split(r"\s*;\s*", self.options.get("where", "")) if "where" in self.options else []
        )
        return table_of(narrowed(frame, columns, where), self.options.get("digits", 4))


def _sentence(template: str, command: str) -> nodes.paragraph:
    before, after = template.split("{}")
    words = [nodes.Text(before), nodes.literal(command, command), nodes.Text(after)]
    return nodes.paragraph("", "", *words, classes=["made-by"])


def setup(app: Any) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
