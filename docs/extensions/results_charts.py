"""Charts of the committed results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
from results_tables import read

if TYPE_CHECKING:
    import pandas as pd


def accuracy_charts() -> list[Any]:
    """Accuracy against unfairness, one chart per data set and kind of model."""
    found = read("comparison.csv")
    found = found[found["method"] != "constant"].copy()  # fair by being useless; it hides the rest
    for column in ("measure", "method", "dataset"):
        found[column] = found[column].str.replace("_", " ")
    parts = found.groupby(["dataset", "model"], sort=True)
    return [_scatter(f"{dataset}, {model} models", part) for (dataset, model), part in parts]


def _scatter(title: str, part: pd.DataFrame) -> Any:
    part = part.assign(
        low=part["accuracy"] - part["accuracy_std"], high=part["accuracy"] + part["accuracy_std"]
    )
    methods = sorted(part["method"].unique(), key=lambda name: (name != "fairgrad", name))
    scale = alt.Scale(domain=methods)
    colour = alt.Color("method:N", title=None, scale=scale)
    base = alt.Chart(part).encode(
        x=alt.X("mean_abs_fairness:Q", title="unfairness (mean |F|)"), color=colour
    )
    rules = base.mark_rule().encode(
        y=alt.Y("low:Q", title="accuracy").scale(zero=False), y2="high:Q"
    )
    dots = base.mark_point(size=70, filled=True, opacity=1).encode(
        y=alt.Y("accuracy:Q").scale(zero=False),
        shape=alt.Shape("method:N", title=None, scale=scale),
    )
    return (
        alt.layer(rules, dots)
        .properties(width=240, height=170)
        .facet(alt.Facet("measure:N", title=None), columns=2)
        .resolve_scale(x="independent", y="independent")
        .properties(title=title, description=f"{title}: {_words(part)}")
    )


def _words(part: pd.DataFrame) -> str:
    """FairGrad's and the plain model's figures."""
    named = part[part["method"].isin(["fairgrad", "unconstrained"])]
    return "accuracy against unfairness. " + "; ".join(
        f"{row.method} by {row.measure}: {row.accuracy:.3f} at {row.mean_abs_fairness:.3f}"
        for row in named.itertuples()
    )
