"""Make the model you have fair
============================

Any classifier that gives probabilities becomes fair by a handful of numbers: no training loop, no
new kind of model, and no sensitive value to predict.
"""

# %%
# A logistic regression on Adult, as many have one. Women with a high income are missed more often
# than men.

import altair as alt
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from fairgrad import fairness_levels
from fairgrad.datasets import load
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairDecisionClassifier

MEASURE = "equalized_odds"
adult = load("adult")
parts = train_test_split(
    adult.frame, adult.y, adult.sensitive["sex"], test_size=0.4, random_state=0
)
X_train, X_test, y_train, y_test, sex_train, sex_test = parts
model = make_pipeline(adult.encoder(), LogisticRegression(max_iter=500))
model.fit(X_train, y_train)


def judged(name, predicted):
    """Accuracy and unfairness on the test rows."""
    levels = fairness_levels(y_test, predicted, sex_test, MEASURE)
    accuracy = (predicted == y_test).mean()
    return {"model": name, "accuracy": accuracy, "unfairness": levels.unfairness}


pd.DataFrame([judged("as it is", model.predict(X_test))]).round(4)

# %%
# Now the same model within :class:`~fairgrad.sklearn.FairDecisionClassifier`. With ``prefit=True``
# the fitted model stays as it is: only models of the groups and one multiplier per constraint are
# added. Without it, copies of the model are fitted in three folds. ``epsilon`` is the largest level
# allowed, 0.05 by default; this page asks for stricter fairness.

kept = FairDecisionClassifier(model, MEASURE, 0.03, prefit=True)
kept.fit(X_train, y_train, sensitive_features=sex_train)
refitted = FairDecisionClassifier(model, MEASURE, 0.03)
refitted.fit(X_train, y_train, sensitive_features=sex_train)

pd.DataFrame(
    [
        judged("as it is", model.predict(X_test)),
        judged("fair decisions, prefit", kept.predict(X_test)),
        judged("fair decisions, refitted", refitted.predict(X_test)),
    ]
).round(4)

# %%
# What it does
# ------------
# The most accurate rule that keeps the constraints is known in closed form. It weighs the
# probabilities of the cells, ``h(x) = argmax_l sum_r w_(l,r) P(y = l, s = r | x)``, and the weights
# come from the multipliers:

pd.DataFrame({"cell": refitted.cell_names_, "weight": refitted.cell_weights_}).round(3)

# %%
# Strict equalized odds asks to give up what the model knows better about one of the groups. See
# :doc:`/understand/levelling_down` before you ask for exact fairness.
#
# ``predict`` makes the fair decision. ``predict_proba`` is still the probability of the label, as
# the model estimates it:

pd.DataFrame(
    {
        "mean probability of a high income": [refitted.predict_proba(X_test)[:, 1].mean()],
        "share with a high income": [y_test.mean()],
        "share predicted so": [refitted.predict(X_test).mean()],
    }
).round(3)

# %%
# Exact fairness and the lottery
# ------------------------------
# Often no single rule keeps exact equalized odds. ``lottery=True`` then mixes a few rules: a keyed
# digest of each row decides which rule applies, so the same row always gets the same answer. The
# mixture keeps the bounds on the rows of the fit.

drawn = FairDecisionClassifier(model, MEASURE, 0.0, prefit=True, lottery=True, random_state=0)
drawn.fit(X_train, y_train, sensitive_features=sex_train)
pd.DataFrame([judged("drawn by lot", drawn.predict(X_test))]).round(4)

# %%
# How much fairness for how much accuracy
# ---------------------------------------
# The model is fitted once; all slacks together take seconds. The second line may look at the
# sensitive value to predict (``use_sensitive=True``), which the law may forbid. Here it gains next
# to nothing: other columns of Adult, such as being a wife, give the sex away.

lines = []
for name, aware in {"without sex": False, "with sex": True}.items():
    template = FairDecisionClassifier(
        LogisticRegression(max_iter=500), MEASURE, use_sensitive=aware
    )
    matrix = adult.encoder().fit(X_train)
    frontier = Frontier(template, epsilons=6, random_state=0).fit(
        matrix.transform(X_train),
        y_train,
        sensitive_features=sex_train,
        validation=(matrix.transform(X_test), y_test, sex_test),
    )
    lines.append(frontier.points_.assign(decisions=name))
points = pd.concat(lines)
alt.Chart(points).mark_line(point=True).encode(
    x=alt.X("validation_unfairness:Q", title="unfairness (mean |F|)"),
    y=alt.Y("validation_accuracy:Q", title="accuracy").scale(zero=False),
    color=alt.Color("decisions:N", title="predicts"),
    strokeDash=alt.StrokeDash("decisions:N", title="predicts"),
    order="epsilon:Q",
).properties(
    width=420,
    height=260,
    description="Accuracy against unfairness of fair decisions with and without sex: both rise "
    "from about 0.83 at exact fairness to that of the plain model.",
)

# %%
# Any other classifier works the same way: random forests, LightGBM, a calibrated model, a skorch
# network. Models are cross-fitted: each row is judged by a model that has not learnt from it, and
# the result is the mean of the folds' models.
