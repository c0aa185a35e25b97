"""How predicted labels are read off the input of each PyTorch loss.

A new loss is one entry here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable


def best_class(scores: Any) -> Any:
    """(N, classes) -> (N,) the class with the highest score; of tensors or of arrays."""
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


def any_shape(_: Tensor) -> bool:
    """Anything: the loss is the user's own."""
    return True


def class_scores(scores: Tensor) -> bool:
    """(N, classes)."""
    return getattr(scores, "ndim", None) == 2  # a model's output may be no tensor at all


def one_score(scores: Tensor) -> bool:
    """(N,) or (N, 1)."""
    n_axes = getattr(scores, "ndim", None)  # a model's output may be no tensor at all
    return n_axes == 1 or (n_axes == 2 and scores.shape[1] == 1)


@dataclass(frozen=True)
class Reading:
    """How to read a loss's input.

    Attributes:
        predict: from the input to predicted labels.
        fits: whether an input has the right shape; its docstring names the shape.
        checks_labels: whether the loss refuses labels that are no class by itself.
        log_probabilities: from the input to the log-probability of each class, (N, classes), if
            the loss is minus that of the label: what measures of predicted labels need.
        is_log: whether the loss is minus the log-probability of the label.
    """

    predict: Callable[[Tensor], Tensor]
    fits: Callable[[Tensor], bool] = any_shape
    checks_labels: bool = False
    log_probabilities: Callable[[Tensor], Tensor] | None = None
    is_log: bool = False

    def is_log_loss(self, loss: Any) -> bool:
        """Whether the values of this loss are log losses: it has no weights and no smoothing."""
        weights = [getattr(loss, name, None) for name in ("weight", "pos_weight")]
        return self.is_log and weights == [None, None] and not getattr(loss, "label_smoothing", 0.0)

    def wrong(self, scores: Tensor, label: Tensor) -> Tensor:
        """(N,) whether the prediction is wrong."""
        predicted = self.predict(scores)
        return predicted.reshape(-1) != label

    def refusal(self, scores: Tensor) -> str:
        """What to say of an input of the wrong shape."""
        expected = str(self.fits.__doc__).rstrip(".")
        shape = getattr(scores, "shape", None)
        kind = f"a {type(scores).__name__}; pass the logits alone"
        got = kind if shape is None else tuple(shape)
        return f"input: expected shape {expected}; got {got}."


def log_softmax(scores: Tensor) -> Tensor:
    """(N, classes) log-probabilities of logits."""
    return scores.log_softmax(1)


def as_they_are(scores: Tensor) -> Tensor:
    """(N, classes) log-probabilities that are given as such."""
    return scores


READINGS: dict[type[nn.Module], Reading] = {
    nn.CrossEntropyLoss: Reading(
        best_class, class_scores, checks_labels=True, log_probabilities=log_softmax, is_log=True
    ),
    nn.NLLLoss: Reading(
        best_class, class_scores, checks_labels=True, log_probabilities=as_they_are, is_log=True
    ),
    nn.MultiMarginLoss: Reading(best_class, class_scores, checks_labels=True),
    nn.BCEWithLogitsLoss: Reading(positive_logit, one_score, is_log=True),
    nn.BCELoss: Reading(likely, one_score, is_log=True),
    nn.SoftMarginLoss: Reading(sign, one_score),
}


def reading_of(loss: Any, predict: Callable[[Tensor], Tensor] | None) -> Reading:
    """The user's way to read predictions, or the one that belongs to the loss.

    Raises:
        TypeError: if the loss is not one of PyTorch's and no way is given.
    """
    for kind, known in READINGS.items():
        if isinstance(loss, kind):
            return known if predict is None else replace(known, predict=predict)
    if predict is not None:
        return Reading(predict)
    raise TypeError(
        f"predict: needed with {type(loss).__name__}, a function from the loss's input to "
        f"predicted labels; known without it: {[kind.__name__ for kind in READINGS]}."
    )


def scores_in(outputs: Any, argument: str, name: str | None = None) -> Tensor:
    """The scores among what a module gave: a tensor, the first of a tuple, or a named entry.

    Raises:
        TypeError: if there is no such tensor.
    """
    found = outputs[0] if isinstance(outputs, tuple) and outputs else outputs
    got = type(found).__name__
    if name is not None and isinstance(outputs, dict):
        found, got = outputs.get(name), f"a dictionary of {list(outputs)}"
    if not isinstance(found, Tensor):
        entry = "" if name is None else f", or a dictionary with {name!r}"
        raise TypeError(
            f"{argument}: expected a tensor of scores, or a tuple that starts with one{entry}; "
            f"got {got}."
        )
    return found
