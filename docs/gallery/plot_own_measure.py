"""Write your own measure
======================

Write a short function and use it like any other measure. This one sets a standard that every group
must meet.
"""

# %%
# Equality of opportunity can be met by treating one group worse. Suppose you want a standard
# instead: *in no group may more than a third of the people with label 1 be overlooked.* In the
# notation of :doc:`/understand/method`, each group r has a level
#
# .. math:: F_r = \frac{1}{3} - P(h = 0 \mid y = 1, s = r) \ge 0.
#
# It is linear in the error rates, as every measure must be. The function takes the groups and
# returns the constants, coefficients and bounds.

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
# Losses, estimators and audits accept the function instead of a name.

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
split = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = split

measures = {
    "plain": None,
    "equality of opportunity": "equality_of_opportunity",
    "few are overlooked": few_are_overlooked,
}
rows = []
for name, measure in measures.items():
    model = FairGradClassifier(measure, epsilon=0.02, random_state=0)
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
results = pd.DataFrame(rows)

# %%
# With the standard, both groups are overlooked less often than by the plain model, women much less.

bars = (
    alt.Chart(results)
    .mark_bar()
    .encode(
        x=alt.X("overlooked:Q", title="share of well-paid people who are overlooked (test rows)"),
        y=alt.Y("sex:N", title=None),
        color=alt.Color("sex:N", legend=None),
    )
)
limit = alt.Chart().mark_rule(strokeDash=[4, 4]).encode(x=alt.datum(LIMIT))
alt.layer(bars, limit, data=results).properties(width=420).facet(
    row=alt.Row(
        "measure:N",
        title=None,
        sort=list(measures),
        header=alt.Header(labelAngle=0, labelAlign="left"),
    )
).properties(
    description="Share of well-paid women and men who are overlooked: the plain model overlooks "
    "nearly half of the women, the new measure brings both groups to about a third."
)

# %%

results.pivot_table(
    index=["measure", "accuracy"], columns="sex", values="overlooked", sort=False
).round(3)

# %%
# This costs accuracy: more people are wrongly predicted to earn more than 50,000 dollars.
