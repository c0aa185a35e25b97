"""What each of two processes does; started by two_ranks.py from test_lightning.py.

Every process takes every second row, as Lightning deals them out. The multipliers, and the network,
must be those of one process that sees the joined batches.
"""

import os
import sys
import warnings
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import distributed
from torch.utils.data import DataLoader, TensorDataset

from fairgrad.lightning import FairnessMonitor
from fairgrad.torch import CrossEntropyLoss

# Each is Lightning's own affair: advice on workers, and a class that PyTorch deprecates.
warnings.simplefilter("error")
warnings.filterwarnings("ignore", ".*does not have many workers")
warnings.filterwarnings("ignore", ".isinstance.treespec, LeafSpec.. is deprecated", FutureWarning)

BATCH = 16


class Linear(LightningModule):
    def __init__(self, y, s, *, nan_on_rank=None, **settings):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3, 2)
        # Made before the processes know of each other, as in every LightningModule.
        self.criterion = CrossEntropyLoss(y, s, "equalized_odds", fairness_rate=0.3, **settings)
        self.nan_on_rank = nan_on_rank

    def training_step(self, batch, batch_idx):
        x, y, s = batch
        loss = self.criterion(self.layer(x), y, s)
        is_spoilt = self.nan_on_rank == self.global_rank and batch_idx == 2
        return loss * float("nan") if is_spoilt else loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def data():
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (128,), generator=generator)
    s = torch.randint(0, 3, (128,), generator=generator)
    return torch.randn(128, 3, generator=generator) + s[:, None], y, s


def make_trainer(folder, every):
    return Trainer(
        max_epochs=2,
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        callbacks=[FairnessMonitor(every)],
        logger=False,
        default_root_dir=folder,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )


def loader_of(x, y, s, rank):
    rows = slice(rank, None, 2)
    return DataLoader(TensorDataset(x[rows], y[rows], s[rows]), BATCH // 2)


def as_one_process(x, y, s):
    alone = Linear(y, s, process_group=False)
    optimizer = alone.configure_optimizers()
    for _ in range(2):
        for start in range(0, len(y), BATCH):
            rows = slice(start, start + BATCH)
            optimizer.zero_grad()
            alone.criterion(alone.layer(x[rows]), y[rows], s[rows]).backward()
            optimizer.step()
    return alone


def main():
    folder = Path(sys.argv[1])
    x, y, s = data()
    model, trainer = Linear(y, s), make_trainer(folder, "epoch")
    trainer.fit(model, loader_of(x, y, s, trainer.global_rank))
    alone = as_one_process(x, y, s)
    multipliers = [torch.empty_like(model.criterion.multipliers) for _ in range(2)]
    distributed.all_gather(multipliers, model.criterion.multipliers)
    assert torch.equal(*multipliers)
    assert model.criterion.multipliers.abs().max() > 0.1
    torch.testing.assert_close(model.criterion.multipliers, alone.criterion.multipliers)
    torch.testing.assert_close(model.layer.weight, alone.layer.weight)
    logged = trainer.callback_metrics["fairness/multiplier/y=0, s=0"]
    torch.testing.assert_close(logged, alone.criterion.multipliers[0])

    try:
        trainer = make_trainer(folder, "step")
        trainer.fit(Linear(y, s, nan_on_rank=1), loader_of(x, y, s, trainer.global_rank))
    except FloatingPointError as error:
        told = "the loss is nan" if trainer.global_rank == 1 else "another process reported it"
        assert told in str(error)  # noqa: PT017 - no pytest here
    else:
        raise AssertionError("training went on after one process had a loss of NaN")

    # Now, while the model lives: if it is the last to release the process group, it waits for a
    # thread of the backend that waits for Python's lock. Such threads can also block the exit.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
