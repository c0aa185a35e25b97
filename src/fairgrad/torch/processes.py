"""Several processes that train one model: they share one set of multipliers."""

from __future__ import annotations

import weakref
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed

from fairgrad.checks import warn
from fairgrad.groups import Groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from fairgrad.torch.fairness_loss import FairLoss

PATIENCE = 30.0
"""Seconds of waiting for other processes before a warning."""

LATE = (
    "fairgrad: rank {rank} has waited 30 seconds for another rank in a step of a fair loss. All "
    "processes must call the loss equally often: give them equal numbers of batches, or empty ones."
)

IS_AVAILABLE = distributed.is_available()
"""Whether PyTorch was built with ``torch.distributed``."""


class Processes:
    """The processes of a group of ``torch.distributed``, or this process alone.

    The group is looked up when it is needed, and never kept alive: a group that outlives
    ``destroy_process_group`` keeps a thread of the backend, which may abort the interpreter at its
    end. So the default group may also be started after this object was made. A group cannot be
    pickled: what is unpickled takes the default group, and any other has to be given to it by
    `join_processes`.

    Args:
        process_group: a group; None for the default group, whenever there is one; False for none.
    """

    def __init__(self, process_group: Any = None) -> None:
        self._takes_default = process_group is None or process_group is _default_group()
        self._own: Callable[[], Any] | None = None
        if process_group and not self._takes_default:
            self._own = weakref.ref(process_group)
        self.is_checked = False

    @property
    def group(self) -> Any:
        """The group, or None."""
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
        if self._own is None and not is_running():  # first, as most losses are asked in every step
            return True
        group = self.group
        return group is None or distributed.get_world_size(group) == 1

    def sum(self, counts: Tensor) -> None:
        """Sums a tensor over the processes, in place; only if there are several.

        On the CPU it warns after 30 seconds. On an accelerator the host does not wait.
        """
        if torch.compiler.is_compiling() or not counts.is_cpu:
            distributed.all_reduce(counts, group=self.group)
            return
        work = distributed.all_reduce(counts, group=self.group, async_op=True)
        try:
            work.wait(timedelta(seconds=PATIENCE))
        except RuntimeError:
            if not work.is_completed():
                warn(LATE.format(rank=distributed.get_rank()))
            work.wait()  # an error if it has failed

    def merge(self, groups: Groups) -> Groups:
        """The groups of all processes' shards together."""
        return groups if self.is_alone else Groups.merge(self.gather(groups))

    def check_equal(self, groups: Groups) -> Groups:
        """The groups; raises a ValueError if another process has others."""
        for rank, other in enumerate(self.gather(groups)):
            if groups.names != other.names or not np.array_equal(groups.mass, other.mass):
                raise ValueError(
                    f"y_train, s_train: rank {rank} has other training data "
                    f"({other.mass.sum():g} rows) than rank {distributed.get_rank(self.group)} "
                    f"({groups.mass.sum():g} rows); pass the same to all, or sharded=True if each "
                    "passes its own shard."
                )
        return groups

    def check_settings(self, settings: dict[str, Any]) -> None:
        """Raises a ValueError if what must be the same in all processes is not."""
        if self.is_alone:
            return
        this = distributed.get_rank(self.group)
        for rank, other in enumerate(self.gather(settings)):
            for name, value in settings.items():
                if other[name] != value:
                    raise ValueError(
                        f"{name}: rank {rank} has {other[name]}, rank {this} has {value}; pass the "
                        "same to all processes that train one model."
                    )
        self.is_checked = True

    def gather(self, item: Any) -> list[Any]:
        """What each process gave, in all of them."""
        if self.is_alone:
            return [item]
        gathered: list[Any] = [None] * distributed.get_world_size(self.group)
        distributed.all_gather_object(gathered, item, group=self.group)
        return gathered

    def __deepcopy__(self, memo: dict[int, Any]) -> Processes:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        is_none = self._own is None and not self._takes_default
        return Processes, (False if is_none else None,)


def is_running() -> bool:
    """Whether this is a process of ``torch.distributed``."""
    return IS_AVAILABLE and distributed.is_initialized()


def _default_group() -> Any:
    return distributed.group.WORLD if is_running() else None


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
    known = criterion.processes
    if process_group is None and known.is_checked and not known.is_alone:
        return
    processes = Processes(process_group)
    if hasattr(criterion, "groups"):  # else they are learned together
        processes.check_equal(criterion.groups)
    processes.check_settings(criterion.settings)
    criterion.processes = processes
    if hasattr(criterion, "state"):
        criterion.state.processes = processes
