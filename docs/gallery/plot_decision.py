"""Make an existing classifier fair
================================

Wrap any classifier with ``predict_proba``. Its decisions become fair. You need the sensitive values
to fit, not to predict.
"""

# %%
# A logistic regression on Adult. It overlooks women with a high income more often than men.

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
split = train_test_split(
    adult.frame, adult.y, adult.sensitive["sex"], test_size=0.4, random_state=0
)
X_train, X_test, y_train, y_test, sex_train, sex_test = split
model = make_pipeline(adult.encoder(), LogisticRegression(max_iter=500))
model.fit(X_train, y_train)


def judged(name, predicted):
    """Accuracy and unfairness on the test rows."""
    levels = fairness_levels(y_test, predicted, sex_test, MEASURE)
    accuracy = (predicted == y_test).mean()
    return {"model": name, "accuracy": accuracy, "unfairness": levels.unfairness}


pd.DataFrame([judged("as it is", model.predict(X_test))]).round(4)

# %%
# Wrap it in :class:`~fairgrad.sklearn.FairDecisionClassifier`. With ``prefit=True`` your fitted
# model does not change. Without it, copies of the model are fitted in three folds, which takes
# longer and works better for models that overfit. ``epsilon`` is the largest level allowed: 0.05 by
# default, 0.03 here.

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
# How it decides
# --------------
# The classifier estimates how likely each combination of label and group is. It multiplies each
# probability by a weight and predicts the label with the largest sum,
# ``h(x) = argmax_l sum_r w_(l,r) P(y = l, s = r | x)``. If the probabilities are right, this is the
# most accurate fair decision. These are the weights:

pd.DataFrame({"cell": refitted.cell_names_, "weight": refitted.cell_weights_}).round(3)

# %%
# ``predict`` returns the fair decision. ``predict_proba`` still returns the probability of each
# label, as your model estimates it:

pd.DataFrame(
    {
        "mean probability of a high income": [refitted.predict_proba(X_test)[:, 1].mean()],
        "share with a high income": [y_test.mean()],
        "share predicted so": [refitted.predict(X_test).mean()],
    }
).round(3)

# %%
# Exact fairness by lottery
# -------------------------
# Often no single rule meets exact equalized odds. With ``lottery=True`` the classifier mixes a few
# rules. A hash of the row decides which rule applies, so the same row always gets the same answer.
# The mixture keeps the bounds on the training rows. Exact fairness can make some people worse off
# without helping others: see :doc:`/understand/levelling_down`.

drawn = FairDecisionClassifier(model, MEASURE, 0.0, prefit=True, lottery=True, random_state=0)
drawn.fit(X_train, y_train, sensitive_features=sex_train)
pd.DataFrame([judged("lottery", drawn.predict(X_test))]).round(4)

# %%
# What fairness costs
# -------------------
# A frontier shows the accuracy for several epsilons, here with the lottery. The second
# line is for models that use the sensitive value to predict (``use_sensitive=True``), which the law
# may forbid (:doc:`/understand/aware`). Here it hardly helps, because other columns of Adult, such
# as "wife", reveal the sex.

lines = []
for name, aware in {"without sex": False, "with sex": True}.items():
    template = FairDecisionClassifier(
        LogisticRegression(max_iter=500), MEASURE, use_sensitive=aware, lottery=True
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
    order="validation_unfairness:Q",
).properties(
    width=420,
    height=260,
    description="Accuracy against unfairness of fair decisions with and without sex: both rise "
    "from 0.83 or 0.84 near exact fairness to 0.848, that of the plain model.",
)

# %%
# Random forests, LightGBM, calibrated models and skorch networks work the same way.
