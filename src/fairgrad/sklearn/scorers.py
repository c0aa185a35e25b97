"""Scorers that look at fairness, for GridSearchCV, cross_validate and friends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import MetadataRequest

from fairgrad.aware import to_predict
from fairgrad.checks import check_number
from fairgrad.columns import as_array, as_column, sensitive_columns
from fairgrad.evaluate import SUMMARIES, fairness_levels, unfairness
from fairgrad.usefulness import cost_shares


def make_fairness_scorer(
    fairness_measure: Any = "equalized_odds",
    *,
    max_unfairness: float | None = None,
    summary: str = "mean",
    y_desirable: Any = None,
    cost_matrix: Any = None,
) -> FairnessScorer:
    """Makes a scorer for fairness, or for accuracy among fair enough models. Larger is better.

    Without a bound the score is ``-unfairness``. With one it is the accuracy where
    ``unfairness <= max_unfairness`` and ``max_unfairness - unfairness`` elsewhere: any model within
    the bound beats any beyond it, and these are ranked by how far they are beyond.

    The scorer asks for `sensitive_features` and `sample_weight` by metadata routing, which must be
    on (``sklearn.set_config(enable_metadata_routing=True)``) where it is used by other parts of
    scikit-learn. It can also be called as ``scorer(model, X, y, sensitive_features=s)``.

    Args:
        fairness_measure: as in `FairGradClassifier`.
        max_unfairness: the largest unfairness to accept; None scores fairness alone.
        summary: "mean" or "max" of |F| over the constraints. For a constraint with one bound, the
            violation counts instead.
        y_desirable: desirable labels, for measures that need them; by default the second of two in
            sorted order.
        cost_matrix: what it costs to predict each class (columns) where each is true (rows), in
            sorted order. The score within the bound is then, instead of the accuracy, one minus
            the mean cost as a share of that of the most expensive error.

    Raises:
        ValueError: if an argument has a value that is not allowed.

    Example:
        >>> import numpy as np
        >>> import sklearn
        >>> from sklearn.model_selection import GridSearchCV
        >>> from fairgrad.sklearn import FairGradClassifier, make_fairness_scorer
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 900)
        >>> X = rng.normal(size=(900, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=900) > 0.5).astype(int)
        >>> model = FairGradClassifier("demographic_parity", fairness_rate=0.05, max_iter=10,
        ...                            random_state=0)
        >>> with sklearn.config_context(enable_metadata_routing=True):
        ...     search = GridSearchCV(
        ...         model.set_fit_request(sensitive_features=True, sample_weight=False),
        ...         {"epsilon": [0.1, 1.0]},
        ...         scoring=make_fairness_scorer("demographic_parity", max_unfairness=0.05),
        ...         cv=3,
        ...     ).fit(X, y, sensitive_features=sex)
        >>> search.best_params_
        {'epsilon': 0.1}
    """
    if summary not in SUMMARIES:
        raise ValueError(f"summary: expected one of {list(SUMMARIES)}, got {summary!r}.")
    if max_unfairness is not None:
        check_number("max_unfairness", max_unfairness)
    return FairnessScorer(fairness_measure, max_unfairness, summary, y_desirable, cost_matrix)


@dataclass(eq=False)
class FairnessScorer:
    """A scorer as scikit-learn calls it: see `make_fairness_scorer` for its arguments.

    `requested` is the metadata asked for and, if a string, what it is called outside.
    """

    fairness_measure: Any
    max_unfairness: float | None
    summary: str
    y_desirable: Any
    cost_matrix: Any = None
    requested: dict[str, bool | str | None] = field(
        default_factory=lambda: {"sensitive_features": True, "sample_weight": True}
    )

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y_true: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """The score of a fitted classifier on some rows."""
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features: the fairness scorer got none; switch metadata routing on "
                "(sklearn.set_config(enable_metadata_routing=True)) and pass sensitive_features= "
                "to the fit of the search, or params={'sensitive_features': ...} to cross_validate."
            )
        predicted = estimator.predict(X, **to_predict(estimator, sensitive_features))
        levels = fairness_levels(
            y_true,
            predicted,
            sensitive_columns(sensitive_features, len(y_true)),
            self.fairness_measure,
            y_desirable=self.y_desirable,
            sample_weight=sample_weight,
        )
        unfair = float(unfairness(levels.gaps, self.summary))
        if self.max_unfairness is None:
            return -unfair
        if unfair > self.max_unfairness:
            return self.max_unfairness - unfair
        if self.cost_matrix is None:
            return float(accuracy_score(y_true, predicted, sample_weight=sample_weight))
        classes = np.asarray(estimator.classes_)
        shares = cost_shares(self.cost_matrix, len(classes))
        index = [
            np.searchsorted(classes, as_array(as_column(labels))) for labels in (y_true, predicted)
        ]
        return 1.0 - float(np.average(shares[index[0], index[1]], weights=sample_weight))

    def set_score_request(self, **requested: bool | str | None) -> FairnessScorer:
        """What metadata to ask for: True, False, None, or its name outside."""
        self.requested = {**self.requested, **requested}
        return self

    def get_metadata_routing(self) -> Any:
        """The metadata that the scorer requests, as scikit-learn expects it."""
        request = MetadataRequest(owner=self)
        for name, alias in self.requested.items():
            request.score.add_request(param=name, alias=alias)
        return request
