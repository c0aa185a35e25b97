"""Audit any classifier
====================

Pass labels, predictions and groups. The audit tells how the groups are treated, whether that is
fair, and how certain it is.
"""

# %%
# The classifier is a random forest, trained without any thought of fairness.

from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from fairgrad.audit import Audit
from fairgrad.datasets import load
from fairgrad.report import Report

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
split = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = split
forest = RandomForestClassifier(40, min_samples_leaf=5, random_state=0).fit(X_train, y_train)

audit = Audit(y_test, forest.predict(X_test), {"sex": sex_test}, tolerance=0.05)

# %%
# The conclusion
# --------------
# The most important result, in a few sentences:

print(audit.conclusion)

# %%
# The report opens with a chart of these rates. The band shows which rates are judged fair.

report = Report(audit, title="A random forest on the census")
report.figures[0]

# %%
# Verdict by measure
# ------------------
# Each measure is judged by its worst level. The verdict is *unfair* or *fair within tolerance* only
# if the whole interval lies on one side of the tolerance. Otherwise it is *undecided*, and
# ``audit.findings[0].rows_needed`` estimates how many more people would settle it.

audit.to_frame("verdicts")[["measure", "verdict", "judged", "judged_low", "judged_high"]].round(3)

# %%
# Rates of the groups
# -------------------
# Every rate has an exact (Clopper-Pearson) interval. The true positive rate is the share of people
# with a high income who are predicted to have one.

next(figure for figure in report.figures if "true_positive" in figure.id)

# %%
# Levels
# ------
# A level is the rate of a group minus the rate of all rows. The bars are intervals with 95 %
# confidence, and the band is the tolerance. If all bars lie within the band, the verdict is fair.

next(figure for figure in report.figures if figure.id.startswith("level"))

# %%
# Figures of other tools
# ----------------------
# The differences and ratios that fairlearn and AIF360 report, with intervals:

audit.to_frame("figures").round(3)

# %%
# Warnings
# --------
# The audit warns about unknown values, small groups, constant predictions, levelling down and other
# problems.

for warning in audit.warnings:
    print(warning.message)

# %%
# ``report.save("report.html")`` writes everything into one page, and ``audit.to_json()`` into a
# record for programs. On the command line, ``fairgrad audit`` does the same.
