"""From a table to trained models, and to their audit on rows that took no part in the training."""

from __future__ import annotations

import gc
import re
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from joblib import parallel_config
from sklearn.pipeline import Pipeline

from fairgrad.audit import Audit, Candidacy, Certificate, likeliest
from fairgrad.audit.counts import mean_costs
from fairgrad.aware import to_predict
from fairgrad.cli.folder import SavedModel
from fairgrad.cli.provenance import Provenance, same_data
from fairgrad.cli.request import (
    METHODS,
    JudgingPlan,
    guessed_desirable,
    read_options,
    read_plan,
    read_tolerance,
    usual_measures,
)
from fairgrad.dual import check_costs
from fairgrad.evaluate import fairness_levels
from fairgrad.frontier import Frontier
from fairgrad.groups import MIN_GROUP
from fairgrad.measures import uses_desirable
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier, fit_variants
from fairgrad.splitting import SplitRows
from fairgrad.tables.dialect import ReadingOptions
from fairgrad.tables.encoding import (
    check_columns,
    describe_features,
    describe_groups,
    encode_rows,
    fitted_encoder,
    read_features,
)
from fairgrad.tables.reading import column_names, read_table, table_name
from fairgrad.tables.values import MISSING_TEXTS, counted
from fairgrad.training import fairest_of_accurate
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.cli.request import ModelSettings
    from fairgrad.tables.encoding import TrainedFeature
    from fairgrad.tables.roles import ColumnRoles, LabelledTable

FAULT_OPTIONS = {
    "min_group=0": "--min-group 0",
    "min_group": "--min-group",
    "epsilon=": "--epsilon ",
    "epsilon": "--epsilon",
    "use_sensitive=True": "--use-sensitive",
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


class RowTotals(NamedTuple):
    """How many rows a table has, and what they are used for.

    Attributes:
        table: all of them; those of a test file are not among them.
        training: models learn from them.
        validation: models are chosen by them.
        test: models are audited on them.
        folds: how many parts they are divided into for cross-validation; 0 for none.
        from_file: whether the test rows are those of a file of their own.
    """

    table: int
    training: int
    validation: int
    test: int
    folds: int = 0
    from_file: bool = False


class TableFacts(Protocol):
    """What is told of a table after a training, whether it was held in memory or not."""

    @property
    def columns(self) -> ColumnRoles:
        """The role of each column."""

    @property
    def features(self) -> list[TrainedFeature]:
        """What is known of each feature."""

    @property
    def labels(self) -> list[str]:
        """Values of the target, the desirable one last."""

    @property
    def desirable(self) -> str | None:
        """The desirable label; None if there are several and none was named."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the table."""

    @property
    def encoder(self) -> Any:
        """The fitted encoder of features."""

    @property
    def groups(self) -> Sequence[TrainedFeature]:
        """What is known of the sensitive columns, for a model that looks at them."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Texts that mean a missing value."""

    @property
    def totals(self) -> RowTotals:
        """How many rows there are."""

    @property
    def held_out(self) -> dict[str, Any]:
        """How the test rows can be found again, if no file names them."""


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table split into three parts and encoded; the table itself is no longer needed.

    Attributes:
        rest: training rows, then validation rows: one matrix, of which both are views.
        n_training: how many of these are training rows.
        test: the rows to audit on; no model is trained on them or chosen by them, but where
            there are folds, which then stand for it.
        test_rows: their numbers in the table, or in the table of --test, from 0.
        encoder: the fitted encoder of features.
        features: what is known of each feature.
        labels: values of the target, the desirable one last.
        columns: the role of each column.
        notes: what the reader should know about the table.
        groups: what is known of the sensitive columns, for a model that looks at them.
        folds: the same table divided for cross-validation; none if test rows are held out.
        from_file: whether the test rows are those of a file of their own.
        missing: texts that mean a missing value.
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
    groups: Sequence[TrainedFeature] = ()
    folds: tuple[PreparedTable, ...] = ()
    from_file: bool = False
    missing: tuple[str, ...] = ()

    @property
    def held_out(self) -> dict[str, Any]:
        """Nothing: a file names the test rows."""
        return {}

    @property
    def totals(self) -> RowTotals:
        """How many rows there are."""
        n_rest, n_test = len(self.rest), len(self.test_rows)
        others = 0 if self.folds or self.from_file else n_test
        n_validation = n_rest - self.n_training
        folds, own = len(self.folds), (self.n_training, n_validation, n_test)
        return RowTotals(n_rest + others, *own, folds, self.from_file)

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


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Test rows, and what models that were not trained on them predict.

    Attributes:
        rows: (n,) their numbers in the table, from 0.
        y: (n,) their labels.
        s: (n, attributes) their sensitive values.
        predicted: (n,) labels.
        scores: (n, labels) probabilities, labels in the order of their names.
        plain: (n,) predictions of the plain model; None if there is none.
        fold: (n,) the number of the model, in cross-validation from 1; else 0.
        labels: names of the columns of `scores`.
    """

    rows: NDArray[Any]
    y: pd.Series
    s: pd.DataFrame
    predicted: NDArray[Any]
    scores: NDArray[Any]
    plain: NDArray[Any] | None
    fold: NDArray[Any]
    labels: tuple[str, ...]

    @classmethod
    def pooled(cls, parts: Sequence[JudgedRows]) -> JudgedRows:
        """Those of all folds, in the order of the table."""
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)

        def joined(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])[order]

        def stacked(name: str) -> Any:
            whole = pd.concat([getattr(part, name) for part in parts], ignore_index=True)
            return whole.iloc[order].reset_index(drop=True)

        return cls(
            rows[order],
            stacked("y"),
            stacked("s"),
            joined("predicted"),
            joined("scores"),
            None if parts[0].plain is None else joined("plain"),
            joined("fold"),
            parts[0].labels,
        )

    def to_frame(self) -> pd.DataFrame:
        """To be written: the numbers of the rows, counted from 1, and what was predicted."""
        columns: dict[str, Any] = {"row": self.rows + 1}
        columns |= {"fold": self.fold} if self.fold.any() else {}
        columns["prediction"] = self.predicted
        columns |= {} if self.plain is None else {"prediction of the plain model": self.plain}
        # Of one model they can be computed again; those of cross-validation are nowhere else.
        scores = self.scores if self.fold.any() else self.scores.round(6)
        for place, name in enumerate(self.labels):
            columns[f"probability of {name}"] = scores[:, place]
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A model with its audit on the test rows.

    Attributes:
        model: the model to save.
        trained: the classifiers.
        audit: of the fair model, compared with the plain one if there is one.
        prepared: what they were trained on.
        settings: what was asked.
        judged: the test rows; None if they were counted.
        source: what the result rests on.
    """

    model: SavedModel
    trained: TrainedModels
    audit: Audit
    prepared: TableFacts
    settings: ModelSettings
    judged: JudgedRows | None
    source: Provenance

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the table and the training."""
        return (*self.prepared.notes, *self.trained.notes)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the model by the rows of its fit; nothing, if it is of use."""
        return self.trained.faults

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

    @property
    def mean_costs(self) -> dict[str, float]:
        """What a prediction costs on the test rows, of both models; empty without costs."""
        costs = self.settings.cost_matrix(self.audit.labels)
        if costs is None:
            return {}
        audits = {"fair": self.audit, "plain": self.audit.baseline}
        return {
            name: float(mean_costs(one.table.mass.sum(axis=0), np.array(costs)))
            for name, one in audits.items()
            if one is not None
        }

    @property
    def certificate(self) -> Certificate | None:
        """Whether the model is certified; None if that was not asked for."""
        candidacy = self.trained.candidacy
        return None if candidacy is None else Certificate(self.audit, candidacy)


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
    table, options, plan = given["table"], read_options(given), read_plan(given)
    progress(f"Reading {table_name(table)}")
    source = Provenance.of(table, plan.file)
    wanted = [name for name in column_names(table, options) if name not in columns.drop]
    # The table is not kept: `train` needs its memory.
    prepared = prepare(
        read_table(table, wanted, options=options),
        columns.without_drop(),
        settings,
        plan,
        options,
    )
    verdict = {"tolerance": read_tolerance(given), "min_group": given["min_group"]}
    how: dict[str, Any] = {
        "as_frontier": as_frontier,
        "with_plain": not given.get("no_plain", False),
        "judged": verdict,
    }
    folds = []
    for number, fold in enumerate(prepared.folds, start=1):
        progress(f"Cross-validation: model {number} of {len(prepared.folds)}")
        folds.append(judge(fold, train(fold, settings, progress=_silent, **how), number))
    if plan.file is not None and same_data(plan.file, source.to_dict()):
        if settings.certify:
            raise ValueError(
                f"--certify needs rows that no model has seen; {table_name(plan.file)} is also the "
                "training table"
            )
        said = f"{table_name(plan.file)} is also the training table: the audit is of known rows."
        prepared = replace(prepared, notes=(*prepared.notes, said))
    trained = train(prepared, settings, progress=progress, **how)
    progress("Auditing the model on the test rows")
    judged = JudgedRows.pooled(folds) if folds else None
    return audit_models(prepared, settings, trained, judged, source, **verdict)


def _silent(_: str) -> None:
    """Cross-validation says what it does by itself."""


def prepare(
    frame: pd.DataFrame,
    columns: ColumnRoles,
    settings: ModelSettings,
    plan: JudgingPlan | None = None,
    options: ReadingOptions | None = None,
) -> PreparedTable:
    """Splits a table by label and group: by default 60 % training, 20 % validation, 20 % test rows.

    Args:
        frame: the table.
        columns: the role of each column.
        settings: how to train.
        plan: which rows to judge on.
        options: how files are read, for the table of --test.
    """
    plan, options = plan or JudgingPlan(), options or ReadingOptions()
    people = columns.apply(frame)
    check_desirable(people.values, columns, settings)
    settings.cost_matrix(people.values)  # refused before anything is trained
    whole = _WholeTable(frame, people, columns, options)
    n_folds = plan.folds_of(len(people))
    if plan.file is not None:
        return whole.with_test_file(plan.file, people.split(settings.seed, 0.0))
    if not n_folds:
        return whole.part(people.split(settings.seed, plan.share))
    folds = [whole.part(rows) for rows in people.folds(settings.seed, n_folds)]
    everyone = people.split(settings.seed, 0.0)
    tested = np.sort(np.concatenate([fold.test_rows for fold in folds]))
    judged = np.searchsorted(whole.numbers, tested)
    note = (
        f"The audit is a cross-validation: {len(tested):,} rows, each predicted by one of "
        f"{n_folds} models that was not trained on it. The model that is saved is trained on all "
        "rows in the same way."
    )
    prepared = whole.part(SplitRows(everyone.train, everyone.validation, judged))
    return replace(prepared, folds=tuple(folds), notes=(*prepared.notes, note))


@dataclass(frozen=True, eq=False)
class _WholeTable:
    """A table that is about to be split."""

    frame: pd.DataFrame
    people: LabelledTable
    columns: ColumnRoles
    options: ReadingOptions

    @property
    def numbers(self) -> NDArray[Any]:
        """(n,) the number of each row in the file."""
        rows = self.people.rows
        return np.arange(len(self.people)) if rows is None else rows

    def part(self, rows: SplitRows) -> PreparedTable:
        """The table split in this way; medians and ranges are those of training and validation."""
        people = self.people
        rest_rows = np.concatenate([rows.train, rows.validation])
        features = describe_features(people.features, self.frame, rest_rows, people.dates)
        encoder = fitted_encoder(features)

        def encoded(part: NDArray[Any]) -> EncodedRows:
            matrix = encode_rows(encoder, people.features, part)
            return EncodedRows(matrix, people.labels(part), people.groups(part))

        return PreparedTable(
            rest=encoded(rest_rows),
            n_training=len(rows.train),
            test=encoded(rows.test),
            test_rows=self.numbers[rows.test],
            encoder=encoder,
            features=features,
            labels=people.values,
            columns=self.columns,
            notes=people.all_notes,
            groups=describe_groups(people.sensitive, self.frame, self.columns.bins)
            if self.columns.use_sensitive
            else (),
            missing=self.options.missing,
        )

    def with_test_file(self, file: str, rows: SplitRows) -> PreparedTable:
        """All rows for training and validation; those of another file for the test."""
        prepared = self.part(rows)
        frame = read_features_table(file, self.columns, prepared.features, self.options)
        label, groups, kept = self.columns.test_rows(frame, prepared.labels)
        features, odd = read_features(frame.iloc[kept], prepared.features, self.options.missing)
        name = table_name(file)
        said = [f"{name}: {sentence}" for sentence in odd.sentences()]
        if len(kept) < len(frame):
            n = counted(len(frame) - len(kept), "row")
            said.append(f"{name}: {n} left out (no {self.columns.target}).")
        return replace(
            prepared,
            test=EncodedRows(encode_rows(prepared.encoder, features), label, groups),
            test_rows=kept,
            notes=(*prepared.notes, *said),
            from_file=True,
        )


def read_features_table(
    table: Any,
    columns: ColumnRoles,
    features: Sequence[TrainedFeature],
    options: ReadingOptions,
    further: Sequence[str] = (),
) -> pd.DataFrame:
    """A later table with the columns a model needs; dates as texts, to be read as in training."""
    names = column_names(table, options)
    columns.check(names)
    check_columns(names, features)
    needed = [columns.target, *columns.sensitive, *further, *(f.column for f in features)]
    dates = [f.column for f in features if f.date is not None]
    return read_table(table, needed, options=options, texts=list(dict.fromkeys(dates)))


def check_desirable(labels: list[str], columns: ColumnRoles, settings: ModelSettings) -> None:
    """Refuses what could only fail after training."""
    n = len(labels)
    for measure in settings.measures if n > 2 else ():
        if uses_desirable(measure) and columns.y_desirable is None:
            raise ValueError(
                f"--measure {measure} needs the desirable value of {columns.target!r}; set "
                f"--desirable to one of {', '.join(labels)}{_missing_hint(labels)}"
            )


def _missing_hint(labels: Sequence[str]) -> str:
    """A label such as NA is often no label at all."""
    found = next((label for label in labels if label in MISSING_TEXTS), None)
    return "" if found is None else f"; use --missing {found} if it means a missing value"


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
            audits.append(_audit(prepared, settings, rows.y, predicted, rows.s, **judged))
    costs = settings.cost_matrix(audits[0].labels)
    candidacy = likeliest(audits, len(prepared.test), costs)
    which, place = divmod(candidacy.position, len(audits) // len(frontiers))
    chosen = frontiers[which]
    models, plain = chosen.estimators_, int(chosen.points_["epsilon"].argmax())
    return TrainedModels(models[place], models[plain], chosen, place, candidacy=candidacy)


def _audit(
    prepared: TableFacts, settings: ModelSettings, y: Any, predicted: Any, s: Any, **others: Any
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


def network(prepared: TableFacts, settings: ModelSettings, **parameters: Any) -> FairGradClassifier:
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


def judge(prepared: PreparedTable, trained: TrainedModels, fold: int = 0) -> JudgedRows:
    """What the models predict for the test rows."""
    test, classes = prepared.test, trained.fair.classes_
    scores = trained.fair.predict_proba(test.X, **to_predict(trained.fair, test.s))
    plain = trained.plain
    return JudgedRows(
        prepared.test_rows,
        test.y,
        test.s,
        classes[scores.argmax(axis=1)],
        scores[:, np.argsort(classes.astype(str))],  # as the audit sorts its labels
        None if plain is None else plain.predict(test.X, **to_predict(plain, test.s)),
        np.full(len(test), fold),
        tuple(sorted(map(str, classes))),
    )


def audit_models(
    prepared: PreparedTable,
    settings: ModelSettings,
    trained: TrainedModels,
    judged: JudgedRows | None = None,
    source: Provenance | None = None,
    *,
    tolerance: Any,
    min_group: float = MIN_GROUP,
) -> AuditedModel:
    """Audits the fair model on the test rows, compared with the plain one.

    Args:
        prepared: the rows.
        settings: what was asked.
        trained: the models.
        judged: predictions of cross-validation; None for those of the models.
        source: what the result rests on.
        tolerance: as the audit takes it.
        min_group: groups of fewer rows are shown and not judged.
    """
    judged = judged or judge(prepared, trained)
    audit = full_audit(
        prepared,
        settings,
        (judged.y, judged.predicted, judged.s),
        tolerance=tolerance,
        baseline=judged.plain,
        y_score=judged.scores,
        min_group=min_group,
    )
    return audited(prepared, settings, trained, audit, judged, source)


def full_audit(
    prepared: TableFacts, settings: ModelSettings, rows: tuple[Any, Any, Any], **others: Any
) -> Audit:
    """The audit that is kept with a model: the usual measures stand beside those asked for.

    Args:
        prepared: what is known of the table.
        settings: what was asked.
        rows: labels, predictions and sensitive values.
        **others: of the audit.
    """
    return _audit(
        prepared,
        settings,
        *rows,
        others=usual_measures(prepared.desirable),
        baseline_name="the plain model",
        remarks=guessed_desirable(prepared.columns, prepared.labels),
        **others,
    )


def audited(
    prepared: TableFacts,
    settings: ModelSettings,
    trained: TrainedModels,
    audit: Audit,
    judged: JudgedRows | None,
    source: Provenance | None,
) -> AuditedModel:
    """The model to save, with its audit.

    Args:
        prepared: what it was trained on.
        settings: what was asked.
        trained: the models.
        audit: of the fair one.
        judged: the rows of the audit; None if they were counted.
        source: what the result rests on.
    """
    epsilon = float(trained.fair.epsilon)
    same = ("separate", "max_unfairness", "min_accuracy", "model", "method", "seed")
    known = {
        **{name: getattr(settings, name) for name in same},
        "epsilon": epsilon if np.isfinite(epsilon) else None,
        "hidden": list(settings.hidden),
        "given": list(settings.given),
        "costs": dict(settings.costs),
        "measures": list(settings.measures),
        "desirable": prepared.desirable,
    }
    if trained.candidacy is not None:
        known["certificate"] = Certificate(audit, trained.candidacy).to_dict()
    pipeline = Pipeline([("features", prepared.encoder), ("classifier", trained.fair)])
    source = source or Provenance.of(())
    model = SavedModel(
        pipeline,
        prepared.columns,
        prepared.features,
        prepared.labels,
        known,
        prepared.groups,
        prepared.missing,
        source.to_dict(),
        prepared.held_out,
    )
    return AuditedModel(model, trained, audit, prepared, settings, judged, source)
