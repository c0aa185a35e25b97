"""Train a fair model on a table
=============================

Fit one estimator, compare it with a plain model, and see how its training went.
"""

# %%
# The encoder turns the columns of the census table into numbers. ``fit`` takes the sensitive values
# as one more argument.

import pandas as pd
from sklearn.model_selection import train_test_split

from fairgrad.datasets import load
from fairgrad.report import history_figures
from fairgrad.sklearn import FairGradClassifier

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
split = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = split

model = FairGradClassifier("demographic_parity", random_state=0)
model.fit(X_train, y_train, sensitive_features=sex_train)

# %%
# Demographic parity means that the same share of every group is predicted to earn more than 50,000
# dollars. It costs some accuracy here, because in 1994 women earned less than men.

plain = FairGradClassifier(None, random_state=0).fit(X_train, y_train)
rows = [
    {
        "model": name,
        "accuracy": (fitted.predict(X_test) == y_test).mean(),
        **{
            f"selected, {sex}": fitted.predict(X_test)[(sex_test == sex).to_numpy()].mean()
            for sex in ("Female", "Male")
        },
    }
    for name, fitted in {"plain": plain, "fair": model}.items()
]
pd.DataFrame(rows).round(3)

# %%
# The model stores the levels and multipliers of every epoch. The levels are the distances of the
# groups from the overall rate. At the end they are within the default ``epsilon``, 0.05.

levels, multipliers, *_ = history_figures(model)
levels

# %%
# The multipliers show how hard each constraint pushes. They grow until the levels are small enough.

multipliers

# %%
# The result is a linear model. Its coefficients are in the units of the features. These changed
# most compared with the plain model:

names = adult.encoder().fit(adult.frame).get_feature_names_out()
change = pd.Series(model.coef_[0] - plain.coef_[0], names)
change.reindex(change.abs().sort_values(ascending=False).index).head(6).round(2)
