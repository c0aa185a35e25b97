"""Resume from a checkpoint
========================

Save the state of the loss together with the model and the optimizer. Training then continues as if
it had never stopped.
"""

# %%
# Each epoch has its own seed, so that it can be repeated exactly.

import io

import altair as alt
import pandas as pd
import torch

from fairgrad.datasets import load
from fairgrad.torch import CrossEntropyLoss

train, _, _ = load("adult").split(seed=10)
x_train, y_train, s_train = map(torch.as_tensor, train.rows(slice(10_000)))


def new_run():
    """Model, optimizer and loss at the start."""
    torch.manual_seed(0)
    model = torch.nn.Linear(x_train.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer, CrossEntropyLoss(y_train, s_train, "equalized_odds")


def train_epochs(name, run, epochs):
    """Trains and notes the multiplier of the first constraint after every epoch."""
    model, optimizer, criterion = run
    records = []
    for epoch in epochs:
        generator = torch.Generator().manual_seed(epoch)
        for batch in torch.randperm(len(x_train), generator=generator).split(256):
            optimizer.zero_grad()
            criterion(model(x_train[batch]), y_train[batch], s_train[batch]).backward()
            optimizer.step()
        records.append({"run": name, "epoch": epoch, "multiplier": criterion.multipliers[0].item()})
    return records


# %%
# First, sixteen epochs without interruption:

unbroken = new_run()
records = train_epochs("unbroken", unbroken, range(1, 17))

# %%
# Then with a checkpoint of model, optimizer and loss after eight epochs. Another process would load
# it in the same way.

before = new_run()
records += train_epochs("resumed", before, range(1, 9))
checkpoint = io.BytesIO()
torch.save([item.state_dict() for item in before], checkpoint)

checkpoint.seek(0)
resumed = new_run()
for item, state in zip(resumed, torch.load(checkpoint, weights_only=True), strict=True):
    item.load_state_dict(state)
records += train_epochs("resumed", resumed, range(9, 17))

print("same weights:", torch.equal(unbroken[0].weight, resumed[0].weight))
print("same multipliers:", torch.equal(unbroken[2].multipliers, resumed[2].multipliers))

# %%
# And with a checkpoint that does not contain the loss. Its multipliers start again from 0:

checkpoint.seek(0)
forgetful = new_run()
for item, state in zip(forgetful[:2], torch.load(checkpoint, weights_only=True)[:2], strict=True):
    item.load_state_dict(state)
records += train_epochs("loss not saved", forgetful, range(9, 17))

scale = alt.Scale(domain=["unbroken", "resumed", "loss not saved"])
alt.Chart(pd.DataFrame(records)).mark_line(strokeWidth=3).encode(
    x="epoch:Q",
    y=alt.Y("multiplier:Q", title="multiplier of the first constraint"),
    color=alt.Color("run:N", title=None, scale=scale),
    strokeDash=alt.StrokeDash("run:N", title=None, scale=scale),
).properties(
    width=480,
    height=260,
    description="A multiplier over sixteen epochs: the resumed run lies exactly on the unbroken "
    "one, the run whose loss was not saved falls back to 0 at epoch 9.",
)

# %%
# The state of another problem is refused
# ---------------------------------------
# The state contains a fingerprint of the data, the measure and the bounds. Loading it into a loss
# for another problem is an error:

other = CrossEntropyLoss(y_train, s_train, "demographic_parity")
try:
    other.load_state_dict(resumed[2].state_dict())
except (ValueError, RuntimeError) as error:
    print(str(error).splitlines()[0])
