"""How predicted labels are read off the input of each PyTorch loss.

A new loss is one entry here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable

    Predict = Callable[[Tensor], Tensor]


def best_class(scores: Tensor) -> Tensor:
    """(N, classes) -> (N,) the class with the highest score."""
    return scores.argmax(1)


def positive_logit(logit: Tensor) -> Tensor:
    """1 where the logit is above 0, else 0."""
    return logit > 0


def likely(probability: Tensor) -> Tensor:
    """1 where the probability is above a half, else 0."""
    return probability > 0.5


def sign(score: Tensor) -> Tensor:
    """1 where the score is above 0, else -1."""
    return (score > 0).long() * 2 - 1


PREDICTIONS: dict[type[nn.Module], Predict] = {
    nn.CrossEntropyLoss: best_class,
    nn.NLLLoss: best_class,
    nn.MultiMarginLoss: best_class,
    nn.BCEWithLogitsLoss: positive_logit,
    nn.BCELoss: likely,
    nn.SoftMarginLoss: sign,
}


def prediction_of(loss: Any, predict: Predict | None) -> Predict:
    """The user's way to read predictions, or the one that belongs to the loss.

    Raises:
        TypeError: if the loss is not one of PyTorch's and no way is given.
    """
    if predict is not None:
        return predict
    for kind, known in PREDICTIONS.items():
        if isinstance(loss, kind):
            return known
    raise TypeError(
        f"predict: needed with {type(loss).__name__}, a function from the loss's input to "
        f"predicted labels; known without it: {[kind.__name__ for kind in PREDICTIONS]}."
    )
