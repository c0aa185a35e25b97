"""The page of published tables: prose is written by hand, tables are filled in from the results.

A line ``<!-- table: published_ffb.csv -->`` names the file to show up to ``<!-- end -->``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad_bench.published.source import OURS
from fairgrad_bench.tables import markdown_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE = re.compile(r"(<!-- table: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
WHOSE = {"baseline": "unconstrained", "theirs": "theirs", "ours": "ours"}
SOURCES = {
    "fairprojection": "FairProjection",
    "linearpost": "LinearPost",
    "oxonfair": "OxonFair",
    "ffb": "FFB",
    "abcfair": "ABCFair",
    "utkface": "FFB, UTKFace",
}


def with_tables(text: str, results: str | Path) -> str:
    """The text of the page with its tables made anew.

    Args:
        text: of the page.
        results: folder of the tables as CSV.
    """

    def filled(place: re.Match[str]) -> str:
        path = Path(results) / place[2]
        if not path.is_file():
            return f"{place[1]}\nNot run yet.\n\n{place[3]}"
        frame = pd.read_csv(path).drop(columns="warned", errors="ignore")
        if "source" in frame:
            frame["source"] = frame["source"].map(SOURCES)
        if "beaten by" in frame:
            table = by_measure(frame)
        else:
            table = side_by_side(frame) if "check" in frame else frame.map(_short)
        table = table.rename(columns=lambda name: name.replace("_", " "))
        return f"{place[1]}\n{markdown_frame(table)}\n\n{place[3]}"

    return PLACE.sub(filled, text)


def _short(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) and value == value else value  # noqa: PLR0124 - NaN


def side_by_side(frame: pd.DataFrame) -> pd.DataFrame:
    """The published unconstrained models beside ours, accuracy / gap.

    Args:
        frame: the table of baselines, as `write_published` makes it.
    """
    rows = frame.to_dict("records")
    shown = frame.assign(
        measure=frame["measure"].str.replace("_", " "),
        published=[_figures(row, "_published") for row in rows],
        ours=[_figures(row) for row in rows],
        seeds=frame["seeds"].astype(int),
    )
    columns = ["source", "cell", "measure", "method", "published", "ours", "seeds", "check"]
    return shown[columns].rename(columns={"cell": "data", "method": "model", "ours": "run here"})


def differing(results: str | Path) -> list[str]:
    """A line for every unconstrained model whose figures differ from the published ones.

    Args:
        results: folder of the tables as CSV.
    """
    path = Path(results) / "published_baselines.csv"
    if not path.is_file():
        return []
    rows = side_by_side(pd.read_csv(path)).query("check == 'differs'").to_dict("records")
    return [
        f"{row['source']}, {row['data']}, {row['measure']}: the unconstrained model differs: "
        f"published {row['published']}, here {row['run here']}, {row['seeds']} seeds"
        for row in rows
    ]


def by_measure(frame: pd.DataFrame) -> pd.DataFrame:
    """A row per method and data, a column per measure: accuracy / gap; ours on the front are bold.

    Args:
        frame: the table of a source, as `write_published` makes it.
    """
    cells = [
        f"**{figures}**" if whose == OURS and beaten != beaten else figures  # noqa: PLR0124 - NaN
        for figures, whose, beaten in zip(
            map(_figures, frame.to_dict("records")), frame["whose"], frame["beaten by"], strict=True
        )
    ]
    defaults = frame["default"].astype(str).isin(["True", "1.0"])
    shown = frame.assign(
        figures=cells,
        data=frame["cell"],
        rows=frame["whose"].map(WHOSE) + defaults.map({True: ", defaults", False: ""}),
        measure=frame["measure"].str.replace("_", " "),
    )
    shown["order"] = shown["whose"].map({name: place for place, name in enumerate(WHOSE)})
    shown = shown.sort_values(["data", "order"], kind="stable")
    keys = ["data", "method", "rows", "made", "inputs"]
    table = shown.pivot_table("figures", keys, "measure", aggfunc="first", sort=False)
    few = shown.groupby(keys, sort=False)
    table["seeds"] = few["seeds"].min().map(lambda n: "" if n != n else f"{n:.0f}")  # noqa: PLR0124 - NaN
    table["seconds"] = few["seconds"].mean().map(lambda n: "" if n != n else f"{n:.1f}")  # noqa: PLR0124 - NaN
    table = table.fillna("").reset_index().rename_axis(columns=None)
    return table if len(set(table["data"])) > 1 else table.drop(columns="data")


def _figures(row: Mapping[Any, Any], ending: str = "") -> str:
    """Accuracy / gap with their standard errors; nothing if there are no figures.

    Example:
        >>> nan = float("nan")
        >>> _figures({"accuracy": 0.85, "gap": 0.02, "accuracy_se": nan, "gap_se": nan})
        '.8500 / .0200'
    """
    parts = []
    for name in ("accuracy", "gap"):
        numbers = [row[name + ending], row[f"{name}_se{ending}"]]
        parts.append(" ± ".join(f"{n:.4f}".lstrip("0") for n in numbers if pd.notna(n)))
    return " / ".join(filter(None, parts))
