"""A scikit-learn classifier that treats groups alike: linear models and small networks.

`fit` trains several models side by side as one stack: the same network at two rates of the
multipliers, and a plain one. It then takes the most accurate that keeps epsilon, after the last
layer was moved on the labelled rows (`fairgrad.sklearn.last_layer`). `fit_variants` does this for
many epsilons at once.
"""
# ruff: noqa: SLF001 - functions of this module fit several of its classifiers at once

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from fairgrad.aware import AwareRouting, beside, with_values
from fairgrad.checks import check_count, is_number, naming_rows, warn
from fairgrad.columns import as_pandas
from fairgrad.decisions import largest
from fairgrad.evaluate import levels_of
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import LargeGroups, constraints_of, desirable_in_use
from fairgrad.sklearn.last_layer import LastLayers, LayerInputs
from fairgrad.sklearn.rows import FEATURES, Scaling, read_rows
from fairgrad.usefulness import (
    LEAST_GAIN,
    MOST_SLACK,
    TOLERATED_LOSS,
    ShownInNotebooks,
    constant_figures,
    model_figures,
    suggestions_of,
    warn_of_faults,
    warn_of_small,
    worst_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, GroupedRows
    from fairgrad.sklearn.rows import FittingRows
    from fairgrad.training import Member, Training, TrainingTable

EPSILON = 0.05
"""The default slack: the tolerance that an audit accepts."""

RATES = ((0.05, 2.0), (0.01, 0.5))
"""Fairness and proportional rates of the models trained for one epsilon. The first reaches exact
fairness; on ten tables a third and a fourth changed neither figure on validation rows."""

ERROR_MEMORY, AVERAGED_SHARE = 0.9, 0.3
"""Share of earlier batches in the error estimates; share of the training, at its end, over which
the weights are averaged."""

STEADY_STEPS = 4000
"""In more steps, as tables of millions of rows need, multipliers move more slowly: at a constant
rate the noise of the batches adds up, and an exact fit of 4 million rows lost 6 points."""

STEADY_SHARE = 0.01
"""Constraints on cells with less than a hundredth of the rows move their weights no faster than
others: large weights of few rows are what makes training of many groups diverge."""


class Schedule(NamedTuple):
    """How long models are trained by default, and in which steps.

    Attributes:
        solver: of the weights.
        learning_rate: at the start.
        epochs: passes over the rows.
        least_steps: below which there are more epochs.
        most_steps: above which there are fewer, down to `LEAST_EPOCHS`.
    """

    solver: str
    learning_rate: float
    epochs: int
    least_steps: int
    most_steps: int

    def epochs_of(self, n_rows: int, batch_size: int) -> int:
        """Epochs for a table of so many rows."""
        steps = math.ceil(n_rows / batch_size)
        most = max(LEAST_EPOCHS, math.ceil(self.most_steps / steps))
        return min(max(self.epochs, math.ceil(self.least_steps / steps)), most)


LINEAR, NETWORK = Schedule("sgd", 0.15, 30, 1000, 3000), Schedule("adam", 0.003, 20, 100, 900)
"""A learning rate of 0.5 needs a third of the steps on small tables and is as good there. On tables
of hundreds of thousands of rows with rare groups, whose weights are large, it costs 3 points."""

LEAST_EPOCHS = 5
"""Of linear models, and of networks. On CelebA, 120,000 rows, 13 epochs of a linear
model end where 30 do. Small tables overfit with more steps of a network."""

FINISHING_STEPS, FINISHED = 30, 1e-3
"""Steps of L-BFGS that end the training of plain linear models, and the gradient that ends them."""

EPOCH_PENALTY = 1e3
"""Penalty of unfairness when an epoch is chosen."""

PIECE = 16_384
"""Rows scored at a time."""


class FairGradClassifier(ShownInNotebooks, AwareRouting, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A linear model or multilayer perceptron trained to be accurate and fair.

    The training rows of each (label, group) cell are weighted so that the levels of fairness move
    into their bounds, ``-epsilon <= F <= epsilon``. Sensitive values are needed to fit, and to
    predict only if the model is to be aware of them (`use_sensitive`).

    Args:
        fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
            "accuracy_parity", "four_fifths_rule", one of your own (see
            `fairgrad.torch.FairLoss`), or None for a plain model.
        epsilon: how far each level of fairness may be from its bounds on the rows of the fit. If a
            model misses this by more than 0.005, a ``FairnessWarning`` tells you. The level of a
            small group may be as far away as its sampling error explains: one standard error, or
            more where there are more than four levels. 0 is the paper's exact fairness for all
            groups, which costs more accuracy.
        fairness_rate: step size of the multipliers. "auto" trains two rates and a plain model
            side by side, moves the last layer until the levels are within their bounds, and keeps
            the most accurate model. With a number it trains one model at this constant rate, as
            the paper does.
        y_desirable: the desirable labels, for equality of opportunity and the four-fifths rule; by
            default the second of two classes in sorted order.
        min_group: the smallest group to constrain, in rows, or below 1 as a share of all rows. A
            warning names the groups that are left out. 0 constrains all groups.
        cost_matrix: the cost of predicting each class (columns) for each true class (rows), in
            sorted order; None if all mistakes cost the same. Models are then chosen by their mean
            cost instead of their accuracy. With more than two classes and no measure a linear
            model follows costs only in part; hidden layers, or `FairDecisionClassifier`, follow
            them better.
        use_sensitive: whether the model uses the sensitive values to predict. They become features
            (see `fairgrad.aware.SensitiveEncoder`). The law may forbid it. Unknown values never
            fail; `levels_unknown_` shows how fair the model is without them.
        hidden_layer_sizes: units of the hidden layers; none is a linear model.
        dropout: share of hidden units dropped in training.
        learning_rate: step size of the weights at the start; it falls to 0 along a cosine. "auto"
            is 0.15 for linear models, which are trained by SGD, and 0.003 for networks,
            which are trained by Adam.
        weight_decay: of the weights, as PyTorch's optimisers have it.
        batch_size: rows per step; all rows if there are fewer.
        max_iter: epochs; "auto" is 30 for linear models (1,000 to 3,000 steps) and 20 for networks
            (100 to 900 steps), but at least 5.
        validation_fraction: share of the rows held out, the same of every label of every group, to
            choose among the last epochs; 0 trains on all rows and takes the last epoch.
        standardize: whether features are scaled to mean 0 and variance 1 first.
        random_state: seed of the initial weights, the shuffling and the dropout.
        verbose: True shows a progress bar; "auto" on terminals, when it takes long.

    Attributes:
        classes_: the class labels.
        n_features_in_: number of features.
        feature_names_in_: their names, if X is a data frame.
        desirable_: the desirable labels; none if the measure does not use them.
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
        constraint_names_: (J,) names of the levels and multipliers.
        cell_names_: (K,) names of the cells.
        groups_: groups and frequencies of the training rows; None for a plain model.
        set_aside_: the groups that are in no constraint because of `min_group`, and their rows.
        n_iter_: epochs trained.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 2000)
        >>> X = rng.normal(size=(2000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = np.where(X.sum(1) + rng.normal(size=2000) > 0.5, "hired", "refused")
        >>> model = FairGradClassifier(
        ...     "demographic_parity", random_state=0
        ... ).fit(X, y, sensitive_features=sex)
        >>> model.predict([[3.0, 3.0, 3.0], [-3.0, -3.0, -3.0]])
        array(['hired', 'refused'], dtype='<U7')
        >>> bool(np.abs(model.levels_).max() < 0.06)
        True
    """

    def __init__(
        self,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = EPSILON,
        fairness_rate: float | str = "auto",
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
        cost_matrix: Any = None,
        use_sensitive: bool = False,
        hidden_layer_sizes: tuple[int, ...] = (),
        dropout: float = 0.0,
        learning_rate: float | str = "auto",
        weight_decay: float = 0.0,
        batch_size: int = 512,
        max_iter: int | str = "auto",
        validation_fraction: float = 0.0,
        standardize: bool = True,
        random_state: Any = None,
        verbose: bool | str = "auto",
    ) -> None:
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.fairness_rate = fairness_rate
        self.y_desirable = y_desirable
        self.min_group = min_group
        self.cost_matrix = cost_matrix
        self.use_sensitive = use_sensitive
        self.hidden_layer_sizes = hidden_layer_sizes
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.standardize = standardize
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
    ) -> FairGradClassifier:
        """Trains the classifier.

        Args:
            X: (n, features) data frame, array or sparse matrix.
            y: (n,) labels.
            sensitive_features: (n,) sensitive values, or a table with one column per attribute;
                missing values and -1 are unknown and in no constraint.
            sample_weight: (n,) non-negative weights.
            validation: (X, y, sensitive_features), or with sample weights as a fourth, to choose
                among the last epochs by, instead of a part of the rows held out.
            membership: (n, values) how likely each row has each value of an attribute that some
                rows lack, as an array, a data frame or a `fairgrad.membership.Membership`. These
                rows then count in every group by its probability. Without it they have weight 1.

        Raises:
            ValueError: if sensitive_features are missing or an argument is not allowed.
        """
        return fit_variants(
            [self],
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            validation=validation,
            membership=membership,
        )[0]

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """(n,) margins for two classes, above 0 for the second; (n, classes) logits for more.

        Args:
            X: (n, features).
            sensitive_features: of an aware model (`use_sensitive`), as in `fit`. Missing values,
                values that fit never saw (with a warning) and -1 are unknown.

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
        return predict_variants([self], X, sensitive_features=sensitive_features)[0]

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

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Inputs, units and outputs of the network; two classes have one output, the margin."""
        n_classes = len(self.classes_)
        return len(self.scale_), *self.hidden_, 1 if n_classes == 2 else n_classes

    def _constraints(self, rows: FittingRows, people: GroupedRows) -> Constraints:
        """The constraints on the cells of some rows, with slack."""
        exact = constraints_of(rows.measure, people.groups, y_desirable=self.y_desirable)
        return exact.slacken_for(people, self.epsilon)

    def _members(self, rows: FittingRows, usual: Schedule) -> list[Member]:
        """The models to train: one for each rate, or at the user's rate, and last a plain model."""
        from fairgrad.training import Member  # noqa: PLC0415 - linear models predict without PyTorch

        rate = usual.learning_rate if self.learning_rate == "auto" else self.learning_rate
        common: dict[str, Any] = {"learning_rate": rate, "weight_decay": self.weight_decay}
        if rows.measure is not None:
            common["epsilon"] = self._constraints(rows, rows.people(None)).slack
        if self.fairness_rate != "auto":
            if not is_number(self.fairness_rate):
                raise ValueError(
                    f"fairness_rate: expected a number or 'auto', got {self.fairness_rate!r}."
                )
            fair = Member(**common, fairness_rate=float(self.fairness_rate))
            return [fair, replace(fair, fairness_rate=0.0)]
        steady: dict[str, Any] = {"error_memory": ERROR_MEMORY, "steady_share": STEADY_SHARE}
        n_rates = 1 if np.isinf(self.epsilon).any() else len(RATES)
        rates = RATES[: 0 if rows.measure is None or np.isinf(self.epsilon).all() else n_rates]
        slower = min(1.0, STEADY_STEPS * self.batch_size / (LEAST_EPOCHS * rows.n))
        return [
            Member(**common, **steady, fairness_rate=r, proportional_rate=proportional)
            for r, proportional in (*((slower * r, p) for r, p in rates), (0.0, 0.0))
        ]

    def _train(self, rows: FittingRows, members: Sequence[Member], usual: Schedule) -> Training:
        """Trains models as one stack; the last member is plain."""
        from fairgrad.training import TrainingPlan, train  # noqa: PLC0415 - as above

        epochs = self.max_iter
        if epochs == "auto":
            epochs = usual.epochs_of(rows.n, self.batch_size)
        elif isinstance(epochs, str):
            raise ValueError(f"max_iter: expected a whole number or 'auto', got {epochs!r}.")
        check_count("max_iter", epochs)
        plan = TrainingPlan(
            hidden=self.hidden_,
            dropout=self.dropout,
            epochs=epochs,
            batch_size=self.batch_size,
            solver=usual.solver,
            schedule="cosine",
            average_last=AVERAGED_SHARE,
            seed=self.seed_,
            fairness_measure=rows.measure,
            y_desirable=self.y_desirable,
            cost_matrix=self.cost_matrix,
        )
        table = rows.table(Scaling(self.offset_, self.scale_))
        trained = train(
            table,
            members,
            plan,
            rows=rows.training,
            validation=rows.held,
            progress=None if self.verbose == "auto" else bool(self.verbose),
        )
        if trained.interrupted:
            warn(f"Training was interrupted after {len(trained.history)} epochs.")
        elif not self.hidden_ and self.max_iter == "auto":
            self._finish_plain(rows, table, trained)
        return trained

    def _finish_plain(self, rows: FittingRows, table: TrainingTable, trained: Training) -> None:
        """Ends the training of a plain linear model, the last member, by steps of second order.

        Few gradient steps are not enough on some tables. What fairness costs would then be
        understated, and the search would start from a model that is less accurate than it could be.
        """
        index: Any = slice(rows.n) if rows.training is None else rows.training  # no copy
        people = rows.people(index)
        knows_all = len(np.unique(people.label)) == len(self.classes_)
        if self.weight_decay or self.cost_matrix is not None or not knows_all:
            return
        places = [state["network.parameters"][-1].numpy() for state in trained.kept.values()]
        weight, bias = self._last_layer(places[-1])
        X = table.X if hasattr(table.X, "tocsr") else table.X.numpy()
        model = LogisticRegression(
            C=np.inf, max_iter=FINISHING_STEPS, tol=FINISHED, warm_start=True
        )
        model.classes_ = np.arange(len(self.classes_))
        model.coef_, model.intercept_ = weight.copy(), bias.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[index], people.label, people.weight)
        for place in places:
            place[:] = np.append(model.coef_, model.intercept_)

    def _take_over(
        self,
        rows: FittingRows,
        training: Training,
        member: int,
        epoch: int,
        layer: Floats | None = None,
    ) -> None:
        """Sets the fitted attributes; arrays only, so that they can be saved safely."""
        self.groups_ = None if rows.measure is None else rows.people(rows.training).groups
        self.state_ = {name: a.numpy() for name, a in training.state(member, epoch).items()}
        if layer is not None:  # weights and biases of the last layer come last
            flat = np.append(layer[:, :-1], layer[:, -1])
            self.state_["network.parameters"][0, -len(flat) :] = flat
        history = training.history
        self.history_ = {name: a[:, member] for name, a in vars(history).items()}
        self.constraint_names_: tuple[str, ...] = ()
        self.cell_names_: tuple[str, ...] = ()
        self.cell_weights_, self.desirable_ = np.ones(0), ()
        constraints = training.constraints[member]
        if self.groups_ is not None and constraints is not None:
            self.constraint_names_ = constraints.names
            self.cell_names_ = constraints.weight_names(self.groups_)
            self.cell_weights_ = self.state_["fairness.weights"][0].astype(np.float64)
            self.desirable_ = desirable_in_use(
                self.fairness_measure, self.classes_, self.y_desirable
            )
        for name in ("levels", "multipliers"):
            self.history_[name] = self.history_[name][:, : len(self.constraint_names_)]
        self.levels_ = self.history_["levels"][epoch]
        self.multipliers_ = self.history_["multipliers"][epoch]
        self.n_iter_ = len(self.history_["loss"])
        self.set_aside_ = rows.measure.set_aside if isinstance(rows.measure, LargeGroups) else {}
        self.levels_unknown_: Floats | None = None
        is_other = layer is not None or rows.n_known is not None  # than in training
        if self.groups_ is None or not (is_other or self.sensitive_encoder_ is not None):
            return
        people, X = rows.people(rows.judged), rows.features(rows.judged)
        constraints = self._constraints(rows, people)

        def levels(X: Any) -> Floats:
            return levels_of(constraints, people, largest(self._margins(X).T))

        if is_other:
            self.levels_ = levels(X)
        if self.sensitive_encoder_ is not None:  # if all sensitive values are unknown
            blind = X[:, : X.shape[1] - len(self.sensitive_encoder_.names)]
            self.levels_unknown_ = levels(beside(blind, self.sensitive_encoder_, None))

    def _choose(self, rows: FittingRows, training: Training, places: range, *, warns: bool) -> None:
        """Becomes the best of some models trained, and warns if it is not what was requested.

        The plain model is the last of all.

        A linear model knows its training rows hardly better than others, so it must keep epsilon
        on these and on the validation rows: the more rows, the less is left to chance.
        """
        index, kind = rows.training, "training"
        if rows.held is not None and rows.training is not None:
            index, kind = rows.held, "validation"
            if not self.hidden_:
                index = np.concatenate([rows.training, rows.held])
                kind = "training and validation"
        people, X = rows.people(index), rows.features(index)
        constraints = self._constraints(rows, people)
        options = [
            (place, _best_epoch(rows, training, place, constraints))
            for place in (*places, len(training.constraints) - 1)
        ]
        states = [training.state(*option) for option in options]
        layers = [
            np.column_stack(self._last_layer(state["network.parameters"][0].double().numpy()))
            for state in states
        ]
        seen = [LayerInputs(X, self.offset_, self.scale_)] * len(layers)
        if self.hidden_:
            from fairgrad.training.stack import network_outputs  # noqa: PLC0415 - needs PyTorch

            X = self._scaled(X)
            units = (network_outputs(self._sizes, state, X, before_last=True) for state in states)
            seen = [LayerInputs(activations.astype(np.float64)) for activations in units]
        search = LastLayers(people, constraints, seen, layers, self.cost_matrix)
        best = search.judged[0]
        if self.fairness_rate == "auto":
            best = search.keep_bounds()
        is_trained = best is search.judged[best.start] and best.start < len(places)
        layer = None if is_trained else best.layer
        self._take_over(rows, training, *options[best.start], layer=layer)
        if training.interrupted:
            return
        warn_of_small(self.set_aside_)
        if not warns:
            return
        fair, *others = (
            model_figures(constraints, people, largest(model.scores), self.cost_matrix)
            for model in (best, *search.judged)
        )
        constants, plain = constant_figures(constraints, people, self.cost_matrix), others[-1]
        useful = [constant.accuracy + LEAST_GAIN for constant in constants]
        least = max([plain.accuracy - TOLERATED_LOSS / 2, *useful])  # too little to warn of
        known = [figures.worst for figures in others if figures.accuracy >= least]
        rate = "" if self.fairness_rate == "auto" else 'fairness_rate="auto"'
        warn_of_faults(
            suggestions_of(self, rate),
            fair,
            constants,
            plain,
            kind,
            labels=self.classes_.tolist(),
            # Few models were tried, so a smaller slack than theirs may be enough.
            enough=min((worst for worst in known if worst <= MOST_SLACK), default=None),
        )

    def _read(self, X: Any, sensitive_features: Any) -> Any:
        """Features as the network was trained on them, checked."""
        check_is_fitted(self, "state_")
        with naming_rows("X"):
            X = validate_data(self, as_pandas(X), reset=False, **FEATURES)
        return with_values(self.sensitive_encoder_, X, sensitive_features)

    def _margins(self, X: Any) -> Floats:
        """What `decision_function` gives, of features as the network was trained on them."""
        pieces = []
        for start in range(0, X.shape[0], PIECE):
            dense = self._scaled(X[start : start + PIECE])
            if self.hidden_:
                from fairgrad.training.stack import network_outputs  # noqa: PLC0415 - as above

                scores = network_outputs(self._sizes, self.state_, dense)
                pieces.append(scores.astype(dense.dtype, copy=False))
            else:
                weight, bias = self._last_layer(self.state_["network.parameters"][0])
                pieces.append(dense @ weight.T + bias)
        margins: Floats = np.concatenate(pieces)
        return margins if len(self.classes_) > 2 else margins[:, 0]

    def _scaled(self, X: Any) -> Any:
        """Features as the first layer sees them."""
        scaled = Scaling(self.offset_, self.scale_).apply(X)
        return scaled.toarray() if hasattr(scaled, "tocsr") else scaled

    def _linear(self) -> tuple[Floats, Floats]:
        check_is_fitted(self, "state_")
        if self.hidden_:
            raise AttributeError("coef_ and intercept_ belong to linear models only.")
        parameters = self.state_["network.parameters"][0].astype(np.float64)
        weight, bias = self._last_layer(parameters)
        weight = weight / self.scale_
        return weight, bias - weight @ self.offset_

    def _last_layer(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Weights and biases of the last layer, which come last; linear models have no other."""
        *_, inputs, outputs = self._sizes
        flat = parameters[-outputs * (inputs + 1) :]
        return flat[:-outputs].reshape(outputs, inputs), flat[-outputs:]


def fit_variants(
    models: Sequence[FairGradClassifier], X: Any, y: Any, **arguments: Any
) -> list[FairGradClassifier]:
    """Fits variants of one classifier, which differ in their epsilon alone, as one stack.

    Each becomes what its own `fit` gives.

    Args:
        models: the variants, not fitted.
        X: features.
        y: labels.
        **arguments: others of `FairGradClassifier.fit`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> sex = rng.choice(["F", "M"], 2000)
        >>> X = rng.normal(size=(2000, 3)) + np.outer(sex == "M", [1.0, 0.0, 0.0])
        >>> y = (X.sum(1) + rng.normal(size=2000) > 0.5).astype(int)
        >>> models = [
        ...     FairGradClassifier("demographic_parity", epsilon=epsilon, random_state=0)
        ...     for epsilon in (0.0, 0.1)
        ... ]
        >>> fair, lenient = fit_variants(models, X, y, sensitive_features=sex)
        >>> bool(np.abs(fair.levels_).mean() < np.abs(lenient.levels_).mean())
        True
    """
    first = models[0]
    rows = read_rows(first, X, y, **arguments)
    of_features = {name: v for name, v in vars(first).items() if name.endswith("_in_")}
    hidden = np.atleast_1d(np.asarray(first.hidden_layer_sizes, dtype=int)).tolist()
    hidden = [check_count("hidden_layer_sizes", units) for units in hidden]
    none = Scaling(np.zeros(rows.X.shape[1]), np.ones(rows.X.shape[1]))
    scaling = rows.scaling if first.standardize else none
    for model in models:
        model.__dict__ |= of_features
        model.classes_, model.sensitive_encoder_ = rows.classes, rows.encoder
        chance = check_random_state(model.random_state)
        model.seed_ = int(chance.randint(np.iinfo(np.int32).max))
        model.offset_, model.scale_ = scaling
        model.hidden_ = tuple(hidden)
    usual = NETWORK if hidden else LINEAR
    rows = rows.split(first.validation_fraction, first.seed_)
    candidates = [model._members(rows, usual) for model in models]
    if rows.measure is None:
        training = first._train(rows, candidates[0][-1:], usual)
        best = _best_epoch(rows, training, 0, None)
        for model in models:
            model._take_over(rows, training, 0, best)
        return list(models)
    fair = [member for of_model in candidates for member in of_model[:-1]]
    training = first._train(rows, [*fair, candidates[0][-1]], usual)
    ends = np.cumsum([len(of_model) - 1 for of_model in candidates]).tolist()
    for model, start, end in zip(models, [0, *ends], ends, strict=False):
        # Of many models one is chosen later, which is then looked at.
        model._choose(rows, training, range(start, end), warns=len(models) == 1)
    return list(models)


def predict_variants(
    models: Sequence[FairGradClassifier], X: Any, *, sensitive_features: Any = None
) -> list[NDArray[Any]]:
    """What each of some models of `fit_variants` predicts; features are read once."""
    X = models[0]._read(X, sensitive_features)
    return [model.classes_[largest(model._margins(X).T)] for model in models]


def _best_epoch(
    rows: FittingRows, training: Training, member: int, constraints: Constraints | None
) -> int:
    """The best epoch of a model by its validation rows; without such rows, the last one.

    It is the most accurate, with a penalty for levels beyond their bounds.
    """
    if rows.held is None and not training.interrupted:
        return max(training.kept)

    def value(epoch: int) -> float:
        merit = float(training.history.merit[epoch, member])
        if constraints is None:
            return -merit
        levels = training.history.levels[epoch, member, : len(constraints.c0)]
        return EPOCH_PENALTY * worst_of(constraints, levels)[1] ** 2 - merit

    return min(sorted(training.kept, reverse=True), key=value)
