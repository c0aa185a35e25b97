"""Make boosted trees fair
=======================

Replace LightGBM's or XGBoost's classifier by ours and pass the sensitive values to ``fit``.
"""

# %%
# ``FairGradLGBMClassifier`` takes the arguments of LightGBM's classifier, a fairness measure and
# ``epsilon``: here no group may be more than 2 points from the overall rate.

import altair as alt
import pandas as pd
from sklearn.model_selection import train_test_split

from fairgrad import fairness_levels
from fairgrad.datasets import load
from fairgrad.lightgbm import FairGradLGBMClassifier

MEASURE = "demographic_parity"
adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
split = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = split

settings = {
    "n_estimators": 150,
    "num_leaves": 15,
    "min_child_samples": 100,
    "colsample_bytree": 0.3,
    "random_state": 0,
    "n_jobs": 1,
    "verbose": -1,
}
plain = FairGradLGBMClassifier(None, **settings).fit(X_train, y_train)
fair = FairGradLGBMClassifier(MEASURE, epsilon=0.02, **settings)
fair.fit(X_train, y_train, sensitive_features=sex_train)

# %%
# LightGBM can predict with the first trees only, so we can compare both models after each round.

rounds = [5, 10, 20, 40, 60, 80, 100, 125, 150]
records = []
for name, model in {"plain": plain, "fair": fair}.items():
    for n in rounds:
        predicted = (model.predict_proba(X_test, num_iteration=n)[:, 1] > 0.5).astype(int)
        levels = fairness_levels(y_test, predicted, sex_test, MEASURE)
        records += [
            {"model": name, "rounds": n, "figure": "unfairness", "value": levels.unfairness},
            {"model": name, "rounds": n, "figure": "error", "value": (predicted != y_test).mean()},
        ]
grown = pd.DataFrame(records)
alt.Chart(grown).mark_line(strokeWidth=3).encode(
    x="rounds:Q",
    y=alt.Y("value:Q", title=None),
    color=alt.Color("model:N", title=None),
    strokeDash=alt.StrokeDash("model:N", title=None),
    column=alt.Column("figure:N", title=None),
).resolve_scale(y="independent").properties(
    width=240,
    height=220,
    description="Error and unfairness on test rows over the boosting rounds: the error of the fair "
    "model is slightly higher than that of the plain model, its unfairness far lower.",
)

# %%
# After the last round:

grown[grown["rounds"] == rounds[-1]].pivot_table(
    index="model", columns="figure", values="value", sort=False
).round(4)

# %%
# If you call ``lightgbm.train`` or ``xgboost.train`` yourself, pass the objective:
# ``lightgbm.train({..., "objective": LightGBMObjective(y, s, "equalized_odds")}, data)`` or
# ``xgboost.train(..., obj=XGBoostObjective(...))``.
#
# Fairness is measured on the training rows. Small trees with many rows per leaf, as here, are about
# as fair on new rows. Large trees memorize the training rows and are not; the classifier then
# warns. Use :doc:`fair decisions <plot_decision>` for such trees. :doc:`/results/boosting` has more
# figures.
