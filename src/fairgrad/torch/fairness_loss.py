"""Any loss that gives one value per example, made fair: `FairLoss`, `FairnessLoss` in 0.2.0."""

from __future__ import annotations

import warnings
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fairgrad import dual
from fairgrad.checks import check_number
from fairgrad.columns import as_array, as_columns
from fairgrad.compiled import compiled_code
from fairgrad.constraints import on_outcomes, split_by_label
from fairgrad.fairness_functions import FairnessMeasure, is_older_class
from fairgrad.groups import Groups, group_rows, numbered
from fairgrad.measures import (
    ALIASES,
    MEASURES,
    check_several_groups,
    constraints_of,
    desirable_labels,
    measure_name,
    uses_desirable,
)
from fairgrad.torch.cells import BatchCounts
from fairgrad.torch.closures import UpdateCounter
from fairgrad.torch.multipliers import Multipliers
from fairgrad.torch.processes import Processes
from fairgrad.torch.reading import flat_losses, flat_sensitive, flat_weights, reading_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats

REDUCTIONS = ("mean", "sum", "none")
MODES = ("train", "eval")
OLDER_ORDER = (
    "reduction",
    "fairness_measure",
    "y_train",
    "s_train",
    "y_desirable",
    "epsilon",
    "fairness_rate",
)
"""How fairgrad 0.2.0 took its arguments if they were given without names."""

OLDER_RATE = 0.01
"""The rate that such calls have by default, as in fairgrad 0.2.0."""


def takes_older_order(init: Callable[..., None]) -> Callable[..., None]:
    """Lets a constructor also take unnamed arguments as in fairgrad 0.2.0, the reduction first."""

    @wraps(init)
    def either(self: FairLoss, *args: Any, **kwargs: Any) -> None:
        first = next((i for i, arg in enumerate(args[:2]) if isinstance(arg, str)), None)
        if first is not None:  # no data set and no loss is a text
            positional = dict(zip(OLDER_ORDER, args[first:], strict=False))
            kwargs = {"fairness_rate": OLDER_RATE, **positional, **kwargs}
            args = args[:first]
        init(self, *args, **kwargs)

    return either


class FairLoss(nn.Module):
    r"""A loss whose examples are weighted so that the model becomes fair.

    In training mode every call updates the multipliers from the batch's predictions and returns

    .. math:: \frac{1}{|B|} \sum_{i \in B} w_{k(i)} \ell_i, \qquad
              w_k = 1 + \frac{(C^\top \lambda)_k}{p_k},

    where k(i) is the cell of example i and p_k the cell's share of the training set. After
    ``.eval()`` nothing is updated and the plain loss is returned, comparable over epochs. Under
    ``torch.no_grad()`` nothing is updated either.

    Measures of what is predicted, such as demographic parity with more than two labels, give a
    weight to every label of a cell, and the loss of an example is :math:`\sum_l t_{k(i),l} (-\log
    p_l)` (see `fairgrad.dual`): with `CrossEntropyLoss` and `NLLLoss` only.

    Args:
        base_loss: a PyTorch loss class (made with ``reduction="none"`` and the remaining keyword
            arguments), or any callable that gives one value per example.
        y_train: labels of the training set, integers, or (n, outputs) of several binary outputs,
            each with separate constraints; or `Groups`, without s_train. If y_train and s_train are
            both left out, labels, groups and their shares are learned from the batches.
        s_train: sensitive values of the training set; several columns for several attributes;
            missing values and -1 are unknown and in no constraint.
        fairness_measure: a name ("accuracy_parity", "equalized_odds", "equality_of_opportunity",
            "demographic_parity", "four_fifths_rule", "equalized_odds_all"), `AtLeast` or `AtMost`,
            a function from `Groups` to `Constraints`, `Constraints`, matrices (c0, C), an `On`, or
            a list of these.
        predict: how to read predicted labels off the input; known for PyTorch's own losses.
        fairness_rate: step size of the multipliers. "auto" adapts to the batch size and to the
            number of training rows, and decays in long runs. A number is the paper's constant rate
            (0.01 there), which diverges with small batches or in long runs.
        epsilon: slack of the constraints; 0 is exact fairness.
        proportional_rate: adds this times the current violation to the multipliers in use; damps
            their swings. 0 is the paper.
        error_memory: share of earlier batches kept in the error estimates, so that rare cells pool
            over batches. 0 is the paper.
        negative_weights: False clips weights at 0, for ablation only: without negative weights
            some problems have no fair solution.
        y_desirable: desirable labels, for equality of opportunity and the four-fifths rule; by
            default the second of two.
        reduction: "mean", "sum" or "none", as in PyTorch.
        cost_matrix: what it costs to predict each label (columns) where each is true (rows), in
            the order of the labels; by default every mistake costs 1. With `CrossEntropyLoss` and
            `NLLLoss` only.
        sample_weight_train: weights of the training rows, if batches have sample weights.
        process_group: the processes that train one model together. Their counts are summed in
            every step, so that they share one set of multipliers: all must call the loss equally
            often. None is the default group, if there is one; False is this process alone.
        sharded: whether y_train and s_train are this process's shard only; shards are summed.
            If not, all processes must pass the same data.
        base_arguments: further arguments of the PyTorch loss.

    Raises:
        ValueError: if an argument has a value that is not allowed.
        TypeError: if an argument is of the wrong kind.

    Example:
        >>> y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
        >>> criterion = FairLoss(
        ...     lambda logits, y: (logits - y).square(),  # any loss with one value per example
        ...     y,
        ...     s,
        ...     "accuracy_parity",
        ...     predict=lambda logits: (logits > 0.5).long(),
        ...     fairness_rate=0.5,
        ... )
        >>> criterion(torch.tensor([0.0, 1.0, 1.0, 1.0], requires_grad=True), y, s).item()
        0.3125
        >>> criterion.levels
        tensor([ 0.2500, -0.2500])
        >>> criterion.cell_weights
        tensor([0.7500, 1.2500])
    """

    groups: Groups
    constraints: Constraints
    state: Multipliers

    @takes_older_order
    def __init__(
        self,
        base_loss: Callable[..., Any],
        y_train: Any = None,
        s_train: Any = None,
        fairness_measure: Any = None,
        *,
        predict: Callable[[Tensor], Tensor] | None = None,
        fairness_rate: float | str = "auto",
        epsilon: Any = 0.0,
        proportional_rate: float = 0.0,
        error_memory: float = 0.0,
        negative_weights: bool = True,
        y_desirable: Any = None,
        reduction: str = "mean",
        cost_matrix: Any = None,
        sample_weight_train: Any = None,
        process_group: Any = None,
        sharded: bool = False,
        **base_arguments: Any,
    ) -> None:
        super().__init__()
        self.base_loss, self.reduction = _make_loss(base_loss, reduction, base_arguments)
        self.reading = reading_of(self.base_loss, predict)
        if not dual.is_auto_rate(fairness_rate):
            check_number("fairness_rate", fairness_rate)
        check_number("proportional_rate", proportional_rate)
        check_number("error_memory", error_memory, below=1.0)
        if isinstance(fairness_measure, FairnessMeasure):
            y_train = fairness_measure.groups if y_train is None else y_train
            y_desirable = fairness_measure.y_desirable if y_desirable is None else y_desirable
        if isinstance(fairness_measure, FairnessMeasure) or is_older_class(fairness_measure):
            fairness_measure = fairness_measure.measure
        if fairness_measure is None:
            raise ValueError(
                f"fairness_measure: required; one of {[*MEASURES, *ALIASES]}, or one of your own."
            )
        self.fairness_measure: Any = fairness_measure
        self.y_desirable, self.epsilon, self.cost_matrix = y_desirable, epsilon, cost_matrix
        self.ignore_index: Any = getattr(self.base_loss, "ignore_index", None)
        has_weight = getattr(self.base_loss, "weight", None) is not None
        self._has_class_weight = self.ignore_index is not None and has_weight
        self._rates: dict[str, Any] = {
            "fairness_rate": fairness_rate,
            "proportional_rate": proportional_rate,
            "error_memory": error_memory,
            "negative_weights": negative_weights,
        }
        # Of the last batch: losses, target, sample weights. A list that never grows, as a compiled
        # call is compiled anew when it has.
        self._last: list[Any] = [None] * 3
        self._updates = UpdateCounter()
        self.processes = Processes(process_group)
        self._waiting: dict[str, Tensor] = {}
        self._batch_counts: BatchCounts | None = BatchCounts(self.ignore_index)
        self._prepare([])
        if y_train is not None or s_train is not None:
            self.use_training_data(y_train, s_train, sample_weight_train, sharded=sharded)

    def use_training_data(
        self,
        y_train: Any,
        s_train: Any = None,
        sample_weight_train: Any = None,
        *,
        sharded: bool = False,
    ) -> None:
        """Names the training set of a loss that was made without it; arguments as there.

        Raises:
            ValueError: if the data do not fit each other, or those of other processes.
        """
        by_output = not self.reading.has_classes and np.ndim(y_train) == 2
        shards = _groups(y_train, s_train, sample_weight_train, self.ignore_index, by_output)
        groups = [
            self.processes.merge(shard) if sharded else self.processes.check_equal(shard)
            for shard in shards
        ]
        check_several_groups(self.fairness_measure, groups[0], "s_train")
        self._batch_counts = None
        if sample_weight_train is None:
            self._rates["n_rows"] = float(groups[0].mass.sum())
        self._prepare(groups)
        self.processes.check_settings(self.settings)
        if self._waiting:
            self.state.load_state_dict(self._waiting)

    def _prepare(self, groups: list[Groups]) -> None:
        """Makes constraints and multipliers for the groups of each output; none if not known."""
        self._problems = [(group, self._constrain(group)) for group in groups]
        self._usual: tuple[Any, ...] = ()
        if not groups:
            return
        self.groups, self.constraints = self._problems[0]
        labels, known = self.groups.labels.tolist(), self.reading.known_labels
        if known is not None and not {*labels} <= {*known}:
            raise ValueError(
                f"y_train: {type(self.base_loss).__name__} has the labels {known[0]} and "
                f"{known[1]}, got {labels}."
            )
        self._is_soft = self.constraints.n_outcomes > 1
        if self._is_soft and not (self.reading.has_classes and self.reading.is_log):
            raise ValueError(NO_LOG_LOSS.format(loss=type(self.base_loss).__name__))
        self.state = Multipliers(
            groups,
            [constraints for _, constraints in self._problems],
            self.reading,
            ignore_index=self.ignore_index,
            processes=self.processes,
            cost_matrix=self.cost_matrix,
            **self._rates,
        )
        is_log_loss = self.reading.is_log_loss(self.base_loss) and not self._is_soft
        self._opposes = dual.is_auto_rate(self.fairness_rate) and is_log_loss
        if (
            type(self.base_loss) in {nn.CrossEntropyLoss, nn.NLLLoss}
            and is_log_loss
            and self.state.reads_scores
            and self.state.lookup.n_columns == 1
            and self._batch_counts is None
        ):
            # In a tuple, as modules find their submodules slowly.
            self._usual = (self.state, type(self.base_loss) is nn.CrossEntropyLoss)

    def _constrain(self, groups: Groups) -> Constraints:
        constraints = constraints_of(
            self.fairness_measure, groups, epsilon=self.epsilon, y_desirable=self.y_desirable
        ).drop_undefined()
        if dual.is_auto_rate(self._rates["fairness_rate"]):  # so that samplers do not matter
            constraints = split_by_label(constraints, groups)
        return constraints if self.cost_matrix is None else on_outcomes(constraints, groups)

    def forward(
        self,
        input: Tensor,  # noqa: A002 - PyTorch's name
        target: Tensor,
        s: Tensor | None = None,
        sample_weight: Tensor | None = None,
        mode: str = "train",
        *,
        label: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch.

        Without gradients and without s, as evaluation loops call a loss, it is the plain loss. So
        it is after ``.eval()``, for everything that PyTorch's loss takes.

        Args:
            input: what the base loss takes: logits, probabilities, ... of N examples.
            target: (N,) labels; (N, d1, ...) of the positions of each example; or class
                probabilities.
            s: (N,) sensitive values as in s_train, as integers, or one for every label of the
                target; with one more axis of attributes if there are several. Not needed after
                ``.eval()``. Where groups are known for only some rows: (N, groups) probabilities,
                a row of 0 and 1 where the group is known.
            sample_weight: (N,) non-negative weights, or one for every label. (A text is taken as
                the mode, which stood here in fairgrad 0.2.0.)
            mode: "eval" gives the weighted loss with the current weights, without an update.
            label: the labels that decide which group of rows each belongs to. By default those of
                the target, and of probabilities the most probable ones.

        Raises:
            ValueError: if s is missing, shapes differ, a label or sensitive value was never seen
                in training, or the batch is on another device. Nothing has been changed then.
            RuntimeError: if the call is exported, mapped by ``torch.func.vmap`` or repeated by
                checkpointing, so that an update has no meaning. Nothing has been changed then.
        """
        if (  # the fast path, where every call counts: the compiled step can read it as it is
            self._usual
            and sample_weight is None
            and label is None
            and mode == "train"
            and type(input) is type(target) is type(s) is Tensor
            and input.dtype is torch.float32
            and target.dtype is s.dtype is torch.int64
            and input.ndim == 2
            and target.ndim == s.ndim == 1
            and target.numel() == s.numel() == (shape := input.shape)[0]
            and input.is_cpu
            and target.is_cpu
            and s.is_cpu
            and input.is_contiguous()
            and target.is_contiguous()
            and s.is_contiguous()
            and self.training
            and self.reduction == "mean"
        ):
            state, is_entropy = self._usual
            places = state.readable_places() if torch.is_grad_enabled() else None
            if places is not None and self._updates.is_usual():
                if state.watch.is_due():
                    state.watch.look(state, target, s, None, input)
                # The loss is the product of factors and log-probabilities of all classes: that
                # has fewer steps backwards than one by way of the rows' losses.
                logs = torch.log_softmax(input, 1) if is_entropy else input
                flat = logs.view(-1)
                factor = torch.empty_like(flat)
                offset = compiled_code.step(
                    state.problem, *shape, True, True,  # noqa: FBT003 - a mean, and an update
                    target.data_ptr(), s.data_ptr(), input.data_ptr(), 0, 0, logs.data_ptr(),
                    *places, factor.data_ptr(), True,  # noqa: FBT003 - factors of classes
                )  # fmt: skip
                if offset is not None:  # else the batch is unusual, or wrong
                    self._last[:] = logs.detach(), target, None
                    total: Tensor = flat.dot(factor)
                    if offset:  # a constant, which changes no gradient
                        total.detach().add_(offset)
                    return total
        return self._any_batch(input, target, s, sample_weight, mode, label)

    def _any_batch(  # noqa: C901, PLR0912 - one thing after another
        self, scores: Any, target: Any, s: Any, sample_weight: Any, mode: str, label: Any
    ) -> Tensor:
        """`forward` for all batches."""
        if isinstance(sample_weight, str):
            mode, sample_weight = sample_weight, None
        if mode not in MODES:
            raise ValueError(f"mode: expected one of {list(MODES)}, got {mode!r}.")
        update = mode == "train" and torch.is_grad_enabled()
        if mode == "train" and not (self.training and (update or s is not None)):
            return self._plain(scores, target, sample_weight)
        if not isinstance(scores, Tensor):
            raise TypeError(NO_TENSOR.format(kind=type(scores).__name__))
        n_updates = self._updates.count(is_auto=self.fairness_rate == "auto") if update else 0
        update = n_updates > 0
        label = self.reading.labels(scores, target) if label is None else label.long()
        if self._batch_counts is not None:
            label, s = self._learn(label, s, update)
        if not self._problems:  # nothing is known yet
            return self._plain(scores, target, sample_weight)
        shape, state, reduction = label.shape, self.state, self.reduction
        if len(self._problems) > 1 and (len(shape) != 2 or shape[1] != len(self._problems)):
            raise ValueError(NO_OUTPUTS.format(n=len(self._problems), shape=tuple(shape)))
        is_matrix = isinstance(s, Tensor) and s.is_floating_point() and s.ndim == 2
        members = s if is_matrix else None
        label = label.reshape(-1)
        if members is None:
            s = flat_sensitive(s, shape, state.lookup.n_columns)
        if sample_weight is not None:
            sample_weight = flat_weights(sample_weight, shape)
        if label.shape[0] == 0:
            if update:
                state.step_without_rows()  # other processes may have rows
            return self._plain(scores, target, sample_weight)
        try:
            values = self.base_loss(scores, target)  # before the state changes: it may refuse it
        except (IndexError, RuntimeError) as error:
            if members is None:
                self._explain(scores, target, label, s, error)
            raise
        losses = flat_losses(values, label.shape[0])
        has_probabilities = self.ignore_index is not None and target.is_floating_point()
        if self._is_soft and has_probabilities:
            raise ValueError(NO_LABELS)
        is_mean = reduction == "mean" and not (self._has_class_weight or has_probabilities)
        read = losses if self._opposes and reduction != "none" else None
        batch = (label, s, sample_weight, scores, read, is_mean, update)
        for _ in range(max(1, n_updates)):
            factor, offset = (state.factors if members is None else self._member_factors)(*batch)
        if update:
            self._last[:] = losses.detach(), target, sample_weight
        if self._is_soft:
            losses, factor = self._soft_losses(scores, label, factor), torch.ones_like(losses)
        if self._opposes and reduction == "none":
            factor, offset = dual.opposed(factor, losses.detach())
        divisor = None if is_mean else self._divisor(target, losses, sample_weight)
        reduced = self._reduce(losses, factor, divisor, offset)
        return reduced.view(values.shape) if reduction == "none" else reduced

    def _member_factors(
        self, label: Tensor, members: Tensor, weight: Any, scores: Tensor, losses: Any, *how: bool
    ) -> tuple[Tensor, Tensor | float]:
        """`Multipliers.factors` by the probabilities of the groups of each row.

        Counts and factors are linear in membership: each row is there once per known group, with
        its probability as a weight, and the factors of a row are summed.
        """
        ids = torch.as_tensor(self.groups.ids[self.groups.is_known], device=label.device)
        if members.shape != (len(label), len(ids)):
            raise ValueError(
                f"s: expected integers, or probabilities of the shape {(len(label), len(ids))}, a "
                f"column for each of the groups {list(self.groups.known().names)}; got "
                f"{tuple(members.shape)}."
            )
        share = members.detach() if weight is None else members.detach() * weight[:, None]

        def repeated(values: Any) -> Any:
            return None if values is None else values.detach().repeat_interleave(len(ids), 0)

        s = ids.repeat(len(label), 1)
        s = s[:, 0] if s.shape[1] == 1 else s
        weights = flat_weights(share.reshape(-1), s.shape[:1])
        batch = (repeated(label), s, weights, repeated(scores), repeated(losses))
        factor, offset = self.state.factors(*batch, *how)
        return factor.view(*members.shape, *factor.shape[1:]).sum(1), offset

    def _plain(self, scores: Any, target: Any, sample_weight: Tensor | None) -> Tensor:
        """The loss without fairness, as PyTorch has it."""
        losses = self.base_loss(scores, target)
        if sample_weight is not None and sample_weight.shape != (losses.numel(),):
            sample_weight = flat_weights(sample_weight, losses.shape)
        divisor = self._divisor(target, losses, sample_weight)
        reduced = self._reduce(losses.reshape(-1), sample_weight, divisor, None)
        return reduced.view(losses.shape) if self.reduction == "none" else reduced

    def _learn(self, label: Tensor, s: Any, update: bool) -> tuple[Tensor, Tensor]:
        """Counts the labels and groups of a batch, where the training set is not known.

        Gives its labels and sensitive values; values that are not known yet count as unknown.
        """
        if torch.compiler.is_compiling():
            raise RuntimeError(NO_COUNTS)
        counts = self._batch_counts
        assert counts is not None  # noqa: S101 - checked by the caller
        n_columns = s.shape[-1] if isinstance(s, Tensor) and s.ndim > max(1, label.ndim) else 1
        flat = label.reshape(-1), flat_sensitive(s, label.shape, n_columns)
        if update and counts.add(*flat):
            groups = counts.use(self.processes.gather(counts.rows))
            if groups is not None:
                self._take_groups(groups)
        if self._problems:
            flat = counts.hide_unknown(self.state.lookup, *flat)
        columns = flat[1].shape[1:]
        return flat[0].reshape(label.shape), flat[1].reshape((*label.shape, *columns))

    def _take_groups(self, groups: Groups) -> None:
        """Prepares for these groups; what was known of cells and constraints is kept."""
        old = (self.state, self._state_names()) if self._problems else None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Constraints left out")  # for now
            self._prepare([groups])
        if old is not None:
            self.state.to(old[0].rows.device)
            self.state.take_over(*old, self._state_names())

    def _state_names(self) -> dict[str, list[str]]:
        """What each number of the state is about."""
        cells = self.groups.cell_names(self.constraints.by_label)
        outcomes = self.groups.labels.tolist() if self._is_soft else [""]
        constraints = numbered(self.constraints.names)
        sides = range(len(self.state.multipliers))
        return {
            "rows": list(cells),
            "errors": [f"{outcome}: {cell}" for outcome in outcomes for cell in cells],
            "multipliers": [f"{side}: {name}" for side in sides for name in constraints],
        }

    def _soft_losses(self, scores: Tensor, label: Tensor, target: Tensor) -> Tensor:
        """(N,) ``sum_l t_l (-log p_l)``, all weights and divisors included.

        Class weights and label smoothing are as PyTorch has them where only one t_l is not 0.
        """
        # Minus the log-probability of each class, (rows, classes), of logits or logarithms.
        surprise = -(scores if scores.ndim > 1 else scores[None]).log_softmax(1)
        if surprise.ndim > 2:
            surprise = surprise.movedim(1, -1).flatten(0, -2)
        target = target.to(surprise.dtype)
        losses = (target * surprise.index_select(1, self.state.label_classes)).sum(1)
        weight = getattr(self.base_loss, "weight", None)
        if weight is not None:
            losses = losses * weight.index_select(0, label.clamp(0, len(weight) - 1))
        smoothing = getattr(self.base_loss, "label_smoothing", 0.0)
        if smoothing > 0:
            every = surprise if weight is None else surprise * weight
            even = target.sum(1) * every.mean(1)
            losses = (1 - smoothing) * losses + smoothing * even
        return losses

    def _explain(
        self, scores: Tensor, target: Tensor, label: Tensor, s: Tensor, error: Exception
    ) -> None:
        """Says it in words if the base loss has refused a batch that this loss refuses, too."""
        if not torch.compiler.is_compiling():
            self.state.check_devices(label, s, scores=scores)
            problem = self.state.lookup.explain(label, s)
            if problem is not None:
                raise ValueError(problem) from error
            if scores.ndim == 2 and int(label.max()) >= scores.shape[1]:
                raise ValueError(
                    f"input: expected one column per label, got the shape {tuple(scores.shape)} "
                    f"for the labels {self.groups.labels.tolist()}."
                ) from error
            if self.reading.known_labels and not target.is_floating_point():
                raise ValueError(
                    f"target: expected floats, as PyTorch's {type(self.base_loss).__name__} does, "
                    f"got {target.dtype}."
                ) from error

    def _reduce(self, losses: Tensor, *numbers: Any) -> Tensor:
        """Sum, mean or values of ``factor * losses + offset``; numbers: factor, divisor, offset."""
        factor, divisor, offset = (
            number.to(losses.dtype) if isinstance(number, Tensor) else number for number in numbers
        )
        if self.reduction == "none":
            reduced = losses if factor is None else losses * factor
        else:
            reduced = losses.sum() if factor is None else losses.dot(factor)
        if offset is not None:
            reduced = reduced + offset
        return reduced if divisor is None or self.reduction != "mean" else reduced / divisor

    def _divisor(
        self, target: Tensor, losses: Tensor, sample_weight: Tensor | None
    ) -> Tensor | int:
        """What PyTorch's mean divides by: rows, less those ignored, times their class weights."""
        if self.ignore_index is None or target.is_floating_point():
            return losses.numel() if sample_weight is None else sample_weight.sum()
        units = target.ne(self.ignore_index).reshape(-1)
        if self._has_class_weight:
            weight = self.base_loss.weight
            units = units * weight[target.reshape(-1).clamp(0, len(weight) - 1)]
        divisor: Tensor = (units if sample_weight is None else units * sample_weight).sum()
        return divisor

    @property
    def fairness_rate(self) -> float | str:
        """The step size of the multipliers; a number may be changed between steps.

        So a schedule may set it after every epoch: ``criterion.fairness_rate *= 0.9``.

        Raises:
            ValueError: if it is set on a loss with the automatic rate, or not to a number.
        """
        rate: float | str = self._rates["fairness_rate"]
        return rate

    @fairness_rate.setter
    def fairness_rate(self, rate: float) -> None:
        check_number("fairness_rate", rate)
        if dual.is_auto_rate(self.fairness_rate):
            raise ValueError(
                "fairness_rate: this loss has the automatic rate, which cannot be changed after it "
                f"was made; make it with a number, got {rate!r}."
            )
        self._rates["fairness_rate"] = float(rate)
        if self._problems:
            self.state.set_rate(float(rate))

    @property
    def levels(self) -> Tensor:
        """(J,) current estimates of the levels of fairness, named by `constraint_names`."""
        return self.state.levels_of(self.state.errors) if self._problems else torch.zeros(0)

    @property
    def multipliers(self) -> Tensor:
        """(J,) current multipliers, lambda - delta, named by `constraint_names`."""
        return self.state.net if self._problems else torch.zeros(0)

    @property
    def cell_weights(self) -> Tensor:
        """(K,) current weights of the cells, named by `cell_names`.

        Of measures of what is predicted: (L * K,) the weight of every label in every cell.
        """
        return self.state.cell_weights if self._problems else torch.zeros(0)

    @property
    def cell_shares(self) -> Floats:
        """(K,) the share of the training rows in each cell, for each output apart."""
        masses = [group.cell_mass(problem.by_label) for group, problem in self._problems]
        return np.concatenate([np.zeros(0), *(mass / mass.sum() for mass in masses)])

    @property
    def plain_loss(self) -> Tensor | None:
        """The last training batch's loss without fairness weights; None before the first."""
        losses, target, sample_weight = self._last
        if losses is None:
            return None
        if losses.ndim > 1:  # log-probabilities, of the fast path
            ignored = self.base_loss.ignore_index
            losses = functional.nll_loss(losses, target, ignore_index=ignored, reduction="none")
        divisor = self._divisor(target, losses, sample_weight)
        return self._reduce(losses, sample_weight, divisor, None)

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same in all processes that train one model, besides the data."""
        return {
            "base_loss": type(self.base_loss).__name__,
            "reduction": self.reduction,
            "fairness_measure": measure_name(self.fairness_measure),
            **(self.state.settings if self._problems else {}),
        }

    @property
    def fairness_function(self) -> Any:
        """The measure as an object of fairgrad 0.2.0, by ``fairgrad.fairness_functions``."""
        return FairnessMeasure.of(self.groups, self.fairness_measure, self.y_desirable)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups; none before they are known."""
        return self.groups.names if self._problems else ()

    @property
    def cell_names(self) -> tuple[str, ...]:
        """(K,) names of the cells; (L * K,) of every predicted label in every cell."""
        return self._names([problem.weight_names(groups) for groups, problem in self._problems])

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """(J,) what each constraint speaks of."""
        return self._names([problem.names for _, problem in self._problems])

    def _names(self, of_outputs: list[tuple[str, ...]]) -> tuple[str, ...]:
        if len(of_outputs) == 1:
            return of_outputs[0]
        return tuple(f"output {i}, {name}" for i, names in enumerate(of_outputs) for name in names)

    def extra_repr(self) -> str:
        """The groups and settings, for printing."""
        if not self._problems:
            return f"groups=not known yet, fairness_rate={self.fairness_rate}"
        labels = self.groups.labels.tolist()
        desirable = [labels[i] for i in desirable_labels(labels, self.y_desirable)]
        taken = f", y_desirable={desirable}" if uses_desirable(self.fairness_measure) else ""
        return (
            f"groups={list(self.group_names)}, constraints={len(self.constraint_names)}{taken}, "
            f"fairness_rate={self.fairness_rate}, reduction={self.reduction!r}"
        )

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._batch_counts is not None:
            destination[f"{prefix}batch_counts"] = self._batch_counts.to_tensor()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        counts = state_dict.pop(f"{prefix}batch_counts", None)
        if counts is not None and self._batch_counts is not None:
            groups = self._batch_counts.load(counts)
            if groups is not None:
                self._take_groups(groups)
        elif not self._problems:  # the state waits for the training data
            names = [name for name in state_dict if name.startswith(f"{prefix}state.")]
            start = len(f"{prefix}state.")
            self._waiting = {name[start:]: state_dict.pop(name) for name in names}
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "reduction" and value not in REDUCTIONS:
            raise ValueError(f"reduction: expected one of {list(REDUCTIONS)}, got {value!r}.")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        # Training data is not pickled.
        return {**self.__dict__, "_last": [None] * 3}

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "DataParallel: its copies of a fair loss would forget their multipliers after every "
            "step; keep the loss outside of it, or use DistributedDataParallel, whose processes "
            "share them."
        )


ONE_HOT = (
    "y_train: expected class indices, got a matrix with a one in each row, as one-hot labels have; "
    "pass y_train.argmax(1), or a flat y_train if these are labels of positions."
)
NO_TENSOR = "input: expected a tensor, got a {kind}; pass the logits alone."
NO_LABELS = (
    "target: expected labels, as this fairness measure, or cost_matrix, gives a weight to every "
    "label that may be predicted; got class probabilities."
)
NO_COUNTS = (
    "torch.compile: compiled code cannot learn labels and groups from batches; pass y_train and "
    "s_train, or Groups."
)
NO_OUTPUTS = "target: expected shape (N, {n}), as y_train has {n} outputs; got {shape}."
NO_LOG_LOSS = (
    "fairness_measure: this measure, or cost_matrix, gives a weight to every label that may be "
    "predicted; only with the log loss is the label of the highest score then the one of the least "
    "cost. Use CrossEntropyLoss or NLLLoss; got {loss}."
)

FairnessLoss = FairLoss
"""The name in fairgrad 0.2.0."""


def _make_loss(
    base_loss: Callable[..., Any], reduction: str, arguments: dict[str, Any]
) -> tuple[Any, str]:
    """The base loss, one value per example, and how its values are to be reduced."""
    if arguments.keys() & {"size_average", "reduce"}:  # PyTorch's older spelling
        legacy = nn._reduction.legacy_get_string  # noqa: SLF001 - no public twin
        reduction = legacy(arguments.pop("size_average", None), arguments.pop("reduce", None))
    if isinstance(base_loss, type):
        return base_loss(reduction="none", **arguments), reduction
    if arguments:
        raise TypeError(
            f"{', '.join(arguments)}: unknown with a base loss that is not a class; "
            "give them to the base loss itself."
        )
    kind = getattr(base_loss, "reduction", "none")
    if kind != "none":
        raise ValueError(
            f"base_loss: expected one value per example, reduction='none'; got reduction={kind!r}."
        )
    return base_loss, reduction


def _groups(
    y_train: Any, s_train: Any, sample_weight: Any, ignore_index: Any, by_output: bool
) -> list[Groups]:
    """The groups of the training set, of each output."""
    if isinstance(y_train, Groups):
        if s_train is not None or sample_weight is not None:
            raise ValueError("s_train: not needed when y_train is Groups, which hold it already.")
        groups = [y_train]
    else:
        for name, value in {"y_train": y_train, "s_train": s_train}.items():
            if value is None:
                raise ValueError(f"{name}: required, or Groups instead of y_train and s_train.")
        ys, every = [y_train], None
        if by_output:
            ys = [*as_array(y_train).T]
            every = np.unique(as_array(y_train))  # an output may lack a label
        elif np.ndim(y_train) > 1:  # positions of each example
            array, n_each = as_array(y_train), int(np.prod(np.shape(y_train)[1:]))
            if n_each > 1 and np.isin(array, (0, 1)).all() and (array.sum(1) == 1).all():
                raise ValueError(ONE_HOT)
            ys = [array.reshape(-1)]
            if np.shape(s_train) == np.shape(y_train):
                s_train = as_array(s_train).reshape(-1)
            else:
                columns = as_columns(s_train, "s")
                s_train = {k: np.repeat(as_array(column), n_each) for k, column in columns.items()}
            if sample_weight is not None:
                sample_weight = np.repeat(as_array(sample_weight), n_each)
        arguments = ("y_train", "s_train", "sample_weight_train")
        groups = [
            group_rows(y, s_train, sample_weight, labels=every, arguments=arguments).groups
            for y in ys
        ]
    labels = groups[0].labels
    if labels.dtype.kind != "i":
        raise TypeError(f"y_train: expected integers, as in the batches, got {labels.tolist()}.")
    kept = labels != ignore_index
    if not kept.any():
        raise ValueError(f"y_train: expected labels besides ignore_index={ignore_index}.")
    return groups if kept.all() else [group.without_labels(~kept) for group in groups]
