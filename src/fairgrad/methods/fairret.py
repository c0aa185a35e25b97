"""fairret (Buyl et al., 2024): a penalty on the differences of the groups' expected rates.

    loss = cross-entropy + strength * sum over groups g of |rate_g / rate - 1|,

with rates of the predicted probabilities in the batch: true positive rate for equality of
opportunity, that and the false positive rate for equalized odds, positive rate for demographic
parity, accuracy for accuracy parity. The penalty is the fairret library's `NormLoss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from fairgrad.methods.interface import Candidate, Method, Settings, Task
from fairgrad.methods.shared import support
from fairgrad.methods.shared.grids import combinations, crossed
from fairgrad.methods.shared.optional import needed
from fairgrad.methods.shared.stacked import SGD, train_stacked
from fairgrad.training import heads
from fairgrad.training.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from fairgrad.training.stack import Stack
    from fairgrad.training.streams import Indices

STATISTICS = {
    "accuracy_parity": ("Accuracy",),
    "equalized_odds": ("TruePositiveRate", "FalsePositiveRate"),
    "equality_of_opportunity": ("TruePositiveRate",),
    "demographic_parity": ("PositiveRate",),
}
"""What fairret calls the rates that our measures compare."""


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
        self.strengths = strengths
        statistics, losses = (
            needed("fairret.statistic", "fairret"),
            needed("fairret.loss", "fairret"),
        )
        self.takes_labels = measure != "demographic_parity"
        self.losses = [losses.NormLoss(getattr(statistics, name)()) for name in STATISTICS[measure]]

    def __call__(self, scores: Tensor, indices: Indices) -> Tensor:
        """(S, T, 1, B)."""
        row, valid = indices
        sizes = torch.full((len(row), 1), row.shape[1]) if valid is None else valid.sum(1)[:, None]
        gradient = heads.residual(scores, self.label[row]) / sizes[:, None, None].clamp(min=1)
        return (gradient if valid is None else gradient * valid[:, None, None]) + self.of_penalty(
            scores, indices
        )

    def of_penalty(self, scores: Tensor, indices: Indices) -> Tensor:
        """The penalty's part of the gradient."""
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            total = leaf.sum() * 0.0
            for model, strength in enumerate(self.strengths):
                stream, place = divmod(model, scores.shape[1])
                rows = indices.row[stream]
                margin = leaf[stream, place, 0]
                if indices.valid is not None:
                    rows, margin = rows[indices.valid[stream]], margin[indices.valid[stream]]
                total = total + strength * self.penalty(margin, rows)
            return torch.autograd.grad(total, leaf)[0]

    def penalty(self, margin: Tensor, rows: Tensor) -> Tensor:
        """The penalty of one model on a batch, of its margins (B,)."""
        label = [self.label[rows][:, None]] if self.takes_labels else []
        total = margin.sum() * 0.0
        for loss in self.losses:
            total = total + _or_nothing(loss, margin[:, None], self.groups[rows], *label)
        return total


def _or_nothing(loss: Any, margin: Tensor, groups: Tensor, *label: Tensor) -> Any:
    """The loss; 0 where no row has the label whose rates it compares, which fairret refuses."""
    try:
        return loss(margin, groups, *label)
    except NotImplementedError:
        return 0.0


def _unsupported(task: Task) -> str | None:
    return (
        support.no_network(task)
        or support.other_measure(task, [*STATISTICS])
        or support.more_labels(task)
        or support.other_desirable(task)
    )


def _settings(model: str, grid: str) -> list[Settings]:  # noqa: ARG001 - one for all models
    if grid == "quick":
        return crossed(batch_size=(64, 512), strength=(1.0,))
    return crossed(batch_size=(64, 512), strength=(0.5, 1.0, 2.0))


def _train(task: Task) -> list[Candidate]:
    def parts_of(settings: Sequence[Settings]) -> Parts:
        def objective(stack: Stack) -> Penalised:
            strengths = [settings[i]["strength"] for i in stack.order]
            return Penalised(stack, task.measure or "", strengths)

        return Parts(objective=objective)

    return train_stacked(task, combinations(METHOD, task), parts_of=parts_of, **SGD)


METHOD = Method(
    name="fairret",
    description="Adds a penalty on the differences of the groups' expected rates.",
    uses_measure=True,
    needs_s_to_predict=False,
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
