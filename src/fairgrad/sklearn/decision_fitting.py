"""One fit of fair decisions: what comes before the multipliers, and the multipliers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from fairgrad.checks import check_count, naming_rows
from fairgrad.columns import UNKNOWN, as_columns, sensitive_columns
from fairgrad.decisions import (
    Columns,
    ConstrainedCells,
    DecisionProblem,
    added_scores,
    as_costs,
    label_scores,
    largest,
    measured_apart,
    solve,
)
from fairgrad.dual import cost_shares
from fairgrad.groups import GroupedRows, check_weights, group_rows
from fairgrad.measures import LargeGroups, among_large, check_several_groups
from fairgrad.sklearn.cell_models import (
    AttributeRows,
    AwareLabels,
    CellModels,
    cell_probabilities,
    cheaper_cells,
    cheaper_groups,
    count_of_trees,
    fit_arguments,
    fold_mean,
    given_groups,
    takes_codes_only,
    takes_columns,
    within_groups,
)
from fairgrad.sklearn.rows import check_labels
from fairgrad.splitting import fold_of_rows, unpack_rows
from fairgrad.usefulness import (
    FEWER,
    REACHED,
    FairnessWarning,
    ModelFigures,
    Suggestions,
    find_fault,
    warn_of_small,
    worst_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.decisions import Decision, MeasuredAttributes
    from fairgrad.groups import Floats, Ints
    from fairgrad.sklearn.decision import FairDecisionClassifier

LEAST = 1e-6
"""Probabilities below say how sure a model is, not how much it knows."""

LEAST_CHANGE = 0.005
"""A share of rows: of fewer decisions that are changed nothing can be said."""

MEMORIZED = 0.05
"""A model that is so much more accurate on its training rows has memorized them: levels on these
rows do not tell what new rows will have."""

DIFFERENCE = 0.03
"""Levels differ materially if they do by more than this."""

CELLS = ("auto", "joint", "factored")
TUNE_ON = ("auto", "training", "cross_fitted")


def fit_decisions(
    models: Sequence[FairDecisionClassifier],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    validation: Any = None,
    fit_params: Mapping[str, Any] | None = None,
) -> list[FairDecisionClassifier]:
    """Fits variants of one classifier that differ in epsilon alone: its models are fitted once.

    Args:
        models: not fitted.
        X: this and what follows as in `FairDecisionClassifier.fit`.
        y: labels.
        sensitive_features: sensitive values.
        sample_weight: weights.
        validation: rows to find the multipliers on.
        fit_params: further arguments of the estimator's fit.
    """
    first = models[0]
    _check_settings(first)
    if X is None:
        raise ValueError("X: expected a table with one row per label of y, got None.")
    with naming_rows():
        validate_data(first, X, skip_check_array=True)
        given, y = y, column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
    check_labels(y)
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(f"y: expected at least two classes, got one class: {classes.tolist()}.")
    weight = check_weights(sample_weight, len(y))
    arguments = _routed(first, weight, fit_params or {})
    if first.fairness_measure is None:
        plain = first._estimator(X)  # noqa: SLF001 - the classifier's other half
        with naming_rows("X"):
            target = np.searchsorted(classes, y) if takes_codes_only(plain) else y
            label_model = plain if first.prefit else clone(plain).fit(X, target, **arguments)
        for model in models:
            model._set_plain(classes, label_model)  # noqa: SLF001 - as above
        return list(models)
    if sensitive_features is None:
        raise ValueError(
            "sensitive_features: required, one value per row, as fairness_measure is "
            f"{first.fairness_measure!r}; pass fit(X, y, sensitive_features=...), or "
            "fairness_measure=None for the plain estimator."
        )
    (label_name,) = as_columns(given, "y") if np.ndim(given) == 1 else ("y",)
    rows = group_rows(
        {label_name: y},
        sensitive_columns(sensitive_features, len(y)),
        weight,
        labels=classes,
        arguments=("y", "sensitive_features", "sample_weight"),
    )
    check_several_groups(first.fairness_measure, rows.groups, "sensitive_features")
    for model in models:
        model.costs(len(classes))  # refused before anything is fitted
    measure = among_large(first.fairness_measure, rows, first.min_group)
    set_aside = measure.set_aside() if isinstance(measure, LargeGroups) else {}
    warn_of_small(set_aside, stacklevel=4)
    fitted = CellFit(first, measure, X, y, rows, arguments)
    tuned = fitted.tuned_on(validation)
    of_features = {name: v for name, v in vars(first).items() if name.endswith("_in_")}
    columns = Columns()  # decisions tried for one epsilon serve all others
    for model in sorted(models, key=lambda own: float(np.max(own.epsilon))):
        model.__dict__ |= of_features
        fault = model._set_fair(classes, rows, fitted, tuned, columns)  # noqa: SLF001 - as above
        fault = fault or fitted.mean_fault(model, tuned)
        model.set_aside_ = set_aside
        if fault and len(models) == 1:  # of many one is chosen later, which is then looked at
            warnings.warn(fault, FairnessWarning, stacklevel=3)
    return list(models)


class FittedCells(NamedTuple):
    """Models fitted to the same rows: of the labels, of the cells, and of the labels by s, too."""

    label_model: Any
    cell_models: list[Any]
    aware_model: Any = None


@dataclass(frozen=True, eq=False)
class TunedRows:
    """The rows that multipliers are found on, with the probabilities of their cells."""

    rows: GroupedRows
    probabilities: list[Floats]


class CellFit:
    """The models of the cells, fitted, and the rows to find multipliers on.

    Errors about measures and rows come before anything is fitted.
    """

    def __init__(
        self,
        model: FairDecisionClassifier,
        measure: Any,
        X: Any,
        y: Any,
        rows: GroupedRows,
        arguments: Mapping[str, Any],
    ) -> None:
        self.model, self.X, self.y, self.rows, self.arguments = model, X, y, rows, arguments
        self.measure, self.key, self.is_cross_fitted = measure, "", False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are given when multipliers are found
            found = measured_apart(
                measure, rows.groups, epsilon=model.epsilon, y_desirable=model.y_desirable
            )
        self.attributes = list(dict.fromkeys(part.attributes for part in found))
        self.parts = [AttributeRows.of(rows, names) for names in self.attributes]
        self.sizes = [part.groups.n_groups for part in self.parts]
        estimator = model._estimator(X)  # noqa: SLF001 - the classifier's other half
        is_joint = model._is_joint()  # noqa: SLF001 - as above
        of_groups = estimator if model.group_estimator is None else model.group_estimator
        if model.cells == "auto":
            of_groups = cheaper_groups(estimator) if of_groups is estimator else of_groups
            estimator = cheaper_cells(estimator) if is_joint else estimator
        self.models = CellModels(estimator, of_groups, is_joint=is_joint, prefit=model.prefit)
        self.label_model: Any = None
        self.cell_models: list[Any] = []
        self.aware_model: Any = None
        self.aware: AwareLabels | None = None
        if model.use_sensitive and not model.prefit and takes_columns(X):
            plain = model._estimator(X)  # noqa: SLF001 - as above
            crossed = count_of_trees(plain) is None
            self.aware = AwareLabels(plain, rows.groups, crossed=crossed)

    def _fit(self, rows: Ints | None) -> FittedCells:
        label = self.rows.label
        arguments = (self.X, self.y, label, self.parts, rows, self.arguments)
        of_label, of_cells = self.models.fit(*arguments)
        if self.aware is None:
            return FittedCells(of_label, of_cells)
        own = self.aware.fit(self.X, self._values(self.rows), label, rows, self.arguments)
        return FittedCells(of_label, of_cells, own)

    def _values(self, rows: GroupedRows) -> dict[str, Any]:
        """The sensitive values of rows."""
        groups = rows.groups
        return {name: groups.column(a)[rows.group] for a, name in enumerate(groups.attributes)}

    def _probabilities(
        self, fitted: FittedCells, X: Any, rows: GroupedRows
    ) -> tuple[list[Floats], Floats | None]:
        """(L, G, n) of the cells of each set of attributes; (L, n) of the labels, if aware."""
        n, n_labels = _num_samples(X), len(self.rows.groups.labels)
        models = (fitted.label_model, fitted.cell_models)
        found = cell_probabilities(X, n, n_labels, *models, self.sizes)
        if self.aware is None:
            return found, None
        return found, self.aware.probabilities(fitted.aware_model, X, self._values(rows))

    def tuned_on(self, validation: Any) -> TunedRows:
        """Fits the models; the rows to find the multipliers on."""
        model, X, rows = self.model, self.X, self.rows
        chance = check_random_state(model.random_state)
        seed = int(chance.randint(np.iinfo(np.int32).max))
        self.key = chance.bytes(16).hex()
        if validation is not None:
            X_judged, y, s, weight = unpack_rows(validation, "validation")
            judged = rows.groups.place(y, sensitive_columns(s, len(y), "validation"), weight)
            return self._final(self._fit(None), X_judged, judged)
        tune_on = model._tuned_on(len(rows))  # noqa: SLF001 - the classifier's other half
        if tune_on == "training":
            self.aware = None  # which model knows more cannot be seen on rows both have learnt
        if tune_on == "training":
            return self._final(self._fit(None), X, rows)
        self.is_cross_fitted = True
        fold = fold_of_rows(rows.cell(), model.n_folds, seed)
        n_labels, n = len(rows.groups.labels), len(rows)
        found = [np.zeros((n_labels, size, n)) for size in self.sizes]
        share = None if self.aware is None else np.zeros((n_labels, n))
        models = []
        for i in range(model.n_folds):
            held = np.flatnonzero(fold == i)
            fitted = self._fit(np.flatnonzero(fold != i))
            models.append(fitted)
            own, told = self._probabilities(fitted, _safe_indexing(X, held), rows.take(held))
            for whole, part in zip(found, own, strict=True):
                whole[:, :, held] = part
            if share is not None:
                share[:, held] = told
        mean = FittedCells(*(fold_mean(own) for own in zip(*models, strict=True)))
        return self._tuned(rows, found, share, mean)

    def _final(self, fitted: FittedCells, X: Any, rows: GroupedRows) -> TunedRows:
        return self._tuned(rows, *self._probabilities(fitted, X, rows), fitted)

    def _tuned(
        self, rows: GroupedRows, found: list[Floats], share: Floats | None, fitted: FittedCells
    ) -> TunedRows:
        """Takes the models; aware probabilities by the one that foresees the labels better."""
        self.label_model, self.cell_models, self.aware_model = fitted
        if not self.model.use_sensitive:
            return TunedRows(rows, found)
        parts = [AttributeRows.of(rows, names) for names in self.attributes]
        groups = [np.where(own.groups.is_known[own.group], own.group, UNKNOWN) for own in parts]
        if share is not None and not _foresees_better(share, found, groups, rows):
            share = self.aware = self.aware_model = None
        pairs = zip(found, groups, strict=True)
        return TunedRows(rows, [given_groups(own, group, share) for own, group in pairs])

    def by_attributes(
        self, pulls: Sequence[Floats], measured: Sequence[MeasuredAttributes]
    ) -> list[Floats]:
        """What measures of the same attributes add to the scores, summed: one for each set."""
        sums = [np.zeros((len(self.rows.groups.labels), size)) for size in self.sizes]
        for part, pull in zip(measured, pulls, strict=True):
            place = self.attributes.index(part.attributes)
            if pull.ndim == sums[place].ndim:
                sums[place] = sums[place] + pull
            else:
                sums[place] = as_costs(sums[place]) + as_costs(pull)
        return sums

    def decide(
        self, model: FairDecisionClassifier, tuned: TunedRows, columns: Columns
    ) -> tuple[Decision, list[MeasuredAttributes], str | None]:
        """The multipliers of one model, and what is wrong with them, if anything is."""
        measured = measured_apart(
            self.measure,
            tuned.rows.groups,
            epsilon=model.epsilon,
            y_desirable=model.y_desirable,
            rows=tuned.rows,
        )
        cells = []
        for part in measured:
            own = AttributeRows.of(tuned.rows, part.attributes)
            rows = GroupedRows(part.groups, tuned.rows.label, own.group, tuned.rows.weight)
            probability = tuned.probabilities[self.attributes.index(part.attributes)]
            cells.append(ConstrainedCells(part.constraints, rows, probability))
        costs = model.costs(len(tuned.rows.groups.labels))
        problem = DecisionProblem(tuned.rows.label, tuned.rows.weight, cells, costs)
        self.problem = problem
        decision = solve(problem, columns, lottery=model.lottery)
        return decision, measured, _fault(model, problem, decision, tuned.rows)

    def mean_fault(self, model: FairDecisionClassifier, tuned: TunedRows) -> str | None:
        """Compares the mean of the folds' models on its rows with what the folds said of them."""
        if not self.is_cross_fitted or model.lottery_:
            return None
        costs = model.costs(len(self.rows.groups.labels))
        values = self._values(self.rows) if model.use_sensitive else None
        own = model._probabilities(self.X, values)  # noqa: SLF001 - the classifier's other half
        plain_pulls = [np.zeros_like(pull) for pull in model.pulls_]
        fair, plain, folds, plain_folds = (
            largest(weighted_scores(probabilities, pulls, costs))
            for probabilities in (own, tuned.probabilities)
            for pulls in (model.pulls_, plain_pulls)
        )
        changed, promised = float((fair != plain).mean()), float((folds != plain_folds).mean())
        if promised > LEAST_CHANGE and changed < promised / 10:
            return (
                f"The fair decisions change {promised:.1%} of the held-out rows, but only "
                f"{changed:.1%} of the training rows, which the model has memorized. Judge it on "
                "new rows, or use a model that overfits less."
            )
        now, before = _figures(self.problem, fair), _figures(self.problem, folds)
        has_memorized = now.accuracy > before.accuracy + MEMORIZED
        if not has_memorized and now.beyond > REACHED and now.worst > before.worst + DIFFERENCE:
            return (
                f"The model misses the levels of its folds: max |F| is {now.worst:.4f} on the "
                f"training rows, against {before.worst:.4f} on held-out folds. Try lottery=True, a "
                "larger epsilon, or a model that overfits less."
            )
        return None


def weighted_scores(
    probabilities: Sequence[Floats], pulls: Sequence[Floats], costs: Floats | None = None
) -> Floats:
    """(L, n) ``P(y = l | x) + sum_a sum_r (w_a(l,r) - 1) P(y = l, s_a = r | x)``.

    The first term is the mean of what the attributes' models say of it; with costs, minus what the
    label is expected to cost.
    """
    mean: Floats = np.mean([own.sum(1) for own in probabilities], axis=0)
    scores = label_scores(mean, costs)
    for own, pull in zip(probabilities, pulls, strict=True):
        scores = scores + added_scores(own, pull)
    return scores


def _foresees_better(
    share: Floats, found: Sequence[Floats], groups: Sequence[Ints], rows: GroupedRows
) -> bool:
    """Whether ``P(y | x, s)``, (L, n), has the smaller log loss, or models of the cells do.

    On rows that neither has learnt from, of known groups; the mean over sets of attributes.
    """
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    better = 0.0
    for probability, group in zip(found, groups, strict=True):
        known = np.flatnonzero(group >= 0)
        label = rows.label[known]
        within = within_groups(probability, group, known)[label, np.arange(len(known))]
        own = share[label, known]
        better += float(weight[known] @ np.log(np.maximum(own, LEAST) / np.maximum(within, LEAST)))
    return better > 0


def _fault(
    model: FairDecisionClassifier, problem: DecisionProblem, decision: Decision, rows: GroupedRows
) -> str | None:
    """Compares decisions with the plain ones and with one label for everybody."""
    n, n_labels = len(rows), len(problem.base)
    decided = problem.scores(decision.multipliers).argmax(0)
    if decision.constant is not None:
        decided = np.full(n, decision.constant)
    names = [name for part in problem.parts for name in part.constraints.names]
    fair = _figures(problem, decided)
    if decision.lottery:
        fair = fair._replace(
            accuracy=1.0 - decision.error if problem.costs is None else fair.accuracy,
            worst=float(np.abs(decision.levels).max()),
            beyond=decision.beyond,
            only_label=None,
        )
    suggestions = Suggestions(
        asked=None if np.ndim(model.epsilon) else float(model.epsilon),
        aware="" if model.use_sensitive else "use_sensitive=True",
        fewer=FEWER if len(names) > 4 else "",
        enough=fair.worst if fair.beyond > REACHED else None,
    )
    return find_fault(
        fair,
        [_figures(problem, np.full(n, label)) for label in range(n_labels)],
        _figures(problem, problem.base.argmax(0)),
        rows.groups.labels.tolist(),
        suggestions,
        "tuning",
    )


def _figures(problem: DecisionProblem, decided: Ints) -> ModelFigures:
    """How good decisions are on the rows that the multipliers were found on."""
    judged = [
        worst_of(part.constraints, part.levels(own)[:, 0])  # by the bounds as they were asked for
        for part, own in zip(problem.parts, problem.judged(decided)[0], strict=True)
    ]
    worst, beyond = np.max(judged, axis=0).tolist()
    shares = cost_shares(problem.costs, len(problem.base))
    accuracy = 1.0 - float(problem.weight @ shares[problem.label, decided])
    first = int(decided[0])
    only = first if (decided == first).all() else None
    return ModelFigures(accuracy, worst, beyond, only, problem.costs is not None)


def _check_settings(model: FairDecisionClassifier) -> None:
    for name, allowed in {"cells": CELLS, "tune_on": TUNE_ON}.items():
        if getattr(model, name) not in allowed:
            got = getattr(model, name)
            raise ValueError(f"{name}: expected one of {list(allowed)}, got {got!r}.")
    check_count("n_folds", model.n_folds, least=2)
    if model.prefit and model.cells == "joint":
        raise ValueError(
            "cells: a prefit estimator speaks of the labels alone, so that the cells cannot be "
            "joint; use 'factored'."
        )
    if model.prefit and model.estimator is None:
        raise ValueError("estimator: expected a fitted classifier, as prefit is set; got None.")
    if not hasattr(model._estimator(), "predict_proba"):  # noqa: SLF001 - the classifier's other half
        raise TypeError(
            f"estimator: expected a classifier with predict_proba, got "
            f"{type(model.estimator).__name__}; wrap it in CalibratedClassifierCV."
        )


def _routed(
    model: FairDecisionClassifier, weight: Any, fit_params: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of the estimator's fit."""
    if _routing_enabled():
        given = {} if weight is None else {"sample_weight": weight}
        return dict(process_routing(model, "fit", **given, **fit_params).estimator.fit)
    estimator = model._estimator()  # noqa: SLF001 - the classifier's other half
    return {**fit_params, **fit_arguments(estimator, weight)}
