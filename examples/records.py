"""Results of the examples: one row per run, kept in a CSV file, shown as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from fairgrad.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

KEY = ["task", "method", "mode", "seed"]
SHOWN = ["task", "mode", "method"]


def read(path: Path | None) -> pd.DataFrame:
    """What was recorded so far."""
    if path is None or not path.exists():
        return pd.DataFrame(columns=KEY)
    return pd.read_csv(path)


def is_done(path: Path | None, row: dict[str, Any]) -> bool:
    """Whether a run is in the file already."""
    found = read(path)
    return bool((found[KEY] == [row[name] for name in KEY]).all(axis=1).any())


def add(path: Path | None, frame: pd.DataFrame, row: dict[str, Any]) -> pd.DataFrame:
    """Adds a run to the results, and to the file if there is one."""
    if path is not None:
        frame = read(path)  # somebody else may have added to it meanwhile
    frame = (
        pd.concat([frame, pd.DataFrame([row])], ignore_index=True)
        if len(frame)
        else (pd.DataFrame([row]))
    )
    frame = frame.drop_duplicates(KEY, keep="last").sort_values(KEY, ignore_index=True)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, frame.round(6).to_csv(index=False))
    return frame


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over the seeds of each task, mode and method."""
    figures = ["test_accuracy", "test_unfairness"]
    found = frame.groupby(SHOWN, sort=True)[figures].agg(["mean", "std", "count"])
    table = pd.DataFrame({"seeds": found["test_accuracy", "count"]})
    for name in figures:
        table[name] = found[name, "mean"]
        table[f"{name}_std"] = found[name, "std"]
    return table.reset_index()


def show(
    frame: pd.DataFrame,
    title: str,
    paper: dict[tuple[str, str], str] | None = None,
    out: Path | None = None,
) -> None:
    """Prints the summary, beside the paper's figures if given, and writes it beside the results."""
    table = Table(title=title)
    for column in ("task", "layers trained", "method", "seeds", "test accuracy", "mean |F|"):
        table.add_column(column, overflow="fold")
    if paper:
        table.add_column("paper: accuracy / mean |F|")
    found = summary(frame)
    for row in found.itertuples():
        accuracy = _figure(row.test_accuracy, row.test_accuracy_std)
        unfairness = _figure(row.test_unfairness, row.test_unfairness_std)
        beside = [paper.get((row.task, row.method), "")] if paper else []
        table.add_row(row.task, row.mode, row.method, str(row.seeds), accuracy, unfairness, *beside)
    Console(width=110).print(table)
    if out is not None:
        write_whole(out.with_stem(f"{out.stem}_summary"), found.round(6).to_csv(index=False))


def _figure(mean: float, deviation: float) -> str:
    return f"{mean:.4f}" if pd.isna(deviation) else f"{mean:.4f} ± {deviation:.4f}"
