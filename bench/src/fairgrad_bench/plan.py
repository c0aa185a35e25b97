"""Plans: which data sets, models, methods and measures, and the units they make."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from fairgrad.bench.sources import find_method, parse_dataset
from fairgrad.bench.unit import MEASURES, Unit
from fairgrad.datasets import PAPER_SEEDS
from fairgrad.methods import methods
from fairgrad.methods.interface import GRIDS, MODELS, NETWORKS

TABULAR = (
    "adult",
    "adult_multigroup",
    "compas",
    "crime",
    "dutch",
    "german",
    "gaussian",
    "celeba",
    "folktables",
)
"""The paper's data sets of plain rows, the two largest last."""


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        name: what it is called.
        datasets: names, with options after a colon.
        models: "linear", "nonlinear", "lightgbm"; by default the paper's, which are the first two.
        methods: names; empty for all.
        measures: names.
        seeds: of the splits.
        grid: "paper" or "quick".
        epochs: passes over the training rows.
        combinations: trains these instead of the grid's.
        varies: the setting whose values are compared.

    Raises:
        ValueError: if a name is not known, or a choice is empty.

    Example:
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",))
        >>> [str(unit) for unit in units_of(plan)]
        ['german linear constant']
    """

    name: str = "paper"
    datasets: tuple[str, ...] = TABULAR
    models: tuple[str, ...] = NETWORKS
    methods: tuple[str, ...] = ()
    measures: tuple[str, ...] = MEASURES
    seeds: tuple[int, ...] = PAPER_SEEDS
    grid: str = "paper"
    epochs: int = 50
    combinations: tuple[dict[str, Any], ...] | None = field(default=None)
    varies: str | None = None

    def __post_init__(self) -> None:
        _check("models", self.models, MODELS)
        _check("measures", self.measures, MEASURES)
        _check("grid", (self.grid,), GRIDS)
        if not self.datasets or not self.seeds or self.epochs < 1:
            raise ValueError("datasets, seeds and epochs: expected at least one of each.")
        for dataset in self.datasets:
            parse_dataset(dataset)
        for method in self.methods:
            find_method(method)


def units_of(plan: Plan) -> list[Unit]:
    """The units of a plan: model by model, data set by data set.

    A method that does not use the measure is one unit for all of them.

    Example:
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("fairgrad",))
        >>> len(units_of(plan))
        4
    """
    chosen = plan.methods or tuple(methods())
    return [
        Unit(
            dataset=dataset,
            model=model,
            method=method,
            measure=measure,
            grid=plan.grid,
            seeds=plan.seeds,
            epochs=plan.epochs,
            combinations=plan.combinations,
            varies=plan.varies,
        )
        for model, dataset, method in product(plan.models, plan.datasets, chosen)
        for measure in (plan.measures if find_method(method).uses_measure else (None,))
    ]


def narrowed(plan: Plan, **choices: Any) -> Plan:
    """The plan with other choices, where they are given (neither None nor empty).

    Raises:
        ValueError: if a grid is given for a plan that has combinations of its own.

    Example:
        >>> narrowed(Plan(), models=("linear",), seeds=()).models
        ('linear',)
    """
    if choices.get("grid") and plan.combinations is not None:
        raise ValueError(f"grid: the plan {plan.name!r} has combinations of its own, no grid.")
    return replace(plan, **{key: value for key, value in choices.items() if value})


def _check(argument: str, got: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    strangers = [name for name in got if name not in allowed]
    if strangers or not got:
        raise ValueError(f"{argument}: expected some of {list(allowed)}, got {list(got)}.")
