"""How tables call things, and in which order: as the paper does."""

from __future__ import annotations

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
    "threshold": "Threshold",
    "fairgrad": "FairGrad",
    "fairgrad_epsilon": "FairGrad (epsilon)",
    "fairgrad_clipped": "FairGrad (no negative weights)",
    "fairgrad_stable": "FairGrad (estimator)",
}
MEASURES = {
    "accuracy_parity": "AP",
    "equalized_odds": "EOdds",
    "equality_of_opportunity": "EOpp",
    "demographic_parity": "DP",
}
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


def method_title(name: str) -> str:
    """A method's name for people.

    Example:
        >>> method_title("weighted_erm"), method_title("threshold_optimizer")
        ('Weighted ERM', 'Threshold optimizer')
    """
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
    """A key that sorts rows as the paper's tables do: data set, model, measure, method.

    Example:
        >>> own = place("german", "linear", "fairgrad", "accuracy_parity")
        >>> own < place("german", "linear", "constant", "equalized_odds")
        True
        >>> own < place("adult", "linear", "fairgrad", "accuracy_parity")
        False
    """
    return (
        *_position(dataset.partition(":")[0], tuple(DATASETS)),
        dataset,
        *_position(model, tuple(MODELS)),
        *_position(measure, tuple(MEASURES)),
        *_position(method, tuple(METHODS)),
    )


def _position(name: str, order: tuple[str, ...]) -> tuple[int, str]:
    return (order.index(name), "") if name in order else (len(order), name)
