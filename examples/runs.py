"""What both examples do with a network: a frontier of heads, and the choice of a fair one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad import FairGradClassifier
from fairgrad.finetune import compute_features, find_head, finetune_head

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import nn

    from fairgrad.datasets import Dataset
    from fairgrad.splitting import SplitRows

METHODS = ("unconstrained", "fairgrad")
FIGURES = ("accuracy", "unfairness")
SLACK = 0.03
"""Validation accuracy that fairness may cost, as in the paper."""

RATES = (0.005, 0.05)
"""Fairness rates that heads are trained with: gentle, and exact."""


def columns(data: Dataset, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and groups of some rows."""
    return data.y[rows], data.s[rows]


def stored_features(
    file: Path, network: nn.Module, X: Any, transform: Callable[[Any], Any]
) -> np.ndarray:
    """Features of a file, which is written if it is not there."""
    if not file.exists():
        np.save(file, compute_features(network, X, transform=transform))
    found: np.ndarray = np.load(file)
    return found


def heads(
    network: nn.Module, data: Dataset, part: SplitRows, features: Any, measure: str, seed: int
) -> list[dict[str, Any]]:
    """The plain head, and the fairest of all others that lose at most 3 points of accuracy.

    Both are chosen on the validation rows alone.
    """
    _, head = find_head(network)  # on features, the head is the whole network
    frontiers = [
        finetune_head(
            head,
            features[part.train],
            *columns(data, part.train),
            fairness_measure=measure,
            epsilons=16,
            estimator=FairGradClassifier(fairness_rate=rate),
            validation=(features[part.validation], *columns(data, part.validation)),
            test=(features[part.test], *columns(data, part.test)),
            random_state=seed,
        )
        for rate in RATES
    ]
    plain = frontiers[0].points.iloc[-1]  # epsilon is infinite there
    enough = plain.validation_accuracy - SLACK
    fair = min(
        (found.points.iloc[found.frontier.choose(min_accuracy=enough)] for found in frontiers),
        key=lambda point: point.validation_unfairness,
    )
    names = [f"{on}_{figure}" for on in ("validation", "test") for figure in FIGURES]
    return [
        {"method": method, "epsilon": point.epsilon, **point[names].to_dict()}
        for method, point in zip(METHODS, (plain, fair), strict=True)
    ]
