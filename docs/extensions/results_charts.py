"""Charts of the committed results."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd
from results_tables import RESULTS, read

from fairgrad_bench.paper import dataset_title, method_title

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


def accuracy_charts(dataset: str = "", model: str = "") -> list[Any]:
    """Accuracy against unfairness, one chart per data set and kind of model; by default of all."""
    rows = read("comparison.csv")
    rows = rows[rows["method"] != "constant"].copy()  # it is fair but useless, and hides the others
    rows["measure"] = rows["measure"].str.replace("_", " ")
    return [
        _scatter(f"{dataset_title(name)}, {kind} models", panel)
        for (name, kind), panel in rows.groupby(["dataset", "model"], sort=True)
        if dataset in {"", name} and model in {"", kind}
    ]


def _scatter(title: str, rows: pd.DataFrame) -> Any:
    rows = rows.assign(
        low=rows["accuracy"] - rows["accuracy_std"], high=rows["accuracy"] + rows["accuracy_std"]
    )
    methods = [name for name in LOOKS if name in set(rows["method"])]
    titles = [method_title(name) for name in methods]
    colours, shapes = zip(*(LOOKS[name] for name in methods), strict=True)
    rows = rows.assign(title=rows["method"].map(method_title))
    colour = alt.Color("title:N", title=None, scale=alt.Scale(domain=titles, range=colours))
    base = alt.Chart(rows).encode(
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
        .properties(title=title, description=f"{title}: {_words(rows)}")
    )


def _words(rows: pd.DataFrame) -> str:
    """FairGrad's and the plain model's figures."""
    named = rows[rows["method"].isin(["fairgrad", "unconstrained"])]
    return "accuracy against unfairness. " + "; ".join(
        f"{row.method} by {row.measure}: {row.accuracy:.3f} at {row.mean_abs_fairness:.3f}"
        for row in named.itertuples()
    )


def trade_off_chart(
    points: pd.DataFrame, panel: str, method: str, title: str, *, panels: int = 2
) -> Any:
    """Accuracy against unfairness of some methods, one panel per value of a column.

    Args:
        points: with the columns accuracy and unfairness.
        panel: the column that separates the panels.
        method: the column that colour and shape tell apart.
        title: of the chart.
        panels: how many stand side by side.
    """
    names, percent = list(dict.fromkeys(points[method])), alt.Axis(format=".1%", tickCount=4)
    looks: dict[str, Any] = {"title": None, "scale": alt.Scale(domain=names)}
    looks["legend"] = alt.Legend(labelLimit=300)
    told = "; ".join(
        f"{row[panel]}, {row[method]}: {row['accuracy']:.3f} at {row['unfairness']:.3f}"
        for row in points.to_dict(orient="records")
    )
    return (
        alt.Chart(points)
        .mark_point(size=90, filled=True, opacity=1)
        .encode(
            x=alt.X("unfairness:Q", axis=alt.Axis(tickCount=4)),
            y=alt.Y("accuracy:Q", title="accuracy", axis=percent).scale(zero=False),
            color=alt.Color(f"{method}:N", **looks),
            shape=alt.Shape(f"{method}:N", **looks),
        )
        .properties(width=220, height=150)
        .facet(alt.Facet(f"{panel}:N", title=None, sort=None), columns=panels)
        .resolve_scale(x="independent", y="independent")
        .properties(title=title, description=f"{title}, accuracy at unfairness. {told}.")
    )


def bar_chart(rows: pd.DataFrame, name: str, value: str, series: str, title: str) -> Any:
    """A group of bars per name, one bar per series.

    Args:
        rows: one per bar.
        name: the column of the names.
        value: the column of the bars' lengths, which is also the title of the axis.
        series: the column that colours tell apart.
        title: of the chart.
    """
    order = list(dict.fromkeys(rows[series]))
    told = "; ".join(
        f"{row[name]}, {row[series]}: {row[value]:.3g}" for row in rows.to_dict(orient="records")
    )
    return (
        alt.Chart(rows)
        .mark_bar()
        .encode(
            x=alt.X(f"{value}:Q"),
            y=alt.Y(f"{name}:N", title=None, sort=None, axis=alt.Axis(labelLimit=300)),
            yOffset=alt.YOffset(f"{series}:N", sort=order),
            color=alt.Color(f"{series}:N", title=None, sort=order),
        )
        .properties(
            width=440, height=alt.Step(14), title=title, description=f"{title}. {value}: {told}."
        )
    )


def boosting_chart() -> Any:
    """Fair boosted trees beside other ways to make trees fair."""
    rows = read("boosting.csv").rename(columns={"mean_abs_fairness": "unfairness"})
    rows = rows[
        (rows["measure"] == "equalized_odds") & ~rows["method"].str.contains("held out|GBM.*smooth")
    ]
    rows = rows.assign(dataset=rows["dataset"].map(dataset_title))
    return trade_off_chart(rows, "dataset", "method", "Boosted trees, equalized odds")


def estimator_chart() -> Any:
    """The plain model, the default and exact fairness, by demographic parity."""
    rows = read("estimator.csv")
    rows = rows[rows["measure"] == "demographic_parity"]
    kinds = {"plain": "plain model", "default": "default", "exact": "exactly fair"}
    points = pd.DataFrame(
        {
            "dataset": dataset_title(row["dataset"]),
            "model": model,
            "accuracy": row[f"{kind}_accuracy"],
            "unfairness": row[f"{kind}_unfairness"],
        }
        for row in rows.to_dict(orient="records")
        for kind, model in kinds.items()
    )
    return trade_off_chart(points, "dataset", "model", "FairGradClassifier, demographic parity")


def labels_chart() -> Any:
    """Plain and fair models of tables with four labels."""
    rows = read("many_labels.csv")
    rows = rows[(rows["method"] == "gradient") & (rows["measure"] != "four_fifths_rule")]
    titles = rows["table"] + ", " + rows["measure"].str.replace("_", " ")
    points = rows.assign(panel=titles, model=rows["model"] + " model")
    return trade_off_chart(points, "panel", "model", "Four labels, linear models")


def finetuning_chart() -> Any:
    """New heads on frozen features, with and without fairness."""
    frames = [read(f"finetune_{name}_summary.csv") for name in ("utkface", "compas_text")]
    rows = pd.concat(frames).query("mode == 'head'")
    kinds = {"fairgrad": "fair head", "unconstrained": "plain head"}
    points = pd.DataFrame(
        {
            "task": rows["task"],
            "model": rows["method"].map(kinds),
            "accuracy": rows["test_accuracy"],
            "unfairness": rows["test_unfairness"],
        }
    )
    return trade_off_chart(points, "task", "model", "A new head on frozen features", panels=3)


def frontier_chart() -> Any:
    """Processor seconds of a frontier, beside fairlearn's reductions."""
    rows = read("frontier_fairlearn.csv")
    names = rows["frontier"].str.replace("as many as the reductions", "8 models")
    names = names.str.replace("one stack", "32 models").str.replace(" per epsilon", ", 8 models")
    rows = rows.assign(frontier=names.str.replace("GridSearch", "GridSearch, 32 models"))
    rows = rows.rename(columns={"seconds": "processor seconds"})
    title = "Time of a whole frontier on Adult"
    return bar_chart(rows, "frontier", "processor seconds", "measure", title)


def certificates_chart() -> Any:
    """How often fair and barely unfair models are certified, by the number of rows."""
    rows = read("certificates.csv")
    rows = rows[rows["setting"].isin(["edge", "fair"])]
    settings = {"edge": "barely unfair models", "fair": "fair models"}
    titles = rows["measure"].str.replace("_", " ") + ", " + rows["groups"].astype(str) + " groups"
    rows = rows.assign(models=rows["setting"].map(settings), panel=titles)
    told = "; ".join(
        f"{row['panel']}, {row['models']}, {row['rows']:,} rows: {row['certified']:.1%}"
        for row in rows.to_dict(orient="records")
    )
    share = alt.Y("certified:Q", title="tables with a certificate", axis=alt.Axis(format=".0%"))
    title = "How often a model is certified"
    return (
        alt.Chart(rows)
        .mark_line(point=True)
        .encode(
            x=alt.X("rows:Q", title="rows of the table", scale=alt.Scale(type="log")),
            y=share.scale(domain=[0, 1]),
            color=alt.Color("models:N", title=None),
        )
        .properties(width=180, height=150)
        .facet(alt.Facet("panel:N", title=None, sort=None), columns=3)
        .properties(title=title, description=f"{title}. {told}.")
    )


def settles_chart() -> Any:
    """How many training loops meet each goal, by loss."""
    goals = {
        "mean |F| at most half of plain": "unfairness halved",
        "accuracy within 0.005 of the estimator": "as accurate as the estimator",
        "at most 0.01 above its best epoch": "ends near its best epoch",
    }
    rows = read("settles_goals.csv").set_index("goal").loc[list(goals)]
    losses = {"auto": "auto (default)", "paper": "paper", "nupi": "nupi", "fairret": "fairret"}
    shares = []
    for goal, row in rows.iterrows():
        for loss, name in losses.items():
            met, total = (int(number) for number in row[loss].split(" of "))
            shares.append(
                {"goal": goals[goal], "loss": name, "% of loops that meet it": 100 * met / total}
            )
    title = "Goals met by training loops"
    return bar_chart(pd.DataFrame(shares), "goal", "% of loops that meet it", "loss", title)


def overhead_chart() -> Any:
    """Time of a step of small networks, as a multiple of a step with the plain loss."""
    rows = read("overhead.csv").query("batch == 512")
    kinds = {"ours": "FairGrad", "not_compiled": "without a compiler", "fairgrad_0_2_0": "0.2.0"}
    value = "time of a step, as a multiple of the plain loss"
    bars = rows.melt("network", list(kinds), "version", value).replace({"version": kinds})
    return bar_chart(bars, "network", value, "version", "Time of a training step")


def audit_chart() -> Any:
    """Rows that an audit needs, beside the simplest valid method."""
    rows = read("audit_rows.csv").query("`largest level` == 0.02")
    kinds = {"rows now": "the audit", "rows by interval arithmetic": "simplest valid method"}
    value = "rows until 80 % of fair models are called fair"
    bars = rows.melt("case", list(kinds), "method", value).replace({"method": kinds})
    title = "Rows an audit needs (true level 0.02, tolerance 0.05)"
    return bar_chart(bars, "case", value, "method", title)


def strangers_chart() -> Any:
    """Accuracy that default fits lose against the plain model, by kind of model."""
    rows = read("strangers_summary.csv")
    methods = {
        "fairgrad": "FairGrad: weights",
        "decision": "FairGrad: decisions",
        "ExponentiatedGradient": "fairlearn: reduction",
        "ThresholdOptimizer": "fairlearn: thresholds",
    }
    rows = rows[rows["method"].isin(methods) & (rows["cases"] > 1)]
    rows = rows[(rows["model"] != "LightGBM") | (rows["inputs"] == "blind")]
    value = "points of accuracy lost against the plain model"
    bars = rows.assign(
        model=rows["model"] + ", " + rows["inputs"],
        method=rows["method"].map(methods),
        **{value: 100 * rows["accuracy_lost"]},
    )
    bars["order"] = bars["method"].map({name: i for i, name in enumerate(methods.values())})
    bars = bars.sort_values(["order", "model"])
    return bar_chart(bars, "model", value, "method", "Eight tables outside the paper, epsilon 0.05")


KINDS = {
    "FairGradClassifier": "#0b5fff",
    "FairDecisionClassifier (logistic)": "#00a6d6",
    "FairDecisionClassifier (LightGBM)": "#7b3fe4",
    "FairDecisionClassifier (scikit-learn's boosting)": "#c77700",
    "FairGradLGBMClassifier": "#12805c",
    "network with FairGrad's loss": "#d6006c",
}
"""Colours of our rows in published tables; rows of others are grey, the unconstrained one black."""

OTHERS = {"theirs": "#9a9a9a", "unconstrained": "#222222", "one label for everybody": "#d9b38c"}


def published_sources() -> list[str]:
    """Sources whose tables are among the results."""
    others = {"summary", "baselines", "large"}
    names = {path.stem.removeprefix("published_") for path in RESULTS.glob("published_*.csv")}
    return sorted(names - others)


OPENING = {
    "fairprojection": ("FairProjection", "COMPAS, race", "equalized_odds"),
    "ffb": ("FFB", "Adult, sex", "demographic_parity"),
    "abcfair": ("ABCFair", "ACSIncome, sex", "demographic_parity"),
    "linearpost": ("LinearPost", "Communities, race", "demographic_parity"),
    "oxonfair": ("OxonFair", "Adult, race in 5 groups", "demographic_parity"),
}
"""The cell of each published table that the page's first chart shows."""


def published_overview() -> Any:
    """One cell of each published table."""
    panels = []
    for source, (title, cell, measure) in OPENING.items():
        rows = read(f"published_{source}.csv")
        rows = rows[(rows["cell"] == cell) & (rows["measure"] == measure)]
        words = f"{cell}, {measure.replace('_', ' ')}"
        panels.append(rows.assign(panel=f"{title}: {words}"))
    return _published_panels(pd.concat(panels, ignore_index=True), "one cell per source", 3)


def published_chart(source: str) -> Any:
    """All cells of a published table."""
    rows = read(f"published_{source}.csv")
    rows["panel"] = rows["cell"] + ", " + rows["measure"].str.replace("_", " ")
    return _published_panels(rows, source, 3)


def _published_panels(rows: pd.DataFrame, title: str, columns: int) -> Any:
    """Accuracy against the gap, one panel per cell: theirs grey, ours in colour."""
    kinds = [*KINDS, *OTHERS]
    rows["row"] = [
        _kind(method, whose) for method, whose in zip(rows["method"], rows["whose"], strict=True)
    ]
    rows["settings"] = rows["default"].map({True: "defaults"}).fillna("other")
    rows = rows[rows["panel"].isin(rows.loc[rows["whose"] == "ours", "panel"])]
    present = [kind for kind in kinds if kind in set(rows["row"])]
    colours = [{**KINDS, **OTHERS}[kind] for kind in present]
    dots = (
        alt.Chart(rows)
        .mark_point(size=65, opacity=0.9, filled=True)
        .encode(
            # Small gaps are the interesting ones; those of unconstrained models are far away.
            x=alt.X("gap:Q", title="gap").scale(type="sqrt").axis(tickCount=5),
            y=alt.Y("accuracy:Q", title="accuracy").scale(zero=False).axis(tickCount=5),
            color=alt.Color("row:N", title=None)
            .scale(domain=present, range=colours)
            .legend(columns=columns, orient="bottom", labelLimit=300),
            shape=alt.Shape("settings:N", title=None)
            .scale(domain=["defaults", "other"], range=["diamond", "circle"])
            .legend(orient="bottom"),
        )
        .properties(width=690 // columns, height=170)
    )
    by_default = rows[(rows["whose"] == "ours") & (rows["settings"] == "defaults")]
    words = "; ".join(
        f"{row.method} {row.accuracy:.3f} at {row.gap:.3f}"
        for row in by_default.head(6).itertuples()
    )
    return (
        dots.facet(alt.Facet("panel:N", title=None, sort=None), columns=columns)
        .resolve_scale(x="independent", y="independent")
        .properties(description=f"Accuracy against the gap, {title}: {words}")
    )


VERDICTS = {
    "better": "#12805c", "reproduced": "#0b5fff", "trade-off": "#c77700", "worse": "#c0182b",
}  # fmt: skip
"""Colours of the verdicts on results of the paper."""


def reproduction_chart() -> Any:
    """How far FairGrad's results are from the paper's, one point per result of the paper."""
    rows = read("comparison.csv").query("method == 'fairgrad'")
    rows = rows[rows["verdict"].isin(VERDICTS)].copy()
    rows["accuracy difference"] = rows["accuracy"] - rows["paper_accuracy"]
    rows["unfairness difference"] = rows["mean_abs_fairness"] - rows["paper_mean_abs_fairness"]
    is_gaussian = rows["dataset"] == "gaussian"
    rows["data"] = is_gaussian.map({True: "Gaussian data", False: "other data sets"})
    counts = rows["verdict"].value_counts()
    told = ", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in VERDICTS)
    points = (
        alt.Chart(rows)
        .mark_point(size=75, filled=True, opacity=0.85)
        .encode(
            x=alt.X("unfairness difference:Q", title="mean |F| here minus the paper's"),
            y=alt.Y("accuracy difference:Q", title="accuracy here minus the paper's"),
            color=alt.Color("verdict:N", title=None).scale(
                domain=list(VERDICTS), range=list(VERDICTS.values())
            ),
            shape=alt.Shape("data:N", title=None).scale(range=["triangle-up", "circle"]),
        )
    )
    zero = alt.Chart(pd.DataFrame({"zero": [0]}))
    across = zero.mark_rule(color="#9a9a9a").encode(y="zero:Q")
    down = zero.mark_rule(color="#9a9a9a").encode(x="zero:Q")
    title = "FairGrad beside the paper: up is more accurate, left is fairer"
    return alt.layer(across, down, points).properties(
        width=520, height=260, title=title, description=f"{title}. {len(rows)} results: {told}."
    )


def _kind(method: str, whose: str) -> str:
    if whose == "baseline":
        return method if method in OTHERS else "unconstrained"
    return whose if whose == "theirs" else next(kind for kind in KINDS if method.startswith(kind))


PAGE_CHARTS = (
    boosting_chart, estimator_chart, labels_chart, finetuning_chart, frontier_chart,
    certificates_chart, settles_chart, overhead_chart, audit_chart, strangers_chart,
    published_overview, reproduction_chart,
)  # fmt: skip
"""The charts at the top of the pages of results."""
