"""A classifier around any other that makes its decisions fair."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.linear_model._base import LinearClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from fairgrad.aware import NOT_GIVEN, NOT_USED, ask_for_values
from fairgrad.checks import naming_rows
from fairgrad.columns import sensitive_columns
from fairgrad.decisions import as_costs, largest
from fairgrad.dual import check_costs
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import desirable_labels, uses_desirable
from fairgrad.sklearn.cell_models import (
    aware_features,
    cell_probabilities,
    class_probabilities,
    code_probabilities,
    count_of_trees,
    given_groups,
    last_step,
)
from fairgrad.sklearn.decision_fitting import fit_decisions, weighted_scores
from fairgrad.sklearn.lottery import draw_lots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.aware import SensitiveEncoder
    from fairgrad.decisions import Columns
    from fairgrad.groups import Floats, GroupedRows, Groups
    from fairgrad.sklearn.decision_fitting import CellFit, TunedRows

SMALL_TABLE = 10_000
"""Below so many rows exact fairness costs much accuracy and does not carry over to new rows."""


class FairDecisionClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Makes the decisions of any classifier with `predict_proba` fair.

    The estimator learns the probabilities of the cells, ``P(y = l, s = r | x)``. Of all rules that
    keep the constraints the most accurate one is then

        h(x) = argmax_l  sum_r w_(l,r) P(y = l, s = r | x),      w_k = 1 + (C' lambda)_k / p_k,

    with one multiplier lambda per constraint: these are all that is fitted to be fair, so it takes
    little more than the estimator's own time, and nothing of it is random. For measures of what is
    predicted, such as demographic parity with more than two labels, the multipliers put a cost on
    every label in every cell, and the label of the least cost is chosen. Sensitive values are
    needed to fit, and to predict only if the decisions are to be aware of them (`use_sensitive`).

    Args:
        estimator: a classifier or pipeline with `predict_proba`; by default logistic regression on
            scaled features. If it is calibrated, so much the better.
        fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
            "accuracy_parity", "four_fifths_rule", "equalized_odds_all", one of your own (see
            `fairgrad.torch.FairLoss`), or None for the plain estimator.
        epsilon: slack of the constraints. 0 asks for exact fairness: levels of at most 0.001, or of
            one row where one row makes more. Otherwise a level of few rows may be one standard
            error away, if that is more: noise is not fitted. Infinity gives the plain decisions.
        use_sensitive: whether decisions may look at the sensitive values, which then are given to
            `predict`, too: ``P(y, s | x)`` becomes ``P(y | x, s)``. The law may forbid it. Where a
            value is unknown, the decision is the one of a model that does not look at it.
        prefit: whether the estimator is fitted already. Its probabilities of the labels are kept as
            they are; only those of the groups, and the multipliers, are fitted.
        cells: "joint" fits one model over all (label, group) cells, "factored" one of the labels
            and, within each label, one of the groups. "auto" takes what costs least for the same
            decisions: joint, a logistic regression stopping at a tolerance of 0.001; but if the
            model is prefit or an ensemble of trees, for which every further class costs as much
            again, factored, with a quarter of the boosting rounds (half of a forest's trees) for
            the groups.
        group_estimator: for the groups within each label; by default the estimator.
        tune_on: the rows by whose labels the decisions are chosen: "training", or "cross_fitted":
            all rows, with probabilities from models of other folds. The model is then the mean of
            the folds' models. "auto" is cross-fitted, except for linear models on 10,000 rows or
            more, which hardly overfit.
        n_folds: of "cross_fitted".
        lottery: whether decisions may be drawn by lot. Exact equalized odds often needs ties that
            no single rule can break. With a lottery, the bounds are kept by several rules, and a
            keyed digest of each row decides which one applies: the same row always gets the same
            answer. It is used only if no single rule keeps the bounds.
        y_desirable: labels that equality of opportunity and the four-fifths rule speak of; by
            default the second of two classes in sorted order.
        min_group: groups with fewer rows are in no constraint, and are not judged; below 1 a share
            of all rows. A warning says how many people are in them. 0 is for all groups.
        cost_matrix: what it costs to predict each class (columns) where each is true (rows), in
            sorted order; None for 1 for every mistake. Decisions then cost as little as can be.
        random_state: of the rows held out, and of the folds.

    Attributes:
        classes_: the class labels.
        multipliers_: (J,) the multipliers of the constraints.
        cell_weights_: (K,) the weights of the cells; (L * K,) of every label in every cell for
            measures of what is predicted, or with costs.
        levels_: (J,) levels of fairness on the rows that the multipliers were found on; if
            cross-fitted, each row is judged by the model that did not learn from it.
        violation_: by how much the worst of them is beyond its bounds; 0 if all are kept.
        constraint_names_: (J,) what each level and multiplier speaks of.
        cell_names_: (K,) what the cell weights speak of.
        desirable_: the labels taken as desirable; none if the measure does not look at them.
        lottery_: the share and the weights of each rule of a lottery; empty if one rule decides.
        groups_: groups and frequencies of the rows of the fit.
        set_aside_: the groups that are in no constraint because of `min_group`, and their rows.
        label_model_: the fitted model of the labels; None if the cells are joint.
        aware_model_: of aware decisions, a model of the labels (by their places in `classes_`) that
            has the sensitive values among its features; None if the models of the cells foresee the
            labels of rows they have not learnt from better, or if there are no such rows.
        sensitive_encoder_: how it reads the sensitive values.
        cell_models_: the fitted models of the cells, or of the groups within each label, for each
            set of attributes.
        n_features_in_: number of features.
        feature_names_in_: their names, if X is a data frame.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 2000)
        >>> X = rng.normal(size=(2000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = np.where(X.sum(1) + rng.normal(size=2000) > 0.5, "hired", "refused")
        >>> model = FairDecisionClassifier(LogisticRegression(), "demographic_parity", 0.05)
        >>> model = model.fit(X, y, sensitive_features=sex)
        >>> model.predict(X[:2])
        array(['hired', 'refused'], dtype='<U7')
        >>> bool(np.abs(model.levels_).max() <= 0.05)
        True
    """

    def __init__(
        self,
        estimator: Any = None,
        fairness_measure: Any = "equalized_odds",
        epsilon: Any = 0.05,
        *,
        use_sensitive: bool = False,
        prefit: bool = False,
        cells: str = "auto",
        group_estimator: Any = None,
        tune_on: str = "auto",
        n_folds: int = 3,
        lottery: bool = False,
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
        cost_matrix: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.use_sensitive = use_sensitive
        self.prefit = prefit
        self.cells = cells
        self.group_estimator = group_estimator
        self.tune_on = tune_on
        self.n_folds = n_folds
        self.lottery = lottery
        self.y_desirable = y_desirable
        self.min_group = min_group
        self.cost_matrix = cost_matrix
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        validation: Any = None,
        **fit_params: Any,
    ) -> FairDecisionClassifier:
        """Fits the models of the cells, and finds the multipliers.

        Args:
            X: (n, features) as the estimator takes them.
            y: (n,) labels.
            sensitive_features: (n,) sensitive values, or a table with one column per attribute;
                missing values and -1 are unknown and in no constraint.
            sample_weight: (n,) non-negative weights.
            validation: (X, y, sensitive_features), or with sample weights as a fourth, to find the
                multipliers on in place of what `tune_on` says.
            fit_params: further arguments of the estimator's fit.

        Raises:
            ValueError: if sensitive_features are missing, or an argument is not allowed.
        """
        (fitted,) = fit_decisions(
            [self],
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            validation=validation,
            fit_params=fit_params,
        )
        return fitted

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """(n,) margins for two classes, above 0 for the second; (n, classes) scores for more.

        Args:
            X: (n, features).
            sensitive_features: of an aware model (`use_sensitive`), as in `fit`. Missing values,
                those that fit never saw (with a warning) and -1 are unknown.

        Raises:
            ValueError: if the model is not aware, or the columns do not fit.
        """
        scores = self._scores(X, sensitive_features)
        return scores[1] - scores[0] if len(scores) == 2 else scores.T

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """(n, classes) the probability of each label, as the estimator estimates it.

        The fair decision of `predict` need not be the most probable label. With a lottery it is the
        chance that the row gets each label before the lot is drawn. Sensitive values as in
        `decision_function`.
        """
        probabilities = self._checked_probabilities(X, sensitive_features)
        if self.lottery_:
            return self._lottery_rates(probabilities)
        mean: Floats = np.mean([own.sum(1) for own in probabilities], axis=0)
        return mean.T

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """(n,) predicted class labels; sensitive values as in `decision_function`.

        Of labels with equal scores it is the first.
        """
        decided = largest(self._scores(X, sensitive_features))
        labels: NDArray[Any] = self.classes_[decided]
        return labels

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """The accuracy; sensitive values as in `decision_function`."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    def get_metadata_routing(self) -> MetadataRouter:
        """What this estimator and the one inside ask for, as scikit-learn wants to know it."""
        own = ask_for_values(self._get_metadata_request(), self.use_sensitive)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(own)
        return router.add(estimator=self._estimator(), method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _set_plain(self, classes: NDArray[Any], label_model: Any) -> None:
        """The fitted attributes of a plain model."""
        self.classes_, self.label_model_ = classes, label_model
        self.aware_model_: Any = None
        self.sensitive_encoder_: SensitiveEncoder | None = None
        self.cell_models_: list[Any] = []
        self.cell_groups_: list[Groups] = []
        self.pulls_: list[Floats] = [np.zeros((len(classes), 1))]
        self.lottery_: list[tuple[float, list[Floats]]] = []
        self.lottery_key_ = ""
        self.groups_: Groups | None = None
        self.set_aside_: dict[str, int] = {}
        self.desirable_: tuple[Any, ...] = ()
        self.violation_ = 0.0
        self.multipliers_ = self.levels_ = self.cell_weights_ = np.ones(0)
        self.constraint_names_: tuple[str, ...] = ()
        self.cell_names_: tuple[str, ...] = ()

    def _set_fair(
        self,
        classes: NDArray[Any],
        rows: GroupedRows,
        fitted: CellFit,
        tuned: TunedRows,
        columns: Columns,
    ) -> str | None:
        """Finds the multipliers, and sets the fitted attributes; arrays and models only.

        Returns:
            What is wrong with the decisions, if anything is.
        """
        decision, measured, fault = fitted.decide(self, tuned, columns)
        self.classes_, self.groups_ = classes, rows.groups
        self.label_model_, self.cell_models_ = fitted.label_model, fitted.cell_models
        self.aware_model_ = fitted.aware_model
        self.sensitive_encoder_ = None if fitted.aware is None else fitted.aware.encoder
        self.cell_groups_ = [part.groups for part in fitted.parts]
        self.pulls_ = fitted.by_attributes(decision.pulls, measured)
        self.lottery_ = [
            (share, fitted.by_attributes(pulls, measured)) for share, pulls in decision.lottery
        ]
        self.lottery_key_ = fitted.key if self.lottery_ else ""
        n_labels = len(classes)
        weights = np.ones(rows.groups.mass.shape)
        plain = check_costs(self.cost_matrix, n_labels).T
        costs: Floats = np.repeat(plain[:, :, None], rows.groups.n_groups, axis=2)
        are_costs = self.cost_matrix is not None
        for part, pull in zip(measured, decision.pulls, strict=True):
            parents = rows.groups.parents(*part.attributes)
            costs = costs + as_costs(pull)[:, :, parents]
            are_costs = are_costs or pull.ndim == 3
            if pull.ndim == 2:
                weights += pull[:, parents]
        by_label = any(part.constraints.by_label for part in measured)
        self.cell_weights_ = weights.ravel() if by_label else weights[0]
        self.cell_names_ = rows.groups.cell_names(by_label)
        if are_costs:
            self.cell_weights_ = (costs.max(0) - costs).ravel()
            cells = rows.groups.cell_names(by_label=True)
            self.cell_names_ = tuple(f"{y} predicted, {name}" for y in classes for name in cells)
        self.multipliers_, self.levels_ = decision.multipliers, decision.levels
        self.violation_ = decision.beyond
        names = [name for part in measured for name in part.constraints.names]
        self.constraint_names_ = tuple(names)
        self.desirable_ = ()
        if uses_desirable(self.fairness_measure):
            labels = classes.tolist()
            self.desirable_ = tuple(labels[i] for i in desirable_labels(labels, self.y_desirable))
        return fault

    def costs(self, n_labels: int) -> Floats | None:
        """(L, L) the costs of predictions, checked; None if every mistake costs 1.

        Raises:
            ValueError: if they do not fit so many classes.
        """
        return None if self.cost_matrix is None else check_costs(self.cost_matrix, n_labels)

    def _estimator(self, X: Any = None) -> Any:
        """The user's, or the default one, for features like X if they are known.

        Centred features take far fewer steps, to the same regression; sparse ones stay sparse.
        """
        if self.estimator is not None:
            return self.estimator
        is_dense = X is not None and not (issparse(X) or hasattr(X, "sparse"))  # the latter: pandas
        scaling, regression = StandardScaler(with_mean=is_dense), LogisticRegression(max_iter=1000)
        if _routing_enabled():
            scaling.set_fit_request(sample_weight=True)
            regression.set_fit_request(sample_weight=True)
        return make_pipeline(scaling, regression)

    def _is_joint(self) -> bool:
        if self.prefit:
            return False
        if self.cells != "auto":
            return self.cells == "joint"
        return count_of_trees(self._estimator()) is None

    def _tuned_on(self, n_rows: int) -> str:
        """Which rows the multipliers are found on."""
        if self.tune_on != "auto":
            return self.tune_on
        is_linear = isinstance(last_step(self._estimator()), LinearClassifierMixin)
        return "training" if is_linear and n_rows >= SMALL_TABLE else "cross_fitted"

    def _scores(self, X: Any, sensitive_features: Any) -> Floats:
        """(L, n) the scores of the labels; with a lottery those of the rule drawn for each row."""
        probabilities = self._checked_probabilities(X, sensitive_features)
        costs = self.costs(len(self.classes_))
        if not self.lottery_:
            return weighted_scores(probabilities, self.pulls_, costs)
        ends = np.cumsum([share for share, _ in self.lottery_])
        drawn = np.searchsorted(ends[:-1], draw_lots(X, self.lottery_key_), side="right")
        rules = [weighted_scores(probabilities, pulls, costs) for _, pulls in self.lottery_]
        scores: Floats = np.stack(rules)[drawn, :, np.arange(len(drawn))].T
        return scores

    def _lottery_rates(self, probabilities: list[Floats]) -> Floats:
        """(n, L) the chance of each label."""
        rates = np.zeros((probabilities[0].shape[-1], len(self.classes_)))
        costs = self.costs(len(self.classes_))
        for share, pulls in self.lottery_:
            decided = largest(weighted_scores(probabilities, pulls, costs))
            rates[np.arange(len(rates)), decided] += share
        return rates

    def _checked_probabilities(self, X: Any, sensitive_features: Any) -> list[Floats]:
        """(L, G, n) of the cells, for each set of attributes; one group if there is no measure."""
        check_is_fitted(self, "classes_")
        if not self.use_sensitive and sensitive_features is not None:
            raise ValueError(NOT_USED)
        if getattr(X, "ndim", 2) != 1:  # of which the estimator itself says what is wrong
            with naming_rows("X"):
                validate_data(self, X, reset=False, skip_check_array=True)
        if self.fairness_measure is None:
            return [class_probabilities(self.label_model_, X)[:, None]]
        return self._probabilities(X, sensitive_features)

    def _probabilities(self, X: Any, sensitive_features: Any) -> list[Floats]:
        """(L, G, n) of the cells, for each set of attributes."""
        n = _num_samples(X)
        sizes = [groups.n_groups for groups in self.cell_groups_]
        found = cell_probabilities(
            X, n, len(self.classes_), self.label_model_, self.cell_models_, sizes
        )
        return self._given(found, X, sensitive_features, n) if self.use_sensitive else found

    def _given(self, found: list[Floats], X: Any, sensitive_features: Any, n: int) -> list[Floats]:
        if sensitive_features is None:
            warnings.warn(NOT_GIVEN, stacklevel=4)
            return found
        columns = sensitive_columns(sensitive_features, n)
        assert self.groups_ is not None  # noqa: S101 - only plain models have none
        own = self.groups_.attributes
        if len(columns) == len(own) and set(columns) != set(own):
            columns = dict(zip(own, columns.values(), strict=True))
        share = None
        encoder = getattr(self, "sensitive_encoder_", None)  # files of before have none
        if encoder is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of values never seen, which follows below
                features = aware_features(encoder, X, columns)
            share = code_probabilities(self.aware_model_, features, n, len(self.classes_))
        return [
            given_groups(
                probability,
                groups.find_groups(
                    {name: columns[name] for name in groups.attributes if name in columns},
                    "sensitive_features",
                ),
                share,
            )
            for probability, groups in zip(found, self.cell_groups_, strict=True)
        ]


def predict_together(
    models: Sequence[FairDecisionClassifier], X: Any, *, sensitive_features: Any = None
) -> list[NDArray[Any]]:
    """The predictions of models that `fit_decisions` fitted together: probabilities come once.

    Args:
        models: fitted together.
        X: (n, features).
        sensitive_features: of aware models.
    """
    shared = models[0]._probabilities(X, sensitive_features)  # noqa: SLF001 - of the same class
    return [
        model.classes_[
            largest(weighted_scores(shared, model.pulls_, model.costs(len(model.classes_))))
        ]
        if not model.lottery_
        else model.predict(X, sensitive_features=sensitive_features)
        for model in models
    ]
