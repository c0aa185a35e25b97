"""See what fairness costs, and choose
===================================

Train models from exactly fair to unconstrained in one pass, compare them, and choose a model.
"""

# %%
# A frontier has 32 linear models, one for each epsilon. They are trained together, which takes
# about half as long as one after the other.

from sklearn.model_selection import train_test_split

from fairgrad.datasets import load
from fairgrad.frontier import Frontier

adult = load("adult")
X = adult.encoder().fit_transform(adult.frame)
split = train_test_split(X, adult.y, adult.sensitive["sex"], test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, sex_train, sex_test = split

frontier = Frontier(fairness_measure="equalized_odds", random_state=0)
frontier.fit(X_train, y_train, sensitive_features=sex_train, test=(X_test, y_test, sex_test))
frontier.points_[["epsilon", "validation_accuracy", "validation_unfairness"]].iloc[::6].round(4)

# %%
# Choose a model
# --------------
# Decide what you need before you look at the test rows: an unfairness of at most 0.02, or an
# accuracy of at least 84 %. ``choose`` uses validation rows, on which no model was trained.

chosen = frontier.choose(max_unfairness=0.02)
frontier.plot(chosen=chosen)

# %%
# Then look at the test rows, once. The validation figures of the chosen model are slightly too
# good, because it was chosen for them.

frontier.points_.loc[
    [chosen],
    ["epsilon", "validation_accuracy", "validation_unfairness", "test_accuracy", "test_unfairness"],
].round(4)

# %%
# ``select`` returns the fitted classifier.

model = frontier.select(max_unfairness=0.02)
model.predict(X_test[:5])

# %%
# If no model qualifies
# ---------------------
# You get an error that names the best value any model reaches.

try:
    frontier.select(min_accuracy=0.9)
except ValueError as error:
    print(error)
