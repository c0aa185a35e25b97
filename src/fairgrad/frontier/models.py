"""The models of a frontier: any estimator with an epsilon, fitted for many of them.

The library's own classifier is trained as one stack; fair decisions share the models below them;
others are fitted one by one, in parallel.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length

from fairgrad.aware import to_predict
from fairgrad.checks import naming_rows
from fairgrad.columns import as_array, as_column, as_pandas, sensitive_columns
from fairgrad.sklearn import (
    FairDecisionClassifier,
    FairGradClassifier,
    fit_decisions,
    fit_variants,
)
from fairgrad.sklearn.classifier import FAIRNESS_RATE, predict_variants
from fairgrad.sklearn.decision import predict_together
from fairgrad.sklearn.rows import take_rows
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.groups import Floats, Ints


@dataclass(frozen=True, eq=False)
class FrontierRows:
    """Rows a frontier is trained on, or judged on.

    Attributes:
        X: features as the user gives them.
        y: (n,) labels.
        s: named sensitive columns.
        weight: (n,) sample weights, or None.
    """

    X: Any
    y: Any
    s: dict[str, Any]
    weight: Any = None

    def take(self, rows: Ints) -> FrontierRows:
        """Some of the rows."""
        return FrontierRows(*take_rows(self.X, self.y, self.s, self.weight, rows))

    @property
    def sensitive_features(self) -> Any:
        """One column as it is, several as a data frame."""
        if len(self.s) == 1:
            return next(iter(self.s.values()))
        return pd.DataFrame({name: np.asarray(column) for name, column in self.s.items()})


@dataclass(frozen=True, eq=False)
class EstimatorTemplate:
    """An estimator to be fitted for every epsilon, alone or as the last step of a pipeline.

    Attributes:
        estimator: unfitted; never changed.
        parameter: the name of its epsilon.
    """

    estimator: Any
    parameter: str

    @classmethod
    def of(cls, estimator: Any, parameter: str | None) -> EstimatorTemplate:
        """The estimator, or the library's own if there is none."""
        template = cls(FairGradClassifier() if estimator is None else estimator, "")
        name = template.step + "epsilon" if parameter is None else parameter
        known = template.estimator.get_params()
        if name not in known:
            raise ValueError(
                f"estimator: expected one with a parameter {name!r}, got "
                f"{type(template.estimator).__name__} with {sorted(known)}; name the one that sets "
                "the slack in parameter=."
            )
        return cls(template.estimator, name)

    @property
    def step(self) -> str:
        """What precedes the parameters of the last step: "" if the estimator is no pipeline."""
        return f"{self.estimator.steps[-1][0]}__" if isinstance(self.estimator, Pipeline) else ""

    @property
    def last(self) -> Any:
        """The last step, or the estimator itself."""
        return self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters of the last step."""
        settings: dict[str, Any] = self.last.get_params(deep=False)
        return settings

    @property
    def takes_infinity(self) -> bool:
        """Whether an infinite epsilon is the plain model, as for this library's estimators."""
        return "fairness_measure" in self.settings and self.parameter.endswith("epsilon")

    def kinds(self, use_sensitive: Any) -> dict[bool, EstimatorTemplate]:
        """By whether it looks at sensitive values to predict, the estimators to fit.

        Args:
            use_sensitive: False, True, "both", or None for what the estimator says itself.

        Raises:
            ValueError: if it is none of these, or the estimator has no such parameter.
        """
        own = self.settings.get("use_sensitive")
        if use_sensitive is None:
            return {bool(own): self}
        if use_sensitive not in {False, True, "both"}:
            raise ValueError(
                "use_sensitive: expected True, False, 'both' or None (as the estimator has it), "
                f"got {use_sensitive!r}."
            )
        if own is None and use_sensitive is not False:
            raise ValueError(
                f"use_sensitive: {type(self.last).__name__} has no such parameter; leave it out."
            )
        wanted = [False, True] if use_sensitive == "both" else [bool(use_sensitive)]
        return {use: self.with_setting("use_sensitive", use) for use in wanted}

    def with_setting(self, name: str, value: Any) -> EstimatorTemplate:
        """The same with another setting, if it has such a one; a copy that keeps what is fitted."""
        if name not in self.settings:
            return self
        if not self.step:
            return replace(self, estimator=_unfitted(self.last).set_params(**{name: value}))
        changed = clone(self.estimator).set_params(**{f"{self.step}{name}": value})
        return replace(self, estimator=changed)

    def read(self, X: Any, y: Any, sensitive_features: Any, weight: Any = None) -> FrontierRows:
        """Rows with their sensitive values named."""
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
        return FrontierRows(X, y, sensitive_columns(sensitive_features, n), weight)

    def fit(
        self,
        rows: FrontierRows,
        measure: Any,
        epsilons: Floats,
        seeds: Sequence[int],
        n_jobs: int | None,
    ) -> FittedModels:
        """One model per seed and epsilon."""
        if isinstance(self.last, FairGradClassifier) and self.parameter.endswith("epsilon"):
            return self._fit_stacked(rows, measure, epsilons, seeds)
        if isinstance(self.last, FairDecisionClassifier) and self.parameter.endswith("epsilon"):
            return self._fit_decisions(rows, measure, epsilons, seeds)
        if len(seeds) > 1 and "random_state" not in self.settings:
            raise ValueError(
                f"n_seeds: {type(self.last).__name__} has no random_state, so that {len(seeds)} "
                "seeds would give the same model; use 1."
            )
        prefix = "" if get_config()["enable_metadata_routing"] else self.step
        given = {"sensitive_features": rows.sensitive_features, "sample_weight": rows.weight}
        arguments = {f"{prefix}{name}": v for name, v in given.items() if v is not None}
        fitted = Parallel(n_jobs=n_jobs)(
            delayed(_fit_one)(self._variant(measure, epsilon, seed), rows.X, rows.y, arguments)
            for seed in seeds
            for epsilon in epsilons
        )
        return FittedModels(list(fitted))

    def _variant(self, measure: Any, epsilon: float, seed: int) -> Any:
        """A copy with other parameters of the last step; those it does not have are left out."""
        changed: dict[str, Any] = {"random_state": int(seed), "fairness_measure": measure}
        known = {f"{self.step}{name}": v for name, v in changed.items() if name in self.settings}
        return clone(self.estimator).set_params(**known, **{self.parameter: float(epsilon)})

    def _fit_stacked(
        self, rows: FrontierRows, measure: Any, epsilons: Floats, seeds: Sequence[int]
    ) -> FittedModels:
        """Fits the preprocessing once, and all models as one stack.

        Each model is the one that its own parameters give when it is fitted by itself to these
        rows. A fairness rate of "auto" is the one that reaches exact fairness, however few the
        rows: how far to go is what epsilon says.
        """
        steps, name, X = self._prepared(rows)
        first = _unfitted(self.last).set_params(fairness_measure=measure)
        if first.fairness_rate == "auto":
            first.set_params(fairness_rate=FAIRNESS_RATE)
        variants = [copy.copy(first) for _ in range(len(seeds) * len(epsilons))]
        for variant, (seed, epsilon) in zip(variants, product(seeds, epsilons), strict=True):
            variant.random_state, variant.epsilon = int(seed), float(epsilon)
        models = fit_variants(
            variants, X, rows.y, sensitive_features=rows.s, sample_weight=rows.weight
        )
        return FittedModels(models, steps, name)

    def _fit_decisions(
        self, rows: FrontierRows, measure: Any, epsilons: Floats, seeds: Sequence[int]
    ) -> FittedModels:
        """Fits the preprocessing once, and for every seed the models below all decisions."""
        steps, name, X = self._prepared(rows)
        models: list[Any] = []
        for seed in seeds:
            own = {"random_state": int(seed), "fairness_measure": measure}
            variants = [
                clone(self.last).set_params(epsilon=float(epsilon), **own) for epsilon in epsilons
            ]
            models += fit_decisions(
                variants, X, rows.y, sensitive_features=rows.s, sample_weight=rows.weight
            )
        return FittedModels(models, steps, name)

    def _prepared(self, rows: FrontierRows) -> tuple[list[tuple[str, Any]], str, Any]:
        """The steps of a pipeline before the last, fitted; its name; and the features it gets."""
        if not isinstance(self.estimator, Pipeline):
            return [], "", rows.X
        name = self.estimator.steps[-1][0]
        before = clone(self.estimator[:-1])
        if not before.steps:
            return [], name, rows.X
        X = before.fit_transform(rows.X, rows.y)
        return list(before.steps), name, X


def _fit_one(model: Any, X: Any, y: Any, arguments: Mapping[str, Any]) -> Any:
    """A fitted model; what is wrong with it is said of the one that will be chosen, not of all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        return model.fit(X, y, **arguments)


@dataclass(frozen=True, eq=False)
class FittedModels:
    """Models that share the same preprocessing.

    Attributes:
        models: one per seed and epsilon.
        steps: fitted preprocessing steps, if the models are the last steps of pipelines.
        last_name: the name of the last step.
    """

    models: list[Any]
    steps: list[tuple[str, Any]] = field(default_factory=list)
    last_name: str = ""

    def predict(self, rows: FrontierRows) -> list[Any]:
        """The predictions of all models; what is shared is computed once."""
        X, s = self.prepared(rows).X, rows.sensitive_features
        if isinstance(self.models[0], FairGradClassifier):
            return predict_variants(self.models, X, **to_predict(self.models[0], s))
        if not isinstance(self.models[0], FairDecisionClassifier):
            return [model.predict(X, **to_predict(model, s)) for model in self.models]
        found: list[Any] = []
        for _, own in groupby(self.models, key=lambda model: id(model.cell_models_)):
            models = list(own)
            found += predict_together(models, X, **to_predict(models[0], s))
        return found

    def prepared(self, rows: FrontierRows) -> FrontierRows:
        """Rows with their features as the models take them."""
        return replace(rows, X=Pipeline(self.steps).transform(rows.X)) if self.steps else rows

    def estimator(self, position: int) -> Any:
        """One model with all that comes before it."""
        model = self.models[position]
        return Pipeline([*self.steps, (self.last_name, model)]) if self.steps else model


def _unfitted(model: Any) -> Any:
    """The same parameters; unlike `clone` it keeps the fit of a model to start from."""
    fresh = type(model)(**model.get_params(deep=False))
    if hasattr(model, "_metadata_request"):
        fresh._metadata_request = copy.deepcopy(model._metadata_request)  # noqa: SLF001 - as clone does
    return fresh
