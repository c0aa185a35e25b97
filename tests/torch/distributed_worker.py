"""What each of two processes does; started by torchrun from test_distributed.py.

Every process takes half of each batch. After every step its multipliers, and the mean of the two
losses, must be those of one process that sees the whole batch.
"""

import copy
import gc
import pickle
from pathlib import Path

import torch
from torch import distributed, nn

from fairgrad.torch import CrossEntropyLoss


def main():
    before = made_before_there_are_processes()
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (64,), generator=generator)
    s = torch.randint(0, 3, (64,), generator=generator)
    batches = [torch.randperm(64, generator=generator)[:16] for _ in range(20)]
    batches[3] = torch.cat([torch.nonzero(s == 0)[:8, 0], torch.nonzero(s == 1)[:8, 0]])
    for measure, epsilon in [("equalized_odds", 0.0), ("accuracy_parity", 0.05)]:
        compare(rank, y, s, batches, measure, epsilon)
    copies_keep_the_group(rank, y, s)
    different_data_are_refused(rank, y, s)
    shards_are_summed(rank, y, s)
    it_shares_its_multipliers_once_there_are(rank, before)
    distributed.barrier()
    distributed.destroy_process_group()
    no_thread_of_the_backend_remains()


def compare(rank, y, s, batches, measure, epsilon):
    settings = {"fairness_rate": 0.3, "epsilon": epsilon, "error_memory": 0.5}
    shared = CrossEntropyLoss(y, s, measure, **settings)
    alone = CrossEntropyLoss(y, s, measure, process_group=False, **settings)
    generator = torch.Generator().manual_seed(1)
    for batch in batches:
        logits = torch.randn(16, 2, generator=generator)
        half = slice(8 * rank, 8 * rank + 8)
        loss = shared(logits[half].requires_grad_(), y[batch[half]], s[batch[half]]).detach()
        whole = alone(logits.requires_grad_(), y[batch], s[batch]).detach()
        distributed.all_reduce(loss)
        torch.testing.assert_close(loss / 2, whole, atol=1e-6, rtol=0)
        torch.testing.assert_close(shared.multipliers, alone.multipliers, atol=1e-6, rtol=0)


def copies_keep_the_group(rank, y, s):
    original = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=0.3)
    for twin in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):  # noqa: S301 - ours
        wrong_on_one_rank = torch.tensor([[1.0, 0.0]]) if rank == 0 else torch.tensor([[0.0, 1.0]])
        twin(wrong_on_one_rank.requires_grad_(), torch.tensor([0]), s[:1])
        multipliers = [torch.empty_like(twin.multipliers) for _ in range(2)]
        distributed.all_gather(multipliers, twin.multipliers)
        assert torch.equal(*multipliers)


def made_before_there_are_processes():
    y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    return CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=0.3)


def it_shares_its_multipliers_once_there_are(rank, criterion):
    y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    logits = torch.randn(4, 2, generator=torch.Generator().manual_seed(rank)).requires_grad_()
    criterion(logits, y, s)
    multipliers = [torch.empty_like(criterion.multipliers) for _ in range(2)]
    distributed.all_gather(multipliers, criterion.multipliers)
    assert torch.equal(*multipliers)


def different_data_are_refused(rank, y, s):
    try:
        CrossEntropyLoss(y[rank:], s[rank:], "equalized_odds")
    except ValueError as error:
        assert "pass the same to all, or sharded=True" in str(error)  # noqa: PT017 - no pytest here
    else:
        raise AssertionError("different data were accepted")


def shards_are_summed(rank, y, s):
    shard = slice(0, 40) if rank == 0 else slice(40, 64)
    summed = CrossEntropyLoss(y[shard], s[shard], "equalized_odds", sharded=True)
    whole = CrossEntropyLoss(y, s, "equalized_odds")
    assert (summed.groups.mass == whole.groups.mass).all()
    assert summed.group_names == whole.group_names
    assert isinstance(summed.base_loss, nn.CrossEntropyLoss)


def no_thread_of_the_backend_remains():
    gc.collect()
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    assert not [name for name in names if name.startswith("pt_gloo_runloop")], names


if __name__ == "__main__":
    main()
