"""Tables of the committed results: ``{results}``. No figure is copied by hand.

The argument is a file of `results/`, or a pattern of several. Options say which command made it,
which columns to show (those the file has), which rows (``column=value``) and whether to
show means of the rows that share some columns. A file that is not
there yet leaves a sentence with its command.
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
    """Some columns and rows; columns that hold nothing are left out.

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
    """Means over all rows that share the keys, and how many they are.

    Example:
        >>> frame = pd.DataFrame({"method": ["a", "a"], "seed": [1, 2], "accuracy": [0.8, 0.9]})
        >>> means(frame, ["method"])
          method  runs  accuracy
        0      a     2      0.85
    """
    groups = frame.groupby(keys, sort=False)
    figures = frame.select_dtypes("number").columns.difference(["seed", *keys], sort=False)
    found = groups[list(figures)].mean()
    found.insert(0, "runs", groups.size())
    return found.reset_index()


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
    found = every[(every.dataset == dataset) & (every.model == model)]
    shown = found.assign(
        figures=[pair(*row) for row in zip(found.accuracy, found.mean_abs_fairness, strict=True)]
    )
    table = shown.pivot_table("figures", "method", "measure", aggfunc="first")
    table = table.reindex(found.method.unique()).fillna("not offered").reset_index()
    return table.rename(columns=lambda name: name.replace("_", " ")).rename_axis(columns=None)


def beside_the_paper(measure: str, method: str = "fairgrad") -> pd.DataFrame:
    """One method on every data set, and in brackets the paper's figures."""
    every = read("comparison.csv")
    found = every[(every.method == method) & (every.measure == measure)]
    own = zip(found.accuracy, found.mean_abs_fairness, strict=True)
    paper = zip(found.paper_accuracy, found.paper_mean_abs_fairness, strict=True)
    cells = [
        f"{pair(*ours)} ({said if said.startswith('not') else pair(*theirs)})"
        for ours, theirs, said in zip(own, paper, found.verdict, strict=True)
    ]
    table = found.assign(cell=cells).pivot_table("cell", "dataset", "model", aggfunc="first")
    table = table.reindex(found.dataset.unique()).fillna("not run").reset_index()
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
        """The tables, or what would make them."""
        files = sorted(RESULTS.glob(self.arguments[0]))
        command = self.options["command"]
        if not files:
            self.env.note_reread()  # the file may be there the next time
            return [_sentence("There is no committed result yet. The command is {}.", command)]
        found: list[nodes.Node] = []
        for file in files:
            self.env.note_dependency(str(file))
            found.append(self.table(file))
            found.append(_sentence(f"results/{file.name}, made by {{}}.", command))
        return found

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


def _sentence(words: str, command: str) -> nodes.paragraph:
    before, after = words.split("{}")
    parts = [nodes.Text(before), nodes.literal(command, command), nodes.Text(after)]
    return nodes.paragraph("", "", *parts, classes=["made-by"])


def setup(app: Any) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
