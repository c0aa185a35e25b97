"""Charts of a training history: levels, multipliers, weights, share of negative weights."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from fairgrad.report.colours import var
from fairgrad.report.figure import AnyChart, Figure, data, number, percent, series

NEEDED = ("epoch", "quantity", "name", "value")
TITLES = {
    "level": ("Levels of fairness", "F on the training rows; 0 is fair."),
    "multiplier": ("Multipliers", "How hard each constraint pushes; the sign says which way."),
    "weight": (
        "Weights",
        "What one row of each cell counts in the loss; below 0 its errors are rewarded.",
    ),
    "negative_share": (
        "Share of negative weights",
        "Part of the cells (of the rows, if their shares are known) with a weight below 0.",
    ),
}
MOST_ROWS = 3000


def as_history(given: Any) -> pd.DataFrame:
    """A history in long form, with the share of negative weights.

    Args:
        given: a frame with the columns epoch, quantity ("level", "multiplier", "weight" or
            "negative_share"), name (of the constraint or cell) and value; optional is share (of
            the rows in a cell).

    Raises:
        ValueError: if a column is missing, or a quantity is not known.
    """
    if not isinstance(given, pd.DataFrame):
        raise TypeError(f"history: expected a DataFrame, got {type(given).__name__}.")
    missing = [name for name in NEEDED if name not in given.columns]
    if missing:
        raise ValueError(f"history: expected the columns {list(NEEDED)}; {missing} are missing.")
    strangers = sorted({str(q) for q in given["quantity"]} - set(TITLES))
    if strangers:
        raise ValueError(f"history: expected quantities {list(TITLES)}, got {strangers[0]!r}.")
    if (given["quantity"] == "negative_share").any():
        return given
    weights = given[given["quantity"] == "weight"]
    if weights.empty:
        return given
    return pd.concat([given, _negative_share(weights)], ignore_index=True)


def history_figures(history: pd.DataFrame) -> list[Figure]:
    """One chart per quantity there is.

    Example:
        >>> history = pd.DataFrame({"epoch": [1, 2], "quantity": "level", "name": "sex=F",
        ...                         "value": [-0.1, 0.0]})
        >>> [figure.title for figure in history_figures(history)]
        ['Levels of fairness']
    """
    kinds = [kind for kind in TITLES if (history["quantity"] == kind).any()]
    return [_figure(kind, history[history["quantity"] == kind]) for kind in kinds]


def _negative_share(weights: pd.DataFrame) -> pd.DataFrame:
    share = weights["share"] if "share" in weights.columns else 1.0
    known = weights.assign(share=share, below=(weights["value"] < 0) * share)
    sums = known.groupby("epoch")[["below", "share"]].sum()
    return pd.DataFrame(
        {
            "epoch": sums.index,
            "quantity": "negative_share",
            "name": "",
            "value": (sums["below"] / sums["share"]).to_numpy(),
        }
    )


def _figure(kind: str, frame: pd.DataFrame) -> Figure:
    title, note = TITLES[kind]
    is_share = kind == "negative_share"
    shown = percent if is_share else number
    rows: list[dict[Any, Any]] = frame[list(NEEDED)].to_dict(orient="records")
    names = list(dict.fromkeys(row["name"] for row in rows))
    last = frame["epoch"].max()
    ends = "; ".join(
        f"{row['name']} {shown(row['value'])}".strip() for row in rows if row["epoch"] == last
    )
    table = rows if len(rows) <= MOST_ROWS else [row for row in rows if row["epoch"] == last]
    return Figure(
        id=f"history-{kind.replace('_', '-')}",
        title=title,
        chart=_chart(rows, names, is_share),
        alternative=f"{title} over {int(last)} epochs; at the end: {ends}.",
        columns=["epoch", "of", "value"],
        rows=[[str(row["epoch"]), row["name"], shown(row["value"])] for row in table],
        note=note,
    )


def _chart(rows: list[dict[Any, Any]], names: list[str], is_share: bool) -> AnyChart:
    base = alt.Chart(data(rows)).encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(format="d", tickMinStep=1)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%" if is_share else "")),
        tooltip=[
            *([alt.Tooltip("name:N", title="of")] if len(names) > 1 else []),
            alt.Tooltip("epoch:Q", title="epoch"),
            alt.Tooltip("value:Q", title="value", format=".1%" if is_share else ".4f"),
        ],
    )
    if len(names) > 1:
        base = base.encode(
            color=series(alt.Color, "name", names),
            shape=series(alt.Shape, "name", names),
            strokeDash=series(alt.StrokeDash, "name", names),
        )
    else:
        base = base.encode(color=alt.value(var("accent")))
    # The line carries the dash, the points the shape: either tells series apart without colour.
    line = base.mark_line(strokeWidth=2).encode(shape=alt.Undefined)
    dots = base.mark_point(filled=True, size=30, opacity=1).encode(strokeDash=alt.Undefined)
    zero = alt.Chart(data([{"zero": 0}])).mark_rule(color=var("muted"), strokeDash=[2, 3])
    parts = [line, dots] if is_share else [zero.encode(y="zero:Q"), line, dots]
    return alt.layer(*parts).properties(width="container", height=220)
