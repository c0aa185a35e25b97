"""Small groups and uncertainty
============================

With few people in a group, no audit can tell whether a model is fair. It should then answer
"undecided", not with a single number.
"""

# %%
# A model judged on one thousand people of German credit data, two hundred of them to test. Is it
# fair to women and men?

import altair as alt
import numpy as np
import pandas as pd

from fairgrad.audit import Audit
from fairgrad.datasets import load
from fairgrad.sklearn import FairGradClassifier

german = load("german")
train, validation, test = german.split(seed=10, stratified=True)
model = FairGradClassifier(None, random_state=0).fit(train.X, train.y)
predicted = model.predict(test.X)
sex = np.array(["women", "men"])[test.s]
audit = Audit(test.y, predicted, {"sex": sex}, measures="equality_of_opportunity", tolerance=0.05)
audit.to_frame("verdicts")[["verdict", "judged", "judged_low", "judged_high"]].round(3)

# %%
# Undecided: the level may be anywhere in the interval. The audit estimates how many more
# people of each group would settle it four times out of five, if the rates are as observed.

print(audit.findings[0].rows_needed)

# %%
# How the interval shrinks
# ------------------------
# Suppose a model that treats two groups a little differently: it recognises 80 % of one and 74 %
# of the other, so that the levels are +0.03 and -0.03, within a tolerance of 0.05. The groups have
# equally many people. Ten draws of each size:

rng = np.random.default_rng(1)
rates, draws = {"A": 0.80, "B": 0.74}, []
for size in (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000):
    for draw in range(10):
        y = np.ones(2 * size, dtype=int)
        y[:: max(size // 25, 1)] = 0  # some with the other label
        group = np.repeat(list(rates), size)
        right = rng.random(2 * size) < np.where(group == "A", rates["A"], rates["B"])
        found = Audit(
            y,
            np.where(right, y, 1 - y),
            {"group": group},
            measures="equality_of_opportunity",
            tolerance=0.05,
        ).findings[0]
        draws.append(
            {
                "people per group": size,
                "draw": draw,
                "figure": found.judgement.value,
                "upper end": found.judgement.high,
                "lower end": found.judgement.low,
                "verdict": found.verdict,
            }
        )
draws = pd.DataFrame(draws)

counts = draws.groupby(["people per group", "verdict"]).size().reset_index(name="draws")
alt.Chart(counts).mark_bar().encode(
    x=alt.X("people per group:O", axis=alt.Axis(labelAngle=0)),
    y=alt.Y("draws:Q", title="verdicts in ten draws"),
    color=alt.Color("verdict:N", title=None),
).properties(
    width=480,
    height=220,
    description="Verdicts of ten draws by group size: mostly undecided up to two thousand people "
    "per group, always fair within tolerance from five thousand on.",
)

# %%
# Below a few thousand people per group the honest answer is "undecided". The figure itself jumps
# about, as the next picture shows: a small sample can look perfectly fair, or quite unfair, by
# luck.

observed = (
    alt.Chart(draws)
    .mark_point(filled=True, opacity=0.6, size=50)
    .encode(
        x=alt.X("people per group:O", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("figure:Q", title="largest absolute level observed"),
    )
)
true_level = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(y=alt.datum(0.03))
alt.layer(observed, true_level, data=draws).properties(
    width=480,
    height=220,
    description="The largest observed level by group size: between 0 and 0.12 with fifty people "
    "per group, close to the true 0.03 with many.",
)

# %%
# What to do with small groups
# ----------------------------
# - Merge groups that are alike for the question at hand, or collect more people of the small ones.
# - Split with ``split(stratified=True)``, so that every part has its share of every cell.
# - Train with ``error_memory``, so that rare cells pool over batches, and with an ``epsilon`` no
#   smaller than what the data can show.
# - Report the interval, not the figure.
