"""The models under methods that wrap a learner of any kind."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fairgrad.methods.shared.trees import USUAL, classifier

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN = (128, 64, 32)


def learner(model: str, seed: int, epochs: int) -> Any:
    """An unfitted logistic regression, a perceptron with the paper's hidden layers, or trees."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - slow to import
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415 - slow to import

    if model == "linear":
        return LogisticRegression(max_iter=1000)
    if model == "lightgbm":
        return classifier(None, seed, **USUAL)
    return MLPClassifier(HIDDEN, batch_size="auto", max_iter=epochs, random_state=seed)


@contextmanager
def expected_warnings() -> Iterator[None]:
    """Inside, warnings that say nothing to the user are not shown.

    A perceptron ends with its last epoch, as the paper's networks do, converged or not; and
    fairlearn uses what newer pandas deprecates.
    """
    from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415 - slow to import

    with warnings.catch_warnings():
        for category in (ConvergenceWarning, DeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        yield
