"""What fair boosted classifiers share: arguments, aware features and fitted attributes."""

from __future__ import annotations

import inspect
import re
import warnings
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from fairgrad import dual
from fairgrad.aware import AwareRouting, SensitiveEncoder, beside, hide_some, with_values
from fairgrad.checks import naming_rows, require_values, warn
from fairgrad.columns import as_column, as_pandas, sensitive_columns
from fairgrad.groups import MIN_GROUP, check_labels, group_rows
from fairgrad.measures import LargeGroups, desirable_labels
from fairgrad.splitting import hold_out
from fairgrad.usefulness import (
    FairnessWarning,
    ShownInNotebooks,
    constant_figures,
    model_figures,
    suggestions_of,
    warn_of_faults,
    warn_of_small,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairgrad.boosting.objective import BoostingObjective


class FairBoostingMixin(ShownInNotebooks, AwareRouting):
    """The fair part of a boosted classifier; the first base, before the library's classifier.

    A subclass writes ``{Args}`` and ``{Attributes}`` in its docstring where those of all fair
    boosted classifiers belong, which are these. There is no `get_params` here: the libraries' own
    skip a first base without one and collect the parameters of both bases.

    Args:
        fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
            "accuracy_parity", "four_fifths_rule", one of your own (see `fairgrad.torch.FairLoss`),
            or None for a plain model.
        epsilon: slack of the constraints; 0 asks for exact fairness.
        fairness_rate: step size of the multipliers in a round. "auto" suits 50 rounds and more; a
            number is a constant rate, of which the rounds times the rate should come to 15 or more.
        use_sensitive: whether the trees may look at the sensitive values, in fit and to predict:
            they become features (see `fairgrad.aware.SensitiveEncoder`). The law may forbid it. One
            value in twenty is hidden from the trees, so that "unknown" is learnt, too, and never
            fails.
        y_desirable: the desirable labels, for measures that use them; by default the second of two
            labels in sorted order.
        min_group: the smallest group to constrain, in rows, or below 1 as a share of all rows. A
            warning names the groups that are left out. 0 constrains all groups.
        cost_matrix: what it costs to predict each class (columns) where each is true (rows), in
            sorted order; None for 1 for every mistake.

    Attributes:
        levels_: (J,) levels of fairness on the training rows, before the last round. New rows may
            have larger ones; where the bounds must hold on new rows, use
            `fairgrad.sklearn.FairDecisionClassifier`.
        sensitive_encoder_: of an aware model, how it reads sensitive values; None for others.
        multipliers_: (J,) their multipliers.
        cell_weights_: (K,) weights of the cells in the last round.
        constraint_names_: (J,) names of the levels and multipliers.
        desirable_: the desirable labels, for measures that use them.
        cell_names_: (K,) names of the cells.
        groups_: groups and frequencies of the training rows.
        set_aside_: the groups that are in no constraint because of `min_group`, and their rows.
        fairness_state_: state to continue training from, as plain lists and numbers.
    """

    objective_class: ClassVar[type[BoostingObjective]]
    log_losses: ClassVar[tuple[str | None, ...]]  # the library's names of the log loss
    refused_parameters: ClassVar[Mapping[str, str]]  # without effect here -> what to use instead
    plain_class: ClassVar[str]  # the library's own classifier
    not_packed: ClassVar[Mapping[str, Any]]  # of the fitted attributes, what files do not hold
    _is_trial = False  # whether it is fitted to judge another one, and warns of nothing

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:  # None without docstrings (python -OO), or if it is inherited
            shared = inspect.cleandoc(FairBoostingMixin.__doc__ or "").partition("Args:\n")[2]
            arguments, _, attributes = shared.partition("\n\nAttributes:\n")
            words = inspect.cleandoc(cls.__doc__).replace("    {Args}", arguments)
            cls.__doc__ = words.replace("    {Attributes}", attributes)

    def __init__(
        self,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.05,
        fairness_rate: float | str = "auto",
        use_sensitive: bool = False,
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
        cost_matrix: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.fairness_rate = fairness_rate
        self.use_sensitive = use_sensitive
        self.y_desirable = y_desirable
        self.min_group = min_group
        self.cost_matrix = cost_matrix

    def _prepare(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        start: Any,
        eval_set: Any,
    ) -> FitParts:
        """What a fit of either library needs; arguments as in fit, `start` to continue from.

        Raises:
            ValueError: if an argument is missing or not allowed.
        """
        require_values(self, sensitive_features)
        if self.fairness_measure is None and self.cost_matrix is not None:
            raise ValueError(
                "cost_matrix: has no effect with fairness_measure=None. To train for the costs "
                "alone, name a measure and set epsilon=float('inf')."
            )
        X, labels = as_pandas(X), as_column(y)
        if sensitive_features is not None:
            with naming_rows("y"):
                labels = column_or_1d(labels)
            check_labels(labels)
            X = _as_table(X, len(labels))
        encoder, shown = self._encoder(labels, sensitive_features, start)
        sets = [eval_set] if isinstance(eval_set, tuple) else eval_set or ()
        # XGBoost accepts any label as a number, LightGBM 4.7 does not number those of eval_y.
        known: Any = LabelEncoder().fit(labels) if sets else None
        with naming_rows("eval_set"):
            pairs = [
                (self._fitted_features(encoder, one, *values), known.transform(as_column(label)))
                for one, label, *values in sets
            ]
        objective = None
        if self.fairness_measure is not None:
            objective = self._make_objective(labels, sensitive_features, sample_weight, start)
        features = self._fitted_features(encoder, X, shown)
        return FitParts(encoder, features, labels, pairs, objective)

    def _make_objective(
        self, label: NDArray[Any], sensitive_features: Any, sample_weight: Any, start: Any
    ) -> Any:
        """The objective of a fair fit; it continues with the multipliers of `start`, if any."""
        params: dict[str, Any] = self.get_params()  # type: ignore[attr-defined]  # of the other base
        if params.get("objective") not in self.log_losses:
            raise ValueError(
                f"objective: expected one of {self.log_losses} (the log loss), got "
                f"{params['objective']!r}."
            )
        for name, instead in self.refused_parameters.items():
            if params.get(name) not in {None, False, 1.0}:
                raise ValueError(
                    f"{name}: cannot be combined with fairness_measure; use {instead}."
                )
        objective = self.objective_class(
            label,
            sensitive_columns(sensitive_features, len(label)),
            **{name: getattr(self, name) for name in FAIRNESS_PARAMETERS if name not in OF_FIT},
            sample_weight=sample_weight,
        )
        if getattr(start, "fairness_state_", None) is not None:
            objective.load_state(start.fairness_state_)
        return objective

    def _encoder(
        self, label: NDArray[Any], sensitive_features: Any, start: Any
    ) -> tuple[SensitiveEncoder | None, Any]:
        """How an aware model reads sensitive values, and the values as its trees may see them."""
        if not self.use_sensitive:
            return None, None
        rows = group_rows(label, sensitive_columns(sensitive_features, len(label)))
        seed = self.random_state  # type: ignore[attr-defined]  # of the other base
        # A generator is left to the library: it would draw other numbers afterwards.
        shown = hide_some(rows, seed if isinstance(seed, Integral) else 0)
        encoder = getattr(start, "sensitive_encoder_", None)
        if encoder is None:
            encoder = SensitiveEncoder.of(group_rows(label, shown).groups, crossed=False)
        return encoder, shown

    def _fitted_features(self, encoder: SensitiveEncoder | None, X: Any, values: Any = None) -> Any:
        """Features as the trees get them: with the encoded values, None for unknown, if aware."""
        X = as_pandas(X)
        if encoder is None:
            if values is not None:
                raise ValueError(
                    "eval_set: expected (X, y); sensitive values are for use_sensitive=True only."
                )
            return X
        return beside(X, encoder, values, _column_names(encoder))

    def _features(self, X: Any, sensitive_features: Any) -> Any:
        """Features of rows to predict as the trees know them."""
        X = as_pandas(X)  # LightGBM 4.7 aborts on categories of Arrow
        if not hasattr(self, "sensitive_encoder_"):
            return X  # not fitted, which the library will say
        encoder: SensitiveEncoder | None = self.sensitive_encoder_
        if encoder is None:
            return with_values(None, X, sensitive_features)
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.shape[1] == self.n_features_in_:  # type: ignore[attr-defined]  # they are there
            return X
        return with_values(encoder, X, sensitive_features, _column_names(encoder))

    def predict(
        self, X: Any, *arguments: Any, sensitive_features: Any = None, **options: Any
    ) -> Any:
        """(n,) predicted labels.

        Args:
            X: (n, features), as in fit.
            *arguments: of the library's own `predict`.
            sensitive_features: of an aware model (`use_sensitive`), as in fit. Missing values,
                those that fit never saw (with a warning) and -1 are unknown.
            **options: of the library's own `predict`.

        Raises:
            ValueError: if the model is not aware, or the columns do not fit.
        """
        X = self._features(X, sensitive_features)
        return super().predict(X, *arguments, **options)  # type: ignore[misc]  # of the other base

    def predict_proba(
        self, X: Any, *arguments: Any, sensitive_features: Any = None, **options: Any
    ) -> Any:
        """(n, classes) probabilities; arguments as in `predict`."""
        X = self._features(X, sensitive_features)
        return super().predict_proba(X, *arguments, **options)  # type: ignore[misc]  # as above

    @property
    def desirable_(self) -> tuple[Any, ...]:
        """The desirable labels, for measures that use them."""
        labels = self.classes_.tolist()  # type: ignore[attr-defined]  # of the library's class
        return tuple(labels[i] for i in desirable_labels(labels, self.y_desirable))

    def _set_fitted(self, prepared: FitParts, *, with_price: bool) -> None:
        """Sets the fitted attributes about fairness, None without a measure, and warns.

        Args:
            prepared: what the fit got.
            with_price: whether fits to other rows can tell what fairness costs.
        """
        self.sensitive_encoder_, objective = prepared.encoder, prepared.objective
        measure = None if objective is None else objective.measure
        self.set_aside_ = dict(measure.set_aside) if isinstance(measure, LargeGroups) else {}
        self.groups_ = self.fairness_state_ = self.levels_ = self.multipliers_ = None
        self.cell_weights_ = self.constraint_names_ = self.cell_names_ = None
        if objective is None:
            return
        constraints = objective.constraints
        self.groups_ = objective.groups
        self.fairness_state_ = objective.state()
        self.levels_ = objective.levels
        self.multipliers_ = objective.net_multipliers
        self.cell_weights_ = objective.weights
        self.constraint_names_ = tuple(constraints.names)
        self.cell_names_ = tuple(constraints.weight_names(objective.groups))
        if not self._is_trial:
            self._warn_of_fault(objective)
            if with_price:
                self._warn_of_price(prepared)

    def _warn_of_fault(self, objective: BoostingObjective) -> None:
        """Warns if the model is no better than a constant, misses epsilon or has memorized rows.

        It is judged as it was before the last round.
        """
        warn_of_small(self.set_aside_)
        rows, constraints, predicted = objective.rows, objective.constraints, objective.predicted
        if rows is None or predicted is None:
            return
        if np.isfinite([constraints.lower, constraints.upper]).any() and objective.is_memorized():
            warn(
                "The trees have memorized the training rows, so their fairness will not carry over "
                "to new rows, and the model may be less accurate than a constant there. Use "
                f"fairgrad.sklearn.FairDecisionClassifier({self.plain_class}(...), "
                f"{self.fairness_measure!r}), or fewer and smaller trees.",
                FairnessWarning,
            )
        figures = model_figures(constraints, rows, predicted, self.cost_matrix)
        constants = constant_figures(constraints, rows, self.cost_matrix)
        labels = objective.groups.labels.tolist()
        warn_of_faults(suggestions_of(self), figures, constants, None, labels=labels)

    def _warn_of_price(self, prepared: FitParts) -> None:
        """Warns if fairness costs accuracy, by a fair and a plain model of some of the rows.

        They are judged on other rows: on their own, trees are so accurate that the price is hidden.
        They have half the rounds at twice the learning rate, which gives the same price in half
        the time. If the weights have hardly moved, fairness costs next to nothing: weights from .75
        to 1.25 change decisions only where the probability of a label is between .375 and .625.
        """
        objective: BoostingObjective = prepared.objective
        measure, constraints, rows = objective.measure, objective.constraints, objective.rows
        no_multipliers = np.zeros_like(objective.constants.bound)
        plain_weights = dual.cell_weights(objective.constants, no_multipliers)
        moved = np.abs(objective.weights - plain_weights).max() / np.abs(plain_weights).max()
        if rows is None or moved < LEAST_MOVED:
            return
        cell, labels = rows.cell(), rows.groups.labels
        # Every cell keeps a row, in the sample and in the rows to train on.
        sample, _ = hold_out(cell, max(0.0, 1.0 - MOST_TRIAL / len(cell)), may_be_empty=True)
        splits = hold_out(cell[sample], TRIAL_HELD_OUT, may_be_empty=True)
        train, held = (rows.take(sample[chosen]) for chosen in splits)
        if not len(held):
            return
        X, unseen = (_safe_indexing(prepared.features, sample[chosen]) for chosen in splits)
        y, s = prepared.labels[sample[splits[0]]], train.sensitive_values()
        shared = {"fairness_measure": measure, "use_sensitive": False}
        rate = self.get_params()["learning_rate"] or XGBOOST_RATE  # type: ignore[attr-defined]
        if objective.n_rounds >= 2 * LEAST_ROUNDS and rate <= MOST_RATE / 2:
            shared |= {"n_estimators": objective.n_rounds // 2, "learning_rate": 2 * rate}
        predicted = []
        for epsilon in (self.epsilon, np.inf):
            model = clone(self).set_params(epsilon=epsilon, **shared)
            model._is_trial = True  # noqa: SLF001 - a model of this class
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y, sensitive_features=s, sample_weight=train.weight)
                predicted.append(np.searchsorted(labels, model.predict(unseen)))
        if np.array_equal(*predicted):
            return
        fair, plain = (
            model_figures(constraints, held, label, self.cost_matrix) for label in predicted
        )
        fair = fair._replace(beyond=0.0)  # bounds are judged on the many rows of the fit
        constants = constant_figures(constraints, held, self.cost_matrix)
        asked, labels = suggestions_of(self), labels.tolist()
        warn_of_faults(asked, fair, constants, plain, "held-out", labels=labels)


LEAST_MOVED = 0.25
"""The price of fairness is measured if the weight of a cell has changed by this share."""

MOST_TRIAL, TRIAL_HELD_OUT = 8_000, 0.3
"""Rows that the price of fairness is measured on, and the share of them that judges."""

LEAST_ROUNDS, MOST_RATE, XGBOOST_RATE = 50, 0.6, 0.3
"""Of the models for it: fewest rounds and largest learning rate; XGBoost's default rate."""

FAIRNESS_PARAMETERS = tuple(inspect.signature(FairBoostingMixin).parameters)[:-1]
"""Parameters of the estimators that the boosting libraries do not know."""

OF_FIT = ("use_sensitive",)
"""Those that are not passed to the objective unchanged."""


class FitParts(NamedTuple):
    """What a fit of either library needs; without a measure there is no objective."""

    encoder: SensitiveEncoder | None
    features: Any
    labels: NDArray[Any]
    eval_set: list[tuple[Any, Any]]
    objective: Any


def _as_table(X: Any, n_rows: int) -> Any:
    """Features that have a shape; lists become an array.

    Raises:
        ValueError: if they are not a table of so many rows, or names of columns repeat.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2 or X.shape[1] == 0 or X.shape[0] != n_rows:
        raise ValueError(f"X: expected a table with {n_rows} rows, as y; got shape {X.shape}.")
    names = [str(name) for name in getattr(X, "columns", ())]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"X: expected columns of different names, got {twice!r} twice.")
    return X


def _column_names(encoder: SensitiveEncoder) -> list[str]:
    """Names of the encoded values in a data frame, without signs that the libraries refuse."""
    names = [re.sub(r"[^\w=?. -]", "_", name) for name in encoder.names]
    return [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]
