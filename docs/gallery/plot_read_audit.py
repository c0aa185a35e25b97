"""Read an audit
=============

An audit takes labels, predictions and groups of any classifier. This one is a random forest that
knows nothing of fairness.
"""

# %%

from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from fairgrad.audit import Audit
from fairgrad.datasets import load
from fairgrad.report import Report

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
parts = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = parts
forest = RandomForestClassifier(40, min_samples_leaf=5, random_state=0).fit(X_train, y_train)

audit = Audit(y_test, forest.predict(X_test), {"sex": sex_test}, tolerance=0.05)

# %%
# The conclusion
# --------------
# A few sentences say who is treated how, what is tolerated, and how certain that is.

print(audit.conclusion)

# %%
# The report opens with the rates that these sentences are about. The band shows which rates are
# judged fair.

report = Report(audit, title="A random forest on the census")
report.figures[0]

# %%
# Verdict by measure
# ------------------
# Each measure is judged by its worst level. The verdict is *unfair* or *fair within tolerance* only
# where the whole interval lies on one side of the tolerance; otherwise the verdict is *undecided*,
# and ``rows_needed`` tells how many more people per group would settle it.

audit.to_frame("verdicts")[["measure", "verdict", "judged", "judged_low", "judged_high"]].round(3)

# %%
# Rates of the groups
# -------------------
# Every rate comes with an exact (Clopper-Pearson) interval. The true positive rate is the share of
# those who do earn much that is recognised.

next(figure for figure in report.figures if "true_positive" in figure.id)

# %%
# Levels
# ------
# A level is the distance of a group's rate from the rate of all rows. The bars are intervals, each
# with 95 % confidence; the band is the tolerance. Where all bars lie in it, the verdict is fair.

next(figure for figure in report.figures if figure.id.startswith("level"))

# %%
# Figures other tools report
# --------------------------
# The differences and ratios of fairlearn and AIF360, with intervals, for papers and forms that ask
# for them.

audit.to_frame("figures").round(3)

# %%
# Warnings
# --------
# What to know before trusting the figures: unknown values, small groups, constant predictions,
# levelling down against a baseline, and so on. Here there is nothing to warn of.

print(audit.warnings or "no warnings")

# %%
# ``report.save("report.html")`` writes all of it into one page, ``audit.to_json()`` for machines,
# and ``fairgrad audit`` does the same from the command line.
