"""The paper's way to a model: six combinations, their last epochs, one rule to select among all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.cli.settings import PAPER_EPOCHS
from fairgrad.sklearn import FairGradClassifier, fit_variants

if TYPE_CHECKING:
    from fairgrad.cli.settings import Settings
    from fairgrad.cli.training import Rows

BATCH_SIZES = (64, 512)
WEIGHT_DECAYS = (0.0, 0.001, 0.01)
PAPER: dict[str, Any] = {
    "fairness_rate": 0.01,
    "proportional_rate": 0.0,
    "error_memory": 0.0,
    "learning_rate": 0.1,
    "schedule": "constant",
    "clip_norm": 0.05,
    "average_last": 0.0,
    "max_iter": PAPER_EPOCHS,
}


def fit_paper_grid(
    part: Rows, held: Rows, settings: Settings, measure: Any, desirable: str | None
) -> FairGradClassifier:
    """The fairest, on validation rows, of all models within 3 points of the best accuracy.

    Candidates are the models of the last 5 epochs of every combination of batch size and weight
    decay; those that share a batch size are trained as one stack.
    """
    models = [
        FairGradClassifier(
            measure,
            epsilon=settings.epsilon or 0.0,
            y_desirable=None if desirable is None else [desirable],
            batch_size=batch_size,
            weight_decay=decay,
            **{**PAPER, **settings.network()},
        )
        for batch_size in BATCH_SIZES
        for decay in WEIGHT_DECAYS
    ]
    (model,) = fit_variants(
        models, part.X, part.y, sensitive_features=part.s, validation=tuple(held), best=True
    )
    return model
