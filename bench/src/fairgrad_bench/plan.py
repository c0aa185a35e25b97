"""Plans: which data sets, models, methods and measures, and the units of work they make."""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import re
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from fairgrad.datasets import PAPER_SEEDS
from fairgrad_bench.datasets import load, names
from fairgrad_bench.methods import Method, methods
from fairgrad_bench.methods.interface import GRIDS, MODELS, NETWORKS
from fairgrad_bench.paper import MEASURES as KNOWN_MEASURES
from fairgrad_bench.paper import OF_THE_PAPER

if TYPE_CHECKING:
    from fairgrad.datasets import Split

MEASURES = OF_THE_PAPER
"""The measures of the benchmark, in the order of its tables."""

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

BATCH_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
EPSILONS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.1)
FAIRNESS_RATES = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02)
WEIGHT_DECAYS = (0.0, 0.001, 0.01)


@dataclass(frozen=True)
class Unit:
    """A data set, a model and a method: all seeds and combinations are trained together.

    Attributes:
        dataset: the name of a data set, with options after a colon: "gaussian:rows=2000".
        model: "linear", "nonlinear" or "lightgbm".
        method: the name of a method, or "module:NAME" for one that lies elsewhere.
        measure: what the method is asked to be fair by; None if it does not use it.
        grid: "paper" or "quick", which of the method's combinations.
        seeds: of the splits.
        epochs: passes over the training rows.
        combinations: trains these instead of the grid's.
        varies: the setting whose values are compared with each other; models are then chosen
            for every value by itself.
    """

    dataset: str
    model: str
    method: str
    measure: str | None = None
    grid: str = "paper"
    seeds: tuple[int, ...] = PAPER_SEEDS
    epochs: int = 50
    combinations: tuple[dict[str, Any], ...] | None = None
    varies: str | None = None

    @classmethod
    def from_inputs(cls, inputs: dict[str, Any]) -> Unit:
        """The unit again, from its fields as JSON keeps them."""
        listed = inputs["combinations"]
        combinations = None if listed is None else tuple(dict(settings) for settings in listed)
        return cls(**{**inputs, "seeds": tuple(inputs["seeds"]), "combinations": combinations})

    def name(self, version: int) -> str:
        """Readable, and different for other inputs or another version of the method."""
        text = json.dumps({"version": version, **asdict(self)}, sort_keys=True)
        return f"{self.readable}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def readable(self) -> str:
        """How the names of its records begin."""
        return "-".join(re.sub(r"[^\w-]+", "_", part) for part in self._parts())

    def __str__(self) -> str:
        """The parts that people tell units apart by."""
        return " ".join(self._parts())

    def _parts(self) -> list[str]:
        parts = (self.dataset, self.model, self.method, self.measure, self.varies)
        return [part for part in parts if part]


@dataclass(frozen=True)
class ExperimentPlan:
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
        >>> plan = ExperimentPlan(datasets=("german",), models=("linear",), methods=("constant",))
        >>> [str(unit) for unit in plan.units()]
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
    combinations: tuple[dict[str, Any], ...] | None = None
    varies: str | None = None

    def __post_init__(self) -> None:
        _check("models", self.models, MODELS)
        _check("measures", self.measures, tuple(KNOWN_MEASURES))
        _check("grid", (self.grid,), GRIDS)
        if not self.datasets or not self.seeds or self.epochs < 1:
            raise ValueError("datasets, seeds and epochs: expected at least one of each.")
        for dataset in self.datasets:
            parse_dataset(dataset)
        for method in self.methods:
            find_method(method)

    def units(self) -> list[Unit]:
        """Its units: model by model, data set by data set.

        A method that does not use the measure is one unit for all of them.
        """
        chosen = self.methods or tuple(methods())
        shared = ("grid", "seeds", "epochs", "combinations", "varies")
        same = {name: getattr(self, name) for name in shared}
        return [
            Unit(dataset, model, method, measure, **same)
            for model, dataset, method in product(self.models, self.datasets, chosen)
            for measure in (self.measures if find_method(method).uses_measure else (None,))
        ]

    def narrowed(self, **choices: Any) -> ExperimentPlan:
        """The plan with other choices, where they are given (neither None nor empty).

        Raises:
            ValueError: if you pass a grid for a plan that defines its combinations.
        """
        if choices.get("grid") and self.combinations is not None:
            raise ValueError(f"grid: the plan {self.name!r} defines its combinations.")
        return replace(self, **{key: value for key, value in choices.items() if value})


def parse_dataset(text: str) -> tuple[str, dict[str, Any]]:
    """A data set's name and its options.

    Raises:
        ValueError: if there is no data set of that name, or an option is not "name=value".

    Example:
        >>> parse_dataset("gaussian:rows=2000:seed=1")
        ('gaussian', {'rows': 2000, 'seed': 1})
    """
    name, *options = text.split(":")
    if name not in names():
        raise ValueError(f"dataset: got {name!r}; the data sets are {', '.join(names())}.")
    pairs = [option.partition("=") for option in options]
    for key, sign, _ in pairs:
        if not (key and sign):
            raise ValueError(f"dataset: got {text!r}; write options as name:option=value.")
    return name, {key: _value(value) for key, _, value in pairs}


def find_method(name: str) -> Method:
    """A method by its name, or "module:NAME" for one of the user's own.

    Raises:
        ValueError: if there is none.
    """
    module, colon, attribute = name.partition(":")
    if not colon:
        if name not in methods():
            raise ValueError(
                f"method: got {name!r}; the methods are {', '.join(methods())}, "
                'or "module:NAME" of your own.'
            )
        return methods()[name]
    try:
        method = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"method: {name} cannot be imported: {error}") from error
    if not isinstance(method, Method):
        raise ValueError(  # noqa: TRY004 - the argument is a name, and the name is wrong
            f"method: expected {name} to be a fairgrad_bench.methods.Method, "
            f"got {type(method).__name__}."
        )
    return method


@lru_cache(maxsize=1)  # units of one data set follow each other; more would fill the memory
def load_splits(dataset: str, seeds: tuple[int, ...]) -> dict[int, Split]:
    """The paper's parts for every seed."""
    name, options = parse_dataset(dataset)
    loaded = load(name, **options)
    return {seed: loaded.split(seed) for seed in seeds}


def _check(argument: str, got: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    unknown = [name for name in got if name not in allowed]
    if unknown or not got:
        raise ValueError(f"{argument}: expected some of {list(allowed)}, got {list(got)}.")


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


PLANS: dict[str, ExperimentPlan] = {
    plan.name: plan
    for plan in (
        ExperimentPlan(name="paper"),
        ExperimentPlan(
            name="smoke",
            datasets=("german", "gaussian:rows=600"),
            measures=("equalized_odds", "demographic_parity"),
            seeds=(10, 20),
            grid="quick",
            epochs=4,
        ),
        ExperimentPlan(
            name="batch-size",
            datasets=("celeba",),
            models=("linear",),
            methods=("fairgrad",),
            measures=("equalized_odds",),
            combinations=tuple(
                {"batch_size": size, "weight_decay": decay}
                for size, decay in product(BATCH_SIZES, WEIGHT_DECAYS)
            ),
            varies="batch_size",
        ),
        ExperimentPlan(
            name="epsilon",
            datasets=("celeba",),
            models=("linear",),
            methods=("fairgrad_epsilon",),
            measures=("accuracy_parity", "equalized_odds", "equality_of_opportunity"),
            combinations=tuple(
                {"batch_size": 512, "weight_decay": decay, "epsilon": epsilon}
                for decay, epsilon in product(WEIGHT_DECAYS, EPSILONS)
            ),
            varies="epsilon",
        ),
        ExperimentPlan(
            name="fairness-rate",
            datasets=("gaussian", "adult", "adult_multigroup"),
            models=("linear",),
            methods=("fairgrad",),
            measures=("accuracy_parity", "equalized_odds", "equality_of_opportunity"),
            combinations=tuple(
                {"batch_size": size, "weight_decay": decay, "fairness_rate": rate}
                for size, decay, rate in product((64, 512), WEIGHT_DECAYS, FAIRNESS_RATES)
            ),
            varies="fairness_rate",
        ),
        ExperimentPlan(
            name="fairness-rate-networks",
            datasets=("gaussian",),
            models=("nonlinear",),
            methods=("fairgrad",),
            measures=("accuracy_parity", "equalized_odds", "equality_of_opportunity"),
            combinations=tuple(
                {"batch_size": 512, "weight_decay": 0.0, "fairness_rate": rate}
                for rate in (0.0005, 0.001, 0.002, 0.01)
            ),
            varies="fairness_rate",
        ),
    )
}
"""Everything; a quick check of everything; and experiments over one setting.

Those over the rate of the multipliers are not the paper's: they ask by which rate the paper's
figures come out where they do not with its own.
"""


def named_plan(name: str) -> ExperimentPlan:
    """A plan by its name.

    Raises:
        ValueError: if there is none of that name.
    """
    if name not in PLANS:
        raise ValueError(f"plan: expected one of {list(PLANS)}, got {name!r}.")
    return PLANS[name]
