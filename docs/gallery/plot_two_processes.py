"""Train in several processes
==========================

Train with ``DistributedDataParallel``: the processes share one set of multipliers. Two processes
give the same result as one that sees the joined batches.
"""

# %%
# This script runs in each process. Two things differ from training in one process: the model is
# wrapped in ``DistributedDataParallel``, and ``sharded=True`` tells the loss that it gets only this
# process's share of the training rows.
#
# .. literalinclude:: /gallery/worker_two_processes.py
#    :language: python
#    :lines: 12-

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import altair as alt
import pandas as pd
import torch

from fairgrad.datasets import load
from fairgrad.torch import CrossEntropyLoss

# %%
# ``torchrun`` starts two of these processes here. On a cluster it starts them on many machines.

command = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "worker_two_processes.py"]
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.executable, "-m", *command, folder], check=True, capture_output=True)
    ranks = [
        json.loads(Path(folder, f"rank{rank}.json").read_text(encoding="utf-8")) for rank in (0, 1)
    ]
print("equal multipliers in both processes:", ranks[0] == ranks[1])

# %%
# The same training in one process, with whole batches:

train, _, _ = load("german").split(seed=10)
x_train, y_train, s_train = map(torch.as_tensor, train)
torch.manual_seed(0)
model = torch.nn.Linear(x_train.shape[1], 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = CrossEntropyLoss(y_train, s_train, "accuracy_parity")
alone = []
for epoch in range(8):
    order = torch.randperm(len(x_train), generator=torch.Generator().manual_seed(epoch))
    for batch in order.split(100):
        optimizer.zero_grad()
        criterion(model(x_train[batch]), y_train[batch], s_train[batch]).backward()
        optimizer.step()
        alone.append(criterion.multipliers.tolist())

difference = (torch.tensor(alone) - torch.tensor(ranks[0])).abs().max().item()
print(f"largest difference of a multiplier over {len(alone)} steps: {difference:.1e}")

# %%
# The multiplier of the first constraint is the same in every step:

records = [
    {"who": who, "step": step + 1, "multiplier": multipliers[0]}
    for who, steps in {"one process": alone, "two processes": ranks[0]}.items()
    for step, multipliers in enumerate(steps)
]
scale = alt.Scale(domain=["one process", "two processes"])
alt.Chart(pd.DataFrame(records)).mark_line(strokeWidth=3).encode(
    x="step:Q",
    y=alt.Y("multiplier:Q", title=f"multiplier of {criterion.constraint_names[0]}"),
    color=alt.Color("who:N", title=None, scale=scale),
    strokeDash=alt.StrokeDash("who:N", title=None, scale=scale),
).properties(
    width=480,
    height=240,
    description="A multiplier over the steps of training: the dashed line of the two processes "
    "lies on the line of one process.",
)

# %%
# In every step the processes add up their counts of correct and wrong predictions, two numbers per
# combination of label and group. :doc:`/scale` shows what that costs.
