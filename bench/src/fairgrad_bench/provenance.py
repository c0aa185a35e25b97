"""Who made a table: command, processor time and versions; and what other rows would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad_bench.methods import methods
from fairgrad_bench.plan import PLANS, parse_dataset
from fairgrad_bench.records import FINISHED
from fairgrad_bench.running import OTHER_ROWS, ROWS, duration

if TYPE_CHECKING:
    import pandas as pd


def made_by_runs(units: pd.DataFrame, dataset: str, model: str) -> str:
    """A sentence on the units of one data set and model.

    Args:
        units: as `BenchResults` holds them.
        dataset: the name of a data set.
        model: of a model.
    """
    rows = units[
        (units["dataset"] == dataset)
        & (units["model"] == model)
        & units["varies"].isna()
        & (units["status"] == FINISHED)
    ]
    quick = ", with `--grid quick` for some rows," if (rows["grid"] == "quick").any() else ""
    return _sentence(rows, [f"fairgrad-bench run --datasets {dataset} --models {model}"], quick)


def made_by_plan(units: pd.DataFrame, varies: str) -> str:
    """A sentence on the units of an experiment over one setting."""
    rows = units[(units["varies"] == varies) & (units["status"] == FINISHED)]
    plans = [
        f"fairgrad-bench run --plan {plan.name}"
        for plan in PLANS.values()
        if plan.varies == varies and not {*plan.models}.isdisjoint(rows["model"])
    ]
    return _sentence(rows, plans)


def _sentence(units: pd.DataFrame, commands: list[str], remark: str = "") -> str:
    if units.empty:
        return ""
    versions = units.groupby("version")["method"].agg(lambda own: sorted(set(own)))
    usual = versions.map(len).idxmax()
    others = "".join(
        f", {', '.join(names)} version {version}"
        for version, names in versions.items()
        if version != usual
    )
    made_by = "; or ".join(sorted(set(units["environment"].dropna()) - {""}))
    shown = " and ".join(f"`{command}`" for command in commands)
    return (
        f"Made by {shown}{remark} in {duration(units['seconds'].sum())} of processor time; "
        f"methods of version {usual}{others}; {made_by}."
    )


def outdated(units: pd.DataFrame) -> pd.DataFrame:
    """Finished units that an earlier version of their method made than the one there is now."""
    done = units[units["status"] == FINISHED]
    now = done["method"].map({name: method.version for name, method in methods().items()})
    rows = done.assign(now=now)[done["version"] < now]
    return rows.astype({"version": int, "now": int})


def estimated_cost(units: pd.DataFrame, dataset: str, model: str, method: str, grid: str) -> str:
    """About how long a unit would take, by the rows and times of the slowest like it; or nothing.

    Units of earlier versions of the method say nothing about the present one.

    Args:
        units: as `BenchResults` holds them.
        dataset: the unit's.
        model: the unit's.
        method: the unit's.
        grid: "paper" or "quick".
    """
    own = methods().get(method)
    like = units[
        (units["version"] == (own.version if own else units["version"]))
        & (units["model"] == model)
        & (units["method"] == method)
        & (units["grid"] == grid)
        & units["varies"].isna()
        & (units["status"] == FINISHED)
    ]
    if like.empty:
        return ""
    largest = like.assign(rows=[_rows(name) for name in like["dataset"]])
    largest = largest[largest["rows"] == largest["rows"].max()]
    per_row = (largest["seconds"] / largest["rows"]).max()
    return duration(per_row * _rows(dataset))


def _rows(dataset: str) -> int:
    name, options = parse_dataset(dataset)
    return int(options.get("rows", ROWS.get(name, OTHER_ROWS)))
