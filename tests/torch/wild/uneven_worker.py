"""What each of two processes does; started by torchrun from test_processes.py.

Processes with few rows, no rows, other settings, or late.
"""

import io
import pickle
import warnings

import torch
from torch import distributed

from fairgrad.torch import CrossEntropyLoss, join_processes, processes

generator = torch.Generator().manual_seed(0)
Y = torch.randint(0, 2, (64,), generator=generator)
S = torch.randint(0, 3, (64,), generator=generator)
X = torch.randn(64, 4, generator=generator)


def main():
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    for scene in (
        empty_batches_take_part,
        other_settings_are_refused,
        frameworks_join_later,
        a_late_rank_is_waited_for,
        a_subgroup_is_not_forgotten,
    ):
        scene(rank)
        distributed.barrier()
    distributed.destroy_process_group()


def make(**settings):
    settings = {"fairness_rate": 0.3, "error_memory": 0.5, **settings}
    return CrossEntropyLoss(Y, S, settings.pop("measure", "equalized_odds"), **settings)


def empty_batches_take_part(rank):
    """Rank 1 has no rows in every third batch: as one process that sees the rows of rank 0."""
    shared, alone = make(), make(process_group=False)
    for step in range(9):
        rows = torch.randperm(64, generator=torch.Generator().manual_seed(step))[:16]
        own = rows[:8] if rank == 0 else rows[8:]
        if step % 3 == 0:
            rows, own = rows[:8], rows[:8] if rank == 0 else rows[:0]
        logits = X[own, :2].clone().requires_grad_()
        loss = shared(logits, Y[own], S[own])
        loss.backward()
        assert loss.isnan() == (len(own) == 0)
        assert logits.grad.isfinite().all()
        alone(X[rows, :2].clone().requires_grad_(), Y[rows], S[rows])
        torch.testing.assert_close(shared.multipliers, alone.multipliers, atol=1e-6, rtol=0)


def error_of(call):
    try:
        call()
    except (ValueError, RuntimeError) as error:
        return str(error)
    return "no error"


def other_settings_are_refused(rank):
    for name, values in {
        "fairness_rate": (0.1, 0.2),
        "measure": ("equalized_odds", "accuracy_parity"),
        "error_memory": (0.0, 0.9),
        "epsilon": (0.0, 0.1),
        "reduction": ("mean", "sum"),
        "negative_weights": (True, False),
    }.items():
        message = error_of(lambda: make(**{name: values[rank]}))  # noqa: B023 - called at once
        expected = {"measure": "fairness_measure", "epsilon": "fairness_measure, epsilon"}
        assert message.startswith(expected.get(name, name)), (name, message)
        assert "pass the same to all processes" in message


def frameworks_join_later(rank):
    """As Lightning does it: the loss is made before there are processes."""
    message = error_of(lambda: join_processes(make(process_group=False, fairness_rate=rank + 0.1)))
    assert message.startswith("fairness_rate: rank"), message
    late, early = make(process_group=False), make()
    join_processes(late)
    for criterion in (late, early):
        criterion(X[rank : rank + 8, :2].clone().requires_grad_(), Y[:8], S[:8])
    torch.testing.assert_close(late.multipliers, early.multipliers)


def a_late_rank_is_waited_for(rank):
    criterion, messages = make(), []
    store = distributed.distributed_c10d._get_default_store()  # noqa: SLF001 - has no public name

    def note(message, *_):
        messages.append(str(message))
        processes.PATIENCE = 30.0
        store.set("rank 0 has warned", "yes")

    if rank == 0:
        processes.PATIENCE = 0.1
    else:
        store.get("rank 0 has warned")  # waits for it
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        criterion(X[:8, :2].clone().requires_grad_(), Y[:8], S[:8])
    if rank == 0:
        assert len(messages) == 1, messages
        assert "rank 0 has waited" in messages[0]
    else:
        assert not messages
    assert criterion.multipliers.isfinite().all()


def a_subgroup_is_not_forgotten(rank):
    group = distributed.new_group([0, 1])  # the same ranks as the default group
    batch = X[rank : rank + 8, :2].clone().requires_grad_(), Y[:8], S[:8]
    file = io.BytesIO()
    torch.save(make(process_group=group), file)
    file.seek(0)
    restored = torch.load(file, weights_only=False)
    restored(*batch)
    assert is_shared(restored)

    lost = pickle.loads(pickle.dumps(make(process_group=group)))  # noqa: S301 - our own
    twin = pickle.loads(pickle.dumps(make(process_group=False)))  # noqa: S301 - our own
    join_processes(lost, group)
    for criterion in (lost, twin):
        criterion(*batch)
    assert is_shared(lost)
    assert not torch.equal(lost.multipliers, twin.multipliers)


def is_shared(criterion):
    found = [torch.empty_like(criterion.multipliers) for _ in range(2)]
    distributed.all_gather(found, criterion.multipliers)
    return torch.equal(*found)


if __name__ == "__main__":
    main()
