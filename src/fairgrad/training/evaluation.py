"""How good the members of a stack are after each epoch, and which of the models kept is the best.

Scores are (S, T, outputs, B): one output is the margin between two labels, several are logits.
Labels are (S, B).

A rule of selection is a function from the validation accuracy and unfairness of candidates, each
(n,), to the index of the chosen one. Candidates may be the epochs of one member or of many. With
costs it gets their merit (`fairgrad.dual.cost_shares`) in place of the accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from fairgrad import dual
from fairgrad.evaluate import unfairness
from fairgrad.training.fairness import member_constraints
from fairgrad.training.table import Streams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, Ints
    from fairgrad.training.fairness import StackedFairness
    from fairgrad.training.networks import Network
    from fairgrad.training.plan import Member
    from fairgrad.training.table import TrainingTable

Rule = Callable[["Floats", "Floats"], int]

MAX_ACTIVATIONS = 2**18
"""Rows are judged in pieces of so many activations, which stay in the processor's cache."""


@dataclass(frozen=True, eq=False)
class History:
    """How good M models were after each of some epochs, on their validation rows.

    Attributes:
        accuracy: (epochs, M).
        merit: (epochs, M) what models are chosen by: the accuracy; with costs one less the mean
            cost as a share of the dearest mistake's.
        loss: (epochs, M) mean cross-entropy, without fairness weights.
        unfairness: (epochs, M) as `fairgrad.evaluate.unfairness` has it; NaN without a measure.
        levels: (epochs, M, J) levels of fairness, NaN where not defined.
        multipliers: (epochs, M, J) net multipliers, lambda - delta.
    """

    accuracy: Floats
    merit: Floats
    loss: Floats
    unfairness: Floats
    levels: Floats
    multipliers: Floats

    @classmethod
    def join(cls, parts: Sequence[History], order: Ints) -> History:
        """The epochs of several histories one after the other, with the members in this order."""
        whole = {f.name: [getattr(part, f.name) for part in parts] for f in fields(cls)}
        return cls(**{name: np.concatenate(own)[:, order] for name, own in whole.items()})

    def __len__(self) -> int:
        return len(self.accuracy)


def errors(scores: Tensor, label: Tensor) -> Tensor:
    """(S, T, B) 1 where the predicted label is not the true one, else 0, as the scores' kind.

    A margin of 0 is the first label, as for a softmax.
    """
    if scores.shape[2] > 1:
        return (scores.argmax(2) != label[:, None]).to(scores.dtype)
    positive = torch.gt(scores[:, :, 0], 0, out=torch.empty_like(scores[:, :, 0]))
    return positive.sub_(label[:, None]).abs_()


def residual(scores: Tensor, label: Tensor) -> Tensor:
    """(S, T, outputs, B) the gradient of each row's cross-entropy by its scores.

    Predicted probability less 1 for the true label, less 0 for the others.
    """
    label = label[:, None, None]
    if scores.shape[2] == 1:
        return scores.sigmoid() - label
    index = label.expand(*scores.shape[:2], 1, -1)
    probability = scores.softmax(2)
    return probability.scatter_add_(2, index, probability.new_full((1,), -1.0).expand(index.shape))


def predictions(scores: Tensor) -> Tensor:
    """(S, T, B) the index of the predicted label."""
    return scores.argmax(2) if scores.shape[2] > 1 else (scores[:, :, 0] > 0).long()


def soft_residual(scores: Tensor, target: Tensor) -> Tensor:
    """(S, T, outputs, B) the gradient of ``sum_l t_l (-log p_l)`` by the scores.

    Args:
        scores: (S, T, outputs, B).
        target: (S, T, L, B) the weight t of each label.
    """
    total = target.sum(2, keepdim=True)
    if scores.shape[2] == 1:
        return total * scores.sigmoid() - target[:, :, 1:]
    return total * scores.softmax(2) - target


def losses(scores: Tensor, label: Tensor) -> Tensor:
    """(S, T, B) each row's cross-entropy."""
    label = label[:, None, None]
    if scores.shape[2] == 1:
        return (functional.softplus(scores) - label * scores)[:, :, 0]
    index = label.expand(*scores.shape[:2], 1, -1)
    return (scores.logsumexp(2, keepdim=True) - scores.gather(2, index))[:, :, 0]


class Evaluation:
    """Accuracy, loss and levels of M members, with the frequencies of their validation rows.

    Args:
        table: the rows.
        members: M of them, ordered by stream.
        rows: the validation rows of each stream.
        fairness: the stack's method, whose cells are used.
        widest: units of the network's widest layer.
    """

    def __init__(
        self,
        table: TrainingTable,
        members: Sequence[Member],
        rows: Sequence[Ints],
        fairness: StackedFairness,
        widest: int,
    ) -> None:
        self.table, self.fairness = table, fairness
        self.n_streams, self.n_members = len(rows), len(members)
        per_stream = self.n_members // self.n_streams
        found = {id(part): table.frequencies(part) for part in rows}
        groups = [found[id(part)] for part in rows for _ in range(per_stream)]
        # How fair a model is does not depend on the slack it was given.
        exact = member_constraints(members, groups, fairness.exact, with_slack=False)
        self.constraints: dict[int, tuple[Constraints, list[int]]] = {}
        for m, part in enumerate(exact):
            if part is not None:
                self.constraints.setdefault(id(part), (part, []))[1].append(m)
        self.n_levels = max([1, *(len(part.c0) for part, _ in self.constraints.values())])
        self.cost_shares = np.array(
            [dual.cost_shares(member.cost_matrix, table.n_labels) for member in members]
        )
        self.piece = max(512, MAX_ACTIVATIONS // (self.n_members * widest))
        self.streams = Streams(rows, [0] * self.n_streams, self.piece)

    def record(self, network: Network) -> History:
        """Judges the network's models as they are: a history of one epoch."""
        counts, loss = self.counted(network)
        multipliers = self.fairness.net_multipliers.numpy()
        return self.history(counts.numpy()[None], loss.numpy()[None], multipliers[None])

    def counted(self, network: Network) -> tuple[Tensor, Tensor]:
        """What `history` takes of one epoch: (M, 2 or 1 + L, K) counts, (M,) sums of losses."""
        n_outcomes = self.fairness.n_outcomes
        shape = (self.n_members, 1 + n_outcomes, self.fairness.cells.n_cells)
        counts = torch.zeros(shape, dtype=torch.float64)
        loss = torch.zeros(self.n_members, dtype=torch.float64)
        for index, valid in self.streams.epoch(shuffled=False):
            scores = network.scores(self.table.take(index))
            scores = scores.view(self.n_streams, -1, *scores.shape[1:])
            batch = self.fairness.cells.take(index, valid)
            label = batch.label if scores.shape[2] == 1 else batch.label.long()
            if n_outcomes > 1:
                found = batch.count_labels(predictions(scores), n_outcomes)
            else:
                found = batch.count(errors(scores, label))
            counts += found.view(counts.shape)
            own = losses(scores, label)
            own = own.sum(-1) if batch.weight is None else own @ batch.weight[:, :, None]
            loss += own.view(-1)
        return counts, loss

    def history(self, counts: Floats, loss: Floats, multipliers: Floats) -> History:
        """What was counted in some epochs as a history.

        Args:
            counts: (epochs, M, 2, K) rows predicted rightly, and wrongly; (epochs, M, 1 + L, K) by
                predicted label.
            loss: (epochs, M) sums over the rows.
            multipliers: (epochs, M, J).
        """
        total = counts.sum((2, 3))
        levels, gaps = self._levels(counts)
        wrong = cost = counts[:, :, 1].sum(2)
        if self.fairness.n_outcomes > 1:
            n_labels = self.table.n_labels
            by_label = counts[:, :, 1:].reshape(*total.shape, n_labels, n_labels, -1).sum(-1)
            wrong = total - np.einsum("emll->em", by_label)
            cost = np.einsum("emly,myl->em", by_label, self.cost_shares)
        return History(
            accuracy=1 - wrong / total,
            merit=1 - cost / total,
            loss=loss / total,
            unfairness=unfairness(gaps),
            levels=levels,
            multipliers=multipliers,
        )

    def _levels(self, counts: Floats) -> tuple[Floats, Floats]:
        """(epochs, M, J) levels and how unfair they are, NaN where a member has no such level."""
        counts = self.fairness.mixed(torch.from_numpy(counts)).numpy()
        rates = counts[:, :, 1:] / np.maximum(counts.sum(2, keepdims=True), dual.NOTHING)
        rates = rates.reshape(*rates.shape[:2], -1)
        levels, gaps = np.full((2, len(counts), self.n_members, self.n_levels), np.nan)
        for part, own in self.constraints.values():
            n = len(part.c0)
            # A measure that does not look at the label finds its groups in the first cells.
            found = part.levels(rates[:, own, : part.coefficients.n_cells])
            levels[:, own, :n], gaps[:, own, :n] = found, part.gaps(found)
        return levels, gaps


def fairest_of_accurate(accuracy: Floats, unfairness: Floats, slack: float = 0.03) -> int:
    """The paper's rule: the fairest of those within `slack` of the best accuracy."""
    unfairness = np.where(np.isnan(unfairness), 0.0, unfairness)  # no measure: all are alike
    return _least(unfairness, -accuracy, among=accuracy >= np.nanmax(accuracy) - slack)


def most_accurate(accuracy: Floats, unfairness: Floats) -> int:  # noqa: ARG001 - a rule takes both
    """The most accurate."""
    return _least(-accuracy, -accuracy)


def fairest(accuracy: Floats, unfairness: Floats) -> int:
    """The fairest; of equally fair ones the most accurate."""
    return _least(np.where(np.isnan(unfairness), 0.0, unfairness), -accuracy)


def last(accuracy: Floats, unfairness: Floats) -> int:  # noqa: ARG001 - a rule takes both
    """The last candidate."""
    return len(accuracy) - 1


def most_accurate_within(accuracy: Floats, unfairness: Floats, bound: float) -> int:
    """The most accurate of those with an unfairness of at most `bound`.

    Raises:
        ValueError: if none is fair enough; it names the fairest.
    """
    if not (unfairness <= bound).any():
        raise ValueError(
            f"bound: no candidate has an unfairness of at most {bound:g}; "
            f"the fairest has {np.nanmin(unfairness):.4g}."
        )
    return _least(-accuracy, unfairness, among=unfairness <= bound)


RULES: dict[str, Rule] = {
    "fairest_of_accurate": fairest_of_accurate,
    "most_accurate": most_accurate,
    "fairest": fairest,
    "last": last,
}


def as_rule(rule: Any, **arguments: float) -> Rule:
    """A rule by its name, or the user's own function, with some of its arguments given."""
    found = RULES.get(rule) if isinstance(rule, str) else rule
    if not callable(found):
        raise ValueError(  # noqa: TRY004 - mostly a name that is not known
            f"rule: expected one of {list(RULES)} or a function, got {rule!r}."
        )
    return partial(found, **arguments) if arguments else found


def _least(key: Floats, tie: Floats, among: Any = None) -> int:
    """The candidate with the least key; of equal ones that with the least tie, then the first."""
    allowed = np.ones(len(key), dtype=bool) if among is None else among
    key = np.where(allowed & ~np.isnan(key), key, np.inf)
    return int(np.lexsort((np.where(np.isnan(tie), np.inf, tie), key))[0])
