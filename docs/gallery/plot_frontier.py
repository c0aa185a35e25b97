"""Choose a point on the frontier
==============================

How much accuracy does fairness cost here? Train models from exactly fair to plain in one pass,
look, and choose.
"""

# %%
# Thirty-two linear models, one for each epsilon (the largest level that is tolerated), trained
# side by side as one stack. That takes little longer than a single model.

from sklearn.model_selection import train_test_split

from fairgrad.datasets import load
from fairgrad.frontier import Frontier

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
parts = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = parts

frontier = Frontier(fairness_measure="equalized_odds", random_state=0)
frontier.fit(X_train, y_train, sensitive_features=sex_train, test=(X_test, y_test, sex_test))
frontier.points_[["epsilon", "validation_accuracy", "validation_unfairness"]].iloc[::6].round(4)

# %%
# A rule first, then a model
# --------------------------
# Decide what you need before you look at test figures: "at most 0.02 unfair", or "at least 84 %
# accurate". The choice is made on validation rows, which no model was trained on.

chosen = frontier.choose(max_unfairness=0.02)
frontier.plot(chosen=chosen)

# %%
# Then look once at the test rows. Validation figures of a chosen model are a little too good,
# since it was chosen for them; the test rows say what to expect.

frontier.points_.loc[
    [chosen],
    ["epsilon", "validation_accuracy", "validation_unfairness", "test_accuracy", "test_unfairness"],
].round(4)

# %%
# ``select`` gives the fitted classifier itself.

model = frontier.select(max_unfairness=0.02)
model.predict(X_test[:5])

# %%
# If nothing qualifies
# --------------------
# A wish that no model meets is an error that names the best there is, not a model that is nearly
# right.

try:
    frontier.select(min_accuracy=0.9)
except ValueError as error:
    print(error)
