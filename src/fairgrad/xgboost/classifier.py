"""XGBoost's classifier, trained to treat groups alike."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from xgboost import XGBClassifier

from fairgrad.boosting.fitted import keep, state_to_go_on_from
from fairgrad.boosting.inputs import OWN, objective_of, refuse_what_cannot_be_fair
from fairgrad.boosting.objective import PROPORTIONAL_RATE, RATE
from fairgrad.xgboost.evaluation import evaluation_of
from fairgrad.xgboost.files import FORMAT
from fairgrad.xgboost.objective import FairObjective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairgrad.groups import Floats
    from fairgrad.xgboost.evaluation import EvalMetrics

OBJECTIVES = (None, "binary:logistic", "multi:softprob")
UNBALANCED = {"scale_pos_weight": "sample_weight"}


class FairGradXGBClassifier(XGBClassifier):
    """An `xgboost.XGBClassifier` whose levels of fairness are moved into their bounds.

    Each boosting round is one step of the method: the gradients of the rows of each (label, group)
    cell are weighted so that ``-epsilon <= F <= epsilon``. Sensitive values are needed to fit,
    never to predict. Everything else is XGBoost's; as there, labels are 0, 1, ....

    Args:
        fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
            "accuracy_parity", "four_fifths_rule", one of your own (see
            `fairgrad.torch.FairLoss`), or None for a plain `XGBClassifier`.
        epsilon: slack of the constraints; 0 is exact fairness.
        fairness_rate: step size of the multipliers; rounds times rate should come to 15 or more.
        proportional_rate: how strongly the weights react to what is broken now; it keeps the
            levels from swinging.
        error_memory: share of earlier rounds kept in the error estimates.
        held_out: share of the training rows set aside for the multipliers, from which no tree
            learns.
        y_desirable: labels that equality of opportunity and the four-fifths rule speak of; by
            default the second of two classes.
        negative_weights: whether weights may be negative; if not they are clipped at 0.
        **kwargs: XGBClassifier's parameters. Its objective is the log loss; weigh the classes by
            `sample_weight` (`scale_pos_weight` is refused). An `eval_metric` may be, besides
            XGBoost's, "unfairness" (the mean of ``|F|``) and "fair_error" (the error rate plus
            the mean of what is beyond the bounds).

    Attributes:
        levels_: (J,) levels of fairness before the last round, on the rows held out if there are
            any, else on the training rows.
        multipliers_: (J,) their multipliers.
        cell_weights_: (K,) weights of the cells in the last round.
        constraint_names_: (J,) what each level and multiplier speaks of.
        cell_names_: (K,) what the cell weights speak of.
        groups_: groups and frequencies of the training rows.
        fairness_state_: what training goes on from, as plain lists and numbers.

    All of them are None for a plain model. The rest is XGBoost's.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 2000)
        >>> X = rng.normal(size=(2000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=2000) > 0.5).astype(int)
        >>> model = FairGradXGBClassifier("demographic_parity", max_depth=3, n_jobs=1)
        >>> model = model.fit(X, y, sensitive_features=sex)
        >>> model.predict(np.array([[3.0, 3.0, 3.0], [-3.0, -3.0, -3.0]]))
        array([1, 0])
        >>> bool(np.abs(model.levels_).mean() < 0.05)
        True
    """

    def __init__(
        self,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.0,
        fairness_rate: float = RATE,
        proportional_rate: float = PROPORTIONAL_RATE,
        error_memory: float = 0.0,
        held_out: float = 0.0,
        y_desirable: Any = None,
        negative_weights: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.fairness_rate = fairness_rate
        self.proportional_rate = proportional_rate
        self.error_memory = error_memory
        self.held_out = held_out
        self.y_desirable = y_desirable
        self.negative_weights = negative_weights

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        eval_set: Any = None,
        eval_sensitive_features: Any = None,
        xgb_model: Any = None,
        verbose: Any = False,
        **fit_options: Any,
    ) -> FairGradXGBClassifier:
        """Trains the classifier.

        Args:
            X: (n, features), as XGBClassifier takes it.
            y: (n,) labels 0, 1, ....
            sensitive_features: (n,) sensitive values, or a table with one column per attribute;
                missing values and -1 are unknown and in no constraint.
            sample_weight: (n,) non-negative weights.
            eval_set: pairs (X, y) to judge the model by after each round.
            eval_sensitive_features: sensitive values of each of these pairs. With them the metric
                is "fair_error" unless another is asked for, so that early stopping respects
                fairness.
            xgb_model: a fitted model, booster or file to go on from. If there are multipliers
                (in the model, or beside the file) they go on as well.
            verbose: whether to print the metrics of the eval sets.
            **fit_options: whatever else `XGBClassifier.fit` takes.

        Raises:
            ValueError: if sensitive_features are missing, or an argument is not allowed.
        """
        options = {
            "sample_weight": sample_weight,
            "eval_set": eval_set,
            "xgb_model": xgb_model,
            "verbose": verbose,
            **fit_options,
        }
        if self.fairness_measure is None:
            super().fit(X, y, **options)
            keep(self, None)
            return self
        refuse_what_cannot_be_fair(
            self.get_params(), sensitive_features, objectives=OBJECTIVES, unbalanced=UNBALANCED
        )
        objective = objective_of(FairObjective, self, y, sensitive_features, sample_weight)
        state = state_to_go_on_from(xgb_model, FORMAT)
        if state is not None:
            objective.rounds.load_state(state)
        evaluation = evaluation_of(self, objective.groups.labels, eval_set, eval_sensitive_features)
        with _given(self, objective, *evaluation):
            super().fit(X, y, **options)
        keep(self, objective)
        return self

    def _wrapper_params(self) -> set[str]:
        """Parameters that XGBoost's own code does not know."""
        return {*super()._wrapper_params(), *OWN}

    def _configure_fit(self, booster: Any, params: Any, feature_weights: Any) -> Any:
        """As XGBoost does, with the metrics of ours in a fair fit."""
        found = super()._configure_fit(booster, params, feature_weights)
        metrics = getattr(self, "_fair_metrics", None)
        return found if metrics is None else (found[0], metrics, *found[2:])


@contextmanager
def _given(
    model: FairGradXGBClassifier,
    objective: FairObjective,
    eval_metric: list[Any],
    metrics: EvalMetrics | None,
) -> Iterator[None]:
    """Inside, the model has our objective and metrics; its own parameters come back after."""
    before = model.objective, model.eval_metric

    def gradients(y_true: Any, y_pred: Any, sample_weight: Any = None) -> tuple[Floats, Floats]:
        objective.meet_rows(y_true)
        return objective.gradients(y_pred, sample_weight)

    model.objective, model.eval_metric = gradients, eval_metric or None
    model._fair_metrics = metrics  # noqa: SLF001 - a helper of the class
    try:
        yield
    finally:
        model.objective, model.eval_metric = before
        del model._fair_metrics  # noqa: SLF001 - as above
