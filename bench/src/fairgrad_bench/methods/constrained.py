"""Constraints by a two-player game (Cotter et al., 2019), with the cooper library.

The model descends its loss plus multipliers times proxies of the constraints; the multipliers
ascend by the true violations and stay at or above 0. With levels ``F = c0 + C e`` there are two
constraints per level, ``F <= slack`` and ``-F <= slack``. A proxy bounds the violation from above
by hinges of the margin m, which is positive where a row is predicted rightly:

    e_k <= mean of max(0, 1 - m),        -e_k <= mean of max(0, 1 + m) - 1.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from fairgrad.measures import constraints_of
from fairgrad.training import StackParts
from fairgrad.training import losses as cross_entropies
from fairgrad_bench.methods.interface import Candidate, Combination, Method, MethodTask, crossed
from fairgrad_bench.methods.models import train_stacked
from fairgrad_bench.methods.support import measure_of_predictions, unfit_measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from fairgrad.training import Stack

LEARNING_RATE = 0.01
SLACKS = (0.0, 0.03)
DUAL_RATES = (0.001, 0.003, 0.01)
"""By the validation rows of Adult, COMPAS and Dutch: large data swing beyond the second, small data
need the third, and with 0.05 the game falls apart on Adult."""


class Violations(NamedTuple):
    """Of the constraints of M members, (M, 2 J): above 0 where one does not hold."""

    proxy: Tensor
    true: Tensor


class Game:
    """An objective of the stack: descends the Lagrangian of the proxies.

    Args:
        stack: the models.
        measure: the fairness measure.
        y_desirable: labels that some measures ask for.
        slacks: how far from 0 each member's levels may be.
        rates: step sizes of each member's multipliers.
    """

    def __init__(
        self,
        stack: Stack,
        measure: str,
        y_desirable: Sequence[int],
        slacks: Sequence[float],
        rates: Sequence[float],
    ) -> None:
        cooper: Any = import_module("cooper")  # slow to import, and without exact types
        table = stack.table
        groups = table.frequencies(stack.rows.numpy())
        constraints = constraints_of(measure, groups, y_desirable=y_desirable)
        by_label, n_groups = constraints.by_label, table.groups.n_groups
        self.label = table.label
        self.cell = table.label * n_groups + table.group if by_label else table.group
        self.n_cells = constraints.C.shape[1]
        # Levels that speak of a cell without rows are 0 whatever the model does.
        defined = constraints.is_defined
        c0 = np.where(defined, constraints.c0, 0.0)
        C = np.where(defined[:, None], constraints.C, 0.0)
        constant = np.concatenate([c0, -c0]) - np.asarray(slacks)[:, None]
        self.constant = torch.as_tensor(constant, dtype=torch.float32)
        self.slope = torch.as_tensor(np.concatenate([C, -C]), dtype=torch.float32)
        n_members, n_sides = self.constant.shape
        self.rates = torch.tensor(rates)[:, None].expand(n_members, n_sides).reshape(-1)
        self.constraint = cooper.Constraint(
            constraint_type=cooper.ConstraintType.INEQUALITY,
            multiplier=cooper.multipliers.DenseMultiplier(num_constraints=n_members * n_sides),
        )
        self.ascent = torch.optim.SGD(self.constraint.multiplier.parameters(), 1.0, maximize=True)
        self.cooper = cooper

    @property
    def multipliers(self) -> Tensor:
        """(M, 2 J), all at or above 0."""
        found: Tensor = self.constraint.multiplier.weight.detach()
        return found.view(self.constant.shape)

    def __call__(self, scores: Tensor, rows: Tensor) -> Tensor:
        """The Lagrangian's gradient by the scores; then the multipliers take their step."""
        with torch.enable_grad():
            leaf = scores.detach().requires_grad_()
            state = self._state(leaf, rows)
            primal = state.compute_primal_lagrangian().lagrangian
            (gradient,) = torch.autograd.grad(primal, leaf)
            self._ascend(state)
        return gradient

    def violations(self, scores: Tensor, rows: Tensor) -> Violations:
        """Of all constraints in a batch; 0 for those that speak of a cell without rows."""
        margin = margins(scores, self.label[rows])
        members = torch.nn.functional.one_hot(self.cell[rows], self.n_cells).float()
        sizes = members.sum(0)

        def mean_per_cell(values: Tensor) -> Tensor:
            return values @ members / sizes.clamp(min=1)

        error = mean_per_cell((margin <= 0).float())
        above, below = mean_per_cell((1 - margin).relu()), mean_per_cell((1 + margin).relu()) - 1
        slope = self.slope.T
        true, proxy = error @ slope, above @ slope.relu() + below @ (-slope).relu()
        speaks = ((self.slope != 0) & (sizes == 0)).any(-1).logical_not()
        return Violations((self.constant + proxy) * speaks, (self.constant + true) * speaks)

    def _state(self, scores: Tensor, rows: Tensor) -> Any:
        loss = cross_entropies(scores, self.label[rows]).mean(-1).sum()
        proxy, true = self.violations(scores, rows)
        seen = self.cooper.ConstraintState(
            violation=proxy.reshape(-1), strict_violation=true.detach().reshape(-1)
        )
        return self.cooper.CMPState(loss=loss, observed_constraints={self.constraint: seen})

    def _ascend(self, state: Any) -> None:
        self.ascent.zero_grad()
        state.compute_dual_lagrangian().lagrangian.backward()
        self.constraint.multiplier.weight.grad.mul_(self.rates)
        self.ascent.step()
        self.constraint.multiplier.post_step_()


def margins(scores: Tensor, label: Tensor) -> Tensor:
    """(M, B) the score of the true label less the best of the others."""
    if scores.shape[1] == 1:
        return scores[:, 0] * (2 * label - 1)
    is_own = torch.nn.functional.one_hot(label, scores.shape[1]).bool().T
    others = scores.masked_fill(is_own, -torch.inf).amax(1)
    return (scores * is_own).sum(1) - others


def _unsupported(task: MethodTask) -> str | None:
    if reason := unfit_measure(task) or measure_of_predictions(task):
        return reason
    return None if task.model == "linear" else "it is for linear models only, as in the paper"


def _settings(model: str, grid: str) -> list[Combination]:  # noqa: ARG001 - linear only
    if grid == "quick":
        return crossed(batch_size=(512,), dual_rate=DUAL_RATES[1:2], slack=SLACKS)
    return crossed(batch_size=(128, 512), dual_rate=DUAL_RATES, slack=SLACKS)


def _train(task: MethodTask) -> list[Candidate]:
    def parts_of(settings: Sequence[Combination]) -> StackParts:
        def objective(stack: Stack) -> Game:
            slacks, rates = ([one[name] for one in settings] for name in ("slack", "dual_rate"))
            return Game(stack, task.measure or "", task.y_desirable, slacks, rates)

        return StackParts(objective=objective)

    return train_stacked(
        task,
        METHOD.combinations(task),
        parts_of=parts_of,
        plan={"solver": "adam"},
        learning_rate=LEARNING_RATE,
    )


METHOD = Method(
    name="constrained",
    version=1,
    description="Descends proxies of the constraints; multipliers ascend by true violations.",
    unsupported=_unsupported,
    settings=_settings,
    train=_train,
)
