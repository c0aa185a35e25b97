"""Fits the models of a frontier, one per epsilon, and computes their figures.

All models of `FairGradClassifier` are trained as one stack, and `FairDecisionClassifier` shares its
base models. Other estimators are fitted one by one, in parallel.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_consistent_length

from fairgrad.audit import Audit
from fairgrad.audit.counts import OVERALL, CountTable, mean_costs, predicted_labels
from fairgrad.audit.intervals import clopper_pearson, in_a_row
from fairgrad.audit.words import people_names
from fairgrad.aware import to_predict
from fairgrad.checks import naming_rows
from fairgrad.columns import as_array, as_column, as_pandas, sensitive_columns
from fairgrad.evaluate import levels_of
from fairgrad.groups import MIN_GROUP, count_rows
from fairgrad.measures import among_large, constraints_of, on_groups
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier, fit_decisions, fit_variants
from fairgrad.sklearn.classifier import predict_variants
from fairgrad.sklearn.decision import predict_together
from fairgrad.usefulness import (
    LEAST_GAIN,
    FairnessWarning,
    find_fault,
    model_figures,
    warn_of_small,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, GroupedRows, Ints
    from fairgrad.usefulness import Suggestions

RATES = ("accuracy", "selection_rate", "true_positive_rate", "false_positive_rate")


@dataclass(frozen=True, eq=False)
class FrontierRows:
    """Rows a frontier is trained on, or judged on.

    Attributes:
        X: features as the user gives them.
        y: (n,) labels.
        s: named sensitive columns.
        weight: (n,) sample weights, or None.
        membership: probabilities of the groups of rows whose group is unknown, or None.
    """

    X: Any
    y: Any
    s: dict[str, Any]
    weight: Any = None
    membership: Any = None

    @classmethod
    def read(
        cls, X: Any, y: Any, sensitive_features: Any, weight: Any = None, membership: Any = None
    ) -> FrontierRows:
        """Checks the rows and names their sensitive values."""
        X, y, weight = as_pandas(X), as_column(y), as_column(weight)
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features: required, one value per row, to know how fair the models are."
            )
        if X is None:
            raise ValueError("X: expected a table with one row per label of y, got None.")
        with naming_rows():
            check_consistent_length(X, y, weight)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        y = y if hasattr(y, "iloc") else as_array(y)
        return cls(X, y, sensitive_columns(sensitive_features, n), weight, membership)

    def take(self, rows: Ints) -> FrontierRows:
        """Some of the rows."""
        return FrontierRows(
            _safe_indexing(self.X, rows),
            _safe_indexing(self.y, rows),
            {name: _safe_indexing(column, rows) for name, column in self.s.items()},
            None if self.weight is None else as_array(self.weight)[rows],
        )

    @property
    def sensitive_features(self) -> Any:
        """A single column unchanged, several as a data frame."""
        if len(self.s) == 1:
            return next(iter(self.s.values()))
        return pd.DataFrame({name: np.asarray(column) for name, column in self.s.items()})


class EpsilonModels:
    """An estimator, alone or as the last step of a pipeline, and its fits for every epsilon.

    The estimator itself is never changed.

    Attributes:
        last: the last step, or the estimator itself.
        step: the prefix of the last step's parameters; "" if the estimator is not a pipeline.
        settings: the parameters of the last step.
        models: the fitted models, one per epsilon; last steps only, if `before` is set.
        before: the fitted preprocessing that all models share, or None.
    """

    def __init__(self, estimator: Any) -> None:
        is_pipeline = isinstance(estimator, Pipeline)
        self.estimator = estimator
        self.last = estimator[-1] if is_pipeline else estimator
        self.step = f"{estimator.steps[-1][0]}__" if is_pipeline else ""
        read = getattr(self.last, "get_params", None)
        self.settings: dict[str, Any] = {} if read is None else dict(read(deep=False))
        if "epsilon" not in self.settings:
            named = repr(self.last) if read is None else type(self.last).__name__
            raise ValueError(
                f"estimator: expected a classifier with a parameter 'epsilon', got {named}. "
                "Name the measure with fairness_measure=..."
            )
        self.models: list[Any] = []
        self.before: Pipeline | None = None

    def setting(self, name: str, value: Any, default: Any = None) -> Any:
        """The frontier's value of a setting or, if that is None, the value of the last step."""
        return self.settings.get(name, default) if value is None else value

    def kinds(self, use_sensitive: Any) -> dict[bool, EpsilonModels]:
        """The estimators to fit, by whether they use sensitive values to predict."""
        default = self.settings.get("use_sensitive")
        if use_sensitive is None:
            return {bool(default): self}
        if use_sensitive not in {False, True, "both"}:
            raise ValueError(
                "use_sensitive: expected True, False, 'both' or None (as the estimator has it), "
                f"got {use_sensitive!r}."
            )
        if default is None and use_sensitive is not False:
            raise ValueError(
                f"use_sensitive: {type(self.last).__name__} has no such parameter; leave it out."
            )
        wanted = [False, True] if use_sensitive == "both" else [bool(use_sensitive)]
        return {use: self.with_setting("use_sensitive", use) for use in wanted}

    def with_setting(self, name: str, value: Any) -> EpsilonModels:
        """A copy with another setting, if it has that parameter; fitted base models stay fitted."""
        if name not in self.settings:
            return self
        if not self.step:
            return EpsilonModels(_unfitted(self.last).set_params(**{name: value}))
        return EpsilonModels(clone(self.estimator).set_params(**{f"{self.step}{name}": value}))

    def fit(
        self, rows: FrontierRows, measure: Any, epsilons: Floats, seed: int, n_jobs: int | None
    ) -> EpsilonModels:
        """Fits one model per epsilon; each is the same as from a separate `fit`."""
        named = {"sample_weight": rows.weight, "membership": rows.membership}
        more = {name: value for name, value in named.items() if value is not None}
        kinds = {FairGradClassifier: fit_variants, FairDecisionClassifier: fit_decisions}
        fits: list[Any] = [fit for kind, fit in kinds.items() if isinstance(self.last, kind)]
        if fits:
            X = rows.X
            if self.step and len(self.estimator) > 1:
                self.before = clone(self.estimator[:-1])
                X = self.before.fit_transform(X, rows.y)
            first = _unfitted(self.last).set_params(fairness_measure=measure)
            variants = [copy.copy(first) for _ in epsilons]
            for variant, epsilon in zip(variants, epsilons, strict=True):
                variant.random_state, variant.epsilon = seed, float(epsilon)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FairnessWarning)  # as in `_fit_one`
                models = fits[0](variants, X, rows.y, sensitive_features=rows.s, **more)
            warn_of_small(getattr(models[0], "set_aside_", {}))
            self.models = list(models)
            return self
        prefix = "" if get_config()["enable_metadata_routing"] else self.step
        extra = {"sensitive_features": rows.sensitive_features, **more}
        arguments = {f"{prefix}{name}": value for name, value in extra.items()}
        changed: dict[str, Any] = {"random_state": seed, "fairness_measure": measure}
        known = {f"{self.step}{name}": v for name, v in changed.items() if name in self.settings}
        with_epsilon = (
            clone(self.estimator).set_params(**known, **{f"{self.step}epsilon": float(epsilon)})
            for epsilon in epsilons
        )
        self.models = Parallel(n_jobs=n_jobs)(
            delayed(_fit_one)(model, rows.X, rows.y, arguments) for model in with_epsilon
        )
        return self

    def predict(self, rows: FrontierRows) -> list[Any]:
        """The predictions of all models; shared work is done once."""
        X = rows.X if self.before is None else self.before.transform(rows.X)
        first, values = self.models[0], to_predict(self.models[0], rows.sensitive_features)
        if isinstance(first, FairGradClassifier):
            return predict_variants(self.models, X, **values)
        if isinstance(first, FairDecisionClassifier):
            return list(predict_together(self.models, X, **values))
        return [model.predict(X, **values) for model in self.models]

    @property
    def estimators(self) -> list[Any]:
        """The models, each with the steps before it."""
        if self.before is None:
            return self.models
        steps, name = self.before.steps, self.step.removesuffix("__")
        return [Pipeline([*steps, (name, model)]) for model in self.models]


def _fit_one(model: Any, X: Any, y: Any, arguments: Mapping[str, Any]) -> Any:
    """A fitted model, without its warnings: those of the chosen model follow later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        return model.fit(X, y, **arguments)


def _unfitted(model: Any) -> Any:
    """A new estimator with the same parameters; unlike `clone`, fitted base models stay fitted."""
    fresh = type(model)(**model.get_params(deep=False))
    if hasattr(model, "_metadata_request"):
        fresh._metadata_request = copy.deepcopy(model._metadata_request)  # noqa: SLF001 - as clone does
    return fresh


@dataclass(eq=False)
class ModelAudits(Sequence[Audit]):
    """The audits of many models on the same rows; each audit is computed on first access.

    Attributes:
        rows: the rows that the models are judged on.
        measure: the fairness measure, as in training.
        classes: all labels.
        desirable: the desirable labels; empty if none are known.
        confidence: the confidence level of each interval.
        min_group: groups with fewer rows are not judged, as in training.
        costs: (L, L) the cost of each prediction (columns) of each true label, in the order of the
            classes; None if every mistake costs the same.
        labels: (L,) all labels, as the audits sort them.
        predicted: (models, n) the index of each prediction in `labels`.
    """

    rows: FrontierRows
    predictions: InitVar[Sequence[Any]]
    measure: Any
    classes: NDArray[Any]
    desirable: list[Any] = field(default_factory=list)
    confidence: float = 0.95
    min_group: float = MIN_GROUP
    costs: Any = None

    def __post_init__(self, predictions: Sequence[Any]) -> None:
        self.rows = replace(self.rows, X=None)
        first = self._audit(predictions[0])
        self._made = {0: first}
        self.labels = np.asarray(first.labels)
        index = [predicted_labels(first.rows, as_array(y), "y_pred") for y in predictions]
        self.predicted = np.array(index, dtype=first.predicted.dtype)

    def _audit(self, predicted: Any) -> Audit:
        """Audits predictions by the measure, on the groups that training compares."""
        measures = on_groups(self.measure, tuple(self.rows.s))
        return Audit(
            self.rows.y,
            predicted,
            self.rows.s,
            measures=measures,
            sample_weight=self.rows.weight,
            y_desirable=self.desirable or None,
            labels=self.classes,
            # Sharing the error, the intervals of all measures hold at once.
            confidence=1 - (1 - self.confidence) / len(measures),
            min_group=self.min_group,
        )

    def __len__(self) -> int:
        return len(self.predicted)

    @overload
    def __getitem__(self, position: int) -> Audit: ...
    @overload
    def __getitem__(self, position: slice) -> list[Audit]: ...
    def __getitem__(self, position: int | slice) -> Audit | list[Audit]:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        place = range(len(self))[position]
        if place not in self._made:
            self._made[place] = self._audit(self.labels[self.predicted[place]])
        return self._made[place]

    def figures(self, predicted: NDArray[Any] | None = None) -> dict[str, Floats]:
        """Each model's accuracy and unfairness with intervals, and the mean cost if costs are set.

        The interval of the accuracy is Clopper and Pearson's. That of the unfairness is
        `fairgrad.audit.Finding.unfairness_interval`.

        Args:
            predicted: (n_predictions, n) predictions to judge instead of those of the models.
        """
        first, alpha = self._made[0], 1 - self.confidence
        predicted = self.predicted if predicted is None else predicted
        tables = [CountTable.from_rows(first.rows, row, counts=first.counts) for row in predicted]
        overall = [table.together().rates["accuracy"] for table in tables]
        accuracy = in_a_row(overall)
        ends = clopper_pearson(accuracy.value, accuracy.trials, alpha)
        accurate = np.stack([accuracy.value, *ends])
        defined = [finding for finding in first.findings if finding.n_defined]
        unfair = np.empty((len(defined), 3, len(tables)))
        for model, table in enumerate(tables):
            findings = [finding for finding in first.findings_of(table) if finding.n_defined]
            for place, finding in enumerate(findings):
                unfair[place, :, model] = finding.unfairness, *finding.unfairness_interval
        # One mean over the levels of all measures, not a mean of means.
        mean = np.average(unfair, axis=0, weights=[finding.n_defined for finding in defined])
        figures = {
            f"{name}{end}": value
            for name, ends in {"accuracy": accurate, "unfairness": mean}.items()
            for end, value in zip(("", "_low", "_high"), ends, strict=True)
        }
        if self.costs is not None:
            masses = np.array([table.mass.sum(axis=0) for table in tables])
            figures["cost"] = mean_costs(masses, self.costs)
        return figures

    def useful(self, figures: Mapping[str, Floats]) -> NDArray[np.bool_]:
        """(models,) which models beat every constant in accuracy or in fairness.

        With costs, the mean cost replaces the accuracy.

        Args:
            figures: those of the models.
        """
        index = np.arange(len(self.labels), dtype=self.predicted.dtype)
        constants = self.figures(np.repeat(index[:, None], self.predicted.shape[1], axis=1))
        merit, sign = ("cost", -1.0) if "cost" in figures else ("accuracy", 1.0)
        useful = np.ones(len(self), dtype=bool)
        for value, unfairness in zip(constants[merit], constants["unfairness"], strict=True):
            gain = sign * (figures[merit] - value)
            useful &= (figures["unfairness"] < unfairness) | (gain > LEAST_GAIN)
        return useful

    def fault(self, position: int, plain: int | None, suggestions: Suggestions) -> str | None:
        """What is wrong with a model and what to try; None if nothing is wrong.

        A model is at fault if it predicts one label for everybody, is less fair than the plain
        model, or costs too much accuracy. Levels within the requested slack are fair, however fair
        the plain model is. A difference of up to two standard errors, computed from the rows that
        the two models decide differently, is not a fault.
        """
        rows, costs = self._made[0].rows, self.costs
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cells without rows, which the audit names
            measure = among_large(self.measure, rows, self.min_group)
            constraints = constraints_of(measure, rows.groups, y_desirable=self.desirable or None)
        constraints = constraints.slacken_for(rows, suggestions.asked or 0.0)
        decided, baseline, noise = self.predicted[position].astype(np.int64), None, 0.0
        if plain is not None:
            usual = self.predicted[plain].astype(np.int64)
            baseline = model_figures(constraints, rows, usual, costs)
            noise = _noise_of_worst(constraints, rows, decided, usual)
        figures, labels = model_figures(constraints, rows, decided, costs), rows.groups.labels
        return find_fault(
            figures, [], baseline, labels.tolist(), suggestions, "validation", noise=noise
        )


def _noise_of_worst(
    constraints: Constraints, rows: GroupedRows, decided: Ints, usual: Ints
) -> float:
    """Two standard errors of the change of the worst level from the plain model's decisions.

    Only rows that both models decide differently change it.
    """
    cell = rows.cell(constraints.by_label)
    n, n_changed = (count_rows(cell, constraints.n_cells, w) for w in (None, decided != usual))
    errors = constraints.standard_errors(n_changed / np.maximum(n, 1.0) ** 2)
    gaps = constraints.gaps(levels_of(constraints, rows, decided))
    return 2.0 * float(errors[np.nan_to_num(gaps).argmax()])


def non_dominated(accuracy: Any, unfairness: Any) -> NDArray[np.bool_]:
    """(n,) whether no other point is at least as good in both figures and better in either."""
    a, u = np.asarray(accuracy, dtype=np.float64), np.asarray(unfairness, dtype=np.float64)
    as_good = (a >= a[:, None]) & (u <= u[:, None])
    better = (a > a[:, None]) | (u < u[:, None])
    dominated = np.asarray((as_good & better).any(axis=1))
    return ~dominated


def best_of_kind(points: Mapping[str, Any] | pd.DataFrame, prefix: str) -> NDArray[np.bool_]:
    """(n,) which points are not dominated by another of the same kind, blind or aware."""
    merit, unfairness = (
        np.asarray(axis) for axis in (point_merit(points, prefix), points[f"{prefix}unfairness"])
    )
    kind = np.asarray(points.get("use_sensitive", np.zeros(len(merit))))
    best = np.zeros(len(merit), dtype=bool)
    for value in np.unique(kind):
        best[kind == value] = non_dominated(merit[kind == value], unfairness[kind == value])
    return best


def point_merit(points: Mapping[str, Any] | pd.DataFrame, prefix: str) -> Any:
    """The figure that models are chosen by, larger is better: accuracy, or minus the mean cost."""
    cost = points.get(f"{prefix}cost")
    return points[f"{prefix}accuracy"] if cost is None else -cost


def shown_points(points: pd.DataFrame, on: str) -> pd.DataFrame:
    """The figures on some rows; only points on the frontier keep their intervals."""
    prefix = f"{on}_"
    figures = points[[name for name in points if str(name).startswith(prefix)]]
    figures = figures.rename(columns=lambda name: name.removeprefix(prefix))
    best = best_of_kind(points, prefix)  # on the rows that are shown
    ends = [name for name in figures if str(name).endswith(("_low", "_high"))]
    figures = figures.assign(on_frontier=best)
    figures.loc[~best, ends] = float("nan")
    return points[["epsilon"]].join(figures)


def group_rates(position: int, audit: Audit) -> pd.DataFrame:
    """Rates of the finest groups; with several labels, the rates of each label."""
    frame = audit.to_frame("rates")
    finest = " x ".join(audit.attributes)
    frame = frame[(frame["attribute"] == finest) & (frame["group"] != OVERALL)]
    frame = frame[frame["rate"].isin(RATES) & frame["value"].notna()]
    several = len(audit.shown_labels) > 1
    names = [
        f"{rate} of {label}" if several and label is not None else rate
        for rate, label in zip(frame["rate"], frame["label"], strict=True)
    ]
    groups = audit.views[finest].groups
    people = dict(zip(groups.names, people_names(groups), strict=True))
    kept = frame[["group", "value"]].assign(rate=names, point=position)
    kept["group"] = kept["group"].map(people)
    return kept.reset_index(drop=True)
