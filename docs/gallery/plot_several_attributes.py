"""Several sensitive attributes
============================

Constrain sex and race separately, or every combination of them. A model that is fair by sex and
fair by race can still be unfair to one combination.
"""

# %%
# The census table with two sensitive attributes:

import warnings

import altair as alt
import pandas as pd
from sklearn.model_selection import train_test_split

from fairgrad import FairnessWarning, On
from fairgrad.audit import Audit
from fairgrad.datasets import load
from fairgrad.sklearn import FairGradClassifier

adult = load("adult_multigroup")
people = adult.sensitive
X = adult.encoder().fit_transform(adult.frame)
split = train_test_split(X, adult.y, people, test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, people_train, people_test = split
people.value_counts().reset_index(name="people")

# %%
# Separately, or all combinations
# -------------------------------
# A list of ``On(...)`` constrains each attribute separately, and each may have its own epsilon. The
# name of a measure alone constrains all combinations, here four groups.

warnings.simplefilter("ignore", FairnessWarning)  # about the accuracy that the table shows
first, second = people.columns
asked = {
    "plain": None,
    "each attribute separately": [
        On(first, "demographic_parity"),
        On(second, "demographic_parity", epsilon=0.01),
    ],
    "all combinations": "demographic_parity",
}
models = {
    name: FairGradClassifier(measure, max_iter=20, random_state=0).fit(
        X_train, y_train, sensitive_features=people_train
    )
    for name, measure in asked.items()
}

# %%
# The audit judges each attribute alone and the combinations.

views = [first, second, f"{first} x {second}"]
rows = []
for name, model in models.items():
    predicted = model.predict(X_test)
    audit = Audit(y_test, predicted, people_test, measures="demographic_parity")
    frame = audit.to_frame("verdicts").set_index("attribute")
    rows += [
        {
            "constraints": name,
            "groups": view,
            "unfairness": frame.loc[view, "unfairness"],
            "accuracy": (predicted == y_test).mean(),
        }
        for view in views
    ]
results = pd.DataFrame(rows)
alt.Chart(results).mark_bar().encode(
    y=alt.Y("groups:N", title=None, sort=views),
    x=alt.X("unfairness:Q", title="unfairness by demographic parity (test rows)"),
    row=alt.Row(
        "constraints:N",
        title=None,
        sort=list(asked),
        header=alt.Header(labelAngle=0, labelAlign="left"),
    ),
    color=alt.Color("groups:N", legend=None, sort=views),
).properties(
    width=420,
    description="Unfairness of three models by sex, by race and by both combined: the plain model "
    "is unfair in all, the model with separate constraints is fair by each attribute "
    "and less so by both combined, the model for all combinations is fair in all.",
)

# %%

results.pivot_table(
    index=["constraints", "accuracy"], columns="groups", values="unfairness", sort=False
).round(4)

# %%
# Which should you use? Combinations also protect groups such as non-white women, whom separate
# constraints can miss. But the groups become many and small: five attributes with three values make
# 243 groups, many of them too small to judge (:doc:`plot_small_groups`). A row whose value is
# missing in one attribute still counts in the others.
