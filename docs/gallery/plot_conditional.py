"""Compare groups within departments
=================================

Compare women with men of the same department, not with all men: ``On(..., within="department")``.
"""

# %%
# In 1973 Berkeley admitted 44 % of the men who applied to its graduate departments, and 35 % of the
# women. Bickel, Hammel and O'Connell compared women and men within each department (Science 187,
# 1975): in most departments women were admitted at least as often as men. More women had applied to
# departments that admit few people. These are the numbers of the six largest departments.

import warnings

import altair as alt
import numpy as np
import pandas as pd

from fairgrad import FairnessWarning, Groups, On
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
    (outcome, sex, department["department"]): department[f"{sex} {outcome}"]
    for _, department in counts.iterrows()
    for sex in ("men", "women")
    for outcome in ("in", "out")
}
table = pd.Series(rows).rename_axis(["outcome", "sex", "department"])
groups = Groups.from_counts(table)
groups.attributes, int(groups.mass.sum())

# %%
# Over all departments, and within each
# -------------------------------------
# We judge the decisions, so they are passed as labels and as predictions. A level is the admission
# rate of women minus the rate of all applicants: first over all departments, then within each.

people = table.index.to_frame(index=False).loc[np.repeat(np.arange(len(table)), table)]
who, decided = people[["sex", "department"]], people["outcome"]
together = fairness_levels(decided, decided, who, On("sex", "demographic_parity"))
within = fairness_levels(
    decided, decided, who, On("sex", "demographic_parity", within="department")
)


def of_women(levels):
    """The levels of women's admission, by name."""
    by_name = pd.Series(levels.values, index=levels.names)
    return by_name[[name.startswith("outcome=in, sex=women") for name in levels.names]]


shown = pd.concat([of_women(together), of_women(within)]).rename("level").reset_index()
shown["where"] = shown["index"].str.extract(r"department=(\w)")[0].fillna("all")
alt.Chart(
    shown,
    width=420,
    title="Admission rate of women minus that of all applicants",
    description="Women are admitted less often than all applicants over all departments, and at "
    "least as often in four of six.",
).mark_bar().encode(
    x=alt.X("where:N", title="department", sort=["all", *"ABCDEF"]),
    y=alt.Y("level:Q", title="level F", axis=alt.Axis(format="+%")),
    color=alt.condition("datum.where == 'all'", alt.value("#b2431f"), alt.value("#0063a6")),
)

# %%
# Over all departments women are far below the overall rate. In four of six departments they are at
# or above it.

shown[["where", "level"]].round(3)

# %%
# What the audit can conclude
# ---------------------------
# Over all departments the verdict is clear. Within departments it takes all six into account at
# once.

audit = Audit(
    decided,
    decided,
    who,
    measures=[
        On("sex", "demographic_parity"),
        On("sex", "demographic_parity", within="department"),
    ],
    y_desirable="in",
)
audit.to_frame("verdicts")[["measure", "attribute", "verdict", "judged_low", "judged_high"]].round(
    3
)

# %%
# Train for one or the other
# --------------------------
# The features are the department and a made-up test score. Women apply to departments that admit
# few people. So parity over all departments has to favour women within departments. Parity within
# departments does not.

warnings.simplefilter("ignore", FairnessWarning)  # about the accuracy that the table shows
rng = np.random.default_rng(0)
score = rng.normal(size=len(people)) + 1.5 * (decided == "in")
X = pd.get_dummies(who["department"]).assign(score=score.to_numpy()).to_numpy(dtype=float)
results = {}
for name, measure in {
    "plain": None,
    "parity over all": On("sex", "demographic_parity"),
    "parity within departments": On("sex", "demographic_parity", within="department"),
}.items():
    # Two points of slack, because some departments have few applicants of one sex.
    model = FairDecisionClassifier(None, measure, epsilon=0.02, random_state=0)
    predicted = model.fit(X, decided, sensitive_features=who).predict(X)
    results[name] = {
        "accuracy": (predicted == decided).mean(),
        **{
            f"mean |F| {where}": fairness_levels(decided, predicted, who, asked).unfairness
            for where, asked in {
                "over all": On("sex", "demographic_parity"),
                "within departments": On("sex", "demographic_parity", within="department"),
            }.items()
        },
    }
pd.DataFrame(results).T.round(3)
