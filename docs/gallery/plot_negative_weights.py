"""Why negative weights are needed
===============================

A case in which no loss with non-negative weights leads to a fair model (Lemma 1 of the paper).
"""

# %%
# There are two groups and one feature, and every model is a threshold on that feature. In group A
# the feature separates the labels well. In group B it separates them less well, and fewer people
# have label 1.

import altair as alt
import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 4000
y = np.concatenate([rng.random(n) < 0.5, rng.random(n) < 0.3]).astype(int)
group = np.repeat(["A", "B"], n)
centre, spread = np.where(group == "A", 1.5, 0.5), np.where(group == "A", 0.6, 1.0)
x = np.where(y == 1, centre, -centre) + spread * rng.normal(size=2 * n)

thresholds = np.linspace(-2.5, 4, 400)
errors = pd.DataFrame(
    [{"threshold": t, **{g: ((x > t) != y)[group == g].mean() for g in "AB"}} for t in thresholds]
)

# %%
# Each point of the curve is a model. The models on the diagonal are fair by accuracy parity. Even
# the best model *for group B* lies above the diagonal: B has more errors than A. So every fair
# model is worse for both groups than some unfair one.

errors["gap"] = (errors["A"] - errors["B"]).abs()
marked = pd.concat(
    [
        errors.loc[[errors["B"].idxmin()]].assign(model="best for group B"),
        errors.loc[[errors[["A", "B"]].mean(axis=1).idxmin()]].assign(model="most accurate"),
        errors[errors["threshold"] > 0.5].nsmallest(1, "gap").assign(model="fair"),
    ]
)
path = (
    alt.Chart(errors)
    .mark_line()
    .encode(
        x=alt.X("A:Q", title="error of group A"),
        y=alt.Y("B:Q", title="error of group B"),
        order="threshold:Q",
    )
)
fair = (
    alt.Chart(pd.DataFrame({"A": [0.0, 0.5], "B": [0.0, 0.5]}))
    .mark_line(strokeDash=[4, 4], color="gray")
    .encode(x="A:Q", y="B:Q")
)
points = (
    alt.Chart(marked)
    .mark_point(size=140, filled=True, opacity=1)
    .encode(
        x="A:Q",
        y="B:Q",
        color=alt.Color("model:N", title=None),
        shape=alt.Shape("model:N", title=None),
    )
)
alt.layer(path, fair, points).properties(
    width=380,
    height=380,
    description="Errors of two groups for all thresholds: the models with small errors lie above "
    "the diagonal of fair models; the curve meets the diagonal only where both errors "
    "are larger.",
)

# %%
# Which model minimizes the weighted error? Group B has weight 1, and the weight of group A varies.
# Non-negative weights always lead to a model at the lower left of the curve, never to one on the
# diagonal:


def best_for(weight):
    """The errors of the model with the least weighted error; B has weight 1."""
    return errors.loc[(weight * errors["A"] + errors["B"]).idxmin(), ["A", "B"]]


weights = np.linspace(-1, 3, 161)
gaps = pd.DataFrame(
    {
        "weight of group A": weights,
        "gap": [best_for(w)["B"] - best_for(w)["A"] for w in weights],
        "sign": np.where(weights < 0, "negative", "0 or above"),
    }
)
alt.Chart(gaps).mark_line(strokeWidth=3).encode(
    x=alt.X("weight of group A:Q"),
    y=alt.Y("gap:Q", title="error of B minus error of A"),
    color=alt.Color("sign:N", title="weight"),
    strokeDash=alt.StrokeDash("sign:N", title="weight"),
).properties(
    width=480,
    height=220,
    description="The gap between the groups' errors of the best model, over the weight of group "
    "A: it stays above 0.1 for weights of 0 or above, and changes sign only for a "
    "negative one.",
)

# %%
# The gap changes its sign only at a negative weight of A. Here errors are counted, so the best
# model jumps across the diagonal. With a smooth loss it can stop on the diagonal.

# %%
# The same in training
# --------------------
# We train a logistic model with the fair loss, once with negative weights and once with weights
# clipped at 0. The option ``negative_weights=False`` exists only for this comparison.

import torch

from fairgrad.torch import BCEWithLogitsLoss

features = torch.tensor(x, dtype=torch.float32)[:, None]
labels, groups = torch.tensor(y, dtype=torch.float32), torch.tensor((group == "B").astype(int))


def trained(negative_weights):
    """Errors of both groups and their weights after training."""
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = BCEWithLogitsLoss(
        labels.long(),
        groups,
        "accuracy_parity",
        fairness_rate=0.02,
        proportional_rate=1.0,
        error_memory=0.9,
        negative_weights=negative_weights,
    )
    for _ in range(60):
        for batch in torch.randperm(len(labels)).split(500):
            optimizer.zero_grad()
            criterion(model(features[batch])[:, 0], labels[batch], groups[batch]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    wrong = (model(features)[:, 0] > 0) != labels.bool()
    return {
        **{
            f"error of {name}": wrong[groups == g].double().mean().item()
            for g, name in enumerate("AB")
        },
        **{
            f"weight of {name}": weight
            for name, weight in zip("AB", criterion.cell_weights.tolist(), strict=True)
        },
    }


pd.DataFrame(
    [
        {"weights": name, **trained(allowed)}
        for name, allowed in {"negative allowed": True, "clipped at 0": False}.items()
    ]
).round(3)

# %%
# With negative weights the model is fair, but no group gained: the error of A rose to that of B.
# This is called *levelling down*. On such data every fair model does it.
# :doc:`/understand/levelling_down` shows how to avoid it.
