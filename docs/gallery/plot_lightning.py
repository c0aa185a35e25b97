"""Train with Lightning
====================

Use the fair loss in a ``LightningModule`` and log fairness with a callback.
"""

# %%
# Make the loss an attribute of the module and call it in ``training_step``. Then every checkpoint
# contains its state. In ``validation_step`` it returns the plain loss, because Lightning calls
# ``eval()`` first.

import logging
import tempfile
import warnings

import altair as alt
import pandas as pd
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

from fairgrad.datasets import load
from fairgrad.lightning import FairnessMonitor
from fairgrad.torch import CrossEntropyLoss

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")  # hints about workers and devices


class Classifier(LightningModule):
    """A small network for the census."""

    def __init__(self, y_train, s_train):
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(52, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)
        )
        self.criterion = CrossEntropyLoss(
            y_train,
            s_train,
            "equalized_odds",
            fairness_rate=0.05,
            proportional_rate=2.0,
            error_memory=0.9,
        )

    def training_step(self, batch, _batch_idx):
        """The fair loss of a batch."""
        x, y, s = batch
        return self.criterion(self.network(x), y, s)

    def configure_optimizers(self):
        """Plain stochastic gradient descent."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


# %%
# The sampler draws whole batches, which is faster than fetching single rows.

train, _, _ = load("adult").split(seed=10)
x_train, y_train, s_train = map(torch.as_tensor, train)
rows = TensorDataset(x_train, y_train, s_train)
sampler = torch.utils.data.BatchSampler(
    torch.utils.data.RandomSampler(rows, generator=torch.Generator().manual_seed(0)),
    512,
    drop_last=False,
)
loader = DataLoader(rows, sampler=sampler, batch_size=None)

torch.manual_seed(0)
model = Classifier(y_train, s_train)
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        max_epochs=16,
        accelerator="cpu",
        gradient_clip_val=1.0,
        callbacks=[FairnessMonitor()],
        logger=CSVLogger(folder),
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    logged = pd.read_csv(f"{trainer.logger.log_dir}/metrics.csv")

# %%
# ``FairnessMonitor`` logs levels, multipliers and weights to the loggers of the trainer, here to a
# CSV file. It also stops a run that diverges, and lets several processes share one set of
# multipliers.

levels = logged.filter(like="fairness/level/").assign(epoch=logged["epoch"] + 1).dropna()
long = levels.melt("epoch", var_name="cell", value_name="level")
long["cell"] = long["cell"].str.removeprefix("fairness/level/")
alt.Chart(long).mark_line(strokeWidth=3).encode(
    x=alt.X("epoch:Q", axis=alt.Axis(tickMinStep=1)),
    y=alt.Y("level:Q", title="level of fairness (training batches)"),
    color=alt.Color("cell:N", title="label y, sex s"),
    strokeDash=alt.StrokeDash("cell:N", title="label y, sex s"),
).properties(
    width=480,
    height=240,
    description="Levels of fairness over sixteen epochs of a Lightning training: they move away "
    "from 0 while the model learns, and then back towards 0.",
)

# %%
# It also logs how many rows have a negative weight (:doc:`plot_negative_weights`).

share = logged["fairness/negative_share"].dropna().iloc[-1]
print(f"share of rows with a negative weight at the end: {share:.2f}")
