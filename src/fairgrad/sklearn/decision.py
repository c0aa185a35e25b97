"""A classifier around any other that makes its decisions fair."""

from __future__ import annotations

import hashlib
import warnings
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, check_random_state, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from fairgrad.aware import NOT_GIVEN, NOT_USED, AwareRouting, SensitiveEncoder, ask_for_values
from fairgrad.checks import check_count, naming_rows, relative_costs, require_values, warn
from fairgrad.columns import as_columns, sensitive_columns
from fairgrad.decisions import (
    DecisionProblem,
    as_costs,
    judged_apart,
    largest,
    solve,
    weighted_scores,
)
from fairgrad.groups import MIN_GROUP, check_labels, check_weights, group_rows
from fairgrad.measures import LargeGroups, among_large, check_several_groups, desirable_in_use
from fairgrad.membership import spread_over_groups
from fairgrad.sklearn.cell_models import (
    CellModels,
    FittedCells,
    class_probabilities,
    count_of_trees,
    fit_arguments,
    takes_codes_only,
)
from fairgrad.splitting import fold_of_rows, unpack_rows
from fairgrad.usefulness import (
    REACHED,
    ModelFigures,
    ShownInNotebooks,
    suggestions_of,
    warn_of_faults,
    warn_of_small,
    worst_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Floats, Groups
    from fairgrad.membership import SpreadRows

DIFFERENCE = 0.03
"""Levels on training and on held-out rows differ materially if they do by more than this."""

PIECE = 4096
"""Rows of a sparse matrix that lots are drawn for at a time."""


class FairDecisionClassifier(ShownInNotebooks, AwareRouting, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Makes the decisions of any classifier with `predict_proba` fair.

    Copies of the estimator learn the probabilities of the cells, ``P(y = l | x)`` and, within each
    label, ``P(s = r | x, y = l)``. Models of the groups have a quarter of the boosting rounds, or
    half of a forest's trees. The most accurate rule that keeps the constraints is then

        h(x) = argmax_l  sum_r w_(l,r) P(y = l, s = r | x),      w_k = 1 + (C' lambda)_k / p_k,

    with one multiplier lambda per constraint. Only the multipliers are fitted for fairness, in
    little more time than the estimator itself, and nothing is random. For measures of what is
    predicted, such as demographic parity with more than two labels, the multipliers put a cost on
    every label in every cell, and the label of the least cost is chosen. Sensitive values are
    needed to fit, and to predict only if the decisions are to be aware of them (`use_sensitive`).

    Args:
        estimator: a classifier or pipeline with `predict_proba`; by default logistic regression on
            scaled features. Calibrated probabilities give better decisions.
        fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
            "accuracy_parity", "four_fifths_rule", "equalized_odds_all", one of your own (see
            `fairgrad.torch.FairLoss`), or None for the plain estimator.
        epsilon: slack of the constraints. 0 asks for exact fairness: levels of at most 0.001, or of
            one row where one row makes more. Otherwise a level of few rows may be as far away
            as its sampling error explains, so that noise is not fitted. Infinity gives the plain
            decisions.
        use_sensitive: whether decisions may look at the sensitive values, which then are given to
            `predict`, too: ``P(y, s | x)`` becomes ``P(y | x, s)``. The law may forbid it. Where a
            value is unknown, the decision is that of a model that does not use it.
        prefit: whether the estimator is fitted already. Its probabilities of the labels are kept as
            they are; only those of the groups, and the multipliers, are fitted.
        n_folds: number of folds. Decisions are chosen by the labels of all rows, with
            probabilities from models of the other folds. New rows get the mean of the folds'
            models; the label is learnt once more from all rows, unless the estimator has trees,
            which are more accurate as a mean.
        lottery: whether decisions may be drawn by lot. Exact equalized odds often needs ties that
            no single rule can break. With a lottery, the bounds are kept by several rules, and a
            keyed digest of each row decides which one applies: the same row always gets the same
            answer. It is used only if no single rule keeps the bounds. Two people who differ
            in any feature may get different answers for no other reason than the lot.
        y_desirable: desirable labels, for equality of opportunity and the four-fifths rule; by
            default the second of two classes in sorted order.
        min_group: the smallest group to constrain, in rows, or below 1 as a share of all rows. A
            warning names the groups that are left out. 0 constrains all groups.
        cost_matrix: what it costs to predict each class (columns) where each is true (rows), in
            sorted order; None if every error costs 1. Decisions then minimize the cost.
        random_state: seed of the folds and of the lottery.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Attributes:
        classes_: the class labels.
        multipliers_: (J,) the multipliers of the constraints.
        cell_weights_: (K,) the weights of the cells; (L * K,) of every label in every cell for
            measures of what is predicted, or with costs.
        levels_: (J,) levels of fairness, as new rows can expect them: each row is judged by the
            models of the folds that did not learn from it. With a lottery, expected levels.
        violation_: by how much the worst of them is beyond its bounds; 0 if all are kept.
        constraint_names_: (J,) names of the levels and multipliers.
        cell_names_: (K,) names of the cells.
        desirable_: the desirable labels; none if the measure does not use them.
        lottery_: the share and the weights of each rule of a lottery; empty if one rule decides.
        groups_: groups and frequencies of the rows of the fit.
        set_aside_: the groups that are in no constraint because of `min_group`, and their rows.
        label_model_: the fitted model of the labels.
        aware_model_: of aware decisions, a model of the labels (by their places in `classes_`) that
            has the sensitive values among its features; None for others, and if `prefit`.
        sensitive_encoder_: how it reads the sensitive values.
        cell_models_: for each set of attributes, the fitted models of the groups within each label.
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
        >>> bool(np.abs(model.levels_).max() < 0.06)  # close to epsilon on the rows of the fit
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
        n_folds: int = 3,
        lottery: bool = False,
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
        cost_matrix: Any = None,
        random_state: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.estimator = estimator
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.use_sensitive = use_sensitive
        self.prefit = prefit
        self.n_folds = n_folds
        self.lottery = lottery
        self.y_desirable = y_desirable
        self.min_group = min_group
        self.cost_matrix = cost_matrix
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        validation: Any = None,
        membership: Any = None,
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
                multipliers on. The models are then fitted once, to all rows of X.
            membership: (n, values) how likely each row has each value of an attribute that some
                rows lack, as an array, a data frame or a `fairgrad.membership.Membership`. These
                rows then count in every group by its probability. Without it they have weight 1.
            fit_params: further arguments of the estimator's fit.

        Raises:
            ValueError: if sensitive_features are missing, or an argument is not allowed.
        """
        return fit_decisions(
            [self],
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            validation=validation,
            membership=membership,
            **fit_params,
        )[0]

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """(n,) margins for two classes, above 0 for the second; (n, classes) scores for more.

        Args:
            X: (n, features).
            sensitive_features: of an aware model (`use_sensitive`), as in `fit`. Missing values,
                those that fit never saw (with a warning) and -1 are unknown.

        Raises:
            ValueError: if the model is not aware, or the columns do not fit.
        """
        scores = self._scores(X, self._probabilities(X, sensitive_features))
        return scores[1] - scores[0] if len(scores) == 2 else scores.T

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """(n, classes) the probability of each label, as the estimator estimates it.

        The fair decision of `predict` need not be the most probable label. With a lottery it is the
        chance that the row gets each label before the lot is drawn. Sensitive values as in
        `decision_function`.
        """
        probabilities = self._probabilities(X, sensitive_features)
        if self.lottery_:
            rates = np.zeros((_num_samples(X), len(self.classes_)))
            costs = self.costs(len(self.classes_))
            for share, pulls in self.lottery_:
                decided = largest(weighted_scores(probabilities, pulls, costs))
                rates[np.arange(len(rates)), decided] += share
            return rates
        mean: Floats = np.mean([cells.sum(1) for cells in probabilities], axis=0)
        return mean.T

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """(n,) predicted class labels; sensitive values as in `decision_function`.

        Of labels with equal scores it is the first.
        """
        return predict_together([self], X, sensitive_features=sensitive_features)[0]

    def get_metadata_routing(self) -> MetadataRouter:
        """What this estimator and the one inside ask for, as scikit-learn wants to know it."""
        request = ask_for_values(self._get_metadata_request(), self.use_sensitive)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(request)
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

    def _set_fair(self, classes: NDArray[Any], tuning: Tuning, *, warns: bool) -> None:
        """Finds the multipliers, and sets the fitted attributes; arrays and models only."""
        self.classes_, self.groups_ = classes, tuning.cells.rows.groups
        self.label_model_, self.cell_models_, self.aware_model_ = tuning.fitted[:3]
        self.cell_groups_, self.sensitive_encoder_ = tuning.fitted[3:]
        problem = tuning.problem(self)
        decision = solve(problem, lottery=self.lottery)
        self.desirable_ = desirable_in_use(self.fairness_measure, classes, self.y_desirable)
        self.pulls_ = tuning.by_attributes(decision.pulls, problem)
        self.lottery_ = [
            (share, tuning.by_attributes(pulls, problem)) for share, pulls in decision.lottery
        ]
        self.lottery_key_ = tuning.key if self.lottery_ else ""
        self.multipliers_ = decision.multipliers
        self.constraint_names_ = tuple(name for one, _ in problem.measured for name in one.names)
        self._set_weights(self.groups_, decision.pulls, problem)
        self._set_levels(problem, tuning, warns=warns)

    def _set_weights(self, groups: Groups, pulls: list[Floats], problem: DecisionProblem) -> None:
        """The weights of the cells of all attributes together, and their names."""
        parents = [groups.merged(*people.groups.attributes)[1] for _, people in problem.measured]
        if self.cost_matrix is not None or any(pull.ndim == 3 for pull in pulls):
            plain = relative_costs(self.cost_matrix, len(self.classes_)).T
            costs: Floats = np.repeat(plain[:, :, None], groups.n_groups, axis=2)
            for pull, parent in zip(pulls, parents, strict=True):
                costs = costs + as_costs(pull)[:, :, parent]
            self.cell_weights_ = (costs.max(0) - costs).ravel()
            cells = groups.cell_names(by_label=True)
            self.cell_names_ = tuple(f"{y} predicted, {k}" for y in self.classes_ for k in cells)
            return
        weights = np.ones(groups.mass.shape)
        for pull, parent in zip(pulls, parents, strict=True):
            weights = weights + pull[:, parent]
        by_label = any(constraints.by_label for constraints, _ in problem.measured)
        self.cell_weights_ = weights.ravel() if by_label else weights[0]
        self.cell_names_ = groups.cell_names(by_label)

    def _set_levels(self, problem: DecisionProblem, tuning: Tuning, *, warns: bool) -> None:
        """Judges the decisions, and warns of what is wrong with them, if anything is.

        Each row is judged by the models of the folds that have not learnt from it, as new rows will
        be. On rows that they have learnt from, models know rare groups better than anywhere else:
        levels there may be far from those of new rows.
        """
        rules = self.lottery_ or [(1.0, self.pulls_)]
        self.levels_, fair = _judged(problem, tuning.probabilities, rules)
        kind, overfits = "validation", ""
        if tuning.fitted_cells is not tuning.probabilities:
            kind, learnt = "held-out", _judged(problem, tuning.fitted_cells, rules)[1]
            if learnt.beyond > REACHED and learnt.worst > fair.worst + DIFFERENCE:
                overfits = (
                    f"The model overfits: max |F| is {learnt.worst:.4f} on its training rows, "
                    f"against {fair.worst:.4f} on held-out rows, which are like new rows. Audit it "
                    "on new rows, or use a model that overfits less."
                )
        self.violation_ = float(problem.figures(self.levels_, 0.0).worst)
        if tuning.n_known is not None:
            known = tuning.known()
            self.levels_ = _judged(known.problem(self), known.probabilities, rules)[0]
        if warns:
            plain = _judged(problem, tuning.probabilities, [(1.0, ())])[1]
            labels = self.classes_.tolist()
            constants = [_judged(problem, (), [(1.0, place)])[1] for place in range(len(labels))]
            asked = suggestions_of(self)
            warn_of_faults(asked, fair, constants, plain, kind, labels=labels, overfits=overfits)

    def costs(self, n_labels: int) -> Floats | None:
        """(L, L) the relative costs of predictions; None if every mistake costs 1.

        Raises:
            ValueError: if they do not fit so many classes.
        """
        return None if self.cost_matrix is None else relative_costs(self.cost_matrix, n_labels)

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

    def _scores(self, X: Any, probabilities: list[Floats]) -> Floats:
        """(L, n) the scores of the labels; with a lottery those of the rule drawn for each row."""
        costs = self.costs(len(self.classes_))
        if not self.lottery_:
            return weighted_scores(probabilities, self.pulls_, costs)
        ends = np.cumsum([share for share, _ in self.lottery_])
        drawn = np.searchsorted(ends[:-1], draw_lots(X, self.lottery_key_), side="right")
        rules = [weighted_scores(probabilities, pulls, costs) for _, pulls in self.lottery_]
        return np.stack(rules)[drawn, :, np.arange(len(drawn))].T

    def _probabilities(self, X: Any, sensitive_features: Any) -> list[Floats]:
        """(L, G, n) of the cells, for each set of attributes; one group if there is no measure."""
        check_is_fitted(self, "classes_")
        if not self.use_sensitive and sensitive_features is not None:
            raise ValueError(NOT_USED)
        if getattr(X, "ndim", 2) != 1:  # the estimator itself refuses these
            with naming_rows("X"):
                validate_data(self, X, reset=False, skip_check_array=True)
        if self.fairness_measure is None:
            return [class_probabilities(self.label_model_, X)[:, None]]
        models = (self.label_model_, self.cell_models_, self.aware_model_)
        fitted = FittedCells(*models, self.cell_groups_, self.sensitive_encoder_)
        if sensitive_features is None:
            if self.use_sensitive:
                warn(NOT_GIVEN)
            return fitted.probabilities(X)
        columns = sensitive_columns(sensitive_features, _num_samples(X))
        assert self.groups_ is not None  # noqa: S101 - only plain models have none
        attributes = self.groups_.attributes
        if len(columns) == len(attributes) and set(columns) != set(attributes):
            columns = dict(zip(attributes, columns.values(), strict=True))
        return fitted.probabilities(X, columns)


def _judged(
    problem: DecisionProblem, probabilities: Sequence[Floats], rules: Sequence[tuple[float, Any]]
) -> tuple[Floats, ModelFigures]:
    """Levels and figures of a rule, or what is expected of several by their shares.

    A rule is what the weights add, as in `weighted_scores`, or the index of a label for everybody.
    """
    decided = [
        np.full(len(problem.label), rule)
        if isinstance(rule, int)
        else largest(weighted_scores(probabilities, rule, problem.costs))
        for _, rule in rules
    ]
    shares = np.array([share for share, _ in rules])
    counts, errors = zip(*map(problem.judged, decided), strict=True)
    levels: Floats = shares @ np.array([problem.levels(counted) for counted in counts])
    most_expensive = 1.0 if problem.costs is None else float(problem.costs.max())
    accuracy = 1.0 - float(shares @ errors) / most_expensive
    measured = [constraints for constraints, _ in problem.measured]
    cuts = np.cumsum([len(constraints.c0) for constraints in measured])[:-1]
    pairs = zip(measured, np.split(levels, cuts), strict=True)
    worst, beyond = np.max([worst_of(*pair) for pair in pairs], axis=0)
    labels = decided[0] if len(decided) == 1 else None
    return levels, ModelFigures(
        accuracy, float(worst), float(beyond), labels, problem.costs is not None
    )


class Tuning:
    """The fitted models of the cells, and the rows that multipliers are found on.

    Attributes:
        fitted: the models of the cells.
        rows: on which the multipliers are found.
        probabilities: of their cells, for each set of attributes.
        fitted_cells: the same by the fitted models. They differ only if each row of `probabilities`
            has those of models that have not learnt from it.
        key: of the lottery.
    """

    def __init__(
        self,
        model: FairDecisionClassifier,
        measure: Any,
        cells: CellModels,
        validation: Any,
        spread: SpreadRows | None,
    ) -> None:
        self.n_known = None if spread is None or validation is not None else spread.n_known
        self.measure, self.cells, self.rows = measure, cells, cells.rows
        chance = check_random_state(model.random_state)
        seed = int(chance.randint(np.iinfo(np.int32).max))
        self.key = chance.bytes(16).hex()
        X, aware = cells.X, model.use_sensitive
        if validation is None:
            shows = None if model.verbose == "auto" else bool(model.verbose)
            cell = cells.rows.cell()
            if spread is None:
                fold = fold_of_rows(cell, model.n_folds, seed)
            else:  # a row that is there once per group is in one fold
                place = np.unique(spread.source, return_index=True)[1]
                fold = fold_of_rows(cell[place], model.n_folds, seed)[spread.source]
            self.fitted, self.probabilities = cells.cross_fit(fold, aware=aware, shows=shows)
        else:
            self.fitted = cells.fit()
            X, y, s, weight = unpack_rows(validation, "validation")
            columns = sensitive_columns(s, len(y), "validation")
            self.rows = cells.rows.groups.place(y, columns, weight)
        values = self.rows.sensitive_values() if aware else None
        self.fitted_cells = self.fitted.probabilities(X, values)
        if validation is not None:
            self.probabilities = self.fitted_cells

    def problem(self, model: FairDecisionClassifier) -> DecisionProblem:
        """What to solve for one model: its measures, with its epsilon."""
        rows = self.rows
        measured = judged_apart(
            self.measure, rows, epsilon=model.epsilon, y_desirable=model.y_desirable
        )
        probabilities = [
            self.probabilities[self.cells.attributes.index(people.groups.attributes)]
            for _, people in measured
        ]
        return DecisionProblem(measured, probabilities, model.cost_matrix)

    def known(self) -> Tuning:
        """The same with the rows of known group alone."""
        narrow = copy(self)
        narrow.rows = self.rows.take(slice(self.n_known))
        narrow.probabilities = [cells[:, :, : self.n_known] for cells in self.probabilities]
        return narrow

    def by_attributes(self, pulls: Sequence[Floats], problem: DecisionProblem) -> list[Floats]:
        """What measures of the same attributes add to the scores, summed: one for each set."""
        n_labels = len(self.rows.groups.labels)
        sums: list[Floats] = [np.zeros((n_labels, groups.n_groups)) for groups in self.cells.groups]
        for (_, people), pull in zip(problem.measured, pulls, strict=True):
            place = self.cells.attributes.index(people.groups.attributes)
            if pull.ndim == sums[place].ndim:
                sums[place] = sums[place] + pull
            else:
                sums[place] = as_costs(sums[place]) + as_costs(pull)
        return sums


def fit_decisions(
    models: Sequence[FairDecisionClassifier],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    validation: Any = None,
    membership: Any = None,
    **fit_params: Any,
) -> list[FairDecisionClassifier]:
    """Fits variants of one classifier that differ in epsilon alone: its models are fitted once.

    The other arguments are those of `FairDecisionClassifier.fit`.
    """
    first = models[0]
    estimator = first._estimator(X)  # noqa: SLF001 - the classifier's other half
    check_count("n_folds", first.n_folds, least=2)
    if first.prefit and first.estimator is None:
        raise ValueError("estimator: required with prefit=True; pass a fitted classifier.")
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator: expected a classifier with predict_proba, got "
            f"{type(estimator).__name__}; wrap it in CalibratedClassifierCV."
        )
    if X is None:
        raise ValueError("X: expected a table with one row per label of y, got None.")
    spread = None
    if membership is not None and sensitive_features is not None:
        (X, y, sensitive_features, sample_weight), spread = spread_over_groups(
            (X, y, sensitive_features, sample_weight), membership
        )
    with naming_rows():
        validate_data(first, X, skip_check_array=True)
        labels, y = y, column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
    classes = check_labels(y)
    weight = check_weights(sample_weight, len(y))
    if _routing_enabled():
        routed = fit_params if weight is None else {"sample_weight": weight, **fit_params}
        arguments = dict(process_routing(first, "fit", **routed).estimator.fit)
    else:
        arguments = {**fit_params, **fit_arguments(estimator, weight)}
    if first.fairness_measure is None:
        with naming_rows("X"):
            target = np.searchsorted(classes, y) if takes_codes_only(estimator) else y
            label_model = (
                estimator if first.prefit else clone(estimator).fit(X, target, **arguments)
            )
        for model in models:
            model._set_plain(classes, label_model)  # noqa: SLF001 - as above
        return list(models)
    require_values(first, sensitive_features)
    (label_name,) = as_columns(labels, "y") if np.ndim(labels) == 1 else ("y",)
    rows = group_rows(
        {label_name: y},
        sensitive_columns(sensitive_features, len(y)),
        weight,
        labels=classes,
        arguments=("y", "sensitive_features", "sample_weight"),
    )
    check_several_groups(first.fairness_measure, rows.groups, "sensitive_features")
    measure = among_large(first.fairness_measure, rows, first.min_group)
    set_aside = measure.set_aside if isinstance(measure, LargeGroups) else {}
    warn_of_small(set_aside)
    for model in models:  # refused before anything is fitted
        relative_costs(model.cost_matrix, len(classes))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are given when multipliers are found
            measured = judged_apart(
                measure, rows, epsilon=model.epsilon, y_desirable=model.y_desirable
            )
    encoder = None
    if first.use_sensitive and not first.prefit and _takes_columns(X):
        encoder = SensitiveEncoder.of(rows.groups, crossed=count_of_trees(estimator) is None)
    cells = CellModels(
        estimator,
        X,
        y,
        rows,
        list(dict.fromkeys(people.groups.attributes for _, people in measured)),
        arguments,
        prefit=first.prefit,
        encoder=encoder,
    )
    tuning = Tuning(first, measure, cells, validation, spread)
    for model in models:
        model.__dict__ |= {name: v for name, v in vars(first).items() if name.endswith("_in_")}
        model.set_aside_ = set_aside
        # Of many models one is chosen later, which is then looked at.
        model._set_fair(classes, tuning, warns=len(models) == 1)  # noqa: SLF001 - as above
    return list(models)


def predict_together(
    models: Sequence[FairDecisionClassifier], X: Any, *, sensitive_features: Any = None
) -> list[NDArray[Any]]:
    """The predictions of models that `fit_decisions` fitted together: probabilities come once."""
    shared = models[0]._probabilities(X, sensitive_features)  # noqa: SLF001 - of the same class
    return [
        model.classes_[largest(model._scores(X, shared))]  # noqa: SLF001 - as above
        for model in models
    ]


def _takes_columns(X: Any) -> bool:
    """Whether features are a table that further columns can be put beside."""
    return hasattr(X, "iloc") if hasattr(X, "columns") else np.ndim(X) == 2


def draw_lots(X: Any, key: str) -> Floats:
    """(n,) a number from 0 to below 1 for each row: a keyed digest of its values.

    The same row always draws the same number. Without the key, hexadecimal digits, the number
    cannot be predicted.
    """
    secret = bytes.fromhex(key)
    if issparse(X):
        rows = X.tocsr()
        pieces = [rows[i : i + PIECE].toarray() for i in range(0, rows.shape[0], PIECE)]
        return np.concatenate([draw_lots(piece, key) for piece in pieces])
    if hasattr(X, "columns"):
        columns = list(as_columns(X, "X").values())
    else:
        array = np.asarray(X)
        columns = list(array.reshape(len(array), -1).T)
    digests = b"".join(
        hashlib.blake2b(row.tobytes(), digest_size=8, key=secret).digest()
        for row in np.stack([_words(column) for column in columns], axis=1)
    )
    return (np.frombuffer(digests, dtype="<u8") >> 11) / 2.0**53


def _words(column: Any) -> NDArray[np.uint64]:
    """(n,) a number of 64 bits for each value: equal values have equal numbers."""
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return (values.astype(np.float64) + 0.0).view(np.uint64)
    digest = {
        text: int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        for text in {str(value) for value in values}
    }
    return np.array([digest[str(value)] for value in values], dtype=np.uint64)
