"""Swap one loss in PyTorch
========================

Run the same training loop with PyTorch's cross entropy and with ours, and compare.
"""

# %%
# The data set is Adult, which comes with the package: who earns more than 50,000 dollars a year?

import altair as alt
import pandas as pd
import torch

from fairgrad import fairness_levels
from fairgrad.datasets import load
from fairgrad.torch import CrossEntropyLoss

train, validation, test = load("adult").split(seed=10)
x_train, y_train, s_train = map(torch.as_tensor, train)
x_test, y_test, s_test = map(torch.as_tensor, test)

# %%
# An ordinary loop. After every epoch it records the levels on the test rows: how much more often
# the people of a group are predicted correctly than all people with the same label.

MEASURE = "equalized_odds"


def train_model(name, criterion, epochs=20):
    """Trains a linear model; returns one record per epoch and level."""
    torch.manual_seed(0)
    model = torch.nn.Linear(x_train.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    records = []
    for epoch in range(1, epochs + 1):
        for batch in torch.randperm(len(x_train)).split(512):
            optimizer.zero_grad()
            criterion(model(x_train[batch]), y_train[batch], s_train[batch]).backward()
            optimizer.step()
        predicted = model(x_test).argmax(1)
        levels = fairness_levels(y_test, predicted, s_test, MEASURE)
        accuracy = (predicted == y_test).double().mean().item()
        records += [
            {"loss": name, "epoch": epoch, "cell": cell, "level": level, "accuracy": accuracy}
            for cell, level in zip(levels.names, levels.values, strict=True)
        ]
    return records


cross_entropy = torch.nn.CrossEntropyLoss()
plain = train_model("plain", lambda logits, y, _: cross_entropy(logits, y))

criterion = CrossEntropyLoss(y_train, s_train, MEASURE, fairness_rate=0.01)
fair = train_model("fair", criterion)

# %%
# With the plain loss the gaps remain. With the fair loss they shrink, and the accuracy hardly
# changes.

records = pd.DataFrame(plain + fair)
title = "cell: label y, sex s (0 is female)"
alt.Chart(records).mark_line(strokeWidth=3).encode(
    x=alt.X("epoch:Q", axis=alt.Axis(tickMinStep=1)),
    y=alt.Y("level:Q", title="level of fairness (test rows)"),
    color=alt.Color("cell:N", title=title),
    strokeDash=alt.StrokeDash("cell:N", title=title),
    column=alt.Column("loss:N", title=None, sort=["plain", "fair"]),
).properties(
    width=260,
    height=260,
    description="Levels of fairness over twenty epochs: with the plain loss the four levels stay "
    "between -0.1 and 0.05, with the fair loss they approach 0.",
)

# %%

last = records[records["epoch"] == records["epoch"].max()]
last.groupby("loss", sort=False).agg(
    accuracy=("accuracy", "first"), unfairness=("level", lambda level: level.abs().mean())
).round(4)

# %%
# How the loss does it: it gives each combination of label and sex a weight. With a weight above 1
# an error there counts more than in the plain loss, with a weight below 1 less.

for name, weight in zip(criterion.cell_names, criterion.cell_weights.tolist(), strict=True):
    print(f"{name}: {weight:+.2f}")
