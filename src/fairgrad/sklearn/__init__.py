"""Fair classifiers and scorers for scikit-learn."""

from fairgrad.checks import keeping_random_state

with keeping_random_state():  # scikit-learn imports rich, which draws numbers
    import sklearn.preprocessing as _preprocessing  # noqa: F401 - the modules below import it

from fairgrad.sklearn.classifier import FairGradClassifier
from fairgrad.sklearn.classifier import fit_variants as fit_variants
from fairgrad.sklearn.decision import FairDecisionClassifier
from fairgrad.sklearn.decision import fit_decisions as fit_decisions
from fairgrad.sklearn.scorers import make_fairness_scorer

__all__ = ["FairDecisionClassifier", "FairGradClassifier", "make_fairness_scorer"]
