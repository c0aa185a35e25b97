"""The page of published tables: prose is written by hand, tables are filled in from the results.

A line ``<!-- table: published_ffb.csv -->`` says which file the lines up to ``<!-- end -->`` show.
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
        found = pd.read_csv(path).drop(columns="warned", errors="ignore")
        table = by_measure(found) if "beaten by" in found else found.map(_short)
        return f"{place[1]}\n{markdown_frame(table)}\n\n{place[3]}"

    return PLACE.sub(filled, text)


def _short(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) and value == value else value  # noqa: PLR0124 - NaN


def by_measure(found: pd.DataFrame) -> pd.DataFrame:
    """A row per method and data, a column per measure: accuracy / gap; ours on the front are bold.

    Args:
        found: the table of a source, as `write_published` makes it.
    """
    cells = [
        f"**{figures}**" if whose == OURS and beaten != beaten else figures  # noqa: PLR0124 - NaN
        for figures, whose, beaten in zip(
            map(_figures, found.to_dict("records")), found["whose"], found["beaten by"], strict=True
        )
    ]
    defaults = found["default"].astype(str).isin(["True", "1.0"])
    shown = found.assign(
        figures=cells,
        data=found["cell"],
        rows=found["whose"].map(WHOSE) + defaults.map({True: ", defaults", False: ""}),
        measure=found["measure"].str.replace("_", " "),
    )
    shown["order"] = shown["whose"].map({name: place for place, name in enumerate(WHOSE)})
    shown = shown.sort_values(["data", "order"], kind="stable")
    keys = ["data", "method", "rows", "made", "inputs"]
    table = shown.pivot_table("figures", keys, "measure", aggfunc="first", sort=False)
    few = shown.groupby(keys, sort=False)
    table["seeds"] = few["seeds"].max().map(lambda n: "" if n != n else f"{n:.0f}")  # noqa: PLR0124 - NaN
    table["seconds"] = few["seconds"].mean().map(lambda n: "" if n != n else f"{n:.1f}")  # noqa: PLR0124 - NaN
    table = table.fillna("").reset_index().rename_axis(columns=None)
    return table if len(set(table["data"])) > 1 else table.drop(columns="data")


def _figures(row: Mapping[Any, Any]) -> str:
    """Accuracy / gap with their standard errors.

    Example:
        >>> nan = float("nan")
        >>> _figures({"accuracy": 0.85, "gap": 0.02, "accuracy_se": nan, "gap_se": nan})
        '.8500 / .0200'
    """
    parts = []
    for name in ("accuracy", "gap"):
        figure = f"{row[name]:.4f}".lstrip("0")
        error = row[f"{name}_se"]
        parts.append(figure if pd.isna(error) else f"{figure} ± " + f"{error:.4f}".lstrip("0"))
    return " / ".join(parts)
