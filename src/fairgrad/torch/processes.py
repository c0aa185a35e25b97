"""Several processes that train one model: they share one set of multipliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import distributed

from fairgrad.groups import Groups

if TYPE_CHECKING:
    from torch import Tensor

    from fairgrad.torch.fair_loss import FairLoss


class Processes:
    """The processes of a group of ``torch.distributed``, or this process alone.

    Copies share the process group; it cannot be pickled, so what is unpickled finds the default
    group again.

    Args:
        process_group: a group; None for the default group, if there is one; False for none.
    """

    def __init__(self, process_group: Any = None) -> None:
        is_running = distributed.is_available() and distributed.is_initialized()
        if process_group is None and is_running:
            process_group = distributed.group.WORLD
        self.group = process_group or None
        self.is_alone = self.group is None or distributed.get_world_size(self.group) == 1

    def sum(self, counts: Tensor) -> Tensor:
        """The sum of a tensor over the processes, in place; only if there are several."""
        distributed.all_reduce(counts, group=self.group)
        return counts

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

    def _gather(self, groups: Groups) -> list[Groups]:
        gathered: list[Any] = [None] * distributed.get_world_size(self.group)
        distributed.all_gather_object(gathered, groups, group=self.group)
        return gathered

    def __deepcopy__(self, memo: dict[int, Any]) -> Processes:
        return self

    def __reduce__(self) -> tuple[type[Processes], tuple[Any]]:
        return Processes, (False if self.group is None else None,)


def join_processes(criterion: FairLoss) -> None:
    """Lets a loss share its multipliers with all processes, if there are several now.

    Frameworks start their processes after the user has made the loss, which then knew of none:
    without this each process would have multipliers of its own.

    Raises:
        ValueError: if the processes were given different training data.
    """
    if criterion.state.processes.is_alone:
        processes = Processes(None)
        processes.check_equal(criterion.groups)
        criterion.state.processes = processes
