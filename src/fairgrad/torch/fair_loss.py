"""Any loss that gives one value per example, made fair."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad import dual
from fairgrad.checks import check_number
from fairgrad.constraints import on_outcomes, split_by_label
from fairgrad.fairness_functions import FairnessMeasure, is_older_class
from fairgrad.groups import Groups
from fairgrad.measures import (
    ALIASES,
    MEASURES,
    check_several_groups,
    constraints_of,
    desirable_labels,
    measure_name,
    uses_desirable,
)
from fairgrad.torch.cells import flat_labels, flat_losses, flat_sensitive, flat_weights
from fairgrad.torch.multipliers import LossBatch, Multipliers
from fairgrad.torch.predictions import best_class, reading_of
from fairgrad.torch.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable

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
            given = dict(zip(OLDER_ORDER, args[first:], strict=False))
            kwargs = {"fairness_rate": OLDER_RATE, **given, **kwargs}
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
        y_train: labels of the training set, integers; or `Groups`, and then no s_train.
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
        y_desirable: labels that equality of opportunity and the four-fifths rule speak of; by
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

    label_classes: Tensor

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
        self.ignore_index: Any = getattr(self.base_loss, "ignore_index", None)
        processes = Processes(process_group)
        groups = _groups(y_train, s_train, sample_weight_train, self.ignore_index)
        self.groups = processes.merge(groups) if sharded else processes.check_equal(groups)
        check_several_groups(fairness_measure, self.groups, "s_train")
        self.fairness_measure: Any = fairness_measure
        self.y_desirable = y_desirable
        self.constraints = constraints_of(
            fairness_measure, self.groups, epsilon=epsilon, y_desirable=y_desirable
        ).drop_undefined()
        if dual.is_auto_rate(fairness_rate):  # so that the sampling of labels does not matter
            self.constraints = split_by_label(self.constraints, self.groups)
        if cost_matrix is not None:
            self.constraints = on_outcomes(self.constraints, self.groups)
        self._is_soft = self.constraints.n_outcomes > 1
        if self._is_soft and self.reading.log_probabilities is None:
            raise ValueError(NO_LOG_LOSS.format(loss=type(self.base_loss).__name__))
        has_weight = getattr(self.base_loss, "weight", None) is not None
        self._has_class_weight = self.ignore_index is not None and has_weight
        self.state = Multipliers(
            self.groups,
            self.constraints,
            ignore_index=self.ignore_index,
            fairness_rate=fairness_rate,
            proportional_rate=proportional_rate,
            error_memory=error_memory,
            negative_weights=negative_weights,
            cost_matrix=cost_matrix,
            n_rows=None if sample_weight_train is not None else float(self.groups.mass.sum()),
            processes=processes,
        )
        if self._is_soft:
            labels = torch.from_numpy(self.groups.labels.astype(np.int64))
            self.register_buffer("label_classes", labels, persistent=False)
        processes.check_settings(self.settings)
        # Modules find and call their submodules slowly, and this is the hot path.
        forward = getattr(self.base_loss, "forward", self.base_loss)
        if type(self.base_loss) is nn.CrossEntropyLoss:
            forward = partial(_cross_entropy, self.base_loss)
        is_log_loss = self.reading.is_log_loss(self.base_loss) and not self._is_soft
        self._hot = (
            self.state,
            forward,
            self.state.lookup.n_columns,
            self.reading.fits,
            self.reading.predict is best_class,
            dual.is_auto_rate(fairness_rate) and is_log_loss,
        )
        # Of the last batch: losses, labels, sample weights. A list that never grows, as a compiled
        # call is compiled anew when it has.
        self._last: list[Any] = [None] * 3

    def forward(  # noqa: C901, PLR0912 - the hot path, where calls cost more than branches
        self,
        input: Tensor,  # noqa: A002 - PyTorch's name
        target: Tensor,
        s: Tensor | None = None,
        sample_weight: Tensor | None = None,
        mode: str = "train",
    ) -> Tensor:
        """The loss of a batch.

        Without gradients and without s, as evaluation loops call a loss, it is the plain loss.

        Args:
            input: what the base loss takes: logits, probabilities, ... of N examples.
            target: (N,) labels.
            s: (N,) sensitive values as in s_train, as integers; (N, attributes) if there are
                several. Not needed after ``.eval()``.
            sample_weight: (N,) non-negative weights. (A text is taken as the mode, which stood
                here in fairgrad 0.2.0.)
            mode: "eval" gives the weighted loss with the weights as they are, without an update.

        Raises:
            ValueError: if s is missing, lengths differ, a label or sensitive value was never seen
                in training, or the batch is on another device. Nothing has been changed then.
            RuntimeError: if the call is exported, mapped by ``torch.func.vmap`` or repeated by
                checkpointing, so that an update has no meaning. Nothing has been changed then.
        """
        state, base_loss, n_columns, fits, reads_scores, opposes = self._hot
        if isinstance(sample_weight, str):
            mode, sample_weight = sample_weight, None
        if mode not in MODES:
            raise ValueError(f"mode: expected one of {list(MODES)}, got {mode!r}.")
        if not fits(input):
            raise ValueError(self.reading.refusal(input))
        n = input.shape[0]
        label = flat_labels(target, n)
        if sample_weight is not None:
            sample_weight = flat_weights(sample_weight, n)
        update = mode == "train" and torch.is_grad_enabled()
        if n == 0 or (mode == "train" and not (self.training and (update or s is not None))):
            if n == 0 and update and self.training:
                state.step_without_rows()  # other processes may have rows
            losses = base_loss(input, target)
            n_rows = self._divisor(label, sample_weight)
            reduced = self._reduce(flat_losses(losses, n), sample_weight, n_rows)
            return reduced.view(losses.shape) if self.reduction == "none" else reduced
        s = flat_sensitive(s, n, n_columns)
        try:
            losses = base_loss(input, target)  # before the state changes: it may refuse it
        except (IndexError, RuntimeError) as error:
            self._explain(input, label, s, error)
            raise
        shape = losses.shape
        if shape != label.shape:
            losses = flat_losses(losses, n)
        reduction = self.reduction
        is_mean = reduction == "mean" and not self._has_class_weight
        factor, offset = state.factors(
            LossBatch(label, s, sample_weight, is_mean, update),
            lambda: self._outcome(input, label),
            input if reads_scores else None,
            losses if opposes and reduction != "none" else None,
        )
        if update:
            self._last[:] = losses.detach(), label, sample_weight
        if self._is_soft:
            losses, factor = self._soft_losses(input, label, factor), torch.ones_like(losses)
        if opposes and reduction == "none":
            factor, offset = dual.opposed(factor, losses.detach())
        if is_mean and losses.dtype is factor.dtype and type(offset) is float:  # the hot path
            total: Tensor = losses.dot(factor)
            if offset:  # a constant, which changes no gradient
                total.detach().add_(offset)
            return total
        divisor = self._divisor(label, sample_weight) if self._has_class_weight else None
        reduced = self._reduce(losses, factor, divisor, offset)
        return reduced.view(shape) if reduction == "none" else reduced

    def _outcome(self, scores: Tensor, label: Tensor) -> Tensor:
        """(N,) whether predictions are wrong, or what is predicted (`CellLookup.outcome`)."""
        if not self._is_soft:
            return self.reading.wrong(scores, label)
        return self.state.lookup.outcome(self.reading.predict(scores).reshape(-1))

    def _soft_losses(self, scores: Tensor, label: Tensor, target: Tensor) -> Tensor:
        """(N,) ``sum_l t_l (-log p_l)``, all weights and divisors included.

        Class weights and label smoothing are as PyTorch has them where only one t_l is not 0.
        """
        assert self.reading.log_probabilities is not None  # noqa: S101 - checked at the start
        surprise = -self.reading.log_probabilities(scores)
        target = target.to(surprise.dtype)
        classes = self.label_classes
        losses = (target * surprise.index_select(1, classes)).sum(1)
        weight = getattr(self.base_loss, "weight", None)
        if weight is not None:
            losses = losses * weight.index_select(0, label.clamp(0, len(weight) - 1))
        smoothing = getattr(self.base_loss, "label_smoothing", 0.0)
        if smoothing > 0:
            every = surprise if weight is None else surprise * weight
            even = target.sum(1) * every.mean(1)
            losses = (1 - smoothing) * losses + smoothing * even
        return losses

    def _explain(self, scores: Tensor, label: Tensor, s: Tensor, error: Exception) -> None:
        """Says it in words if the base loss has refused a batch that this loss refuses, too."""
        if not torch.compiler.is_compiling():
            self.state.check_devices(label, s)
            problem = self.state.lookup.explain(label, s)
            if problem is not None:
                raise ValueError(problem) from error
            if scores.ndim == 2 and int(label.max()) >= scores.shape[1]:
                raise ValueError(
                    f"input: expected one column per label, got the shape {tuple(scores.shape)} "
                    f"for the labels {self.groups.labels.tolist()}."
                ) from error

    def _reduce(
        self,
        losses: Tensor,
        factor: Tensor | None,
        divisor: Tensor | int | None = None,
        offset: Tensor | float = 0.0,
    ) -> Tensor:
        """Sum, mean or values of ``factor * losses``; the offset is that of the sum, or values."""
        if factor is not None and factor.dtype != losses.dtype:
            factor = factor.to(losses.dtype)
        if self.reduction == "none":
            weighted = losses if factor is None else losses * factor
            return weighted if isinstance(offset, float) else weighted + offset.to(weighted.dtype)
        total = losses.sum() if factor is None else losses.dot(factor)
        if not isinstance(offset, float) or offset != 0.0:
            total = total + (offset.to(total.dtype) if isinstance(offset, Tensor) else offset)
        if divisor is None or self.reduction == "sum":
            return total
        return total / (divisor.to(total.dtype) if isinstance(divisor, Tensor) else divisor)

    def _divisor(self, label: Tensor, sample_weight: Tensor | None) -> Tensor | int:
        """What PyTorch's mean divides by: rows, less those ignored, times their class weights."""
        if self.ignore_index is None:
            return label.shape[0] if sample_weight is None else sample_weight.sum()
        class_weight = self.base_loss.weight if self._has_class_weight else None
        units = label.ne(self.ignore_index)
        if class_weight is not None:
            units = units * class_weight.index_select(0, label.clamp(0, len(class_weight) - 1))
        divisor: Tensor = (units if sample_weight is None else units * sample_weight).sum()
        return divisor

    @property
    def fairness_rate(self) -> float | str:
        """The step size of the multipliers; a number may be changed between steps.

        So a schedule may set it after every epoch: ``criterion.fairness_rate *= 0.9``.

        Raises:
            ValueError: if it is set on a loss with the automatic rate, or not to a number.
        """
        return self.state.fairness_rate

    @fairness_rate.setter
    def fairness_rate(self, rate: float) -> None:
        self.state.fairness_rate = check_number("fairness_rate", rate)

    @property
    def levels(self) -> Tensor:
        """(J,) current estimates of the levels of fairness, named by `constraint_names`."""
        return self.state.levels

    @property
    def multipliers(self) -> Tensor:
        """(J,) current multipliers, lambda - delta, named by `constraint_names`."""
        return self.state.net

    @property
    def cell_weights(self) -> Tensor:
        """(K,) current weights of the cells, named by `cell_names`.

        Of measures of what is predicted: (L * K,) the weight of every label in every cell.
        """
        return self.state.cell_weights

    @property
    def plain_loss(self) -> Tensor | None:
        """The last training batch's loss without fairness weights; None before the first."""
        losses, label, sample_weight = self._last
        if losses is None:
            return None
        return self._reduce(losses, sample_weight, self._divisor(label, sample_weight))

    @property
    def settings(self) -> dict[str, Any]:
        """What must be the same in all processes that train one model, besides the data."""
        return {
            "base_loss": type(self.base_loss).__name__,
            "reduction": self.reduction,
            "fairness_measure": measure_name(self.fairness_measure),
            **self.state.settings,
        }

    @property
    def fairness_function(self) -> Any:
        """The measure as an object of fairgrad 0.2.0, by ``fairgrad.fairness_functions``."""
        return FairnessMeasure.of(self.groups, self.fairness_measure, self.y_desirable)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return self.groups.names

    @property
    def cell_names(self) -> tuple[str, ...]:
        """(K,) names of the cells; (L * K,) of every predicted label in every cell."""
        return self.constraints.weight_names(self.groups)

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """(J,) what each constraint speaks of."""
        return self.constraints.names

    def extra_repr(self) -> str:
        """The groups and settings, for printing."""
        labels = self.groups.labels.tolist()
        desirable = [labels[i] for i in desirable_labels(labels, self.y_desirable)]
        taken = f", y_desirable={desirable}" if uses_desirable(self.fairness_measure) else ""
        return (
            f"groups={list(self.group_names)}, constraints={len(self.constraint_names)}{taken}, "
            f"fairness_rate={self.state.fairness_rate}, reduction={self.reduction!r}"
        )

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
    given = getattr(base_loss, "reduction", "none")
    if given != "none":
        raise ValueError(
            f"base_loss: expected one value per example, reduction='none'; got reduction={given!r}."
        )
    return base_loss, reduction


def _cross_entropy(loss: nn.CrossEntropyLoss, scores: Tensor, target: Tensor) -> Tensor:
    """What ``loss.forward`` gives, without looking for its buffer the slow way of modules."""
    weight = loss._buffers["weight"]  # noqa: SLF001 - that slow way ends here
    ignored, smoothing = loss.ignore_index, loss.label_smoothing
    return nn.functional.cross_entropy(
        scores, target, weight, None, ignored, None, loss.reduction, smoothing
    )


def _groups(y_train: Any, s_train: Any, sample_weight: Any, ignore_index: Any) -> Groups:
    if isinstance(y_train, Groups):
        if s_train is not None or sample_weight is not None:
            raise ValueError("s_train: not needed when y_train is Groups, which hold it already.")
        groups = y_train
    else:
        for name, value in {"y_train": y_train, "s_train": s_train}.items():
            if value is None:
                raise ValueError(f"{name}: required, or Groups in place of y_train and s_train.")
        groups = Groups.from_data(y_train, s_train, sample_weight, suffix="_train")
    if groups.labels.dtype.kind != "i":
        raise TypeError(
            f"y_train: expected integers, as the loss takes them, got {groups.labels.tolist()}."
        )
    kept = groups.labels != ignore_index
    if not kept.any():
        raise ValueError(f"y_train: expected labels besides ignore_index={ignore_index}.")
    return groups if kept.all() else groups.without_labels(~kept)
