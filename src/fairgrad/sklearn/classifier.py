"""A scikit-learn classifier that treats groups alike."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache, lru_cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fairgrad.aware import AwareRouting, with_values
from fairgrad.checks import naming_rows
from fairgrad.evaluate import cell_rates, levels_of, predicted_index
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import LargeGroups, constraints_of, desirable_labels, uses_desirable
from fairgrad.sklearn.choosing import (
    ChosenModel,
    JudgedPeople,
    choose,
    figures_of,
    warn_of_fault,
    with_layer,
)
from fairgrad.sklearn.fitting import (
    FEW_CELLS,
    STEADY_SHARE,
    best_run,
    candidate_rates,
    layer_of,
    parameters_from,
    resolve_clip,
    resolve_epochs,
    resolve_epsilon,
    train_stacks,
    trained_rates,
)
from fairgrad.sklearn.rows import FEATURES, Scaling, read_rows, split_columns
from fairgrad.training import Member, Shape, TrainingPlan
from fairgrad.usefulness import model_figures, warn_of_small

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import nn

    from fairgrad.groups import Floats, Groups, Ints
    from fairgrad.sklearn.fitting import StackRun
    from fairgrad.sklearn.rows import FittingRows
    from fairgrad.training import Choice
    from fairgrad.usefulness import ModelFigures

PIECE = 16_384
"""Rows scored at a time."""


class FairGradClassifier(AwareRouting, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A linear model or multilayer perceptron trained to be accurate and fair.

    The training rows of each (label, group) cell are weighted so that the levels of fairness move
    into their bounds, ``-epsilon <= F <= epsilon``. Sensitive values are needed to fit, and to
    predict only if the model is to be aware of them (`use_sensitive`).

    Args:
        fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
            "accuracy_parity", "four_fifths_rule", one of your own (see
            `fairgrad.torch.FairLoss`), or None for a plain model.
        epsilon: slack of the constraints: on the rows of the fit no level of fairness is further
            than this (and 0.005) from its bounds, or a ``FairnessWarning`` says so. 0 is
            exact fairness. "auto" is 0; but on tables under 10,000 rows, where exact fairness
            tends to cost much accuracy and does not carry over to new rows, it is 0.05, unless
            you give a fairness rate.
        fairness_rate: step size of the multipliers. "auto" trains several rates side by side, a
            plain model among them, and ends with the most accurate model that keeps epsilon, after
            a last step: the last layer is moved until the levels are within their bounds. With a
            number one model is trained, and left as it is.
        proportional_rate: how strongly the weights react to what is broken now, which damps the
            swings of the multipliers. "auto" goes with the fairness rate: 2 for 0.05.
        error_memory: share of earlier batches kept in the error estimates.
        y_desirable: labels that equality of opportunity and the four-fifths rule speak of; by
            default the second of two classes in sorted order.
        min_group: groups with fewer rows are in no constraint, and are not judged; below 1 a share
            of all rows. A warning says how many people are in them. 0 is for all groups.
        cost_matrix: what it costs to predict each class (columns) where each is true (rows), in
            sorted order; None for 1 for every mistake. Epochs and rates are then chosen by the
            mean cost in place of the accuracy, 3 points being 3 % of the dearest mistake. With
            more than two classes and no measure a linear model follows costs only in part; hidden
            layers, or `FairDecisionClassifier`, follow them better.
        sensitive_columns: columns of X (names of a data frame, positions of an array) that hold
            the sensitive values; they are taken out of the features.
        use_sensitive: whether the model may look at the sensitive values, in fit and to predict:
            they become features (see `fairgrad.aware.SensitiveEncoder`), so that it can treat
            groups differently to come out alike. The law may forbid it. Unknown values never fail;
            `levels_unknown_` says how fair the model is without them.
        hidden_layer_sizes: units of the hidden layers; none is a linear model.
        batch_norm: whether hidden layers are batch-normalised.
        dropout: share of hidden units dropped in training.
        solver: "sgd" or "adam".
        learning_rate: step size of the weights, at the start.
        schedule: "cosine" lets the learning rate fall to 0, "constant" keeps it.
        weight_decay: of the weights, as PyTorch's optimisers have it.
        clip_norm: the gradient's largest norm; None for none. "auto" is 0.1 for fair models with
            hidden layers on 10,000 rows and more, where negative weights would make them diverge,
            and none for all others.
        batch_size: rows per step; all rows if there are fewer.
        max_iter: epochs; "auto" is 30, or as many more or fewer as make 300 to 3,000 steps, but at
            least 5.
        average_last: share of the training, at the end, over which the weights are averaged.
        validation_fraction: share of the rows held out, the same of every label of every group, to
            choose among the last epochs; 0 trains on all rows and takes the last epoch.
        selection: how to choose where there is a choice. "auto" is the most accurate that keeps
            epsilon, or, where the fairness rate is given, "fairest_of_accurate" (the paper's rule:
            the fairest within 3 points of the best accuracy). Others are "most_accurate",
            "fairest", or a function that gets the accuracies and the unfairnesses and gives a
            position; models are then left as they are trained.
        standardize: whether features are scaled to mean 0 and variance 1 first.
        compare_plain: whether the model is compared with a plain one, trained beside, and with one
            label for everybody. A ``FairnessWarning`` says so if it does not keep epsilon,
            is no better than one label, less fair than the plain model, or has lost more than 5
            points of accuracy. False is for no comparison, and no warning.
        certify: the confidence, such as 0.95, with which the model must be fair on new people.
            `fit` then trains candidates on 60 % of the rows, takes the most accurate that is likely
            to pass by another 20 %, and judges it on the last 20 %, once. If that one is not fair
            within `tolerance`, ValueError says what it would take, and there is no model. `epsilon`
            is not used. None trains on all rows and certifies nothing.
        tolerance: what is still fair for `certify`, as in `fairgrad.audit.Audit`: the largest |F|,
            "four_fifths", or a mapping from measures to either.
        init: a fitted linear model or MLPClassifier to start from.
        module: a `torch.nn.Module` that gives logits, to start from in place of an own network. It
            is copied; layers that require no gradient stay as they are. Features are not scaled;
            with `use_sensitive` the encoded sensitive values are its last inputs.
        warm_start: whether fit goes on from where the last fit ended.
        random_state: seed of the initial weights, the shuffling and the dropout.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Attributes:
        classes_: the class labels.
        n_features_in_: number of features.
        feature_names_in_: their names, if X is a data frame.
        desirable_: the labels taken as desirable; none if the measure does not look at them.
        history_: per epoch the accuracy, loss (without fairness weights), unfairness (mean of
            absolute levels), levels and multipliers, on the validation rows if there are any,
            else on the training rows.
        levels_: (J,) levels of fairness after training, on the same rows.
        levels_unknown_: (J,) of an aware model, the levels on the same rows if it knew no
            sensitive value; None for others.
        sensitive_encoder_: of an aware model, how it reads sensitive values; `names` are the
            features it adds to those of X. None for others.
        multipliers_: (J,) their multipliers.
        cell_weights_: (K,) weights of the cells in the last step.
        constraint_names_: (J,) what each level and multiplier speaks of.
        cell_names_: (K,) what the cell weights speak of.
        groups_: groups and frequencies of the training rows; None for a plain model.
        plain_accuracy_: accuracy of the plain model trained beside; None if there was none.
        fairness_rate_: the fairness rate of the model chosen.
        epsilon_: the slack that was asked for, a number also where epsilon is "auto".
        certificate_: with `certify`, what was certified, on which rows, as plain values; else None.
        set_aside_: the groups that are in no constraint because of `min_group`, and their rows.
        group_rows_: (G,) how many rows each group has, if some are set aside; else None.
        n_iter_: epochs trained.
        module_: the trained module, if one was given.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 2000)
        >>> X = rng.normal(size=(2000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = np.where(X.sum(1) + rng.normal(size=2000) > 0.5, "hired", "refused")
        >>> model = FairGradClassifier(
        ...     "demographic_parity", fairness_rate=0.05, compare_plain=False, random_state=0
        ... ).fit(X, y, sensitive_features=sex)
        >>> model.predict([[3.0, 3.0, 3.0], [-3.0, -3.0, -3.0]])
        array(['hired', 'refused'], dtype='<U7')
        >>> bool(np.abs(model.levels_).mean() < 0.1)
        True
    """

    _steady_share = 0.0
    """Of variants that `fit` trains beside each other, as `fairgrad.training.Member` has it."""

    def __init__(
        self,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = "auto",
        fairness_rate: float | str = "auto",
        proportional_rate: float | str = "auto",
        error_memory: float = 0.9,
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
        cost_matrix: Any = None,
        sensitive_columns: Any = None,
        use_sensitive: bool = False,
        hidden_layer_sizes: tuple[int, ...] = (),
        batch_norm: bool = False,
        dropout: float = 0.0,
        solver: str = "sgd",
        learning_rate: float = 0.15,
        schedule: str = "cosine",
        weight_decay: float = 0.0,
        clip_norm: float | str | None = "auto",
        batch_size: int = 512,
        max_iter: int | str = "auto",
        average_last: float = 0.3,
        validation_fraction: float = 0.0,
        selection: Any = "auto",
        standardize: bool = True,
        compare_plain: bool = True,
        certify: float | None = None,
        tolerance: Any = 0.05,
        init: Any = None,
        module: nn.Module | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.fairness_rate = fairness_rate
        self.proportional_rate = proportional_rate
        self.error_memory = error_memory
        self.y_desirable = y_desirable
        self.min_group = min_group
        self.cost_matrix = cost_matrix
        self.sensitive_columns = sensitive_columns
        self.use_sensitive = use_sensitive
        self.hidden_layer_sizes = hidden_layer_sizes
        self.batch_norm = batch_norm
        self.dropout = dropout
        self.solver = solver
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.average_last = average_last
        self.validation_fraction = validation_fraction
        self.selection = selection
        self.standardize = standardize
        self.compare_plain = compare_plain
        self.certify = certify
        self.tolerance = tolerance
        self.init = init
        self.module = module
        self.warm_start = warm_start
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
    ) -> FairGradClassifier:
        """Trains the classifier.

        Args:
            X: (n, features) data frame, array or sparse matrix.
            y: (n,) labels.
            sensitive_features: (n,) sensitive values, or a table with one column per attribute;
                missing values and -1 are unknown and in no constraint.
            sample_weight: (n,) non-negative weights.
            validation: (X, y, sensitive_features), or with sample weights as a fourth, to choose
                among the last epochs by, in place of a part of the rows held out.

        Raises:
            ValueError: if sensitive_features are missing, an argument is not allowed, or no model
                is certified.
        """
        if self.certify is not None:
            if validation is not None:
                raise ValueError("validation: not with certify, which divides the rows by itself.")
            from fairgrad.sklearn.certified import fit_certified  # noqa: PLC0415 - it fits models

            found, certificate = fit_certified(self, X, y, sensitive_features, sample_weight)
            given = self.get_params(deep=False)
            self.__dict__ |= {name: v for name, v in vars(found).items() if name not in given}
            self.__dict__["certificate_"] = certificate.to_dict()
            return self
        goes_on = self.warm_start and hasattr(self, "state_")
        rows = read_rows(self, X, y, sensitive_features, sample_weight, validation, fitted=goes_on)
        if not goes_on:
            self._set_up(rows)
            return self._train(rows, self._candidates(rows), self._initial_state())
        self.epsilon_ = resolve_epsilon(self.epsilon, len(rows), self.fairness_rate)
        start = self.state_
        if self.measure_ != self._measure_key():  # then its multipliers are of no use
            start = {name: v for name, v in start.items() if not name.startswith("fairness.")}
        return self._train(rows, [self], start)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> FairGradClassifier:
        """Trains one more epoch, on these rows, at the initial learning rate.

        The frequencies of the cells are those of all rows so far.

        Args:
            X: (n, features).
            y: (n,) labels.
            classes: all classes, needed in the first call unless y has them all.
            sensitive_features: as in `fit`; all groups must be in the first call.
            sample_weight: (n,) non-negative weights.

        Raises:
            ValueError: if the fairness measure has changed, or an argument is not allowed.
        """
        if self.certify is not None:
            raise ValueError("certify: rows that come bit by bit cannot be certified; use fit.")
        goes_on = hasattr(self, "state_")
        if goes_on and self.fairness_measure is not None and self.measure_ != self._measure_key():
            raise ValueError(
                "fairness_measure: changed since the first partial_fit; to make a fitted model "
                "fair use warm_start=True and fit."
            )
        rows = read_rows(
            self, X, y, sensitive_features, sample_weight, fitted=goes_on, classes=classes
        )
        rows = replace(rows, measure=self.fairness_measure)  # groups may still grow
        groups = rows.groups()
        if not goes_on:
            self._set_up(rows)
            if isinstance(self.epsilon, str):  # how many rows there will be is not known
                self.epsilon_ = 0.0
        elif groups is not None and self.groups_ is not None:
            groups = replace(groups, mass=groups.mass + self.groups_.mass)
        start = self.state_ if goes_on else self._initial_state()
        once = {"epochs": 1, "schedule": "constant", "average_last": 0.0}
        return self._train(rows, [self], start, groups, **once)

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """(n,) margins for two classes, above 0 for the second; (n, classes) logits for more.

        Args:
            X: (n, features).
            sensitive_features: of an aware model (`use_sensitive`), as in `fit`, unless they are
                columns of X. Missing values, those that fit never saw (with a warning) and -1 are
                unknown.

        Raises:
            ValueError: if the model is not aware, or the columns do not fit.
        """
        return self._margins(self._read(X, sensitive_features))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """(n, classes) probabilities; sensitive values as in `decision_function`."""
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        if scores.ndim == 1:
            return np.stack([expit(-scores), expit(scores)], axis=1)
        probability: Floats = softmax(scores, axis=1)
        return probability

    def predict(self, X: Any, *, sensitive_features: Any = None) -> NDArray[Any]:
        """(n,) predicted class labels; sensitive values as in `decision_function`."""
        return self._labels(self.decision_function(X, sensitive_features=sensitive_features))

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """The accuracy; sensitive values as in `decision_function`."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    @property
    def coef_(self) -> Floats:
        """(1 or classes, features) weights of a linear model, for features as they come."""
        return self._linear()[0]

    @property
    def intercept_(self) -> Floats:
        """(1 or classes,) intercepts of a linear model."""
        return self._linear()[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)  # perhaps of an older version
        if "learning_rate_init" in state:  # learning_rate still was the schedule
            state["schedule"] = state["learning_rate"]
            state["learning_rate"] = state.pop("learning_rate_init")
        state = {**_defaults(type(self).__init__), **state}
        if "state_" in state:  # blind, as all were
            state = {"sensitive_encoder_": None, "levels_unknown_": None, **state}
            state = {"epsilon_": state["epsilon"], "set_aside_": {}, "group_rows_": None, **state}
            state.setdefault("certificate_", None)
        trained = state.get("state_", {})
        if "fairness.weights" in trained:  # errors had one entry more, of a constant cell
            n_cells = trained["fairness.weights"].shape[1]
            for name in ("fairness.rows", "fairness.errors"):
                trained = {**trained, name: trained[name][:, :n_cells]}
            state["state_"] = trained
        super().__setstate__(state)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """As scikit-learn finds them, but once: reading a signature takes long."""
        names: list[str] = super()._get_param_names()
        return names

    def _set_up(self, rows: FittingRows) -> None:
        """Everything that is decided once, by the first rows."""
        self.classes_ = rows.classes
        self.sensitive_encoder_ = rows.encoder
        self.epsilon_ = resolve_epsilon(self.epsilon, len(rows), self.fairness_rate)
        seed = self.random_state
        self.seed_ = _drawn(seed) if isinstance(seed, int) else _drawn.__wrapped__(seed)
        self.calls_ = 0
        n_features = rows.X.shape[1]
        self.offset_, self.scale_ = np.zeros(n_features), np.ones(n_features)
        self.shape_ = None
        if self.module is None:
            self.shape_ = Shape.of(self._plan(len(rows)), n_features, len(rows.classes))
            if self.standardize:
                self.offset_, self.scale_ = rows.scaling

    def _initial_state(self) -> Mapping[str, Any] | None:
        if self.init is None:
            return None
        if self.shape_ is None:
            raise ValueError("init: not together with module, which has its own weights.")
        scaling = Scaling(self.offset_, self.scale_)
        return {"network.parameters": parameters_from(self.init, self.shape_, scaling)}

    def _candidates(self, rows: FittingRows) -> list[FairGradClassifier]:
        """What to train side by side: this model at several rates, last the plain one."""
        if rows.is_plain:
            return [self]
        if self.selection == "auto":
            groups = rows.groups()
            is_linear = self.shape_ is not None and not self.shape_.hidden
            few = is_linear and groups is not None and groups.mass.size <= FEW_CELLS
            rates = self.fairness_rate, self.proportional_rate
            trained = trained_rates(self.epsilon_, *rates, few=few)
            if trained is not None:
                return [self._variant(*one) for one in trained]
        pairs = candidate_rates(self.fairness_rate, self.proportional_rate, len(rows))
        if len(pairs) > 1 or self.compare_plain:
            pairs.append((0.0, 0.0))
        if len(pairs) == 1:
            return [self]
        return [self._variant(self.epsilon_, *pair, steady_share=0.0) for pair in pairs]

    def _variant(
        self, epsilon: Any, rate: float, proportional: float, steady_share: float = STEADY_SHARE
    ) -> FairGradClassifier:
        """A copy to train beside others."""
        variant = copy.copy(self)
        variant.set_params(fairness_rate=rate, proportional_rate=proportional)
        variant.__dict__ |= {"epsilon_": epsilon, "_steady_share": steady_share}
        return variant

    def _plan(self, n_rows: int, **changed: Any) -> TrainingPlan:
        """What variants of this model must have in common to be trained as one stack."""
        settings: dict[str, Any] = {
            "hidden": self._hidden(),
            "batch_norm": self.batch_norm,
            "dropout": self.dropout,
            "epochs": resolve_epochs(self.max_iter, n_rows, self.batch_size),
            "batch_size": self.batch_size,
            "solver": self.solver,
            "schedule": self.schedule,
            "average_last": self.average_last,
        }
        settings |= changed
        try:
            return _planned(**settings)
        except TypeError:  # of values that cannot be kept; the plan says which of them is wrong
            return TrainingPlan(**settings)

    def _hidden(self) -> tuple[int, ...]:
        if isinstance(self.hidden_layer_sizes, tuple) and not self.hidden_layer_sizes:
            return ()
        return tuple(np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=int)).tolist())

    def _member(self, rows: FittingRows, frequencies: Groups | None) -> Member:
        """What they may differ in."""
        training, validation = rows.split(self.validation_fraction, self.seed_)
        n = len(rows)
        plain: dict[str, Any] = {
            "rows": training,
            "validation": validation,
            "seed": (self.seed_ + self.calls_) % 2**31,
            "learning_rate": self.learning_rate,
            "weight_decay": self.weight_decay,
            "clip_norm": resolve_clip(self.clip_norm, self._hidden(), self.fairness_measure, n),
            "cost_matrix": self.cost_matrix,
        }
        if rows.is_plain:
            return Member(**plain)
        rate, proportional = candidate_rates(self.fairness_rate, self.proportional_rate)[0]
        return Member(
            **plain,
            fairness_measure=rows.measure,
            epsilon=self.epsilon_,
            y_desirable=self.y_desirable,
            fairness_rate=rate,
            proportional_rate=proportional,
            error_memory=self.error_memory,
            steady_share=self._steady_share,
            frequencies=frequencies,
        )

    def _finish(
        self, run: StackRun, choice: Choice, rows: FittingRows, frequencies: Groups | None = None
    ) -> None:
        """Sets the fitted attributes; arrays only, so that they can be saved safely."""
        history = run.training.history
        self.groups_ = frequencies or rows.groups(run.member.rows)
        state = run.training.state(choice)
        self.state_ = {name: tensor.numpy() for name, tensor in state.items()}
        self.history_ = {name: part[:, choice.member] for name, part in vars(history).items()}
        self.constraint_names_: tuple[str, ...] = ()
        self.cell_names_: tuple[str, ...] = ()
        self.plain_accuracy_: float | None = None
        self.certificate_: dict[str, Any] | None = None
        self.cell_weights_, self.desirable_, self.fairness_rate_ = np.ones(0), (), 0.0
        if self.groups_ is not None:
            constraints = run.training.constraints[run.place]
            assert constraints is not None  # noqa: S101 - there is a measure where there are groups
            self.constraint_names_ = constraints.names
            self.cell_names_ = constraints.weight_names(self.groups_)
            self.cell_weights_ = self.state_["fairness.weights"][0].astype(np.float64)
            self.fairness_rate_ = float(run.member.fairness_rate)
            if uses_desirable(self.fairness_measure):
                labels = self.classes_.tolist()
                taken = desirable_labels(labels, self.y_desirable)
                self.desirable_ = tuple(labels[i] for i in taken)
        n = len(self.constraint_names_)
        for name in ("levels", "multipliers"):
            self.history_[name] = self.history_[name][:, :n]
        self.levels_ = self.history_["levels"][choice.epoch]
        self.multipliers_ = self.history_["multipliers"][choice.epoch]
        self.n_iter_ = len(history)
        self.measure_ = self._measure_key()
        self.calls_ += 1
        if self.module is not None:
            from fairgrad.training.trainer import trained_module  # noqa: PLC0415 - as in _scores

            self.module_ = trained_module(self.module, self.state_)
        self.set_aside_: dict[str, int] = {}
        self.group_rows_: Floats | None = None
        if isinstance(rows.measure, LargeGroups):
            self.set_aside_, self.group_rows_ = rows.measure.set_aside(), rows.measure.rows
        self.levels_unknown_: Floats | None = None
        if self.sensitive_encoder_ is not None and self.groups_ is not None:
            self.levels_unknown_ = self._unknown_levels(rows, run.member)

    def _train(
        self,
        rows: FittingRows,
        candidates: Sequence[FairGradClassifier],
        start: Mapping[str, Any] | None,
        frequencies: Groups | None = None,
        **changed: Any,
    ) -> FairGradClassifier:
        """Trains the candidates and becomes the best of them, of several the last is plain.

        By an explicit rule it is one to choose as well if there are many, else only to compare.
        """
        runs = train_stacks(candidates, rows, start, frequencies, **changed)
        is_partial, is_fair = bool(changed), not rows.is_plain
        people = JudgedPeople.of(self, rows, runs[0].member) if is_fair else None
        searches = self.selection == "auto" and self.fairness_rate == "auto" and not is_partial
        chosen = ChosenModel(*best_run(self.selection, runs[:1] if len(runs) == 2 else runs))
        if people is not None and searches:
            chosen = choose(self, runs, people)
        run, choice, layer, of_plain = chosen
        predicted: Ints | None = None  # for these people, if it was computed already
        self._finish(run, choice, rows, frequencies)
        if layer is not None:
            moved = with_layer(self.state_["network.parameters"], layer)
            self.state_ = {**self.state_, "network.parameters": moved}
            predicted = self._judge_moved(rows, run.member, people)
        if people is None or is_partial or run.training.interrupted:
            return self
        warn_of_small(self.set_aside_)
        plain: ModelFigures | None = None
        if len(runs) > 1:
            last = runs[-1].training.candidates(runs[-1].place, [choice.epoch])[0]
            plain = figures_of(runs[-1], last, people.constraints)
            self.plain_accuracy_ = last.accuracy
            if of_plain is not None:
                plain = model_figures(people.constraints, people.rows, of_plain, self.cost_matrix)
                is_right = of_plain == people.rows.label
                self.plain_accuracy_ = float(np.average(is_right, weights=people.rows.weight))
        if self.compare_plain:
            if predicted is None:
                predicted = self._predicted(people)
            warn_of_fault(self, people, predicted, runs, plain)
        return self

    def _predicted(self, people: JudgedPeople) -> Ints:
        """(n,) label indices."""
        return predicted_index(people.rows, self._labels(self._margins(people.X)))

    def _judge_moved(
        self, rows: FittingRows, member: Member, people: JudgedPeople | None
    ) -> Ints | None:
        """Levels, and what becomes of them if no value is known, after the last step.

        Gives what is predicted for the people the model is to keep epsilon on, if these are judged.
        """
        judged = people
        if judged is None or member.validation is not None:
            judged = JudgedPeople.held_out(self, rows, member)
        predicted = self._predicted(judged)
        rates = cell_rates(judged.constraints, judged.rows, predicted)
        self.levels_ = levels_of(judged.constraints, rates).values
        if self.levels_unknown_ is not None:
            self.levels_unknown_ = self._unknown_levels(rows, member)
        return predicted if judged is people else None

    def _measure_key(self) -> str:
        return repr((self.fairness_measure, np.asarray(self.epsilon_).tolist()))

    def _unknown_levels(self, rows: FittingRows, member: Member) -> Floats:
        """(J,) the levels if no sensitive value were known, on the rows that `levels_` are of."""
        judged = member.rows if member.validation is None else member.validation
        X, people = rows.as_unknown(judged)
        constraints = constraints_of(
            rows.measure, people.groups, epsilon=self.epsilon_, y_desirable=self.y_desirable
        )
        predicted = predicted_index(people, self._labels(self._margins(X)))
        return levels_of(constraints, cell_rates(constraints, people, predicted)).values

    def _read(self, X: Any, sensitive_features: Any) -> Any:
        """Features as the network was trained on them, checked."""
        check_is_fitted(self, "state_")
        X, found = split_columns(X, self.sensitive_columns, n_features=self.n_features_in_)
        with naming_rows("X"):
            X = validate_data(self, X, reset=False, **FEATURES)
        if self.sensitive_encoder_ is not None and sensitive_features is None:
            sensitive_features = found
        return with_values(self.sensitive_encoder_, X, sensitive_features)

    def _labels(self, scores: Floats) -> NDArray[Any]:
        index = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[index.astype(np.int64)]
        return labels

    def _margins(self, X: Any) -> Floats:
        """What `decision_function` gives, of features as the network was trained on them."""
        pieces = [X[start : start + PIECE] for start in range(0, X.shape[0], PIECE)]
        return self._oriented(np.concatenate([self._scores(piece) for piece in pieces]))

    def _oriented(self, scores: Floats) -> Floats:
        """(n,) margins of two classes, (n, classes) logits of more, from the network's scores."""
        if len(self.classes_) > 2:
            return scores
        margin: Floats = scores[:, -1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0]
        return margin

    def _scores(self, X: Any) -> Floats:
        if self.shape_ is None:
            from fairgrad.training.networks import module_scores  # noqa: PLC0415 - needs PyTorch

            return module_scores(self.module_, X.toarray() if hasattr(X, "tocsr") else X)
        dense = self._scaled(X)
        if self.shape_.hidden:
            from fairgrad.training.trainer import network_scores  # noqa: PLC0415 - as above

            return network_scores(self.shape_, self.state_, dense).astype(dense.dtype, copy=False)
        weight, bias = layer_of(self.shape_, self.state_)
        linear: Floats = dense @ weight.T + bias
        return linear

    def _scaled(self, X: Any) -> Any:
        """Features as the first layer sees them."""
        scaled = Scaling(self.offset_, self.scale_).apply(X)
        return scaled.toarray() if hasattr(scaled, "tocsr") else scaled

    def _linear(self) -> tuple[Floats, Floats]:
        check_is_fitted(self, "state_")
        if self.shape_ is None or self.shape_.hidden:
            raise AttributeError("coef_ and intercept_ belong to linear models only.")
        parts = layer_of(self.shape_, self.state_)
        weight, bias = (part.astype(np.float64) for part in parts)
        weight = weight / self.scale_
        return weight, bias - weight @ self.offset_


@lru_cache(maxsize=32, typed=True)
def _planned(**settings: Any) -> TrainingPlan:
    """A plan; variants mostly have the same, and checking one takes long."""
    return TrainingPlan(**settings)


@cache
def _drawn(random_state: Any) -> int:
    """A seed by scikit-learn's rules; variants mostly have the same, and drawing it takes long."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


@cache
def _defaults(function: Callable[..., None]) -> dict[str, Any]:
    """The defaults of a function's arguments; reading a signature takes long."""
    empty = Parameter.empty
    found = {name: argument.default for name, argument in signature(function).parameters.items()}
    return {name: default for name, default in found.items() if default is not empty}
