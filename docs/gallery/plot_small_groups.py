"""Judge small groups
==================

With few people in a group, no audit can tell whether a model is fair. Its verdict is then
"undecided", and it estimates how many more people it needs.
"""

# %%
# The German credit data have one thousand people. We test a model on some of them. Is it fair to
# women and men?

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
# Undecided: the true level may be anywhere in the interval. With this many more people in each
# group, the audit would settle it with a chance of 80 %, if the rates are as observed:

print(audit.findings[0].rows_needed)

# %%
# How the interval shrinks
# ------------------------
# Suppose a model finds 80 % of the good cases in one group and 74 % in the other. With groups of
# equal size the levels are +0.03 and -0.03, within the tolerance of 0.05. We draw ten samples of
# each size and audit them:

rng = np.random.default_rng(1)
rates, draws = {"A": 0.80, "B": 0.74}, []
for size in (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000):
    for draw in range(10):
        y = np.ones(2 * size, dtype=int)
        y[:: max(size // 25, 1)] = 0  # some with the other label
        group = np.repeat(list(rates), size)
        right = rng.random(2 * size) < np.where(group == "A", rates["A"], rates["B"])
        finding = Audit(
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
                "figure": finding.judgement.value,
                "verdict": finding.verdict,
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
# Below a few thousand people per group the verdict is mostly "undecided". The next chart shows why:
# by chance, a small sample can look perfectly fair or very unfair. The dashed line is the true
# level.

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
# - Merge similar groups, or collect more people of the small ones.
# - When you split the rows, keep the share of each label and group in every part (stratify).
# - Do not choose an ``epsilon`` smaller than the data can show.
# - Report the interval, not only the figure.
