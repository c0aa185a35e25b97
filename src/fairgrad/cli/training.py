"""From a prepared table to trained models: one of them, or one of several, and a plain one."""

from __future__ import annotations

import gc
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import parallel_config

from fairgrad.audit import Audit, Candidacy, likeliest
from fairgrad.aware import to_predict
from fairgrad.cli.request import METHODS
from fairgrad.dual import check_costs
from fairgrad.evaluate import fairness_levels
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier, fit_variants
from fairgrad.training import fairest_of_accurate
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairgrad.cli.prepared import PreparedTable
    from fairgrad.cli.request import ModelSettings
    from fairgrad.tables.roles import ColumnRoles

FAULT_OPTIONS = {
    "min_group=0": "--min-group 0",
    "min_group": "--min-group",
    "epsilon=": "--epsilon ",
    "epsilon": "--epsilon",
    "use_sensitive=True": "--use-sensitive",
    "max_unfairness": "--max-unfairness",
    "larger tolerance": "larger --tolerance",
}
"""What the library's arguments are called by the program, in sentences about a fit."""

TREES = 300
MAX_LEAF_ROWS, MIN_LEAF_ROWS, LEAVES_PER_TABLE = 100, 20, 200

PAPER_BATCH_SIZES, PAPER_WEIGHT_DECAYS, PAPER_EPOCHS = (64, 512), (0.0, 0.001, 0.01), 50
PAPER: dict[str, Any] = {
    "fairness_rate": 0.01,
    "proportional_rate": 0.0,
    "error_memory": 0.0,
    "learning_rate": 0.1,
    "schedule": "constant",
    "clip_norm": 0.05,
    "average_last": 0.0,
}
"""The paper's grid: of the last 5 epochs of all six combinations, one is selected by its rule."""


MANY_ROWS = 100_000
"""Beyond which memory is worth the time of looking for it."""


@dataclass(frozen=True, eq=False)
class TrainedModels:
    """The classifiers.

    Attributes:
        fair: the one trained for fairness.
        plain: the one trained for accuracy alone; None if there is none.
        frontier: the models the fair one was chosen from, if there are several.
        chosen: its position among them.
        notes: warnings raised by the training.
        faults: what is wrong with the fair model, as `fairgrad.usefulness` finds it.
        candidacy: how it was chosen to be certified, if that was asked for.
    """

    fair: Any
    plain: Any = None
    frontier: Frontier | None = None
    chosen: int | None = None
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    candidacy: Candidacy | None = None


def train(
    prepared: PreparedTable,
    settings: ModelSettings,
    *,
    as_frontier: bool = False,
    with_plain: bool = True,
    judged: Mapping[str, Any] | None = None,
    progress: Callable[[str], object],
) -> TrainedModels:
    """Trains the model asked for, and a plain one to compare with.

    Args:
        prepared: the rows.
        settings: what was asked.
        as_frontier: whether to train a frontier even if no bound was given.
        with_plain: whether to train the plain model; a frontier always has one.
        judged: tolerance and least group of the audit, to choose a model that is likely to pass.
        progress: called with what is done next.
    """
    if prepared.n_training > MANY_ROWS:
        gc.collect()  # the table is gone by now: its memory is for the training
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        if settings.certify:
            progress("Training models, and choosing one that is likely to be certified")
            trained = _likely_certified(prepared, settings, judged or {})
        elif as_frontier or settings.by_frontier:
            progress(f"Training {settings.points} models, from exactly fair to plain")
            trained = _choose(_fit_frontier(prepared, settings), settings)
        else:
            progress("Training the fair model")
            fair, why = _fit_by_method(prepared, settings)
            trained = TrainedModels(fair, notes=why)
            if with_plain:
                progress("Training a plain model for comparison")
                trained = replace(trained, plain=_fit_plain(prepared, settings))
    # Exactly this class: subclasses are libraries' hints to programmers.
    said = [*trained.notes, *(str(one.message) for one in caught if one.category is UserWarning)]
    said += _about_awareness(trained.fair, prepared.columns)
    faults = [str(one.message) for one in caught if one.category is FairnessWarning]
    return replace(
        trained,
        notes=tuple(dict.fromkeys(said)),
        faults=tuple(dict.fromkeys(by_options(fault) for fault in faults)),
    )


def by_options(sentence: str) -> str:
    """What the library says of its arguments, in the words of the program."""
    # At once: "epsilon=" must not become "--epsilon ", and that "----epsilon ".
    return re.sub("|".join(FAULT_OPTIONS), lambda found: FAULT_OPTIONS[found[0]], sentence)


def _about_awareness(model: Any, columns: ColumnRoles) -> list[str]:
    """What the reader should know of a model that looks at sensitive columns to predict."""
    if not columns.use_sensitive:
        return []
    note = (
        f"The model looks at {' and '.join(columns.sensitive)} to predict; check that the law "
        "allows it."
    )
    if not isinstance(model, FairDecisionClassifier):
        known, unknown = (np.nanmean(np.abs(f)) for f in (model.levels_, model.levels_unknown_))
        note += (
            " If nobody's value were known, its unfairness in training would be "
            f"{unknown:.3f} instead of {known:.3f}."
        )
    return [note]


def _fit_by_method(prepared: PreparedTable, settings: ModelSettings) -> tuple[Any, tuple[str, ...]]:
    """The fair model, and why it was made in this way if there was a choice."""
    if settings.method == "gradient":
        return _fit_fair(prepared, settings), ()
    if settings.method == "decision":  # nothing is chosen by validation rows, so they serve, too
        X, y, s = prepared.rest
        return _decisions(prepared, settings).fit(X, y, sensitive_features=s), ()
    X, y, s = prepared.training
    if settings.grows_trees:  # which must not know the rows that choose
        by_gradient = _trees(prepared, settings, len(y)).fit(X, y, sensitive_features=s)
    else:
        by_gradient = _fit_fair(prepared, settings)
    by_decisions = _decisions(prepared, settings).fit(X, y, sensitive_features=s)
    models = {"gradient": by_gradient, "decision": by_decisions}
    found = {
        name: _judged_by_validation(model, prepared, settings) for name, model in models.items()
    }
    # Costs are chosen by as shares of the dearest mistake, as in training.
    dearest = float(np.max(settings.cost_matrix(prepared.labels) or 1.0))
    accuracy, unfair = np.array([(1 - cost / dearest, bad) for cost, bad in found.values()]).T
    chosen, other = "gradient", "decision"
    if fairest_of_accurate(accuracy, unfair) == 1:
        chosen, other = other, chosen
    what = "a mean cost" if settings.costs else "an accuracy"
    said = {
        name: (cost if settings.costs else 1 - cost, bad) for name, (cost, bad) in found.items()
    }
    why = (
        f"Of the two methods, the model is {METHODS[chosen]}: on the validation rows it has {what} "
        "of {:.4f} and an unfairness (mean |F|) of {:.4f}".format(*said[chosen])
        + f"; one {METHODS[other]} "
        + "has {:.4f} and {:.4f}.".format(*said[other])
    )
    return models[chosen], (why,)


def _judged_by_validation(
    model: Any, prepared: PreparedTable, settings: ModelSettings
) -> tuple[float, float]:
    """Mean cost (by default the share of errors) and unfairness on the validation rows."""
    X, y, s = prepared.validation
    predicted = model.predict(X, **to_predict(model, s))
    levels = fairness_levels(
        y, predicted, s, model.fairness_measure, y_desirable=prepared.desirable
    )
    classes = model.classes_
    costs = check_costs(settings.cost_matrix(classes), len(classes))
    true, found = (np.searchsorted(classes, np.asarray(part)) for part in (y, predicted))
    return float(costs[true, found].mean()), float(levels.unfairness)


def _decisions(prepared: PreparedTable, settings: ModelSettings) -> FairDecisionClassifier:
    """Fair decisions on a linear model, or on a network or trees trained for accuracy alone."""
    estimator: Any = None
    if settings.grows_trees:
        estimator = boosted_trees(settings, len(prepared.training), None)
    elif settings.hidden:
        own = {"fairness_measure": None, "use_sensitive": False, "cost_matrix": None}
        estimator = network(prepared, settings, **own)
    return FairDecisionClassifier(
        estimator,
        settings.measure_on(prepared.columns.sensitive),
        settings.epsilon or 0.0,
        use_sensitive=prepared.columns.use_sensitive,
        y_desirable=prepared.desirable,
        min_group=settings.min_group,
        cost_matrix=settings.cost_matrix(sorted(prepared.labels)),
        random_state=settings.seed,
    )


def _fit_fair(prepared: PreparedTable, settings: ModelSettings) -> Any:
    if settings.grows_trees:  # nothing is chosen by validation rows, so they serve for training
        X, y, s = prepared.rest
        return _trees(prepared, settings, len(y)).fit(X, y, sensitive_features=s)
    X, y, s = prepared.training
    rows = {"sensitive_features": s, "validation": tuple(prepared.validation)}
    epsilon = settings.epsilon or 0.0
    if not settings.paper_grid:
        return network(prepared, settings, epsilon=epsilon).fit(X, y, **rows)
    paper = {**PAPER, "epsilon": epsilon, "max_iter": settings.epochs or PAPER_EPOCHS}
    grid = [
        network(prepared, settings, batch_size=batch_size, weight_decay=decay, **paper)
        for batch_size in PAPER_BATCH_SIZES
        for decay in PAPER_WEIGHT_DECAYS
    ]
    return fit_variants(grid, X, y, best=True, **rows)[0]


def _fit_plain(prepared: PreparedTable, settings: ModelSettings) -> Any:
    """The same network, or the same trees, trained for accuracy alone."""
    if settings.grows_trees:
        X, y, s = prepared.rest
        use = prepared.columns.use_sensitive
        if settings.costs:  # which the plain objective does not know
            trees = _trees(prepared, settings, len(y)).set_params(epsilon=float("inf"))
            return trees.fit(X, y, sensitive_features=s)
        trees = boosted_trees(settings, len(y), None, use_sensitive=use)
        return trees.fit(X, y, sensitive_features=s if use else None)
    X, y, s = prepared.training
    if settings.costs and not prepared.columns.use_sensitive:
        # What is cheapest by the probabilities of the model without costs: a linear model trained
        # by the costs of many labels cannot follow them.
        own = network(prepared, settings, fairness_measure=None, cost_matrix=None)
        costs = settings.cost_matrix(sorted(prepared.labels))
        return FairDecisionClassifier(own, None, cost_matrix=costs).fit(X, y)
    plain = network(prepared, settings, fairness_measure=None, selection="most_accurate")
    return plain.fit(X, y, sensitive_features=s, validation=tuple(prepared.validation))


def _likely_certified(
    prepared: PreparedTable, settings: ModelSettings, judged: Mapping[str, Any]
) -> TrainedModels:
    """The most accurate model that is likely to pass, by the validation rows alone.

    With --method auto models of both methods are compared.
    """
    methods = ("gradient", "decision") if settings.method == "auto" else (settings.method,)
    frontiers = [_fit_frontier(prepared, replace(settings, method=name)) for name in methods]
    rows, audits = prepared.validation, []
    for frontier in frontiers:
        for one in frontier.audits_["validation"]:
            predicted = np.asarray(one.labels)[one.predicted]
            audits.append(audit_as_asked(prepared, settings, rows.y, predicted, rows.s, **judged))
    costs = settings.cost_matrix(audits[0].labels)
    candidacy = likeliest(audits, len(prepared.test), costs)
    which, place = divmod(candidacy.position, len(audits) // len(frontiers))
    chosen = frontiers[which]
    chosen.warn_of_fault(place, "tolerance")
    models, plain = chosen.estimators_, int(chosen.points_["epsilon"].argmax())
    return TrainedModels(models[place], models[plain], chosen, place, candidacy=candidacy)


def audit_as_asked(
    prepared: PreparedTable, settings: ModelSettings, y: Any, predicted: Any, s: Any, **others: Any
) -> Audit:
    """An audit by the measures that were asked for."""
    return Audit(
        y,
        predicted,
        s,
        measures=settings.measure_on(prepared.columns.sensitive),
        y_desirable=prepared.desirable,
        labels=list(prepared.labels),
        **others,
    )


def _fit_frontier(prepared: PreparedTable, settings: ModelSettings) -> Frontier:
    """Models from exact fairness to none: networks in one pass, trees side by side."""
    X, y, s = prepared.training
    estimator: Any = network(prepared, settings)
    if settings.grows_trees:
        estimator = _trees(prepared, settings, len(y)).set_params(n_jobs=1)
    if settings.method == "decision":
        estimator = _decisions(prepared, settings)
    frontier = Frontier(estimator, epsilons=settings.points, random_state=settings.seed, n_jobs=-1)
    with parallel_config(backend="threading"):  # boosting mostly runs outside of Python's lock
        return frontier.fit(
            X,
            y,
            sensitive_features=s,
            validation=tuple(prepared.validation),
            # Rows for a certificate are looked at once, for the one model that was chosen.
            test=None if prepared.folds or settings.certify else tuple(prepared.test),
        )


def _choose(frontier: Frontier, settings: ModelSettings) -> TrainedModels:
    """The model of a frontier that the user's bound asks for, and the plain one.

    Without a bound it is the paper's choice: the fairest within 3 points of the best accuracy.

    Raises:
        ValueError: if no model is within the bound.
    """
    points, models = frontier.points_, frontier.estimators_
    if settings.by_frontier:
        chosen = frontier.choose(
            max_unfairness=settings.max_unfairness, min_accuracy=settings.min_accuracy
        )
    else:
        useful = frontier.useful_ if frontier.useful_.any() else np.ones(len(points), dtype=bool)
        own = points[useful]
        merit, unfairness = own["validation_accuracy"], own["validation_unfairness"]
        if settings.costs:
            costs = models[0].cost_matrix
            merit = 1 - own["validation_cost"] / np.max(costs)
        best = fairest_of_accurate(merit.to_numpy(), unfairness.to_numpy())
        chosen = int(np.flatnonzero(useful)[best])
    return TrainedModels(models[chosen], models[int(points["epsilon"].argmax())], frontier, chosen)


def network(
    prepared: PreparedTable, settings: ModelSettings, **parameters: Any
) -> FairGradClassifier:
    """An unfitted classifier with the settings that all ways of training share."""
    shared: dict[str, Any] = {
        "fairness_measure": settings.measure_on(prepared.columns.sensitive),
        "y_desirable": prepared.desirable,
        "min_group": settings.min_group,
        "use_sensitive": prepared.columns.use_sensitive,
        "cost_matrix": settings.cost_matrix(sorted(prepared.labels)),
        "hidden_layer_sizes": settings.hidden,
        # The paper's networks: without these, deep ones swing too much to be made fair.
        "batch_norm": bool(settings.hidden),
        "dropout": 0.2 if settings.hidden else 0.0,
        "random_state": settings.seed,
        "verbose": settings.verbose,
    }
    if settings.epochs is not None:
        shared["max_iter"] = settings.epochs
    if settings.batch_size is not None:
        shared["batch_size"] = settings.batch_size
    return FairGradClassifier(**{**shared, **parameters})


def _trees(prepared: PreparedTable, settings: ModelSettings, n_rows: int) -> Any:
    measure = settings.measure_on(prepared.columns.sensitive)
    return boosted_trees(
        settings,
        n_rows,
        measure,
        epsilon=settings.epsilon or 0.0,
        y_desirable=prepared.desirable,
        min_group=settings.min_group,
        use_sensitive=prepared.columns.use_sensitive,
        cost_matrix=settings.cost_matrix(sorted(prepared.labels)),
    )


def boosted_trees(settings: ModelSettings, n_rows: int, measure: Any, **parameters: Any) -> Any:
    """An unfitted classifier whose trees fit little of the noise, so that fairness carries over.

    Leaves hold at least 100 rows; in small tables a two-hundredth of the rows, but at least 20.

    Args:
        settings: what was asked.
        n_rows: how many rows it will be trained on.
        measure: as the estimator takes it; None for a plain model.
        **parameters: further ones of the estimator.
    """
    from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: PLC0415 - optional

    in_proportion = max(MIN_LEAF_ROWS, n_rows // LEAVES_PER_TABLE)
    return FairGradLGBMClassifier(
        measure,
        n_estimators=settings.epochs or TREES,
        num_leaves=15,
        min_child_samples=min(MAX_LEAF_ROWS, in_proportion),
        colsample_bytree=0.3,
        random_state=settings.seed,
        deterministic=True,
        force_row_wise=True,
        n_jobs=0,  # as many threads as OpenMP is told to use
        verbose=-1,
        **parameters,
    )
