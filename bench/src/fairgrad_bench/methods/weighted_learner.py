"""A learner for algorithms that fit a plain network again and again, each time to other weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.training import Member, StackParts, TrainingPlan, TrainingTable, train
from fairgrad_bench.methods.models import (
    LAYERS,
    members_network,
    own_network,
    paper_network,
    predicted_labels,
)

if TYPE_CHECKING:
    from fairgrad.groups import Ints

STEPS = 300
"""Steps of gradient descent that a fit takes, unless that is more than the epochs asked for."""

FEW_ROWS, BATCH_SIZES = 10_000, (64, 512)
"""Tables of fewer rows are trained in the smaller batches; both sizes are the paper's."""

ADAM_RATE = 0.01
"""At the start; it falls to 0 by the last step, so that few steps are enough."""


class WeightedLearner:
    """A classifier of two labels, 0 and 1, as scikit-learn's in what reweighting needs of it.

    Args:
        hidden: whether it has the paper's hidden layers; else it is linear.
        epochs: the most passes over the rows that a fit may take.
        seed: of initial weights and shuffling.
    """

    def __init__(self, *, hidden: bool, epochs: int, seed: int) -> None:
        self.hidden, self.epochs, self.seed = hidden, epochs, seed

    def __sklearn_clone__(self) -> WeightedLearner:
        """Creates an unfitted learner."""
        return WeightedLearner(hidden=self.hidden, epochs=self.epochs, seed=self.seed)

    def fit(self, X: Any, y: Any, sample_weight: Any) -> WeightedLearner:
        """Trains a network on weighted rows."""
        X, n = np.asarray(X, dtype=np.float32), len(y)
        weight = np.asarray(sample_weight, dtype=np.float64)
        table = TrainingTable.from_data(X, np.asarray(y, dtype=np.int64), None, weight)
        batch_size = BATCH_SIZES[n >= FEW_ROWS]
        enough = -(-STEPS // -(-n // batch_size))
        plan = TrainingPlan(
            epochs=min(self.epochs, enough),
            batch_size=batch_size,
            solver="adam",
            schedule="cosine",
            keep=1,
            seed=self.seed,
            **(LAYERS if self.hidden else {}),
        )
        parts = StackParts(network=paper_network) if self.hidden else None
        member = Member(learning_rate=ADAM_RATE)
        validation = np.arange(1)  # no epoch is judged
        training = train(table, [member], plan, validation=validation, parts=parts)
        sizes = (X.shape[1], *plan.hidden, 1)
        self.network = members_network(training.state(0), [0], own_network(sizes))
        return self

    def predict(self, X: Any) -> Ints:
        """The label of each row."""
        found: Ints = predicted_labels(self.network, np.asarray(X, np.float32), np.arange(2))[0]
        return found
