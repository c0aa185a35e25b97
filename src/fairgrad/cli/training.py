"""From a table to trained models, and to their audit on rows that took no part in the training."""

from __future__ import annotations

import gc
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import parallel_config
from sklearn.pipeline import Pipeline

from fairgrad.audit import Audit
from fairgrad.cli.folder import SavedModel
from fairgrad.cli.request import guessed_desirable, read_tolerance, usual_measures
from fairgrad.frontier import Frontier
from fairgrad.groups import MIN_GROUP
from fairgrad.sklearn import FairGradClassifier, fit_variants
from fairgrad.tables.encoding import describe_features, encode_rows, fitted_encoder
from fairgrad.tables.reading import column_names, read_table
from fairgrad.training import fairest_of_accurate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.cli.request import ModelSettings
    from fairgrad.tables.encoding import TrainedFeature
    from fairgrad.tables.roles import ColumnRoles

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


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as a classifier takes them; ``X, y, s = rows`` unpacks them.

    Attributes:
        X: (n, columns).
        y: (n,) labels as texts, named after the target.
        s: (n, attributes) sensitive values.
    """

    X: NDArray[np.float32]
    y: pd.Series
    s: pd.DataFrame

    def __len__(self) -> int:
        return len(self.y)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y, self.s))

    def cut(self, part: slice) -> EncodedRows:
        """Consecutive rows, without a copy of the matrix."""
        return EncodedRows(self.X[part], self.y.iloc[part], self.s.iloc[part])


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table split into three parts and encoded; the table itself is no longer needed.

    Attributes:
        rest: training rows, then validation rows: one matrix, of which both are views.
        n_training: how many of these are training rows.
        test: the rows to audit on; no model is trained on them or chosen by them.
        test_rows: their numbers in the table.
        encoder: the fitted encoder of features.
        features: what is known of each feature.
        labels: values of the target, the desirable one last.
        columns: the role of each column.
        notes: what the reader should know about the table.
    """

    rest: EncodedRows
    n_training: int
    test: EncodedRows
    test_rows: NDArray[Any]
    encoder: Any
    features: list[TrainedFeature]
    labels: list[str]
    columns: ColumnRoles
    notes: tuple[str, ...]

    @property
    def training(self) -> EncodedRows:
        """The rows models learn from."""
        return self.rest.cut(slice(self.n_training))

    @property
    def validation(self) -> EncodedRows:
        """The rows models are chosen by."""
        return self.rest.cut(slice(self.n_training, None))

    @property
    def desirable(self) -> str | None:
        """The desirable label; None if there are more than two labels and none was named."""
        return self.columns.desirable(self.labels)


@dataclass(frozen=True, eq=False)
class TrainedModels:
    """The classifiers.

    Attributes:
        fair: the one trained for fairness.
        plain: the one trained for accuracy alone; None if there is none.
        frontier: the models the fair one was chosen from, if there are several.
        chosen: its position among them.
        notes: warnings raised by the training.
    """

    fair: Any
    plain: Any = None
    frontier: Frontier | None = None
    chosen: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A model with its audit on the test rows.

    Attributes:
        model: the model to save.
        trained: the classifiers.
        audit: of the fair model, compared with the plain one if there is one.
        prepared: what they were trained on.
        settings: what was asked.
    """

    model: SavedModel
    trained: TrainedModels
    audit: Audit
    prepared: PreparedTable
    settings: ModelSettings

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the table and the training."""
        return (*self.prepared.notes, *self.trained.notes)

    @property
    def points(self) -> pd.DataFrame:
        """Figures of the models of the frontier; only if there is one."""
        assert self.trained.frontier is not None  # noqa: S101 - for type checkers
        points: pd.DataFrame = self.trained.frontier.points_
        return points

    @property
    def verdict(self) -> str:
        """On the measures the model was trained for."""
        return self.audit.verdict


def fit_table(
    given: Mapping[str, Any],
    columns: ColumnRoles,
    settings: ModelSettings,
    *,
    as_frontier: bool = False,
    progress: Callable[[str], object],
) -> AuditedModel:
    """Reads the table, trains the models asked for, and audits the chosen one.

    Args:
        given: the options of `fit` or `frontier`.
        columns: the role of each column.
        settings: how to train.
        as_frontier: whether to train a frontier even if no bound was given.
        progress: called with what is done next.
    """
    progress(f"Reading {given['table']}")
    wanted = [name for name in column_names(given["table"]) if name not in columns.drop]
    # The table is not kept: `train` needs its memory.
    prepared = prepare(read_table(given["table"], wanted), columns.without_drop(), settings)
    with_plain = not given.get("no_plain", False)
    trained = train(
        prepared, settings, as_frontier=as_frontier, with_plain=with_plain, progress=progress
    )
    progress("Auditing the model on the test rows")
    return audit_models(prepared, settings, trained, read_tolerance(given), given["min_group"])


def prepare(frame: pd.DataFrame, columns: ColumnRoles, settings: ModelSettings) -> PreparedTable:
    """Splits a table by label and group into 60 % training, 20 % validation and 20 % test rows."""
    people = columns.apply(frame)
    _check_desirable(people.values, columns, settings)
    train_rows, validation_rows, test_rows = people.split(settings.seed)
    rest_rows = np.concatenate([train_rows, validation_rows])
    features = describe_features(people.features, frame, rest_rows)
    encoder = fitted_encoder(features)

    def encoded(rows: NDArray[Any]) -> EncodedRows:
        matrix = encode_rows(encoder, people.features, rows)
        return EncodedRows(matrix, people.labels(rows), people.groups(rows))

    return PreparedTable(
        rest=encoded(rest_rows),
        n_training=len(train_rows),
        test=encoded(test_rows),
        test_rows=test_rows,
        encoder=encoder,
        features=features,
        labels=people.values,
        columns=columns,
        notes=people.all_notes,
    )


def _check_desirable(labels: list[str], columns: ColumnRoles, settings: ModelSettings) -> None:
    """Refuses what could only fail after training."""
    n = len(labels)
    for measure in settings.measures if n > 2 else ():
        if measure in {"demographic_parity", "four_fifths_rule"}:
            raise ValueError(
                f"--measure {measure} needs a target with two values; {columns.target!r} has {n}"
            )
        if measure == "equality_of_opportunity" and columns.y_desirable is None:
            raise ValueError(
                f"--measure {measure} needs the desirable value of {columns.target!r}; set "
                f"--desirable to one of {', '.join(labels)}"
            )


def train(
    prepared: PreparedTable,
    settings: ModelSettings,
    *,
    as_frontier: bool = False,
    with_plain: bool = True,
    progress: Callable[[str], object],
) -> TrainedModels:
    """Trains the model asked for, and a plain one to compare with.

    Args:
        prepared: the rows.
        settings: what was asked.
        as_frontier: whether to train a frontier even if no bound was given.
        with_plain: whether to train the plain model; a frontier always has one.
        progress: called with what is done next.
    """
    gc.collect()  # the table is gone by now: its memory is for the training
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        if as_frontier or settings.by_frontier:
            progress(f"Training {settings.points} models, from exactly fair to plain")
            trained = _choose(_fit_frontier(prepared, settings), settings)
        else:
            progress("Training the fair model")
            trained = TrainedModels(_fit_fair(prepared, settings))
            if with_plain:
                progress("Training a plain model for comparison")
                trained = replace(trained, plain=_fit_plain(prepared, settings))
    # Exactly this class: subclasses are libraries' hints to programmers.
    said = (str(one.message) for one in caught if one.category is UserWarning)
    return replace(trained, notes=tuple(dict.fromkeys(said)))


def _fit_fair(prepared: PreparedTable, settings: ModelSettings) -> Any:
    if settings.grows_trees:  # nothing is chosen by validation rows, so they serve for training
        X, y, s = prepared.rest
        return _trees(prepared, settings, len(y)).fit(X, y, sensitive_features=s)
    X, y, s = prepared.training
    rows = {"sensitive_features": s, "validation": tuple(prepared.validation)}
    epsilon = settings.epsilon or 0.0
    if not settings.paper_grid:
        return _network(prepared, settings, epsilon=epsilon).fit(X, y, **rows)
    paper = {**PAPER, "epsilon": epsilon, "max_iter": settings.epochs or PAPER_EPOCHS}
    grid = [
        _network(prepared, settings, batch_size=batch_size, weight_decay=decay, **paper)
        for batch_size in PAPER_BATCH_SIZES
        for decay in PAPER_WEIGHT_DECAYS
    ]
    return fit_variants(grid, X, y, best=True, **rows)[0]


def _fit_plain(prepared: PreparedTable, settings: ModelSettings) -> Any:
    """The same network, or the same trees, trained for accuracy alone."""
    if settings.grows_trees:
        rest = prepared.rest
        return boosted_trees(settings, len(rest), None).fit(rest.X, rest.y)
    plain = _network(prepared, settings, fairness_measure=None, selection="most_accurate")
    X, y, _ = prepared.training
    held_X, held_y, _ = prepared.validation
    return plain.fit(X, y, validation=(held_X, held_y, None))


def _fit_frontier(prepared: PreparedTable, settings: ModelSettings) -> Frontier:
    """Models from exact fairness to none: networks in one pass, trees side by side."""
    X, y, s = prepared.training
    estimator: Any = _network(prepared, settings)
    if settings.grows_trees:
        estimator = _trees(prepared, settings, len(y)).set_params(n_jobs=1)
    frontier = Frontier(estimator, epsilons=settings.points, random_state=settings.seed, n_jobs=-1)
    with parallel_config(backend="threading"):  # boosting mostly runs outside of Python's lock
        return frontier.fit(
            X,
            y,
            sensitive_features=s,
            validation=tuple(prepared.validation),
            test=tuple(prepared.test),
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
        accuracy, unfairness = points["validation_accuracy"], points["validation_unfairness"]
        chosen = fairest_of_accurate(accuracy.to_numpy(), unfairness.to_numpy())
    return TrainedModels(models[chosen], models[int(points["epsilon"].argmax())], frontier, chosen)


def _network(
    prepared: PreparedTable, settings: ModelSettings, **parameters: Any
) -> FairGradClassifier:
    """An unfitted classifier with the settings that all ways of training share."""
    shared: dict[str, Any] = {
        "fairness_measure": settings.measure_on(prepared.columns.sensitive),
        "y_desirable": prepared.desirable,
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
    bounds = {"epsilon": settings.epsilon or 0.0, "y_desirable": prepared.desirable}
    return boosted_trees(settings, n_rows, measure, **bounds)


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


def audit_models(
    prepared: PreparedTable,
    settings: ModelSettings,
    trained: TrainedModels,
    tolerance: Any,
    min_group: float = MIN_GROUP,
) -> AuditedModel:
    """Audits the fair model on the test rows, compared with the plain one."""
    test, classes = prepared.test, trained.fair.classes_
    scores = trained.fair.predict_proba(test.X)
    audit = Audit(
        test.y,
        classes[scores.argmax(axis=1)],
        test.s,
        measures=settings.measure_on(prepared.columns.sensitive),
        others=usual_measures(prepared.desirable),
        tolerance=tolerance,
        baseline=None if trained.plain is None else trained.plain.predict(test.X),
        y_score=scores[:, np.argsort(classes.astype(str))],  # as the audit sorts its labels
        y_desirable=prepared.desirable,
        labels=list(prepared.labels),
        min_group=min_group,
        baseline_name="the plain model",
        remarks=guessed_desirable(prepared.columns, prepared.labels),
    )
    epsilon = float(trained.fair.epsilon)
    same = ("separate", "max_unfairness", "min_accuracy", "model", "seed")
    known = {
        **{name: getattr(settings, name) for name in same},
        "epsilon": epsilon if np.isfinite(epsilon) else None,
        "hidden": list(settings.hidden),
        "measures": list(settings.measures),
        "desirable": prepared.desirable,
    }
    pipeline = Pipeline([("features", prepared.encoder), ("classifier", trained.fair)])
    model = SavedModel(pipeline, prepared.columns, prepared.features, prepared.labels, known)
    return AuditedModel(model, trained, audit, prepared, settings)
