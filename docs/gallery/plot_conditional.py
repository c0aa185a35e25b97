"""Fair within each department
===========================

In the autumn of 1973 Berkeley admitted 44 % of the men who applied to its graduate departments and
35 % of the women. Bickel, Hammel and O'Connell looked at the departments one by one (Science 187,
1975): in most of them women were admitted at least as often. They had applied where few are
admitted. ``On(..., given=...)`` compares groups within each stratum, as they did.
"""

# %%
# Applicants to the six largest departments: admitted and rejected, of men and women.

import altair as alt
import numpy as np
import pandas as pd

from fairgrad import Groups, On
from fairgrad.audit import Audit
from fairgrad.evaluate import fairness_levels
from fairgrad.sklearn import FairDecisionClassifier

counts = pd.DataFrame(
    {
        "department": list("ABCDEF"),
        "men in": [512, 353, 120, 138, 53, 22],
        "men out": [313, 207, 205, 279, 138, 351],
        "women in": [89, 17, 202, 131, 94, 24],
        "women out": [19, 8, 391, 244, 299, 317],
    }
)
rows = {
    (outcome, sex, one["department"]): one[f"{sex} {outcome}"]
    for _, one in counts.iterrows()
    for sex in ("men", "women")
    for outcome in ("in", "out")
}
table = pd.Series(rows).rename_axis(["outcome", "sex", "department"])
groups = Groups.from_counts(table)
groups.attributes, int(groups.mass.sum())

# %%
# Everyone together, and within departments
# -----------------------------------------
# The decisions themselves are judged: they stand for labels and predictions. A level is a group's
# rate less that of everyone, here and in the same department.

people = table.index.to_frame(index=False).loc[np.repeat(np.arange(len(table)), table)]
who, decided = people[["sex", "department"]], people["outcome"]
together = fairness_levels(decided, decided, who, On("sex", "demographic_parity"))
within = fairness_levels(decided, decided, who, On("sex", "demographic_parity", given="department"))


def of_women(levels):
    """The levels of women's admission, by name."""
    found = pd.Series(levels.values, index=levels.names)
    return found[[name.startswith("outcome=in, sex=women") for name in levels.names]]


shown = pd.concat([of_women(together), of_women(within)]).rename("level").reset_index()
shown["where"] = shown["index"].str.extract(r"department=(\w)")[0].fillna("all")
alt.Chart(
    shown,
    width=420,
    title="Admission of women, less that of everyone",
    description="Women are admitted less often than everyone over all departments, and at least as "
    "often in four of six.",
).mark_bar().encode(
    x=alt.X("where:N", title="department", sort=["all", *"ABCDEF"]),
    y=alt.Y("level:Q", title="level F", axis=alt.Axis(format="+%")),
    color=alt.Color("where:N", legend=None, scale=alt.Scale(domain=["all"], range=["#b2431f"])),
)

# %%
# Women are far below the mean of everyone, and at or above it in four of six departments.

shown[["where", "level"]].round(3)

# %%
# What the audit can conclude
# ---------------------------
# Over everyone the verdict is clear. Within departments the intervals hold for all of them at once.

audit = Audit(
    decided,
    decided,
    who,
    measures=[On("sex", "demographic_parity"), On("sex", "demographic_parity", given="department")],
    y_desirable="in",
)
audit.to_frame("verdicts")[["measure", "attribute", "verdict", "judged_low", "judged_high"]].round(
    3
)

# %%
# Training towards either
# -----------------------
# A model that knows the department and a made-up test score. Exact parity over everyone would have
# to favour women within departments, as they apply to the harder ones; parity within departments
# would not touch the departments' own standards.

rng = np.random.default_rng(0)
score = rng.normal(size=len(people)) + 1.5 * (decided == "in")
X = pd.get_dummies(who["department"]).assign(score=score.to_numpy()).to_numpy(dtype=float)
found = {}
for name, measure in {
    "plain": None,
    "parity over everyone": On("sex", "demographic_parity"),
    "parity within departments": On("sex", "demographic_parity", given="department"),
}.items():
    # A number of applicants too small to fit is not held against anybody: a slack of 2 points.
    model = FairDecisionClassifier(None, measure, epsilon=0.02, random_state=0)
    predicted = model.fit(X, decided, sensitive_features=who).predict(X)
    found[name] = {
        "accuracy": (predicted == decided).mean(),
        **{
            f"mean |F| {where}": fairness_levels(decided, predicted, who, asked).unfairness
            for where, asked in {
                "over everyone": On("sex", "demographic_parity"),
                "within departments": On("sex", "demographic_parity", given="department"),
            }.items()
        },
    }
pd.DataFrame(found).T.round(3)
