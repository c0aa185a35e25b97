"""A training history: read off a fitted model, and its charts."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from fairgrad import dual
from fairgrad.constraints import on_outcomes
from fairgrad.measures import LargeGroups, constraints_of
from fairgrad.report import figure as fig
from fairgrad.report.figure import ReportFigure, number, percent

NEEDED = ("epoch", "quantity", "name", "value")
TITLES = {
    "level": (
        "Levels of fairness",
        "F on the validation rows, or on the training rows if there are none; 0 is fair.",
    ),
    "multiplier": ("Multipliers", "How hard each constraint pushes; the sign says which way."),
    "weight": (
        "Weights",
        "What one row of each cell counts in the loss; below 0 its errors are rewarded.",
    ),
    "negative_share": (
        "Share of negative weights",
        "Part of the rows (of the cells, if their sizes are not known) with a weight below 0.",
    ),
}
MOST_ROWS = 3000
MOST_EPOCHS = 60
"""More would not be told apart on a chart."""


def as_history(given: Any) -> pd.DataFrame | None:
    """What `Report` takes as a history, in long form, with the share of negative weights.

    A frame may also have the column share, of the rows in a cell. None where there is no history.
    """
    if not isinstance(given, pd.DataFrame):
        return _history_of_model(given)
    missing = [name for name in NEEDED if name not in given.columns]
    if missing:
        raise ValueError(f"history: expected the columns {list(NEEDED)}; {missing} are missing.")
    strangers = sorted({str(q) for q in given["quantity"]} - set(TITLES))
    if strangers:
        raise ValueError(f"history: expected quantities {list(TITLES)}, got {strangers[0]!r}.")
    weights = given[given["quantity"] == "weight"]
    if weights.empty or (given["quantity"] == "negative_share").any():
        return given
    return pd.concat([given, _negative_share(weights)], ignore_index=True)


def history_figures(history: Any) -> list[ReportFigure]:
    """One chart per quantity there is.

    Args:
        history: a fitted model, or a frame: as in `Report`.

    Example:
        >>> history = pd.DataFrame({"epoch": [1, 2], "quantity": "level", "name": "sex=F",
        ...                         "value": [-0.1, 0.0]})
        >>> [figure.title for figure in history_figures(history)]
        ['Levels of fairness']
    """
    frame = as_history(history)
    if frame is None:
        return []
    kinds = [kind for kind in TITLES if (frame["quantity"] == kind).any()]
    return [_figure(kind, frame[frame["quantity"] == kind]) for kind in kinds]


def _history_of_model(given: Any) -> pd.DataFrame | None:
    """Levels, multipliers and weights after some epochs, first and last included.

    The weights are those that the multipliers give, ``w_k = 1 + (C' lambda)_k / p_k``; the
    proportional term, which comes on top in every step, vanishes as the levels settle.
    """
    model = given.steps[-1][1] if hasattr(given, "steps") else given
    if not hasattr(model, "fit"):
        raise TypeError(
            f"history: expected a fitted model or a DataFrame, got {type(given).__name__}."
        )
    if not hasattr(model, "classes_"):
        raise ValueError(f"history: this {type(model).__name__} is not fitted yet.")
    groups = getattr(model, "groups_", None)
    if groups is None or not hasattr(model, "history_"):
        return None
    n = len(model.history_["accuracy"])
    epochs = np.unique(np.linspace(0, n - 1, min(n, MOST_EPOCHS)).round().astype(int))
    levels, multipliers = (model.history_[name][epochs] for name in ("levels", "multipliers"))
    measure, rows = model.fairness_measure, getattr(model, "group_rows_", None)
    if rows is not None:  # of few rows, which are in no constraint
        measure = LargeGroups(measure, groups, rows, model.min_group)
    constraints = constraints_of(measure, groups, y_desirable=model.y_desirable)
    costs = getattr(model, "cost_matrix", None)
    constraints = constraints if costs is None else on_outcomes(constraints, groups)
    mass = groups.cell_mass(constraints.by_label)
    share = np.tile(mass / mass.sum(), constraints.n_outcomes)
    constants = dual.make_constants(constraints, groups, cost_matrix=costs)
    weights = np.stack([dual.net_weights(constants, np.nan_to_num(net)) for net in multipliers])

    def long(kind: str, names: Any, values: Any) -> pd.DataFrame:
        columns = {
            "epoch": np.repeat(epochs + 1, len(names)),
            "quantity": kind,
            "name": np.tile(np.asarray(names, dtype=object), len(epochs)),
            "value": values.ravel(),
        }
        return pd.DataFrame(columns)

    parts = [
        long("level", model.constraint_names_, levels),
        long("multiplier", model.constraint_names_, multipliers),
        long("weight", model.cell_names_, weights).assign(share=np.tile(share, len(epochs))),
    ]
    return as_history(pd.concat(parts, ignore_index=True).dropna(subset="value"))


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


def _figure(kind: str, frame: pd.DataFrame) -> ReportFigure:
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
    return ReportFigure(
        id=f"history-{kind.replace('_', '-')}",
        title=title,
        chart=_chart(rows, names, is_share),
        alternative=f"{title} over {int(last)} epochs; at the end: {ends}.",
        columns=["epoch", "of", "value"],
        rows=[[str(row["epoch"]), row["name"], shown(row["value"])] for row in table],
        note=note,
    )


def _chart(rows: list[dict[Any, Any]], names: list[str], is_share: bool) -> fig.AnyChart:
    base = alt.Chart(fig.data(rows)).encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(format="d", tickMinStep=1)),
        y=alt.Y("value:Q", title=None, axis=alt.Axis(format="%" if is_share else "")),
        tooltip=[
            *([alt.Tooltip("name:N", title="of")] if len(names) > 1 else []),
            alt.Tooltip("epoch:Q", title="epoch"),
            alt.Tooltip("value:Q", title="value", format=".1%" if is_share else ".4f"),
        ],
    )
    # The line carries the dash, the points the shape: either tells series apart without colour.
    dash, shape = (fig.series(alt.StrokeDash, "name", names), fig.series(alt.Shape, "name", names))
    line = fig.told_apart(base.mark_line(strokeWidth=2), "name", names, strokeDash=dash)
    dots = fig.told_apart(fig.points(base, 30), "name", names, shape=shape)
    parts = [line, dots] if is_share else [fig.rule_at(0.0).encode(y="at:Q"), line, dots]
    return alt.layer(*parts).properties(width="container", height=220)
