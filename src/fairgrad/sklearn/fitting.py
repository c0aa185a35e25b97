"""Fits many variants of a classifier as one stack, with the defaults that depend on the data."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.sklearn.rows import Scaling, read_rows
from fairgrad.usefulness import warn_of_small

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.groups import Floats, Groups
    from fairgrad.sklearn.classifier import FairGradClassifier
    from fairgrad.sklearn.rows import FittingRows
    from fairgrad.training import Choice, Member, Shape, Training, TrainingPlan

SMALL_TABLE = 10_000
"""Below so many rows exact fairness tends to cost much accuracy, and defaults are gentle."""

SMALL_TABLE_EPSILON = 0.05
"""The default slack there. On so few rows levels of new people differ from those of the training
rows by about as much in any case."""

LARGE_TABLE_RATES = (0.05, 2.0)
"""Fairness rate and proportional rate that reach exact fairness."""

SMALL_TABLE_RATES = (
    (0.001, 0.1),
    (0.002, 0.2),
    (0.005, 0.5),
    (0.01, 0.5),
    (0.02, 1.0),
    (0.05, 2.0),
)
"""From gentle to exact; trained side by side, at little more than the cost of one."""

TRAINED_RATES = ((1.0, 0.05, 2.0), (1.0, 0.01, 0.5), (1.0, 0.002, 0.2))
TIGHTENED, EXACT = (0.5, 0.05, 2.0), (1.0, 0.02, 1.0)
PLAIN_RATES = (1.0, 0.0, 0.0)
"""What "auto" trains side by side: part of epsilon, fairness rate and proportional rate. One is
asked for half of epsilon; where epsilon is 0 it has a further rate instead."""

FEW_CELLS = 4
"""Two labels of two groups: then linear models, which are searched along the lines between what was
trained, do not need the fourth. On eight such tables epsilon was kept without it in all 192 fits,
and validation rows fared alike."""

STEADY_SHARE = 0.01
"""Constraints on cells with less than a hundredth of the rows move their weights no faster than
others: large weights of few rows are what makes training of many groups diverge."""

CLIP_NORM = 0.1
"""Of fair networks. Rows of negative weight have a loss without a lower bound: a network's
gradient grows on it, a linear model's does not. The paper clips at 0.05. On small tables there are
too few steps to diverge, and too few to get anywhere in such small ones."""

PIECE = 4096
"""Rows scored at a time by many models."""

EPOCHS, LEAST_STEPS, MOST_STEPS, LEAST_EPOCHS = 30, 300, 3000, 5
"""Passes over the rows; steps below which there are more of them, and above which there are fewer,
down to the last number. On CelebA, 120,000 rows, 13 passes end where 30 do."""


def fit_variants(
    models: Sequence[FairGradClassifier],
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    validation: Any = None,
    best: bool = False,
) -> list[FairGradClassifier]:
    """Fits variants of one classifier to the same rows, which are read and scaled once.

    Variants may differ in epsilon, rates, weight decay and random state: these are trained as one
    stack, each as it would be by itself. Those that differ in what a stack shares (the network, the
    batch size, the epochs, the solver) make one stack each. All else must be the same. A fairness
    rate of "auto" is the one that reaches exact fairness; no plain model is trained beside.

    Args:
        models: not fitted.
        X: this and what follows as in `FairGradClassifier.fit`.
        y: labels.
        sensitive_features: sensitive values.
        sample_weight: weights.
        validation: rows to choose epochs by.
        best: whether to fit only the one that the first model's rule of selection chooses among
            the last epochs of all.

    Returns:
        The models, fitted; or the one chosen.

    Example:
        >>> from fairgrad.sklearn import FairGradClassifier
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
    rows = read_rows(first, X, y, sensitive_features, sample_weight, validation)
    of_features = {name: v for name, v in vars(first).items() if name.endswith("_in_")}
    for model in models:
        model.__dict__ |= of_features
        model._set_up(rows)  # noqa: SLF001 - the classifier's other half, here and below
    runs = train_stacks(models, rows, first._initial_state())  # noqa: SLF001
    chosen = [best_run(run.model.selection, [run]) for run in runs]
    if best:
        chosen = [best_run(first.selection, runs)]
    for run, choice in chosen:
        run.model._finish(run, choice, rows)  # noqa: SLF001
    warn_of_small(chosen[0][0].model.set_aside_)
    return [run.model for run, _ in chosen]


def predict_variants(
    models: Sequence[FairGradClassifier], X: Any, *, sensitive_features: Any = None
) -> list[Any]:
    """What each of some models that `fit_variants` gave predicts; features are read once."""
    first = models[0]
    X = first._read(X, sensitive_features)  # noqa: SLF001 - the classifier's other half, as below
    if first.shape_ is None or first.shape_.hidden:
        return [model._labels(model._margins(X)) for model in models]  # noqa: SLF001
    layers = [layer_of(first.shape_, model.state_) for model in models]
    weight, bias = (np.concatenate(part) for part in zip(*layers, strict=True))
    n, labels = X.shape[0], [np.empty(X.shape[0], first.classes_.dtype) for _ in models]
    for rows in (slice(start, start + PIECE) for start in range(0, n, PIECE)):
        scores = first._scaled(X[rows]) @ weight.T + bias  # noqa: SLF001
        for own, part in zip(labels, np.split(scores, len(models), axis=1), strict=True):
            own[rows] = first._labels(first._oriented(part))  # noqa: SLF001
    return labels


class StackRun(NamedTuple):
    """A model that was trained: as which member of which stack, which is its place there."""

    model: FairGradClassifier
    member: Member
    training: Training
    place: int


def train_stacks(
    models: Sequence[FairGradClassifier],
    rows: FittingRows,
    start: Mapping[str, Any] | None,
    frequencies: Groups | None = None,
    **changed: Any,
) -> list[StackRun]:
    """Trains models, set up for the same rows, in as few stacks as their settings allow.

    They start from `start`, a stack of one, or from new weights. `frequencies` are the groups whose
    frequencies count, if not those of the rows; `changed` is what the plan has otherwise.
    """
    from fairgrad.training import train  # noqa: PLC0415 - linear models predict without PyTorch

    first = models[0]
    dtype = None if first.module is None else next(first.module.parameters()).dtype
    table = rows.table(Scaling(first.offset_, first.scale_), dtype)
    stacks: dict[TrainingPlan, list[FairGradClassifier]] = {}
    for model in models:
        plan = model._plan(len(rows), **changed)  # noqa: SLF001
        stacks.setdefault(plan, []).append(model)
    runs = []
    for plan, own in stacks.items():
        members = [model._member(rows, frequencies) for model in own]  # noqa: SLF001
        training = train(
            table,
            members,
            plan,
            module=first.module,
            start=start and {name: np.repeat(v, len(own), axis=0) for name, v in start.items()},
            progress=None if first.verbose == "auto" else bool(first.verbose),
        )
        if training.interrupted:
            n = len(training.history)
            warnings.warn(f"Training was interrupted after {n} epochs.", stacklevel=4)
        pairs = zip(own, members, strict=True)
        runs += [StackRun(*pair, training, place) for place, pair in enumerate(pairs)]
    return runs


def best_run(rule: Any, runs: Sequence[StackRun]) -> tuple[StackRun, Choice]:
    """The best of the epochs kept, by the validation rows; without such rows, of the last ones."""
    from fairgrad.training.trainer import best_choice  # noqa: PLC0415 - as above

    options: list[tuple[StackRun, Choice]] = []
    for run in runs:
        judged = run.member.validation is not None or run.training.interrupted
        epochs = None if judged else [run.training.last_epoch]
        options += [(run, choice) for choice in run.training.candidates(run.place, epochs)]
    rule = "fairest_of_accurate" if isinstance(rule, str) and rule == "auto" else rule
    return options[best_choice(rule, [choice for _, choice in options])]


def candidate_rates(
    fairness_rate: Any, proportional_rate: Any, n_rows: int = SMALL_TABLE
) -> list[tuple[float, float]]:
    """Pairs of fairness rate and proportional rate to train side by side; only one by default."""
    is_auto = _is_auto("fairness_rate", fairness_rate)
    follows = _is_auto("proportional_rate", proportional_rate)
    several = is_auto and n_rows < SMALL_TABLE
    return [
        (rate if is_auto else fairness_rate, proportional if follows else proportional_rate)
        for rate, proportional in (SMALL_TABLE_RATES if several else (LARGE_TABLE_RATES,))
    ]


def trained_rates(
    epsilon: Any, fairness_rate: Any, proportional_rate: Any, *, few: bool = False
) -> list[tuple[Any, float, float]] | None:
    """What to train side by side: epsilon and rates of each, last the plain model.

    None if the fairness rate is given: then that is what is trained. `few` leaves out one of them.
    """
    follows = _is_auto("proportional_rate", proportional_rate)
    if not _is_auto("fairness_rate", fairness_rate):
        return None
    asked = np.asarray(epsilon, dtype=np.float64)
    fourth = [] if few else [TIGHTENED if (asked > 0).any() else EXACT]
    return [
        (
            epsilon if part == 1 else (part * asked).tolist(),
            rate,
            proportional if follows or not rate else proportional_rate,
        )
        for part, rate, proportional in (*TRAINED_RATES, *fourth, PLAIN_RATES)
    ]


def resolve_epsilon(value: Any, n_rows: int, fairness_rate: Any) -> Any:
    """The slack; "auto" is exact fairness, but on small tables `SMALL_TABLE_EPSILON`.

    Whoever gives a fairness rate knows how far it is to go: then it is exact fairness.
    """
    if not _is_auto("epsilon", value, "numbers"):
        return value
    is_gentle = n_rows < SMALL_TABLE and _is_auto("fairness_rate", fairness_rate)
    return SMALL_TABLE_EPSILON if is_gentle else 0.0


def resolve_epochs(value: Any, n_rows: int, batch_size: int) -> Any:
    """The epochs, or the default if they are "auto": 30, so far as these are 300 to 3,000 steps."""
    if not _is_auto("max_iter", value, "a whole number"):
        return value
    steps = math.ceil(n_rows / batch_size)
    most = max(LEAST_EPOCHS, math.ceil(MOST_STEPS / steps))
    return min(max(EPOCHS, math.ceil(LEAST_STEPS / steps)), most)


def resolve_clip(value: Any, hidden: Sequence[int], fairness_measure: Any, n_rows: int) -> Any:
    """The gradient's largest norm; "auto" clips fair networks on large tables, None is infinity."""
    if _is_auto("clip_norm", value):
        may_grow = len(hidden) and fairness_measure is not None and n_rows >= SMALL_TABLE
        value = CLIP_NORM if may_grow else None
    return math.inf if value is None else value


def _is_auto(name: str, value: Any, kind: str = "a number") -> bool:
    if isinstance(value, str) and value != "auto":
        raise ValueError(f"{name}: expected {kind} or 'auto', got {value!r}.")
    return isinstance(value, str)


def layer_of(shape: Shape, state: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """The weights and biases of a linear model, for scaled features."""
    n_weights = shape.sizes[0]
    flat = state["network.parameters"][0]
    return flat[:n_weights].reshape(shape.pieces["weight0"]), flat[n_weights:]


def parameters_from(classifier: Any, shape: Shape, scaling: Scaling) -> Floats:
    """(1, P) parameters with which our network gives the scores of a fitted classifier.

    It must have the same layers. The features our network sees are scaled, the classifier's not.
    """
    layers = _layers(classifier)
    first_weight, first_bias = layers[0]
    layers[0] = (first_weight * scaling.scale, first_bias + first_weight @ scaling.offset)
    found = [part for layer in layers for part in layer]
    if shape.batch_norm or [part.shape for part in found] != list(shape.pieces.values()):
        sizes = [weight.shape[0] for weight, _ in layers]
        raise ValueError(
            f"init: expected layers of {[*shape.hidden, shape.n_outputs]} units on "
            f"{shape.n_features} features without batch_norm, got {sizes} on "
            f"{first_weight.shape[1]} features."
        )
    return np.concatenate([part.ravel() for part in found])[None]


def _layers(classifier: Any) -> list[tuple[Floats, Floats]]:
    if hasattr(classifier, "coefs_"):
        if getattr(classifier, "activation", "relu") != "relu" and len(classifier.coefs_) > 1:
            raise ValueError(f"init: expected ReLU, got activation={classifier.activation!r}.")
        pairs = zip(classifier.coefs_, classifier.intercepts_, strict=True)
        return [(np.array(weight.T, dtype=np.float64), np.array(bias)) for weight, bias in pairs]
    if hasattr(classifier, "coef_"):
        weight = np.array(np.atleast_2d(classifier.coef_), dtype=np.float64)
        bias = np.broadcast_to(np.atleast_1d(classifier.intercept_), len(weight))
        return [(weight, np.array(bias, dtype=np.float64))]
    raise TypeError(
        "init: expected a fitted linear model (coef_) or MLPClassifier (coefs_), got "
        f"{type(classifier).__name__}; wrap other networks as module=."
    )
