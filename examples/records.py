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


def show(frame: pd.DataFrame, title: str, paper: dict[tuple[str, str], str] | None = None) -> None:
    """Prints mean and standard deviation over the seeds, beside the paper's figures if given."""
    table = Table(title=title)
    for column in ("task", "layers trained", "method", "seeds", "test accuracy", "mean |F|"):
        table.add_column(column, overflow="fold")
    if paper:
        table.add_column("paper: accuracy / mean |F|")
    for key, part in frame.groupby(SHOWN, sort=True):
        task, mode, method = key
        figures = [_mean(part[name]) for name in ("test_accuracy", "test_unfairness")]
        beside = [paper.get((task, method), "")] if paper else []
        table.add_row(task, mode, method, str(len(part)), *figures, *beside)
    Console(width=110).print(table)


def _mean(values: pd.Series) -> str:
    if len(values) == 1:
        return f"{values.iloc[0]:.4f}"
    return f"{values.mean():.4f} ± {values.std():.4f}"
