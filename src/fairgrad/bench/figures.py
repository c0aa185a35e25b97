"""The paper's figures, drawn anew: accuracy against unfairness, batch size, epsilon."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import altair as alt
import pandas as pd

from fairgrad.bench.charts import OURS, PAPER, bars, scatter
from fairgrad.bench.naming import MEASURES, METHODS, dataset_title, method_title
from fairgrad.bench.pareto import CELL
from fairgrad.report.figure import ReportFigure, data, number, save_figures, var

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fairgrad.bench.tables import Results

NOTE = "filled: measured here; hollow: the paper; bars: one standard deviation over seeds"
CLAIMS = {
    "accuracy": "dashed: the paper's unconstrained",
    "mean_abs_fairness": "dashed: epsilon",
}
AXES = {"accuracy": "accuracy", "mean_abs_fairness": "unfairness (mean |F|)"}


def figures_of(results: Results) -> list[ReportFigure]:
    """All figures that the results allow."""
    figures = []
    if not results.comparison.empty:
        names = all_methods(results.comparison)
        groups = results.comparison.groupby(CELL, sort=False)
        figures += [trade_off(rows, names) for _, rows in groups]
    for frame, setting in ((results.batch_sizes, "batch_size"), (results.epsilons, "epsilon")):
        if not frame.empty:
            groups = frame.groupby(CELL, sort=False)
            figures += [over(rows, setting, figure) for _, rows in groups for figure in AXES]
    return figures


def write_figures(
    results: Results, folder: str | Path, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Draws every figure into a folder; gives the files.

    Example:
        >>> import tempfile
        >>> from fairgrad.bench import Plan, results_of, run
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",),
        ...             seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = write_figures(results_of(run(plan, folder).new), f"{folder}/figures")
        ...     all(path.suffix == ".png" for path in files)
        True
    """
    return save_figures(figures_of(results), folder, formats, scale=2.0)


def all_methods(comparison: pd.DataFrame) -> list[str]:
    """Titles of the paper's method, its baselines, and all others that were measured."""
    marked = [_title(row) for row in comparison.to_dict(orient="records")]
    return list(dict.fromkeys([METHODS["fairgrad"], *METHODS.values(), *sorted(marked)]))


def trade_off(rows: pd.DataFrame, names: Sequence[str]) -> ReportFigure:
    """Accuracy against unfairness of all methods on one data set, model and measure."""
    points = []
    for row in rows.to_dict(orient="records"):
        for prefix, source in (("", OURS), ("paper_", PAPER)):
            if not pd.isna(row[f"{prefix}accuracy"]):
                point: dict[str, Any] = {"method": _title(row), "source": source}
                for figure in AXES:
                    point |= bars(row, figure, prefix)
                points.append(point)
    chart = scatter(
        points,
        _axis(alt.X, "mean_abs_fairness", note=True),
        _axis(alt.Y, "accuracy"),
        field="method",
        names=names,
        error_bars=("x", "y"),
    )
    return _figure(rows, chart, points, ("method", "source"), "", "Accuracy against unfairness")


def over(rows: pd.DataFrame, setting: str, figure: str) -> ReportFigure:
    """One figure over a setting, with the paper's points, or its claims, beside ours."""
    points = [
        {"series": source, "source": source, setting: row[setting], **bars(row, figure, prefix)}
        for row in rows.to_dict(orient="records")
        for prefix, source in (("", OURS), ("paper_", PAPER))
        if not pd.isna(row.get(f"{prefix}{figure}", float("nan")))
    ]
    scale = alt.Scale(type="log", base=2) if setting == "batch_size" else alt.Undefined
    values = sorted({row[setting] for row in points})
    axis = alt.Axis(values=values) if setting == "batch_size" else alt.Undefined
    below = _claims(rows, figure) if setting == "epsilon" else []
    note = f"{NOTE}; {CLAIMS[figure]}" if below else NOTE
    chart = scatter(
        points,
        alt.X(f"{setting}:Q", title=[setting.replace("_", " "), note], scale=scale, axis=axis),
        _axis(alt.Y, figure),
        field="series",
        names=(OURS, PAPER),
        error_bars=("y",),
        below=below,
    )
    what = "Accuracy" if figure == "accuracy" else "Unfairness"
    title = f"{what} over {setting.replace('_', ' ')}"
    ending = f"-{setting.replace('_', '-')}-{figure.replace('_', '-')}"
    return _figure(rows, chart, points, (setting, "source"), ending, title)


def _claims(rows: pd.DataFrame, figure: str) -> list[Any]:
    """The paper's claims: unfairness below epsilon; accuracy up to the unconstrained one."""
    dashed: dict[str, Any] = {"color": var("muted"), "strokeDash": [4, 3]}
    if figure == "mean_abs_fairness":
        ends = [{"epsilon": value, figure: value} for value in (0.0, float(rows["epsilon"].max()))]
        line = alt.Chart(data(ends)).mark_line(**dashed)
        return [line.encode(x="epsilon:Q", y=_axis(alt.Y, figure))]
    accuracy = rows["paper_unconstrained_accuracy"].iloc[0]
    if pd.isna(accuracy):
        return []
    rule = alt.Chart(data([{figure: float(accuracy)}])).mark_rule(**dashed)
    return [rule.encode(y=_axis(alt.Y, figure))]


def _axis(channel: Any, figure: str, *, note: bool = False) -> Any:
    title = [AXES[figure], NOTE] if note else AXES[figure]
    return channel(f"{figure}:Q", title=title, scale=alt.Scale(zero=figure != "accuracy"))


def _figure(
    rows: pd.DataFrame,
    chart: Any,
    points: Sequence[dict[str, Any]],
    keys: Sequence[str],
    ending: str,
    title: str,
) -> ReportFigure:
    dataset, model, measure = (str(rows[key].iloc[0]) for key in CELL)
    case = f"{dataset_title(dataset)}, {model}, {MEASURES.get(measure, measure)}"
    name = re.sub(r"[^a-z0-9]+", "-", f"{dataset}-{model}-{measure}".lower())
    shown = [name for name in (*keys, *AXES) if name in points[0]]
    return ReportFigure(
        id=f"{name}{ending}",
        title=f"{title}: {case}",
        chart=chart.properties(height=320),
        alternative=f"{title} for {case}; {NOTE}.",
        columns=shown,
        rows=[[_text(point[name]) for name in shown] for point in points],
        note=NOTE,
    )


def _title(row: dict[Any, Any]) -> str:
    return method_title(row["method"]) + (" †" if row["needs_s_to_predict"] else "")


def _text(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
