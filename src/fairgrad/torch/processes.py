"""Several processes that train one model: they share one set of multipliers."""

from __future__ import annotations

import warnings
import weakref
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed

from fairgrad.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from torch.nn.parallel import DistributedDataParallel

    from fairgrad.torch.fair_loss import FairLoss

PATIENCE = 30.0
"""Seconds of waiting for other processes before a warning says which of them are missing."""

IS_AVAILABLE = distributed.is_available()
"""Whether PyTorch was built with ``torch.distributed``."""


class Processes:
    """The processes of a group of ``torch.distributed``, or this process alone.

    The group is looked up when it is needed, and never kept alive: a group that outlives
    ``destroy_process_group`` keeps a thread of the backend, which may abort the interpreter at its
    end. So the default group may also be started after this object was made.

    It cannot be pickled: what is unpickled takes the default group if all processes were in it, and
    any other group has to be given to it by `join_processes`.

    Args:
        process_group: a group; None for the default group, whenever there is one; False for none.

    Attributes:
        lost: the ranks of a group that was not pickled.
        is_checked: whether the processes have compared their settings.
    """

    def __init__(self, process_group: Any = None) -> None:
        self._takes_default = process_group is None or process_group is _default_group()
        self._own: Any = None
        if process_group and not self._takes_default:
            self._own = weakref.ref(process_group)
        self.lost: tuple[int, ...] = ()
        self.is_checked = False
        self._n_sums = 0

    @property
    def group(self) -> Any:
        """The group, or None.

        Raises:
            RuntimeError: if the group was destroyed.
        """
        if self._takes_default:
            return _default_group()
        if self._own is None:
            return None
        group = self._own()
        if group is None:
            raise RuntimeError(
                "process_group: it was destroyed; call fairgrad.torch.join_processes(criterion, "
                "process_group) with another one, or with False to train alone."
            )
        return group

    @property
    def is_alone(self) -> bool:
        """Whether nothing has to be shared."""
        if self.lost:
            return False
        if self._own is None and not is_running():  # first, as most losses are asked in every step
            return True
        group = self.group
        return group is None or distributed.get_world_size(group) == 1

    @property
    def size(self) -> int:
        """How many processes there are."""
        group = self.group
        return 1 if group is None else distributed.get_world_size(group)

    def sum(self, counts: Tensor) -> None:
        """Sums a tensor over the processes, in place; only if there are several.

        Raises:
            RuntimeError: if it is not known which processes these are.
        """
        if torch.compiler.is_compiling():
            self._check_known()
            distributed.all_reduce(counts, group=self.group)
        else:
            self.start_sum(counts)()

    def start_sum(self, counts: Tensor) -> Callable[[], None]:
        """Starts to sum a tensor over the processes, in place; gives a function that waits for it.

        Raises:
            RuntimeError: if it is not known which processes these are.
        """
        self._check_known()
        self._n_sums += 1
        work = distributed.all_reduce(counts, group=self.group, async_op=True)
        # On an accelerator the host does not wait, so it has nothing to tell.
        return (lambda: self._wait_on_host(work)) if counts.is_cpu else work.wait

    def _check_known(self) -> None:
        if self.lost:
            raise RuntimeError(
                f"process_group: this loss was shared by the ranks {list(self.lost)}, in a group "
                "that its file could not hold; call fairgrad.torch.join_processes(criterion, "
                "process_group) first, or join_processes(criterion, False) to train alone."
            )

    def _wait_on_host(self, work: Any) -> None:
        """Waits; if that lasts, says which processes have not come.

        First every process leaves a note where all can read it that it waits. Whoever waits longer
        looks whose notes are missing.
        """
        if _is_done(work, PATIENCE / 3):
            return
        store = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - no public twin
        ranks, own = distributed.get_process_group_ranks(self.group), distributed.get_rank()
        notes = {rank: f"fairgrad/{ranks}/{self._n_sums}/{rank}" for rank in ranks}
        store.set(notes[own], "waiting")
        if _is_done(work, PATIENCE * 2 / 3):
            return
        missing = [str(rank) for rank, note in notes.items() if not store.check([note])]
        if missing:
            warnings.warn(
                f"fairgrad: rank {own} has waited {PATIENCE:g} seconds in step {self._n_sums} of a "
                f"fair loss for rank(s) {', '.join(missing)}. All "
                "processes must call the loss equally often; if they have different numbers of "
                "batches, see fairgrad.torch.UnevenInputs.",
                RuntimeWarning,
                stacklevel=2,
            )
        work.wait()

    def merge(self, groups: Groups) -> Groups:
        """The groups of all processes' shards together."""
        return groups if self.is_alone else Groups.merge(self._gather(groups))

    def check_equal(self, groups: Groups) -> Groups:
        """The groups, if all processes have the same.

        Raises:
            ValueError: if they differ.
        """
        if self.is_alone:
            return groups
        for rank, other in enumerate(self._gather(groups)):
            if groups.names != other.names or not np.array_equal(groups.mass, other.mass):
                raise ValueError(
                    f"y_train, s_train: rank {rank} has other training data "
                    f"({other.mass.sum():g} rows) than rank {distributed.get_rank(self.group)} "
                    f"({groups.mass.sum():g} rows); pass the same to all, or sharded=True if each "
                    "passes its own shard."
                )
        return groups

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Compares what must be the same in all processes, by name.

        Raises:
            ValueError: if it differs.
        """
        if self.is_alone:
            return
        own = distributed.get_rank(self.group)
        for rank, other in enumerate(self._gather(settings)):
            for name, value in settings.items():
                if other[name] != value:
                    raise ValueError(
                        f"{name}: rank {rank} has {other[name]}, rank {own} has {value}; pass the "
                        "same to all processes that train one model."
                    )
        self.is_checked = True

    def _gather(self, item: Any) -> list[Any]:
        gathered: list[Any] = [None] * distributed.get_world_size(self.group)
        distributed.all_gather_object(gathered, item, group=self.group)
        return gathered

    def __deepcopy__(self, memo: dict[int, Any]) -> Processes:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.lost:
            return _unpickled, (self.lost,)
        if self._takes_default:
            return Processes, (None,)
        group = self.group
        if group is None:
            return Processes, (False,)
        ranks = distributed.get_process_group_ranks(group)
        if len(ranks) == distributed.get_world_size():
            return Processes, (None,)
        return _unpickled, (tuple(ranks),)


def _is_done(work: Any, seconds: float) -> bool:
    """Waits so long; whether it was long enough."""
    try:
        work.wait(timedelta(seconds=seconds))
    except RuntimeError:
        if not work.is_completed():
            return False
        work.wait()  # an error if it has failed, rather than ended this very moment
    return True


def is_running() -> bool:
    """Whether this is a process of ``torch.distributed``."""
    return IS_AVAILABLE and distributed.is_initialized()


def _default_group() -> Any:
    return distributed.group.WORLD if is_running() else None


def _unpickled(ranks: tuple[int, ...]) -> Processes:
    """Processes whose group is not known any more; alone where there are no processes."""
    found = Processes(process_group=False)
    if is_running():
        found.lost = ranks
    return found


def join_processes(criterion: FairLoss, process_group: Any = None) -> None:
    """Lets a loss share its multipliers with other processes, if there are several now.

    A loss finds the default group by itself, also if the processes start after it was made; they
    compare their training data and settings in the first step. This compares them at once, or
    gives the loss another group. All processes must call it.

    Args:
        criterion: a fair loss. If its processes have compared their settings already, nothing
            happens, unless a group is given.
        process_group: as in `FairLoss`.

    Raises:
        ValueError: if the processes were given different training data or settings.

    Example:
        >>> import torch
        >>> from fairgrad.torch import CrossEntropyLoss, join_processes
        >>> y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
        >>> criterion = CrossEntropyLoss(y, s, "equalized_odds")
        >>> join_processes(criterion)  # there is one process, so nothing changes
    """
    known = criterion.state.processes
    if process_group is None and known.is_checked and not known.is_alone:
        return
    processes = Processes(process_group)
    processes.check_equal(criterion.groups)
    processes.check_settings(criterion.settings)
    criterion.state.processes = processes


class UnevenInputs:
    """A model and its fair loss for PyTorch's `Join`, if processes have unequal numbers of batches.

    A process that has no batches left goes on to take part in the sums of gradients, which `Join`
    sees to, and of counts, which this class sees to: a process without rows adds nothing.
    ``Join([model])`` alone, or ``model.join()``, would leave the others waiting. The counts get a
    process group of their own, as their sums and those of the gradients overlap.

    Args:
        model: a `DistributedDataParallel` model.
        criterion: a loss that shares its multipliers with the same processes.

    Raises:
        ValueError: if the loss does not share its multipliers, or with other processes than the
            model.

    Example:
        >>> import torch
        >>> from torch.distributed.algorithms.join import Join
        >>> from torch.nn.parallel import DistributedDataParallel
        >>> from fairgrad.torch import CrossEntropyLoss, UnevenInputs
        >>> x, y, s = torch.randn(8, 3), torch.arange(8) % 2, torch.arange(8) // 4
        >>> distributed.init_process_group(  # torchrun says who is who; here, one process is all
        ...     "gloo", store=distributed.HashStore(), rank=0, world_size=1)
        >>> model = DistributedDataParallel(torch.nn.Linear(3, 2))
        >>> criterion = CrossEntropyLoss(y, s, "equalized_odds")
        >>> with Join([UnevenInputs(model, criterion)]):
        ...     for rows in (slice(0, 5), slice(5, 8)):  # as many batches as this process has
        ...         criterion(model(x[rows]), y[rows], s[rows]).backward()
        >>> distributed.destroy_process_group()
    """

    def __init__(self, model: DistributedDataParallel, criterion: FairLoss) -> None:
        group = criterion.state.processes.group
        ranks = [] if group is None else distributed.get_process_group_ranks(group)
        expected = distributed.get_process_group_ranks(model.process_group)
        if ranks != expected:
            raise ValueError(
                f"criterion: expected to share its multipliers with the model's ranks {expected}, "
                f"got {ranks or 'a loss that knows of no other process'}."
            )
        self.model, self.criterion = model, criterion
        own = distributed.new_group(ranks, use_local_synchronization=True)
        criterion.state.processes = Processes(own)

    def join_hook(self, **kwargs: Any) -> _UnevenHook:
        """What a process does that has no batches left."""
        hook = self.model.join_hook(**kwargs)  # type: ignore[no-untyped-call] # PyTorch's
        return _UnevenHook(hook, self.criterion)

    @property
    def join_device(self) -> Any:
        """The model's."""
        return self.model.join_device

    @property
    def join_process_group(self) -> Any:
        """The model's."""
        return self.model.join_process_group

    @property
    def _join_config(self) -> Any:
        """`Join` sets it, and the model acts on it."""
        return self.model._join_config  # noqa: SLF001 - of all that can be joined

    @_join_config.setter
    def _join_config(self, config: Any) -> None:
        self.model._join_config = config  # noqa: SLF001 - of all that can be joined


class _UnevenHook:
    def __init__(self, hook: Any, criterion: FairLoss) -> None:
        self.hook, self.criterion = hook, criterion

    def main_hook(self) -> None:
        """Adds nothing to the counts of the others. They need them before their gradients."""
        finish = self.criterion.state.start_without_rows()
        self.hook.main_hook()
        finish()

    def post_hook(self, is_last_joiner: bool) -> None:
        self.hook.post_hook(is_last_joiner)
