"""Charts of the committed results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
from results_tables import read

from fairgrad_bench.paper import dataset_title, method_title

if TYPE_CHECKING:
    import pandas as pd

LOOKS = {
    "fairgrad": ("#0b5fff", "circle"),
    "fairgrad_epsilon": ("#5aa0ff", "square"),
    "fairgrad_stable": ("#003a9e", "diamond"),
    "fairgrad_clipped": ("#9cc4ff", "cross"),
    "fairgrad_frontier": ("#2f6fd6", "triangle-right"),
    "fairgrad_aware": ("#7da7ff", "diamond"),
    "decision": ("#00a6d6", "triangle-up"),
    "decision_aware": ("#5fd0ee", "triangle-down"),
    "unconstrained": ("#222222", "triangle-up"),
    "weighted_erm": ("#8a8a8a", "triangle-down"),
    "constrained": ("#b07aa1", "square"),
    "adversarial": ("#d4a017", "circle"),
    "bifair": ("#3fa7a0", "diamond"),
    "fairbatch": ("#e15759", "triangle-right"),
    "reduction": ("#f28e2b", "triangle-left"),
    "fairret": ("#59a14f", "cross"),
    "threshold": ("#9c755f", "square"),
}
"""Colour and shape of each method, the same in all charts; FairGrad and its variants are blue."""


def accuracy_charts() -> list[Any]:
    """Accuracy against unfairness, one chart per data set and kind of model."""
    found = read("comparison.csv")
    found = found[found["method"] != "constant"].copy()  # fair by being useless; it hides the rest
    found["measure"] = found["measure"].str.replace("_", " ")
    parts = found.groupby(["dataset", "model"], sort=True)
    return [
        _scatter(f"{dataset_title(dataset)}, {model} models", part)
        for (dataset, model), part in parts
    ]


def _scatter(title: str, part: pd.DataFrame) -> Any:
    part = part.assign(
        low=part["accuracy"] - part["accuracy_std"], high=part["accuracy"] + part["accuracy_std"]
    )
    methods = [name for name in LOOKS if name in set(part["method"])]
    titles = [method_title(name) for name in methods]
    colours, shapes = zip(*(LOOKS[name] for name in methods), strict=True)
    part = part.assign(title=part["method"].map(method_title))
    colour = alt.Color("title:N", title=None, scale=alt.Scale(domain=titles, range=colours))
    base = alt.Chart(part).encode(
        x=alt.X("mean_abs_fairness:Q", title="unfairness (mean |F|)"), color=colour
    )
    rules = base.mark_rule().encode(
        y=alt.Y("low:Q", title="accuracy").scale(zero=False), y2="high:Q"
    )
    dots = base.mark_point(size=70, filled=True, opacity=1).encode(
        y=alt.Y("accuracy:Q").scale(zero=False),
        shape=alt.Shape("title:N", title=None, scale=alt.Scale(domain=titles, range=shapes)),
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
