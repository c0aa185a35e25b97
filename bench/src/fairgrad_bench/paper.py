"""What the paper prints, as data: its figures, how it calls things and in which order."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

from fairgrad.definitions import DEFINITIONS

METHODS = {
    "unconstrained": "Unconstrained",
    "constant": "Constant",
    "weighted_erm": "Weighted ERM",
    "constrained": "Constrained",
    "adversarial": "Adversarial",
    "bifair": "BiFair",
    "fairbatch": "FairBatch",
    "reduction": "Reduction",
    "fairret": "fairret",
    "plug_in": "Plug-in (as LinearPost)",
    "threshold": "Threshold",
    "fairgrad": "FairGrad",
    "fairgrad_epsilon": "FairGrad (epsilon)",
    "fairgrad_clipped": "FairGrad (no negative weights)",
    "fairgrad_stable": "FairGrad (estimator)",
    "fairgrad_frontier": "FairGrad (estimator, six epsilons)",
    "fairgrad_aware": "FairGrad (estimator, with s)",
    "decision": "FairGrad (decisions)",
    "decision_aware": "FairGrad (decisions, with s)",
}
OF_THE_PAPER = (
    "accuracy_parity",
    "equalized_odds",
    "equality_of_opportunity",
    "demographic_parity",
)
MEASURES = {name: DEFINITIONS[name].short for name in dict.fromkeys([*OF_THE_PAPER, *DEFINITIONS])}
"""The measures by the names that tables have for them, those of the paper first."""
DATASETS = {
    "adult": "Adult",
    "celeba": "CelebA",
    "crime": "Crime",
    "adult_multigroup": "Adult multigroup",
    "compas": "COMPAS",
    "dutch": "Dutch",
    "german": "German",
    "gaussian": "Gaussian",
    "twitter": "Twitter",
    "folktables": "Folktables",
}
MODELS = {
    "linear": "Linear Models",
    "nonlinear": "Non Linear Models",
    "lightgbm": "Boosted Trees (LightGBM)",
}

MAX_MIN_ARE_ABSOLUTE = ("constant", "constrained")
"""Methods whose maxima and minima the paper prints as absolute values: they do not compare."""

NOT_COMPARABLE = {
    "folktables": "another label: incomes above 50,000 here, above 25,000 in the paper",
}
"""Data sets under the paper's name that are not the paper's data, and why."""

SAME_AS = {"folktables:threshold=25000": "folktables"}
"""Data sets with options that are the paper's after all."""

UNCONSTRAINED_CELEBA_LINEAR = {
    "accuracy": 0.8532,
    "equalized_odds": 0.0499,
    "accuracy_parity": 0.0204,
    "equality_of_opportunity": 0.0387,
}
"""The unconstrained model in the paper's figure over epsilon: accuracy and unfairness."""


@cache
def paper_results() -> pd.DataFrame:
    """The paper's 433 results."""
    return _read("paper_results.csv")


@cache
def paper_batch_sizes() -> pd.DataFrame:
    """The paper's figures over the batch size: CelebA, linear, equalized odds."""
    return _read("paper_batch_size.csv")


@cache
def paper_overhead() -> pd.DataFrame:
    """The paper's seconds per epoch on Adult, plain and fair, with the networks' hidden layers."""
    return _read("paper_overhead.csv")


def paper_name(dataset: str) -> str | None:
    """What the paper calls a data set of a plan, or None if it is not among the paper's."""
    name = SAME_AS.get(dataset, dataset)
    return name if name in set(paper_results()["dataset"]) else None


def method_title(name: str) -> str:
    """A method's name for people."""
    return METHODS.get(name, name.rpartition(":")[2].replace("_", " ").capitalize())


def dataset_title(name: str) -> str:
    """A data set's name for people.

    Example:
        >>> dataset_title("celeba"), dataset_title("gaussian:rows=2000")
        ('CelebA', 'Gaussian (rows=2000)')
    """
    plain, _, options = name.partition(":")
    title = DATASETS.get(plain, plain.replace("_", " ").capitalize())
    return f"{title} ({options})" if options else title


def place(dataset: str, model: str, method: str, measure: str) -> tuple[object, ...]:
    """A key that sorts rows as the paper's tables do: data set, model, measure, method."""
    return (
        *_position(dataset.partition(":")[0], tuple(DATASETS)),
        dataset,
        *_position(model, tuple(MODELS)),
        *_position(measure, tuple(MEASURES)),
        *_position(method, tuple(METHODS)),
    )


def _position(name: str, order: tuple[str, ...]) -> tuple[int, str]:
    return (order.index(name), "") if name in order else (len(order), name)


def _read(name: str) -> pd.DataFrame:
    with files("fairgrad_bench").joinpath(name).open(encoding="utf-8") as file:
        return pd.read_csv(file)
