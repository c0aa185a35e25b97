"""Stacks of models: linear models and multilayer perceptrons, their descent and their fairness.

All parameters of a member are one row of a matrix (M, P), so that an optimiser is a few operations
on it. Activations are (M, units, B), scores (M, outputs, B): one output is the margin between two
labels, several are logits. All members see the same batches, so that rows are gathered once and
multiplied in one product.

With two labels there is one output, the margin ``z = z_1 - z_0``. Its parameters are differences
of those of a softmax with two outputs, and gradient descent on the two moves the difference twice
as fast: `gain` holds this 2, so that learning rates, weight decay and gradient norms mean what
they mean for PyTorch's cross-entropy.

The problems of the members' fairness stand side by side in one step (`fairgrad.dual`). Measures of
what is predicted, and costs of mistakes, count predicted labels instead of errors, and every label
has a weight in every cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fairgrad import dual
from fairgrad.compiled import on_cpu
from fairgrad.constraints import Constraints, on_outcomes, split_by_label, warn_of_undefined
from fairgrad.evaluate import unfairness
from fairgrad.groups import count_rows
from fairgrad.measures import constraints_of
from fairgrad.training.plan import DROPOUT, INITIAL_WEIGHTS, Batches, generator
from fairgrad.usefulness import cost_shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.groups import Floats, Groups
    from fairgrad.training.plan import Member, TrainingPlan, TrainingTable

State = dict[str, Tensor]
"""Everything that training changes, each tensor (M, ...)."""

Objective = Callable[[Tensor, Tensor], Tensor]
"""From scores (M, outputs, B) of rows (B,) to the gradient of each member's loss by them.

An objective with a dictionary `state` of tensors (M, ...) has it kept with the models'.
"""

MAX_ACTIVATIONS = 2**18
"""Rows are judged in pieces of so many activations, which stay in the processor's cache."""


class Network(Protocol):
    """A stack of models as the trainer sees it.

    Attributes:
        parameters: (M, P), changed in place by the optimiser.
        buffers: what else changes in training, each (M, ...).
        gain: (P,) by which the gradient is to be multiplied.
    """

    parameters: Tensor
    buffers: dict[str, Tensor]
    gain: Tensor

    def scores_with(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (B, ...) in training, to be differentiated."""

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (B, ...), for evaluation."""


class Perceptrons:
    """M multilayer perceptrons: linear, ReLU, dropout, ..., linear; or linear models.

    Args:
        sizes: number of features, units of the hidden layers, outputs: 1 (the margin of two
            labels), or the number of labels.
        n_members: M.
        seed: of the initial weights and the dropout.
        dropout: share of hidden units dropped.
        dtype: of the parameters.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        n_members: int,
        seed: int = 0,
        dropout: float = 0.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.sizes, self.dropout, self.n_hidden = tuple(sizes), dropout, len(sizes) - 2
        self.pieces = self.shapes()
        source = generator(seed, INITIAL_WEIGHTS)
        initial = {
            name: torch.full(shape, float(name.startswith("scale")))
            for name, shape in self.pieces.items()
        }
        # As PyTorch's layers have them; a margin is the difference of two such outputs.
        for layer, inputs in enumerate(self.sizes[:-1]):
            draws = 2 if layer == self.n_hidden and sizes[-1] == 1 else 1
            for name in (f"weight{layer}", f"bias{layer}"):
                drawn = torch.rand(draws, *self.pieces[name], generator=source) * 2 - 1
                one_output = drawn[1] - drawn[0] if draws == 2 else drawn[0]
                initial[name] = one_output * max(inputs, 1) ** -0.5
        flat = torch.cat([tensor.reshape(-1) for tensor in initial.values()])
        self.parameters = flat.to(dtype).repeat(n_members, 1)
        self.buffers: dict[str, Tensor] = {}
        self.source = generator(seed, DROPOUT)
        self.gain = torch.ones(self.parameters.shape[1], dtype=dtype)
        if sizes[-1] == 1:
            self.gain[-sizes[-2] - 1 :] = 2.0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters of a member, in the order in which they lie."""
        pieces: dict[str, tuple[int, ...]] = {}
        for layer, (inputs, units) in enumerate(pairwise(self.sizes)):
            pieces |= {f"weight{layer}": (units, inputs), f"bias{layer}": (units,)}
        return pieces

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Parameters (M, P) by name, each (M, ...)."""
        tensors = torch.split(flat, [math.prod(shape) for shape in self.pieces.values()], dim=1)
        named = zip(self.pieces.items(), tensors, strict=True)
        return {name: tensor.view(len(flat), *shape) for (name, shape), tensor in named}

    def scores(self, x: Tensor) -> Tensor:
        """Scores (M, outputs, B) of features (B, features), as in evaluation."""
        return self.layers(self.parameters, x, training=False)[1]

    def scores_with(self, parameters: Tensor, x: Tensor) -> Tensor:
        """Scores in training with other parameters, to be differentiated by them."""
        return self.layers(parameters, x, training=True)[1]

    def layers(self, parameters: Tensor, x: Tensor, *, training: bool) -> tuple[Tensor, Tensor]:
        """(M, units, B) what the last layer sees of features (B, features), and its scores."""
        pieces, a = self.views(parameters), x.T.expand(len(parameters), *x.T.shape)
        for layer in range(self.n_hidden + 1):
            weight, bias = pieces[f"weight{layer}"], pieces[f"bias{layer}"].unsqueeze(-1)
            outputs = torch.baddbmm(bias, weight, a)
            if layer < self.n_hidden:
                a = self.normalised(pieces, layer, outputs, training).relu()
                if training and self.dropout:
                    a = drop(a, self.dropout, self.source)
        return a, outputs

    def normalised(
        self, pieces: Mapping[str, Tensor], layer: int, a: Tensor, training: bool
    ) -> Tensor:
        """A place for batch norm and the like: (M, units, B) before the ReLU."""
        del pieces, layer, training
        return a


def drop(a: Tensor, share: float, source: torch.Generator) -> Tensor:
    """Sets a share of the activations (M, units, B) to 0, the same of all members."""
    kept = torch.empty(a.shape[1:], dtype=a.dtype).bernoulli_(1 - share, generator=source)
    return a * (kept / (1 - share))


class Descent:
    """Gradient descent on a matrix of parameters, each member with its own rate, decay and clip.

    ``theta -= rate * (gradient + decay * theta)``, or Adam (Kingma and Ba, 2015) with PyTorch's
    defaults and its weight decay. What it remembers, `state`, is (M, ...) each.
    """

    BETAS, EPS = (0.9, 0.999), 1e-8

    def __init__(self, solver: str, members: Sequence[Member], network: Network) -> None:
        self.parameters, self.gain = network.parameters, network.gain
        self.rate, self.decay, self.clip = (
            torch.tensor([[getattr(m, name)] for m in members], dtype=self.parameters.dtype)
            for name in ("learning_rate", "weight_decay", "clip_norm")
        )
        self.state: dict[str, Tensor] = {}
        if solver == "adam":
            self.state["steps"] = torch.zeros_like(self.rate)
            for name in ("first_moment", "second_moment"):
                self.state[name] = torch.zeros_like(network.parameters)

    def step(self, gradient: Tensor, factor: float) -> None:
        """One step along a gradient (M, P); `factor` multiplies the learning rates."""
        if torch.isfinite(self.clip).any():  # as torch.nn.utils.clip_grad_norm_ does
            norm = (gradient.square() * self.gain).sum(1, keepdim=True).sqrt()
            gradient = gradient * (self.clip / (norm + 1e-6)).clamp(max=1.0)
        if self.decay.any():  # which has no gain
            gradient = gradient + self.parameters * self.decay / self.gain
        if self.state:
            steps, first, second = self.state.values()
            beta1, beta2 = self.BETAS
            steps.add_(1)
            first.lerp_(gradient, 1 - beta1)
            second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            root = (second / (1 - beta2**steps)).sqrt_().add_(self.EPS)
            gradient = first / (1 - beta1**steps) / root
        self.parameters.sub_(gradient * (self.rate * factor) * self.gain)


@on_cpu
def network_outputs(
    sizes: Sequence[int], state: Mapping[str, Any], X: Any, *, before_last: bool = False
) -> Floats:
    """(n, outputs) scores of rows (n, features) by a network of one member, given by its state.

    `before_last` gives what its last layer sees instead, (n, units).
    """
    parameters = torch.as_tensor(state["network.parameters"])
    network = Perceptrons(sizes, 1, dtype=parameters.dtype)
    x = torch.as_tensor(X, dtype=parameters.dtype)
    before, outputs = network.layers(parameters, x, training=False)
    return (before if before_last else outputs)[0].T.contiguous().numpy()


def predictions(scores: Tensor) -> Tensor:
    """(M, B) the index of the predicted label. A margin of 0 is the first, as for a softmax."""
    return scores.argmax(1) if scores.shape[1] > 1 else (scores[:, 0] > 0).long()


def residual(scores: Tensor, label: Tensor) -> Tensor:
    """(M, outputs, B) the gradient of each row's cross-entropy: probability less label."""
    if scores.shape[1] == 1:
        return scores.sigmoid() - label
    return scores.softmax(1) - functional.one_hot(label, scores.shape[1]).T


def losses(scores: Tensor, label: Tensor) -> Tensor:
    """(M, B) each row's cross-entropy."""
    if scores.shape[1] == 1:
        return (functional.softplus(scores) - label * scores)[:, 0]
    index = label.expand(len(scores), 1, -1)
    return (scores.logsumexp(1, keepdim=True) - scores.gather(1, index))[:, 0]


class StackedFairness:
    """Error estimates, multipliers and cell weights of M members.

    Args:
        table: the rows.
        members: the models.
        plan: what they have in common.
        groups: with the frequencies of the training rows.

    Attributes:
        constraints: (M,) the constraints on the cells, with each member's slack; None without a
            measure.
        code: (n,) the cell of each row of the table.
        n_outcomes: 1 for measures of errors, else the number of labels, whose predictions count.
        constants, state: of all problems side by side, as NumPy arrays.
        weights: (M, O, K) that the last step gave.
        is_active: whether any member is to be made fair; if not, all rows weigh the same.
    """

    def __init__(
        self, table: TrainingTable, members: Sequence[Member], plan: TrainingPlan, groups: Groups
    ) -> None:
        self.table, self.plan, self.n_members = table, plan, len(members)
        self._is_auto = any(member.fairness_rate == "auto" for member in members)
        exact = self.constraints_on(groups)
        self.constraints: tuple[Constraints | None, ...] = (None,) * len(members)
        if exact is not None:
            slack = tuple(exact.slacken(member.epsilon) for member in members)
            warn_of_undefined(slack)
            self.constraints = slack
        pairs = zip(members, self.constraints, strict=True)
        problems = [self._constants(member, bound, groups) for member, bound in pairs]
        self.constants = dual.side_by_side(problems)
        self.n_groups, self.n_outcomes = groups.n_groups, self.constants.n_outcomes
        self.n_cells, self.n_levels = len(problems[0].per_share), len(problems[0].c0)
        is_by_label = self.n_cells > self.n_groups
        self.code = table.label * self.n_groups + table.group if is_by_label else table.group
        is_fair = any(m.fairness_rate != 0 or m.proportional_rate > 0 for m in members)
        self.is_active = self.n_outcomes > 1 or (exact is not None and is_fair)
        self.opposes = self._is_auto and self.n_outcomes == 1
        self.state = dual.start(self.constants, len(groups.labels))
        self.weights = self._by_member(dual.cell_weights(self.constants, self.state.multipliers))

    def constraints_on(self, groups: Groups) -> Constraints | None:
        """The constraints on the cells of some rows, without slack; None without a measure."""
        plan = self.plan
        if plan.fairness_measure is None:
            return None
        constraints = constraints_of(plan.fairness_measure, groups, y_desirable=plan.y_desirable)
        if plan.cost_matrix is not None:
            return on_outcomes(constraints, groups)
        return split_by_label(constraints, groups) if self._is_auto else constraints

    def row_weights(self, rows: Tensor, predicted: Tensor) -> Tensor:
        """What each row's loss is multiplied by: ``w[cell of i] * weight_i / sum of weights``.

        Updates the state first, as the paper's algorithm does, by the index of the label that each
        member predicts for the rows (B,), (M, B). Gives (M, 1, B), or (1, 1, B) if no member is to
        be made fair. For measures of what is predicted (M, L, B), the weight of each label.
        """
        if self.table.weight is None:
            share = torch.full((len(rows),), 1 / len(rows), dtype=self.table.dtype)
        else:
            share = self.table.weight[rows]
            share = share / share.sum().clamp(min=dual.NOTHING)
        if not self.is_active:
            return share[None, None]
        joint = self.count(rows, predicted).transpose(0, 1).flatten(1).numpy()
        n_rows = None
        if self.table.weight is not None:
            n_rows = np.float64((self.table.weight[rows] > 0).sum())
        self.state, weights = dual.step(self.constants, self.state, joint, n_rows)
        self.weights = self._by_member(weights)
        cell_weights = torch.from_numpy(self.weights).to(share.dtype)
        return cell_weights[:, :, self.code[rows]] * share

    def count(self, rows: Tensor, predicted: Tensor) -> Tensor:
        """(M, 2, K) rows of each member predicted rightly and wrongly; (M, 1 + L, K) by label."""
        outcome = predicted + 1
        if self.n_outcomes == 1:
            outcome = (predicted != self.table.label[rows]).long()
        size = (self.n_members, 1 + self.n_outcomes, self.n_cells)
        place = torch.arange(self.n_members)[:, None] * size[1] + outcome
        place = place * self.n_cells + self.code[rows]
        weight = torch.ones(1, dtype=torch.float64)
        if self.table.weight is not None:
            weight = self.table.weight[rows].double()
        counts: Tensor = count_rows(
            place.view(-1), math.prod(size), weight.expand(place.shape).reshape(-1)
        )
        return counts.view(size)

    def copy(self) -> dict[str, Tensor]:
        """The state of each member, (M, ...) each."""
        rows, errors, multipliers, seen = self.state
        m, n_sides = self.n_members, len(self.constants.sign)
        arrays = {
            "rows": rows.reshape(m, -1),
            "errors": self._by_member(errors).reshape(m, -1),
            "multipliers": multipliers.reshape(n_sides, m, -1).swapaxes(0, 1).reshape(m, -1),
            "weights": self.weights.reshape(m, -1),
            "seen": np.full((m, 1), float(seen)),
        }
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over what `copy` gave."""
        m, n_sides = self.n_members, len(self.constants.sign)
        arrays = {name: np.asarray(value, dtype=np.float64) for name, value in state.items()}
        self.state = dual.State(
            arrays["rows"].ravel(),
            arrays["errors"].reshape(m, self.n_outcomes, -1).swapaxes(0, 1).ravel(),
            arrays["multipliers"].reshape(m, n_sides, -1).swapaxes(0, 1).reshape(n_sides, -1),
            np.asarray(arrays["seen"].max()),
        )
        self.weights = arrays["weights"].reshape(m, self.n_outcomes, -1)

    def _by_member(self, joint: Floats) -> Floats:
        """(M, O, K) of what stands side by side, (O * M * K)."""
        return joint.reshape(self.n_outcomes, self.n_members, -1).swapaxes(0, 1)

    def _constants(
        self, member: Member, constraints: Constraints | None, groups: Groups
    ) -> dual.Constants:
        """One member's problem; levels that are not defined are always 0."""
        costs, plan = self.plan.cost_matrix, self.plan
        if constraints is None:
            n = 1 if costs is None else len(groups.labels)
            zeros = np.zeros((1, n * groups.mass.size if n > 1 else groups.n_groups))
            nothing = Constraints(np.zeros(1), zeros, by_label=n > 1, n_outcomes=n)
            return dual.make_constants(nothing, groups, fairness_rate=0.0, cost_matrix=costs)
        defined = constraints.is_defined
        if not defined.all():
            constraints = constraints.replaced(
                c0=np.where(defined, constraints.c0, 0.0),
                C=constraints.coefficients.only(defined),
                lower=np.where(defined, constraints.lower, 0.0),
                upper=np.where(defined, constraints.upper, 0.0),
                slack=0.0,
            )
        constants = dual.make_constants(
            constraints,
            groups,
            fairness_rate=member.fairness_rate,
            proportional_rate=member.proportional_rate,
            error_memory=member.error_memory,
            negative_weights=plan.negative_weights,
            cost_matrix=costs,
            n_rows=float(groups.mass.sum()),
        )
        return dual.with_steady_rates(constants, member.steady_share)


@dataclass(frozen=True, eq=False)
class History:
    """How good M models were after each of some epochs, on their validation rows.

    Attributes:
        accuracy: (epochs, M).
        merit: (epochs, M) what models are chosen by: the accuracy; with costs one less the mean
            cost as a share of that of the costliest mistake.
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

    def __len__(self) -> int:
        return len(self.accuracy)


@dataclass(frozen=True, kw_only=True)
class StackParts:
    """Functions of the stack that make its parts; None leaves the stack its own.

    Methods that train small networks by gradient steps differ from FairGrad in these.

    Attributes:
        network: the models.
        objective: the gradient by the scores.
        batches: the rows of each step, as `Batches` has them.
    """

    network: Callable[[Stack], Network] | None = None
    objective: Callable[[Stack], Objective] | None = None
    batches: Callable[[Stack], Any] | None = None


class Stack:
    """M models with all they need to take a step and to be judged; arguments as of `train`."""

    def __init__(
        self,
        table: TrainingTable,
        members: Sequence[Member],
        plan: TrainingPlan,
        *,
        rows: Any = None,
        validation: Any = None,
        parts: StackParts | None = None,
    ) -> None:
        parts = parts or StackParts()
        self.table, self.members, self.plan = table, members, plan
        trained, judged = table.check_rows(rows, "rows"), table.check_rows(validation, "validation")
        self.rows = torch.arange(len(table)) if trained is None else torch.from_numpy(trained)
        self.judged = self.rows if judged is None else torch.from_numpy(judged)
        groups = table.frequencies(trained)
        judged_groups = groups if judged is None else table.frequencies(judged)
        n_labels = table.n_labels
        self.batches: Any = Batches(self.rows, plan.seed, plan.batch_size)
        self.fairness = StackedFairness(table, members, plan, groups)
        self._judged_by = self.fairness.constraints_on(judged_groups)
        self.sizes = (table.X.shape[1], *plan.hidden, 1 if n_labels == 2 else n_labels)
        self.network: Network = (
            Perceptrons(self.sizes, len(members), plan.seed, plan.dropout, table.dtype)
            if parts.network is None
            else parts.network(self)
        )
        self.optimizer = Descent(plan.solver, members, self.network)
        if parts.batches is not None:
            self.batches = parts.batches(self)
        self.objective: Objective = self.fair_objective
        if parts.objective is not None:
            self.objective = parts.objective(self)
        self.is_linear = parts == StackParts() and not plan.hidden
        self._cost_shares = cost_shares(plan.cost_matrix, n_labels)

    def step(self, rows: Tensor, factor: float) -> None:
        """One step on a batch of rows; `factor` multiplies the learning rates."""
        leaf = self.network.parameters.detach().requires_grad_()
        with torch.enable_grad():
            scores = self.network.scores_with(leaf, self.table.take(rows))
        by_scores = self.objective(scores.detach(), rows)
        (gradient,) = torch.autograd.grad(scores, leaf, by_scores)
        self.optimizer.step(gradient, factor)

    def fair_objective(self, scores: Tensor, rows: Tensor) -> Tensor:
        """The gradient of the method's loss by the scores (M, outputs, B)."""
        label = self.table.label[rows]
        weights = self.fairness.row_weights(rows, predictions(scores))
        if self.fairness.n_outcomes > 1:  # of sum_l t_l (-log p_l), with weights t
            target = weights.to(scores.dtype)
            total = target.sum(1, keepdim=True)
            if scores.shape[1] == 1:
                return total * scores.sigmoid() - target[:, 1:]
            return total * scores.softmax(1) - target
        factors = weights[:, 0]
        if self.fairness.opposes and bool((factors < 0).any()):
            factors, _ = dual.opposed(factors, losses(scores, label))
        return residual(scores, label) * factors[:, None]

    def _tensors(self) -> State:
        """What training changes in place."""
        parts = {
            "buffers": self.network.buffers,
            "optimizer": self.optimizer.state,
            "objective": getattr(self.objective, "state", {}),
        }
        tensors = {"network.parameters": self.network.parameters}
        for kind, named in parts.items():
            tensors |= {f"{kind}.{name}": tensor for name, tensor in named.items()}
        return tensors

    def state(self) -> State:
        """A copy of everything that training changes."""
        copied = {name: tensor.clone() for name, tensor in self._tensors().items()}
        return copied | {f"fairness.{name}": one for name, one in self.fairness.copy().items()}

    def load(self, state: State) -> None:
        """Takes over what `state` gave."""
        tensors = self._tensors()
        for name, tensor in tensors.items():
            tensor.copy_(state[name])
        of_method = {name: state[name] for name in state if name not in tensors}
        self.fairness.load({name.removeprefix("fairness."): t for name, t in of_method.items()})

    def judge(self) -> tuple[Floats, Floats, Floats]:
        """Counts, losses and multipliers of the current models; `record` takes them."""
        n_members, n_counted = len(self.members), 1 + self.fairness.n_outcomes
        counts = torch.zeros(n_members, n_counted, self.fairness.n_cells, dtype=torch.float64)
        loss = torch.zeros(n_members, dtype=torch.float64)
        widest = max(*self.sizes[:-1], 1)
        for rows in torch.split(self.judged, max(512, MAX_ACTIVATIONS // (n_members * widest))):
            scores, label = self.network.scores(self.table.take(rows)), self.table.label[rows]
            counts += self.fairness.count(rows, predictions(scores))
            row_losses, weight = losses(scores, label), self.table.weight
            loss += row_losses.sum(1) if weight is None else row_losses @ weight[rows]
        net = dual.net_multipliers(self.fairness.constants, self.fairness.state.multipliers)
        return counts.numpy(), loss.numpy(), net.reshape(n_members, -1)

    def record(self, counts: Floats, loss: Floats, multipliers: Floats) -> History:
        """What was counted of the models after each of some epochs.

        Args:
            counts: (epochs, M, 2, K) rows predicted rightly, and wrongly; (epochs, M, 1 + L, K) by
                predicted label.
            loss: (epochs, M) sums over the rows.
            multipliers: (epochs, M, J).
        """
        n_labels, models = self.table.n_labels, counts.shape[:2]
        total = counts.sum((2, 3))
        wrong = cost = counts[:, :, 1].sum(2)
        if self.fairness.n_outcomes > 1:
            by_label = counts[:, :, 1:].reshape(*models, n_labels, n_labels, -1).sum(-1)
            wrong = total - np.einsum("emll->em", by_label)
            cost = np.einsum("emly,yl->em", by_label, self._cost_shares)
        levels, gaps = np.full((2, *models, self.fairness.n_levels), np.nan)
        if self._judged_by is not None:
            rates = counts[:, :, 1:] / np.maximum(counts.sum(2, keepdims=True), dual.NOTHING)
            levels = self._judged_by.levels(rates.reshape(*models, -1))
            gaps = self._judged_by.gaps(levels)
        return History(
            accuracy=1 - wrong / total,
            merit=1 - cost / total,
            loss=loss / total,
            unfairness=unfairness(gaps),
            levels=levels,
            multipliers=multipliers,
        )
