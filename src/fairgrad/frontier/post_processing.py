"""The frontier that post-processing of a plain model gives: other thresholds for each group."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from fairgrad.aware import to_predict
from fairgrad.groups import Groups
from fairgrad.measures import measure_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fairgrad.frontier.models import FrontierRows
    from fairgrad.groups import Floats

CONSTRAINTS = {
    "demographic_parity": "demographic_parity",
    "equality_of_opportunity": "true_positive_rate_parity",
    "equalized_odds": "equalized_odds",
}
"""What fairlearn calls our measures."""

SLACKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Differences allowed between the rates of groups."""

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8)
"""Where no slack can be given: shares of the rows that keep the plain model's prediction."""


class PostProcessing:
    """Fairlearn's ThresholdOptimizer on the scores of a fitted model, over a range of slack.

    Predictions need the sensitive value, and are partly drawn at random. For equalized odds the
    optimiser knows exact fairness only; slack is then had by keeping the plain prediction for a
    random share of the rows, which moves every rate in proportion.

    Args:
        model: fitted, with ``decision_function`` or ``predict_proba``; two labels.
        measure: the name of a measure.
        desirable: the label whose rates the measure speaks of, in a list.
        rows: to fit the thresholds on, features as the model takes them.
    """

    def __init__(self, model: Any, measure: Any, desirable: Any, rows: FrontierRows) -> None:
        optimizer_class = _threshold_optimizer()
        name = measure_name(measure)
        if name not in CONSTRAINTS or not isinstance(measure, str):
            raise ValueError(
                f"post_processing: serves {list(CONSTRAINTS)}, not {name}; set it to False."
            )
        if len(model.classes_) != 2:
            raise ValueError(
                f"post_processing: expected two labels, got {model.classes_.tolist()}."
            )
        self.model = model
        self.index = int(np.flatnonzero(model.classes_ == desirable[0])[0])
        self.groups = Groups.from_data(rows.y, rows.s)
        exact = name == "equalized_odds"
        self.shares = SHARES if exact else (0.0,)
        self.optimizers = {
            slack: optimizer_class(
                estimator=_Scores(),
                constraints=CONSTRAINTS[name],
                prefit=True,
                predict_method="decision_function",
                tol=slack or None,
            )
            for slack in ((0.0,) if exact else SLACKS)
        }
        wanted = (np.asarray(rows.y) == model.classes_[self.index]).astype(int)
        for optimizer in self.optimizers.values():
            optimizer.fit(self._scores(rows), wanted, sensitive_features=self._group(rows))

    def predict(self, rows: FrontierRows) -> Iterator[tuple[float, NDArray[Any]]]:
        """Slack and predictions of each point; the slack is NaN where it is a share of rows."""
        plain = self.model.predict(rows.X, **to_predict(self.model, rows.sensitive_features))
        labels = self.model.classes_
        own, other = labels[self.index], labels[1 - self.index]
        scores, group = self._scores(rows), self._group(rows)
        for slack, optimizer in self.optimizers.items():
            found = optimizer.predict(scores, sensitive_features=group, random_state=0)
            fair = np.where(np.asarray(found) > 0, own, other)
            for share in self.shares:
                is_kept = np.random.default_rng(1).random(len(fair)) < share
                yield (np.nan if share else slack), np.where(is_kept, plain, fair)

    def _group(self, rows: FrontierRows) -> NDArray[Any]:
        return self.groups.group_index(rows.s)

    def _scores(self, rows: FrontierRows) -> Floats:
        """(n, 1) scores of the desirable label."""
        values = to_predict(self.model, rows.sensitive_features)
        if hasattr(self.model, "decision_function"):
            margin = np.asarray(self.model.decision_function(rows.X, **values), dtype=np.float64)
            return (margin if self.index == 1 else -margin)[:, None]
        found: Floats = np.asarray(self.model.predict_proba(rows.X, **values), dtype=np.float64)
        return found[:, [self.index]]


class _Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Hands on scores that were computed before: they are its only feature."""

    def fit(self, X: Any, y: Any) -> _Scores:  # noqa: ARG002 - scikit-learn's signature
        """Nothing to learn."""
        return self

    def decision_function(self, X: Any) -> Any:
        """The scores."""
        return np.asarray(X)[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _threshold_optimizer() -> Any:
    """Fairlearn's class, of a version that can allow slack."""
    try:
        from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415 - optional
    except ImportError as missing:
        raise ImportError(
            "post_processing: needs the fairlearn package; pip install fairlearn."
        ) from missing
    if "tol" not in inspect.signature(ThresholdOptimizer).parameters:
        raise ImportError(
            "post_processing: this fairlearn cannot allow slack; pip install -U fairlearn."
        )
    return ThresholdOptimizer
