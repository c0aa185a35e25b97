"""Fit a table
===========

One estimator, one more argument in ``fit``. Then a look at how the training went.
"""

# %%
# Rows of the census, with readable columns. The encoder makes a matrix of them.

import pandas as pd
from sklearn.model_selection import train_test_split

from fairgrad.datasets import load
from fairgrad.report import history_figures
from fairgrad.sklearn import FairGradClassifier

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
parts = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = parts

model = FairGradClassifier("demographic_parity", random_state=0)
model.fit(X_train, y_train, sensitive_features=sex_train)

# %%
# Demographic parity asks that the same share of every group is predicted to earn much. It is the
# most expensive of the measures here, as women and men did not earn alike in 1994.

plain = FairGradClassifier(None, random_state=0).fit(X_train, y_train)
rows = [
    {
        "model": name,
        "accuracy": (found.predict(X_test) == y_test).mean(),
        **{
            f"selected, {sex}": found.predict(X_test)[(sex_test == sex).to_numpy()].mean()
            for sex in ("Female", "Male")
        },
    }
    for name, found in {"plain": plain, "fair": model}.items()
]
pd.DataFrame(rows).round(3)

# %%
# The history holds the levels and multipliers of every epoch. The levels start apart and meet at 0
# while the multipliers settle at what it takes to hold them there: the price of each constraint.

levels, multipliers, *_ = history_figures(model)
levels

# %%

multipliers

# %%
# Predictions need no sensitive value, and the coefficients are those of a linear model, in the
# units of the features as they came.

names = adult.encoder().fit(adult.frame).get_feature_names_out()
change = pd.Series(model.coef_[0] - plain.coef_[0], names)
change.reindex(change.abs().sort_values(ascending=False).index).head(6).round(2)
