"""fairret (Buyl et al., 2024): a penalty on the differences of the groups' expected rates.

    loss = cross-entropy + strength * sum over groups g of |rate_g / rate - 1|,

with rates of the predicted probabilities in the batch: true positive rate for equality of
opportunity, that and the false positive rate for equalized odds, positive rate for demographic
parity, accuracy for accuracy parity. This is `NormLoss` of the fairret library, which takes one
model at a time; here it is written for all models of a stack at once, ten times as fast on Adult,
and tested against the library's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from fairgrad.training import StackParts, residual
from fairgrad_bench.methods import support
from fairgrad_bench.methods.interface import Candidate, Combination, Method, MethodTask, crossed
from fairgrad_bench.methods.models import SGD, train_stacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from fairgrad.training import Stack

LABELS: dict[str, tuple[int | None, ...]] = {
    "accuracy_parity": (None,),
    "equalized_odds": (1, 0),
    "equality_of_opportunity": (1,),
    "demographic_parity": (None,),
}
"""The labels whose rows a rate is taken over, one entry per rate; None for all rows."""


class Penalised:
    """The gradient of cross-entropy and penalty by the scores.

    Args:
        stack: the models.
        measure: whose rates are penalised.
        strengths: of the penalty, one per model of the stack.
    """

    def __init__(self, stack: Stack, measure: str, strengths: Sequence[float]) -> None:
        table = stack.table
        known = torch.from_numpy(table.groups.is_known)
        self.label = table.label
        self.groups = torch.nn.functional.one_hot(table.group, len(known))[:, known].float()
        self.strengths = torch.tensor(strengths)
        self.is_of_accuracy = measure == "accuracy_parity"
        self.labels = LABELS[measure]

    def __call__(self, scores: Tensor, rows: Tensor) -> Tensor:
        """(M, 1, B)."""
        return residual(scores, self.label[rows]) / len(rows) + self.of_penalty(scores, rows)

    def of_penalty(self, scores: Tensor, rows: Tensor) -> Tensor:
        """The penalty's part of the gradient, (M, 1, B)."""
        with torch.enable_grad():
            margins = scores[:, 0].detach().requires_grad_()
            total = (self.penalties(margins, rows) * self.strengths).sum()
            return torch.autograd.grad(total, margins)[0].unsqueeze(1)

    def penalties(self, margins: Tensor, rows: Tensor) -> Tensor:
        """(M,) the penalty of every model on a batch, of the margins (M, B)."""
        label, members = self.label[rows], self.groups[rows]
        sign = 2 * label - 1 if self.is_of_accuracy else 1
        probability = (margins * sign).sigmoid()
        everyone = torch.ones_like(label, dtype=torch.bool)
        counted = [everyone if of is None else label == of for of in self.labels]
        return torch.stack([_differences(probability, members, own) for own in counted]).sum(0)


def _differences(probability: Tensor, members: Tensor, counted: Tensor) -> Tensor:
    """``sum over g of |rate_g / rate - 1|`` of every model, (M,).

    As in the library, a group without rows has rate 0. Where the overall rate is 0 the library
    refuses; here there is then nothing to be penalised for.

    Args:
        probability: (M, B).
        members: (B, G) which rows are whose.
        counted: (B,) which rows the rates are taken over.
    """
    weight = counted.to(probability.dtype)
    own = members * weight[:, None]
    rates = probability @ own / own.sum(0).clamp(min=1)
    overall = (probability @ weight / weight.sum().clamp(min=1))[:, None]
    differences = (rates / torch.where(overall > 0, overall, 1.0) - 1).abs()
    return (differences * (overall > 0)).sum(1)


def _unsupported(task: MethodTask) -> str | None:
    return (
        support.no_network(task)
        or support.other_measure(task, [*LABELS])
        or support.more_labels(task)
        or support.other_desirable(task)
    )


def _settings(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - one for all models
    if grid == "quick":
        return crossed(batch_size=(64, 512), strength=(1.0,))
    return crossed(batch_size=(64, 512), strength=(0.5, 1.0, 2.0))


def _train(task: MethodTask) -> list[Candidate]:
    def parts_of(settings: Sequence[Combination]) -> StackParts:
        def objective(stack: Stack) -> Penalised:
            strengths = [one["strength"] for one in settings]
            return Penalised(stack, task.measure or "", strengths)

        return StackParts(objective=objective)

    return train_stacked(task, METHOD.combinations(task), parts_of=parts_of, **SGD)


METHOD = Method(
    name="fairret",
    version=1,
    description="Adds a penalty on the differences of the groups' expected rates.",
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
