"""Tables of published figures and ours: one per source, the baselines, and a summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairgrad.files import write_whole
from fairgrad_bench.published.running import read_published, source_named
from fairgrad_bench.published.source import BASELINE, OURS, THEIRS
from fairgrad_bench.records import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairgrad_bench.published.running import PublishedRecord

CELL = ["source", "cell", "measure"]
WITHIN = 2
"""Standard errors that a baseline may differ from the published figure by."""

RUN_HERE = "run here"
MIN_SEEDS = 2
CONSTANT = "one label for everybody"
WITH_THEIRS = "agrees with their errors"
PUBLISHED_AND_OURS = ("_published", "_se_published", "", "_se")


def published_figures() -> pd.DataFrame:
    """The figures of others, as they published them; FFB's deviations as standard errors."""
    return pd.read_csv(Path(__file__).parent / "figures.csv").assign(made="published")


def measured(records: Iterable[PublishedRecord]) -> pd.DataFrame:
    """Means over seeds of every method, cell and measure, with standard errors."""
    rows = []
    for record in records:
        method = source_named(record.unit.source).methods.get(record.unit.method)
        if record.status != FINISHED or method is None or method.version != record.unit.version:
            continue
        for measure, gap in record.gaps.items():
            if record.unit.measure in ("", measure):
                rows.append(
                    {
                        "source": record.unit.source,
                        "cell": record.unit.cell,
                        "measure": measure,
                        "method": record.unit.method,
                        "whose": method.whose,
                        "inputs": method.inputs,
                        "default": method.is_default,
                        "accuracy": record.accuracy,
                        "gap": gap,
                        "seconds": record.seconds,
                    }
                )
    if not rows:
        return pd.DataFrame()
    groups = pd.DataFrame(rows).groupby([*CELL, "method", "whose", "inputs", "default"], sort=False)
    figures = groups[["accuracy", "gap", "seconds"]].mean()
    for name in ("accuracy", "gap"):
        figures[f"{name}_se"] = groups[name].sem()
    figures["seeds"] = groups.size()
    return figures.reset_index().assign(made=RUN_HERE)


def beats(row: pd.Series, other: pd.Series) -> bool:
    """Whether one row is at least as accurate and fair as another, and better in one of the two.

    Example:
        >>> fair, accurate = ({"accuracy": a, "gap": g} for a, g in ((0.8, 0.01), (0.9, 0.02)))
        >>> beats(pd.Series(fair), pd.Series(accurate)), beats(pd.Series(accurate), pd.Series(fair))
        (False, False)
    """
    no_worse = row["accuracy"] >= other["accuracy"] and row["gap"] <= other["gap"]
    return bool(no_worse and (row["accuracy"] > other["accuracy"] or row["gap"] < other["gap"]))


def joined(ours: pd.DataFrame) -> pd.DataFrame:
    """All rows of the sources that were run, with theirs; `beaten by` names the rows that win.

    Our rows are compared with theirs, published or run here, and with baselines that were run here.
    """
    published = published_figures()
    published = published[published["source"].isin(ours["source"])]
    figures = pd.concat([published, ours], ignore_index=True)
    figures["beaten by"] = ""
    for _, part in figures.groupby(CELL):
        is_rival = (part["whose"] == THEIRS) | (
            (part["whose"] == BASELINE) & (part["made"] == RUN_HERE)
        )
        rivals = [row for _, row in part[is_rival].iterrows()]
        for place, row in part[part["whose"] == OURS].iterrows():
            winners = [other["method"] for other in rivals if beats(other, row)]
            figures.loc[place, "beaten by"] = "; ".join(dict.fromkeys(winners))
    return figures


def baselines(figures: pd.DataFrame) -> pd.DataFrame:
    """The published unconstrained models beside ours, and whether they agree.

    They agree if accuracy and gap are within two standard errors over our seeds, and "with their
    errors" if this is true once the published standard errors count, too.
    """
    ours = figures[(figures["whose"] == BASELINE) & (figures["made"] == RUN_HERE)]
    published = figures[(figures["whose"] == BASELINE) & (figures["made"] == "published")]
    ours = ours[ours["method"] != CONSTANT]
    both = ours.merge(published, on=[*CELL, "method"], how="left", suffixes=("", "_published"))
    cannot = both["accuracy_published"].isna() | (both["seeds"] < MIN_SEEDS)
    agrees, with_theirs = ~cannot, ~cannot
    for name in ("accuracy", "gap"):
        distance = (both[name] - both[f"{name}_published"]).abs()
        error, theirs = (both[f"{name}_se{end}"].fillna(0) for end in ("", "_published"))
        # Published figures are rounded to four digits.
        agrees &= distance <= WITHIN * error + 5e-5
        with_theirs &= distance <= WITHIN * np.hypot(error, theirs) + 5e-5
    both["check"] = np.select(
        [cannot, agrees, with_theirs], ["not checked", "agrees", WITH_THEIRS], "differs"
    )
    columns = [f"{name}{end}" for name in ("accuracy", "gap") for end in PUBLISHED_AND_OURS]
    both = both.sort_values(CELL, kind="stable")
    return both[[*CELL, "method", *columns, "seeds", "check"]]


def summary(figures: pd.DataFrame) -> pd.DataFrame:
    """For each source: in how many cells a row of ours is beaten by none of theirs.

    Cells without a row of theirs are left out. A row is "as fair as a rival" if its gap is no
    larger than the largest gap of a row of theirs.
    """
    rows = []
    with_rivals = set(map(tuple, figures.loc[figures["whose"] == THEIRS, CELL].to_numpy()))
    compared = [tuple(cell) in with_rivals for cell in figures[CELL].to_numpy()]
    figures = figures[compared]
    for source, part in figures.groupby("source", sort=False):
        ours = part[part["whose"] == OURS]
        if ours.empty:
            continue
        ours = ours.assign(free=ours["beaten by"] == "", default=ours["default"].astype(bool))
        cells = ours.groupby(["cell", "measure"])
        free = cells["free"].any()
        least_fair = part[part["whose"] == THEIRS].groupby(["cell", "measure"])["gap"].max()
        ours = ours.join(least_fair.rename("limit"), on=["cell", "measure"])
        ours["fair"] = ours["free"] & (ours["gap"] <= ours["limit"])
        by_default = ours[ours["default"]].groupby(["cell", "measure"])[["free", "fair"]].any()
        rows.append(
            {
                "source": source,
                "cells": len(free),
                "on the front": int(free.sum()),
                "by defaults": int(by_default["free"].sum()),
                "by defaults, as fair as a rival": int(by_default["fair"].sum()),
                "fewest seeds": int(ours["seeds"].min()),
                "processor minutes": round(float((part["seconds"] * part["seeds"]).sum() / 60), 1),
            }
        )
    return pd.DataFrame(rows)


def merged(ours: pd.DataFrame, folder: str | Path) -> pd.DataFrame:
    """Our rows, and those of earlier tables that have more seeds or are not among them.

    Args:
        ours: as `measured` gives them; may be empty.
        folder: that `write_published` wrote into.
    """
    parts = [ours]
    for path in sorted(Path(folder).glob("published_*.csv")):
        frame, name = pd.read_csv(path), path.stem.removeprefix("published_")
        if "beaten by" in frame:
            is_ours = frame["method"].isin(source_named(name).methods) & (frame["made"] == RUN_HERE)
            parts.append(frame[is_ours].drop(columns="beaten by").assign(source=name))
    every = pd.concat(parts, ignore_index=True)
    if every.empty:
        return every
    most = every.sort_values("seeds", ascending=False, kind="stable")
    return most.drop_duplicates([*CELL, "method"]).sort_index()


def write_published(
    records: str | Path, out: str | Path, merge: str | Path | None = None
) -> list[Path]:
    """Writes the tables of all records of a folder; sources without records are left alone.

    Args:
        records: folder of the records.
        out: folder to write into.
        merge: folder of earlier tables, whose rows with more seeds are kept.
    """
    figures = measured(read_published(records))
    if merge is not None:
        figures = merged(figures, merge)
    if figures.empty:
        return []
    figures = joined(figures)
    place = {name: number for number, name in enumerate((BASELINE, THEIRS, OURS))}
    columns = [
        *("cell", "measure", "method", "whose", "made", "inputs", "default"),
        *("accuracy", "accuracy_se", "gap", "gap_se", "seeds", "seconds", "beaten by"),
    ]
    tables = {
        f"published_{source}.csv": part.sort_values(
            ["cell", "measure", "whose"],
            key=lambda column: column.map(place) if column.name == "whose" else column,
            kind="stable",
        )[columns]
        for source, part in figures.groupby("source")
    }
    tables["published_baselines.csv"] = baselines(figures)
    tables["published_summary.csv"] = summary(figures)
    paths = []
    for name, table in tables.items():
        path = Path(out) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, table.round(4).to_csv(index=False))
        paths.append(path)
    return paths
