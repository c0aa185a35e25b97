"""A batch as it comes from the user -> one label, prediction and sensitive value per row.

A *row* is whatever has one loss: an example, a position of an example (a pixel, a token), or
one of several binary outputs of an example.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


def best_class(scores: Tensor) -> Tensor:
    """The class with the highest score: (N, classes, ...) -> (N, ...), (classes,) -> ()."""
    return scores.argmax(1 if scores.ndim > 1 else 0)


def positive_logit(logit: Tensor) -> Tensor:
    """1 where the logit is above 0, else 0."""
    return logit > 0


def likely(probability: Tensor) -> Tensor:
    """1 where the probability is above a half, else 0."""
    return probability > 0.5


def sign(score: Tensor) -> Tensor:
    """1 where the score is above 0, else -1."""
    return (score > 0).long() * 2 - 1


@dataclass(frozen=True)
class Reading:
    """How to read a loss's input and target.

    Attributes:
        predict: from the input to predicted labels.
        has_classes: whether the input has an axis of classes, the second or only one.
        is_log: whether the loss is minus the log-probability of the label.
        known_labels: the labels that can be predicted; None for any.
    """

    predict: Callable[[Tensor], Tensor]
    has_classes: bool = False
    is_log: bool = False
    known_labels: tuple[int, ...] | None = None

    def is_log_loss(self, loss: Any) -> bool:
        """Whether the values of this loss are log losses: it has no weights and no smoothing."""
        weights = [getattr(loss, name, None) for name in ("weight", "pos_weight")]
        return self.is_log and weights == [None, None] and not getattr(loss, "label_smoothing", 0.0)

    def labels(self, scores: Tensor, target: Any) -> Tensor:
        """The label of each row, in the shape of the losses.

        The label of class probabilities and of soft binary targets is the most probable one.
        """
        if not isinstance(target, Tensor):
            raise TypeError(f"target: expected a tensor, got {type(target).__name__}.")
        if not self.has_classes:
            return target.round().long() if target.is_floating_point() else target.long()
        if target.is_floating_point() and target.shape == scores.shape:
            return best_class(target)
        if scores.ndim == target.ndim == 1:
            raise ValueError(
                f"input: expected a column per class, got the shape {tuple(scores.shape)}; for one "
                "logit per row use BCEWithLogitsLoss."
            )
        expected = scores.shape[:1] + scores.shape[2:] if scores.ndim > 1 else scores.shape[1:]
        if target.shape != expected:
            raise ValueError(
                f"target: expected labels of the shape {tuple(expected)}, or probabilities of the "
                f"input's shape {tuple(scores.shape)}; got {tuple(target.shape)}."
            )
        return target.long()


READINGS: dict[type[nn.Module], Reading] = {
    nn.CrossEntropyLoss: Reading(best_class, has_classes=True, is_log=True),
    nn.NLLLoss: Reading(best_class, has_classes=True, is_log=True),
    nn.MultiMarginLoss: Reading(best_class, has_classes=True),
    nn.BCEWithLogitsLoss: Reading(positive_logit, is_log=True, known_labels=(0, 1)),
    nn.BCELoss: Reading(likely, is_log=True, known_labels=(0, 1)),
    nn.SoftMarginLoss: Reading(sign, known_labels=(-1, 1)),
}
"""A new loss is one entry here."""


def reading_of(loss: Any, predict: Callable[[Tensor], Tensor] | None) -> Reading:
    """The user's way to read predictions, or the one that belongs to the loss."""
    for kind, known in READINGS.items():
        if isinstance(loss, kind):
            if predict is None:
                return known
            return replace(known, predict=predict, known_labels=None)
    if predict is not None:
        return Reading(predict)
    raise TypeError(
        f"predict: needed with {type(loss).__name__}, a function from the loss's input to "
        f"predicted labels; known without it: {[kind.__name__ for kind in READINGS]}."
    )


def flat_sensitive(s: Any, shape: torch.Size, n_columns: int) -> Tensor:
    """(rows,) integer sensitive values, or (rows, columns), of one per example or per row."""
    if s is None:
        raise ValueError("s: required in training; call criterion(input, target, s).")
    if not isinstance(s, Tensor) or s.dtype not in INTEGERS:
        got = s.dtype if isinstance(s, Tensor) else type(s).__name__
        raise TypeError(
            f"s: expected a tensor of integers, got {got}. Convert the values by "
            "torch.as_tensor(criterion.groups.encode(s))."
        )
    return _flat("s", s, shape, () if n_columns == 1 else (n_columns,)).long()


def flat_weights(sample_weight: Any, shape: torch.Size) -> Tensor:
    """(rows,) sample weights in double precision, from one per example or per row."""
    if not isinstance(sample_weight, Tensor):
        raise TypeError(f"sample_weight: expected a tensor, got {type(sample_weight).__name__}.")
    is_double = sample_weight.device.type != "mps"  # which has no double precision
    weight = sample_weight.detach().to(torch.float64 if is_double else torch.float32)
    weight = _flat("sample_weight", weight, shape).contiguous()
    can_look = weight.device.type == "cpu" and not torch.compiler.is_compiling()
    if can_look and not bool(((weight >= 0) & (weight < torch.inf)).all()):
        raise ValueError("sample_weight: expected finite weights of at least 0.")
    return weight


def _flat(name: str, values: Tensor, shape: torch.Size, columns: tuple[int, ...] = ()) -> Tensor:
    """One value per row; that of an example is repeated for all its rows."""
    n_more = len(shape) - 1
    per_example = (*shape[:1], *columns)
    if values.shape == (*shape, *columns):
        return values.reshape(-1, *columns)
    also = (1, *columns) if n_more < 0 else (*shape[:1], 1)  # of no batch; a column of one
    if values.shape == per_example or (values.shape == also and (n_more < 0 or not columns)):
        values = values.reshape(*shape[:1], *[1] * n_more, *columns)
        return values.expand(*shape, *columns).reshape(-1, *columns)
    allowed = f"{per_example}" if n_more < 1 else f"{per_example} or {(*shape, *columns)}"
    raise ValueError(f"{name}: expected shape {allowed}, got {tuple(values.shape)}.")


def flat_losses(losses: Tensor, n_rows: int) -> Tensor:
    """(rows,) one loss per row."""
    if losses.numel() != n_rows:
        raise ValueError(
            f"base_loss: expected one value per label ({n_rows}), got shape {tuple(losses.shape)}."
        )
    return losses.reshape(-1)


def scores_in(outputs: Any, argument: str, name: str | None = None) -> Tensor:
    """The scores among what a module gave: a tensor, the first of a tuple, or a named entry."""
    scores = outputs[0] if isinstance(outputs, tuple) and outputs else outputs
    got = type(scores).__name__
    if name is not None and isinstance(outputs, dict):
        scores, got = outputs.get(name), f"a dictionary of {list(outputs)}"
    if not isinstance(scores, Tensor):
        entry = "" if name is None else f", or a dictionary with {name!r}"
        raise TypeError(
            f"{argument}: expected a tensor of scores, or a tuple that starts with one{entry}; "
            f"got {got}."
        )
    return scores
