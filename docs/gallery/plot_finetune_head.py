"""Make an existing network fair
=============================

Replace the last layer of a trained network by a fair layer. All other layers stay unchanged.
"""

# %%
# First we need a network that was trained without fairness. This one is small, but its size does
# not matter.

import altair as alt
import torch

from fairgrad import fairness_levels
from fairgrad.datasets import load
from fairgrad.finetune import finetune, finetune_head

before, ours, test = load("adult").split(seed=10)
x, y, _ = map(torch.as_tensor, before)

torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Linear(52, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32), torch.nn.ReLU(),
    torch.nn.Linear(32, 2),
)  # fmt: skip
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
for _ in range(4):
    for batch in torch.randperm(len(x)).split(256):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()
        optimizer.step()
network.eval()

# %%
# ``finetune_head`` computes the inputs of the last layer once per row. On these it trains sixteen
# last layers ("heads"), from exactly fair to unconstrained, in one pass. We choose the most
# accurate one with an unfairness of at most 0.03.

heads = finetune_head(
    network,
    torch.as_tensor(ours.X),
    ours.y,
    ours.s,
    fairness_measure="equalized_odds",
    test=(torch.as_tensor(test.X), test.y, test.s),
    random_state=0,
)
chosen = heads.frontier.choose(max_unfairness=0.03)
heads.frontier.plot(chosen=chosen)

# %%
# The result is an ordinary PyTorch module. To predict with it, you need neither this package nor
# the sensitive values.

fair = heads.module(chosen)
x_test = torch.as_tensor(test.X)
for name, model in {"before": network, "new head": fair}.items():
    predicted = model(x_test).argmax(1)
    levels = fairness_levels(test.y, predicted, test.s, "equalized_odds")
    accuracy = (predicted.numpy() == test.y).mean()
    print(f"{name}: accuracy {accuracy:.3f}, unfairness {levels.unfairness:.3f}")

# %%
# All parameters except those of the last layer are the same as before:

same = [
    torch.equal(old, new) for old, new in zip(network.parameters(), fair.parameters(), strict=True)
]
print(same)

# %%
# The unfairness of all sixteen heads:

points = heads.points.assign(epsilon=heads.points["epsilon"].clip(upper=1))
alt.Chart(points).mark_line(point=True).encode(
    x=alt.X("epsilon:Q", title="epsilon (plain at the right end)").scale(
        type="symlog", constant=0.01
    ),
    y=alt.Y("test_unfairness:Q", title="unfairness of the head (test rows)"),
).properties(
    width=480,
    height=220,
    description="Unfairness of sixteen heads on test rows over epsilon: it rises from about 0.01 "
    "with the slack that is allowed.",
)

# %%
# ``finetune`` trains all layers with the fair loss. It then moves the last layer until ``epsilon``,
# 0.05 by default, is kept on the training rows. If that fails, or costs much accuracy, it warns.
# This takes as long as any other training. :doc:`/results/finetuning` compares the two.

tuned = finetune(network, torch.as_tensor(ours.X), ours.y, ours.s, epsilon=0.02, random_state=0)
predicted = tuned.module(x_test).argmax(1)
levels = fairness_levels(test.y, predicted, test.s, "equalized_odds")
accuracy = (predicted.numpy() == test.y).mean()
print(f"all layers: accuracy {accuracy:.3f}, unfairness {levels.unfairness:.3f}")
