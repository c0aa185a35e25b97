"""A measure of your own
=====================

A measure is a short function. This one does not compare groups at all: it sets a standard that
every group must meet.
"""

# %%
# Equality of opportunity asks that those who deserve the good outcome get it equally often in
# every group. It can be met by treating one group worse. Suppose that is not what you want. You
# want: *in no group may more than a third of the deserving people be overlooked.* A level per
# group,
#
# .. math:: F_r = \frac{1}{3} - P(h = 0 \mid y = 1, s = r) \ge 0,
#
# is linear in the error rates of the cells, so it can be trained for. The function gets the groups
# and gives the constants, the coefficients and the bounds.

import altair as alt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from fairgrad import Constraints
from fairgrad.datasets import load
from fairgrad.sklearn import FairGradClassifier

LIMIT = 1 / 3


def few_are_overlooked(groups):
    """At most a third of those with label 1 are predicted 0, in every group."""
    coefficients = np.zeros((groups.n_groups, 2, groups.n_groups))
    coefficients[:, 1, :] = -np.eye(groups.n_groups)  # -e of the cell (label 1, group r)
    return Constraints(
        c0=np.full(groups.n_groups, LIMIT),
        C=coefficients.reshape(groups.n_groups, -1),
        by_label=True,
        names=groups.names,
        lower=0.0,
        upper=np.inf,
    )


# %%
# Any loss, estimator or audit of the package takes the function where it takes a name.

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
parts = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = parts

measures = {
    "plain": None,
    "equality of opportunity": "equality_of_opportunity",
    "few are overlooked": few_are_overlooked,
}
rows = []
for name, measure in measures.items():
    model = FairGradClassifier(measure, random_state=0)
    predicted = model.fit(X_train, y_train, sensitive_features=sex_train).predict(X_test)
    for sex in ("Female", "Male"):
        deserving = (sex_test == sex).to_numpy() & (y_test == 1)
        rows.append(
            {
                "measure": name,
                "sex": sex,
                "overlooked": (predicted[deserving] == 0).mean(),
                "accuracy": (predicted == y_test).mean(),
            }
        )
found = pd.DataFrame(rows)

# %%
# Both groups are now overlooked less often than before, women much less: the standard levels up.

bars = (
    alt.Chart(found)
    .mark_bar()
    .encode(
        x=alt.X("overlooked:Q", title="share overlooked of those who earn much (test rows)"),
        y=alt.Y("sex:N", title=None),
        color=alt.Color("sex:N", legend=None),
    )
)
limit = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(x=alt.datum(LIMIT))
alt.layer(bars, limit, data=found).properties(width=420).facet(
    row=alt.Row(
        "measure:N",
        title=None,
        sort=list(measures),
        header=alt.Header(labelAngle=0, labelAlign="left"),
    )
).properties(
    description="Share of well-paid women and men who are overlooked: the plain model overlooks "
    "nearly half of the women, the own measure brings both groups to about a third."
)

# %%

found.pivot_table(
    index=["measure", "accuracy"], columns="sex", values="overlooked", sort=False
).round(3)

# %%
# The accuracy pays for it, as more people are predicted to earn much who do not. Whether that is a
# fair price is not a question for software.
