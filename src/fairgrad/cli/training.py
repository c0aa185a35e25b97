"""From a table to an audited model: split its rows, train several models, choose and audit one."""

from __future__ import annotations

import gc
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import parallel_config

from fairgrad.audit import Audit, SeenRows, likeliest
from fairgrad.audit.certificate import LIKELY
from fairgrad.audit.counts import mean_costs
from fairgrad.audit.verdicts import tolerated_ratio
from fairgrad.aware import to_predict
from fairgrad.cli import output
from fairgrad.cli.folder import BASELINE, PREDICTED, SavedModel, provenance, same_data
from fairgrad.cli.request import TREES, audit_tolerance, guessed_desirable, usual_measures
from fairgrad.columns import counted
from fairgrad.frontier import Frontier, epsilon_grid
from fairgrad.frontier.models import point_merit
from fairgrad.measures import uses_desirable
from fairgrad.membership import group_membership
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.splitting import SplitRows, three_parts
from fairgrad.tables.column import MISSING_TEXTS, ReadingReport
from fairgrad.tables.features import check_columns, describe_groups
from fairgrad.tables.reading import column_names, may_exceed, read_table, table_name
from fairgrad.tables.roles import check_named, number_column
from fairgrad.usefulness import (
    MOST_SLACK,
    SAME_DECISIONS,
    TOLERATED_LOSS,
    FairnessWarning,
    Suggestions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from fairgrad.cli.request import FitRequest
    from fairgrad.tables.encoder import TableEncoder
    from fairgrad.tables.features import TableFeature
    from fairgrad.tables.roles import ColumnRoles, LabelledTable
    from fairgrad.tables.sample import TableSample

SMALL_TABLE, FOLDS = 2_000, 5
"""Tables with fewer rows are audited by cross-validation: a fifth of them would settle nothing."""

LEAST_ROWS = 10
"""Fewer rows cannot be divided into three parts."""

TERMS = {
    "min_group=0": ("--min-group 0", "a minimum size of 0"),
    "min_group": ("--min-group", "the minimum size of groups"),
    "No epsilon": ("No --tolerance", "No tolerance"),
    "No tolerance": ("No --tolerance", "No tolerance"),
    "larger epsilon": ("--tolerance instead of --exact", "tolerance instead of exact fairness"),
    "larger tolerance": ("larger --tolerance", "larger tolerance"),
    "epsilon=": ("--tolerance ", "The tolerance of "),
    "epsilon": ("--tolerance", "tolerance"),
    "use_sensitive=True": ("--use-sensitive", "sensitive values as inputs"),
    "max_unfairness": ("--max-unfairness", "bound on unfairness"),
    "max |F|": ("max |F|", "largest gap"),
}
"""Words in the library's sentences about a fit, and those of the program and of its pages.

Readers of report and model card may not use the program.
"""

N_TREES = 300

STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Epsilons that `fit` trains with, in parts of the largest."""

MANY_ROWS = 100_000
"""Beyond which memory is worth the time of looking for it."""


class EncodedRows(NamedTuple):
    """Rows as a classifier takes them.

    Attributes:
        X: (n, columns).
        y: (n,) labels as texts, named after the target.
        s: (n, attributes) sensitive values.
        weight: (n,) sample weights; None if all rows weigh the same.
    """

    X: NDArray[np.float32]
    y: pd.Series
    s: pd.DataFrame
    weight: NDArray[np.float64] | None = None

    def part(self, rows: slice) -> EncodedRows:
        """Some of the rows, as views of these."""
        weight = None if self.weight is None else self.weight[rows]
        return EncodedRows(self.X[rows], self.y.iloc[rows], self.s.iloc[rows], weight)


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table split into three parts and encoded; the table itself is no longer needed.

    Attributes:
        X: the features of all rows but those of the test: the other two parts are views of it.
        training: the rows that models learn from.
        validation: the rows that models are chosen by.
        test: the rows to audit on, or some of them if there are too many; no model is trained on
            them or chosen by them, but where there are folds, which then stand for it.
        test_rows: their numbers in the table, or in the table of --test, from 0.
        n_rows: how many rows the table has; those of a test file are not among them.
        n_test: how many rows the audit is about.
        encoder: the fitted encoder of features.
        labels: values of the target, the desirable one last.
        desirable: the desirable label; None if there are more than two and none was named.
        columns: the role of each column.
        notes: what the reader should know about the table.
        groups: what is known of the sensitive columns, for a model that looks at them.
        folds: the same table divided for cross-validation; none if test rows are held out.
        sample: how the rows were drawn from a table that was too large; None for all rows, or if
            the test rows are those of another table.
    """

    X: NDArray[np.float32]
    training: EncodedRows
    validation: EncodedRows
    test: EncodedRows
    test_rows: NDArray[Any]
    n_rows: int
    n_test: int
    encoder: TableEncoder
    labels: list[str]
    desirable: str | None
    columns: ColumnRoles
    notes: tuple[str, ...]
    groups: Sequence[TableFeature] = ()
    folds: tuple[PreparedTable, ...] = ()
    sample: TableSample | None = None


@dataclass(frozen=True, eq=False)
class TrainedModels:
    """The classifiers.

    Attributes:
        fair: the one chosen.
        plain: the one trained for accuracy alone.
        frontier: all models, if they are to be shown.
        chosen: the position of the chosen one among them.
        notes: warnings raised by the training.
        faults: what is wrong with the chosen model, with the names of options.
        page_faults: the same for report and model card.
    """

    fair: Any
    plain: Any
    frontier: Frontier | None
    chosen: int
    notes: tuple[str, ...]
    faults: tuple[str, ...]
    page_faults: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A model with its audit on the test rows.

    Attributes:
        model: the model to save.
        trained: the classifiers.
        audit: of the fair model, compared with the plain one.
        prepared: what they were trained on.
        settings: the settings of the run.
        judged: predictions for the test rows; None if they were counted.
        notes: what the reader should know about the table and the training.
        mean_costs: what a prediction of each model costs on the test rows; empty without costs.
    """

    model: SavedModel
    trained: TrainedModels
    audit: Audit
    prepared: PreparedTable
    settings: FitRequest
    judged: pd.DataFrame | None
    notes: tuple[str, ...]
    mean_costs: dict[str, float]


def read_prepared(request: FitRequest, folder: Path) -> PreparedTable:
    """Reads the table, or a sample of its rows if there are more than are to be trained on.

    The folder is for large files of text, and needed as long as the table is.
    """
    table, options, wanted = request.table, request.reading, request.train_rows
    test, note = 0.0 if request.test else request.test_size, ""
    names = column_names(table, options)
    if may_exceed(table, len(names), wanted, test):
        from fairgrad.tables import sample  # noqa: PLC0415 - for large tables only
        from fairgrad.tables.scan import ScanError  # noqa: PLC0415 - as above

        try:
            if sample.needs_sample(table, options, wanted, test):
                for name, value in {"--folds": request.folds, "--weight": request.weight}.items():
                    if value:
                        raise ValueError(
                            f"{name} needs all rows in memory, and {table_name(table)} has more "
                            f"than {wanted:,}; leave it out, or give more --train-rows"
                        )
                hashed = {"seed": request.seed, "test": test, "key": request.key}
                rows = sample.large_table(table, options, folder, **hashed)
                frame, drawn = sample.draw_sample(rows, request.columns, wanted)
                return prepare(frame, request, drawn)
        except ScanError as reason:
            note = f"All rows of {table_name(table)} are read: {reason}."
    if request.key:
        raise ValueError("--key has no effect: the table is not sampled; leave it out")
    used = [name for name in names if name not in request.columns.drop]
    with output.progress_bar(1.0, "reading") as bar:
        frame = read_table(table, used, options=options, done=bar.update)
    taken = {text for texts in ReadingReport.of(frame).gaps.values() for text in texts}
    unused = [text for text in options.missing if text not in taken]
    if unused:
        raise ValueError(f"--missing names {unused[0]!r}, which is not a value of the table")
    if not note and len(frame) * (1 - request.test_size) > wanted:
        note = f"All {len(frame):,} rows are used: --train-rows has no effect on such files."
    prepared = prepare(frame, request)
    return replace(prepared, notes=(note, *prepared.notes)) if note else prepared


def prepare(
    frame: pd.DataFrame, request: FitRequest, sample: TableSample | None = None
) -> PreparedTable:
    """Splits a table by label and group: by default 60 % training, 20 % validation, 20 % test rows.

    Args:
        frame: the table, without the columns to drop.
        request: the request.
        sample: how the rows of the table were drawn; None if these are all rows.
    """
    columns = replace(request.columns, drop=())
    weight = None if request.weight is None else _weights(frame, request.weight)
    table = frame if weight is None else frame.drop(columns=request.weight)
    people = columns.apply(table, is_only=request.test is None)
    _check_people(people, columns, request)
    numbers, labels = people.rows, people.label.astype(object)

    def split_table(rows: SplitRows) -> PreparedTable:
        """The table split in this way; medians and ranges are those of training and validation."""
        rest_rows = np.concatenate([rows.train, rows.validation])
        encoder = people.encoder.narrowed(people.features, rest_rows)
        remaining, test = (
            EncodedRows(
                encoder.encode(people.features, selected),
                labels.iloc[selected].reset_index(drop=True),
                people.sensitive.iloc[selected].reset_index(drop=True),
                None if weight is None else weight[numbers[selected]],
            )
            for selected in (rest_rows, rows.test)
        )
        if sample is not None:
            remaining = remaining._replace(weight=sample.weights(remaining.y, remaining.s))
        n, uses_groups = len(rows.train), columns.use_sensitive
        return PreparedTable(
            X=remaining.X,
            training=remaining.part(slice(n)),
            validation=remaining.part(slice(n, None)),
            test=test,
            test_rows=numbers[rows.test],
            n_rows=len(people) if sample is None else sample.n_rows,
            n_test=len(rows.test) if sample is None else sample.n_held_out,
            encoder=encoder,
            labels=people.values,
            desirable=columns.desirable(people.values),
            columns=columns,
            notes=people.notes if sample is None else (*sample.sentences, *people.notes),
            groups=describe_groups(people.sensitive, frame, columns.bins) if uses_groups else [],
            sample=sample,
        )

    if request.test is not None:
        return _with_test_file(split_table(people.split(request.seed, 0.0)), request, request.test)
    if sample is not None:  # the rows to judge on are held out already
        judged = sample.is_judged[numbers]
        remaining = np.flatnonzero(~judged)
        rows = three_parts(people.cell[remaining], request.seed, test=0.0)
        return split_table(
            SplitRows(remaining[rows.train], remaining[rows.validation], np.flatnonzero(judged))
        )
    n_folds = request.folds
    if n_folds is None:
        n_folds = FOLDS if len(people) < SMALL_TABLE else 0
    if not n_folds:
        return split_table(people.split(request.seed, request.test_size))
    folds = [split_table(rows) for rows in people.folds(request.seed, n_folds)]
    everyone = people.split(request.seed, 0.0)
    tested = np.sort(np.concatenate([fold.test_rows for fold in folds]))
    judged = np.searchsorted(numbers, tested)
    note = (
        f"The audit is a cross-validation: {len(tested):,} rows, each predicted by one of "
        f"{n_folds} models that was not trained on it. The model that is saved is trained on all "
        "rows in the same way."
    )
    if len(tested) < len(people):
        note += (
            f" {len(people) - len(tested):,} rows are not audited: each is the only one of its "
            "label and group, so a model that is not trained on it has never seen such a row."
        )
    prepared = split_table(SplitRows(everyone.train, everyone.validation, judged))
    return replace(prepared, folds=tuple(folds), notes=(*prepared.notes, note))


def _weights(frame: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """(n,) sample weights, all above 0."""
    weight = number_column(frame, column, "--weight")
    wrong = int((~(weight > 0)).sum())
    if wrong:
        raise ValueError(
            f"--weight: {column!r} is missing or not above 0 in {counted(wrong, 'row')}; every row "
            "needs a weight"
        )
    return weight


def _with_test_file(prepared: PreparedTable, request: FitRequest, file: str) -> PreparedTable:
    """The same, with the rows of another file for the test."""
    encoder, columns, options = prepared.encoder, prepared.columns, request.reading
    names, weights = column_names(file, options), [request.weight] if request.weight else []
    columns.check(names)
    check_named(weights, names, "--weight")
    check_columns(names, encoder.features_)
    needed = [columns.target, *columns.sensitive, *encoder.columns_, *weights]
    # Dates are read as in training.
    frame = read_table(file, needed, options=options, texts=encoder.date_columns_)
    label, groups, kept = columns.test_rows(frame, prepared.labels)
    features, odd = encoder.read(frame.iloc[kept])
    name = table_name(file)
    notes = [f"{name}: {sentence}" for sentence in odd.sentences()]
    if len(kept) < len(frame):
        n = counted(len(frame) - len(kept), "row")
        notes.append(f"{name}: {n} left out (no {columns.target}).")
    weight = _weights(frame, weights[0])[kept] if weights else None
    return replace(
        prepared,
        test=EncodedRows(encoder.encode(features), label, groups, weight),
        test_rows=kept,
        n_test=len(kept),
        notes=(*prepared.notes, *notes),
        sample=None,  # how training rows were drawn does not matter for these
    )


def _check_people(people: LabelledTable, columns: ColumnRoles, request: FitRequest) -> None:
    """Refuses what could only fail after training."""
    if len(people) < LEAST_ROWS:
        raise ValueError(
            f"the table has {counted(len(people), 'row')} with a value of {columns.target!r}; at "
            f"least {LEAST_ROWS} are needed to train, choose and judge a model"
        )
    labels = people.values
    request.cost_matrix(labels)
    for measure in request.measures if len(labels) > 2 else ():
        if uses_desirable(measure) and columns.y_desirable is None:
            # A label such as NA is often no label at all.
            gap = next((label for label in labels if label in MISSING_TEXTS), None)
            hint = "" if gap is None else f"; use --missing {gap} if it means a missing value"
            raise ValueError(
                f"--measure {measure} needs the desirable value of {columns.target!r}; set "
                f"--desirable to one of {', '.join(labels)}{hint}"
            )


def fit_prepared(prepared: PreparedTable, request: FitRequest) -> AuditedModel:
    """Trains the models asked for, and audits the chosen one on the test rows."""
    source = provenance(request.table, request.test)
    if request.test is not None and same_data(request.test, source):
        name = table_name(request.test)
        warning = f"{name} is also the training table: the audit is of known rows."
        prepared = replace(prepared, notes=(*prepared.notes, warning))
    folds = []
    for number, fold in enumerate(prepared.folds, start=1):
        output.progress(f"Cross-validation: model {number} of {len(prepared.folds)}")
        folds.append(judge(fold, train(fold, request), number))
    output.progress("Training models from exactly fair to unconstrained")
    trained = train(prepared, request)
    output.progress("Auditing the model on the test rows")
    sample, epsilon = prepared.sample, float(trained.fair.epsilon)
    same = ("separate", "tolerance", "exact", "max_unfairness", "min_accuracy", "model", "seed")
    model = SavedModel(
        prepared.encoder,
        trained.fair,
        prepared.columns,
        prepared.labels,
        settings={
            **{name: getattr(request, name) for name in (*same, "weight")},
            **{name: list(getattr(request, name)) for name in ("layers", "within", "measures")},
            "epsilon": epsilon if np.isfinite(epsilon) else None,
            "costs": dict(request.costs),
            "desirable": prepared.desirable,
        },
        groups=prepared.groups,
        missing=request.reading.missing,
        provenance=source,
        held_out={} if sample is None else sample.table.hashes,
        seen=SeenRows.of(prepared.X),
    )
    test, judged = prepared.test, None
    further: dict[str, Any]
    if sample is not None:  # counted by what models predict
        from fairgrad.cli.counted import counted_people  # noqa: PLC0415 - for large tables only

        models = [replace(model, classifier=c) for c in (trained.fair, trained.plain)]
        table, columns = sample.table, prepared.columns
        needed = dict.fromkeys([columns.target, *columns.sensitive, *model.needed])
        held_out = table.held_out(list(needed))
        people = counted_people(held_out, models, table.source.name, request.reading, columns)
        frame = people.frame
        rows = (people.truth(), frame[PREDICTED], people.columns.groups(frame, people.times))
        further = {"sample_weight": people.counts}
    else:
        frame = pd.concat(folds or [judge(prepared, trained)]).sort_values("row", ignore_index=True)
        judged = frame
        rows = (test.y, frame["prediction"], test.s)
        scores = frame[[f"probability of {name}" for name in sorted(prepared.labels)]].to_numpy()
        membership = group_membership(test.X, test.y, test.s)
        further = {"sample_weight": test.weight, "y_score": scores, "membership": membership}
    audit = audit_as_asked(
        prepared,
        request,
        *rows,
        baseline=frame[BASELINE],
        others=usual_measures(prepared.desirable),
        baseline_name="the plain model",
        remarks=guessed_desirable(prepared.columns, prepared.labels),
        **further,
    )
    costs = request.cost_matrix(audit.labels)
    audits: dict[str, Any] = {} if costs is None else {"fair": audit, "plain": audit.baseline}
    return AuditedModel(
        model,
        trained,
        audit,
        prepared,
        request,
        judged,
        notes=(*prepared.notes, *trained.notes),
        mean_costs={
            name: float(mean_costs(model_audit.table.mass.sum(axis=0), np.array(costs)))
            for name, model_audit in audits.items()
        },
    )


def judge(prepared: PreparedTable, trained: TrainedModels, fold: int = 0) -> pd.DataFrame:
    """What the models predict for the test rows; rows and folds are counted from 1."""
    test, fair, plain = prepared.test, trained.fair, trained.plain
    known = to_predict(fair, test.s)
    columns: dict[str, Any] = {"row": prepared.test_rows + 1}
    columns |= {"fold": fold} if fold else {}
    columns["prediction"] = fair.predict(test.X, **known)
    columns[BASELINE] = plain.predict(test.X, **to_predict(plain, test.s))
    scores = dict(zip(map(str, fair.classes_), fair.predict_proba(test.X, **known).T, strict=True))
    columns |= {f"probability of {name}": scores[name] for name in sorted(scores)}
    return pd.DataFrame(columns)


def train(prepared: PreparedTable, request: FitRequest) -> TrainedModels:
    """Trains models from exactly fair to unconstrained, and chooses one on the validation rows.

    Networks are trained in one pass, and decisions use the same boosted trees.
    """
    if len(prepared.training.y) > MANY_ROWS:
        gc.collect()  # the table is gone by now: its memory is for the training
    epsilons = _epsilons(prepared, request)
    if request.points is None:  # the last one tells whether a larger tolerance would help
        epsilons = np.union1d(epsilons, MOST_SLACK / 2)
    else:
        further = request.points - len(epsilons) + 2  # the grid has the least and the largest, too
        epsilons = np.union1d(epsilons, epsilon_grid(further, with_plain=True))
    estimator, rows = _estimator(prepared, request), prepared.training
    frontier = Frontier(estimator, epsilons=epsilons, random_state=request.seed, n_jobs=-1)
    # Only frontiers that are shown have figures of the test rows.
    shows_test = request.points and not prepared.folds
    with (
        warnings.catch_warnings(record=True) as caught,
        parallel_config(backend="threading"),  # boosting mostly runs outside of Python's lock
    ):
        warnings.simplefilter("always", UserWarning)
        frontier.fit(
            rows.X,
            rows.y,
            sensitive_features=rows.s,
            sample_weight=rows.weight,
            membership=group_membership(rows.X, rows.y, rows.s),
            validation=prepared.validation,
            test=prepared.test if shows_test else None,
        )
        chosen = _choose(frontier, prepared, request)
    models, judged = frontier.estimators_, frontier.audits_["validation"]
    # Exactly this class: subclasses are libraries' hints to programmers.
    notes = [str(w.message) for w in caught if w.category is UserWarning]
    if prepared.columns.use_sensitive:
        notes.append(_awareness_note(models[chosen], prepared.columns.sensitive))
    # The last one is plain: its epsilon is infinite.
    if not prepared.folds and (judged.predicted[chosen] == judged.predicted[-1]).all():
        notes.append(f"{SAME_DECISIONS} on all validation rows: fairness changes nothing here.")
    faults = dict.fromkeys(str(w.message) for w in caught if w.category is FairnessWarning)
    return TrainedModels(
        models[chosen],
        models[-1],
        frontier if request.points is not None else None,
        chosen,
        notes=tuple(map(in_terms, dict.fromkeys(notes))),
        faults=tuple(map(in_terms, faults)),
        page_faults=tuple(in_terms(fault, on_pages=True) for fault in faults),
    )


def in_terms(sentence: str, *, on_pages: bool = False) -> str:
    """A sentence with the `TERMS` of the program, all replaced at once: none is replaced again."""
    pattern = "|".join(map(re.escape, TERMS))
    return re.sub(pattern, lambda match: TERMS[match[0]][on_pages], sentence)


def _epsilons(prepared: PreparedTable, request: FitRequest) -> NDArray[np.float64]:
    """The epsilons that `fit` trains with, and `frontier` among others; infinity is plain.

    The largest but infinity is the tolerance. If all rates are at least a ratio of the highest,
    none is further from the overall rate m than ``(1 - ratio) m / ratio``. Rates of a fair model
    are about those of the labels.
    """
    ratio = tolerated_ratio(request.tolerance)
    if ratio is None:
        largest = float(request.tolerance)
    else:
        rate = float((prepared.training.y == prepared.desirable).mean())
        largest = (1 - ratio) * rate / ratio
    steps = STEPS[:1] if request.exact else STEPS
    return np.unique([*(largest * np.array(steps)), np.inf])


def _choose(frontier: Frontier, prepared: PreparedTable, request: FitRequest) -> int:
    """The position of the model that was asked for; warns if something is wrong with it.

    By default it is the most accurate model that is likely to be judged fair on the test rows.
    `frontier` trains further models, which are only shown: it chooses the one that `fit` does.

    If too few validation rows make any model likely, their noise should not choose: half of the
    tolerance is then the epsilon. On 12 splits of four tables half of the tolerance was more
    accurate than the model with the best chance to pass (.766 against .758 by demographic parity)
    and was judged fair about as often (6 against 7 times).

    Nor is the likely model taken if it is more than a point less accurate than that one: often only
    the exactly fair model is likely. In 28 fits of 14 unfamiliar tables (demographic parity, a
    tolerance of .1) test accuracy rose from .754 to .764 so, and as many models were judged fair.
    """
    if request.max_unfairness is not None or request.min_accuracy is not None:
        return frontier.choose(  # which warns
            max_unfairness=request.max_unfairness, min_accuracy=request.min_accuracy
        )
    if request.exact:
        frontier.warn_of_fault(0, "epsilon", 0.0, _enough(frontier, 0.0))
        return 0
    wanted = _epsilons(prepared, request)
    offered = np.flatnonzero(np.isin(frontier.points_["epsilon"], wanted))
    rows, judged = prepared.validation, frontier.audits_["validation"]
    audits = [
        audit_as_asked(
            prepared,
            request,
            rows.y,
            judged.labels[predicted],
            rows.s,
            sample_weight=rows.weight,
        )
        for predicted in judged.predicted[offered]
    ]
    offers = frontier.points_.iloc[offered]
    position = int(np.abs(offers["epsilon"] - wanted[-2] / 2).argmin())
    with suppress(ValueError):  # nothing is more accurate than one label for everybody
        costs = request.cost_matrix(audits[0].labels)
        candidacy = likeliest(audits, prepared.n_test, costs)
        merit = point_merit(offers, "validation_").to_numpy()
        most = 1.0 if costs is None else float(np.max(costs))
        loss = (merit[position] - merit[candidacy.position]) / most
        # A ratio of rates says too little about epsilons to fall back on half of it.
        is_clear = candidacy.chance >= LIKELY and loss <= TOLERATED_LOSS / 2
        if is_clear or isinstance(request.tolerance, str):
            position = candidacy.position
    chosen = int(offered[position])
    # A ratio is the law's or a contract's: no other one is advised.
    tolerance = request.tolerance if isinstance(request.tolerance, float) else 0.0
    enough = _enough(frontier, tolerance) if tolerance else 0.0
    frontier.warn_of_fault(chosen, "tolerance", tolerance, enough)
    return chosen


def _enough(frontier: Frontier, tolerance: float) -> float:
    """The least larger tolerance known to give a model without a fault; infinity if none is.

    A fit falls back to a model of half its tolerance, so that model must have none.
    """
    judged, tried = frontier.audits_["validation"], 2 * frontier.points_["epsilon"].to_numpy()
    for position in np.flatnonzero((tried > tolerance) & (tried <= MOST_SLACK)):
        asked = Suggestions(asked=float(tried[position]))
        if judged.fault(int(position), len(tried) - 1, asked) is None:
            return float(tried[position])
    return np.inf if tolerance < MOST_SLACK else tolerance


def audit_as_asked(
    prepared: PreparedTable, request: FitRequest, y: Any, predicted: Any, s: Any, **others: Any
) -> Audit:
    """An audit by the measures and the tolerance that were asked for."""
    return Audit(
        y,
        predicted,
        s,
        measures=request.measure_on(),
        tolerance=audit_tolerance(request.tolerance, request.measures),
        min_group=request.min_group,
        y_desirable=prepared.desirable,
        labels=list(prepared.labels),
        **others,
    )


def _awareness_note(model: Any, sensitive: Sequence[str]) -> str:
    """What the reader should know of a model that uses sensitive columns to predict."""
    note = f"The model uses {' and '.join(sensitive)} to predict; check that the law allows it."
    if isinstance(model, FairGradClassifier) and model.levels_unknown_ is not None:
        known, unknown = (np.nanmean(np.abs(f)) for f in (model.levels_, model.levels_unknown_))
        note += (
            " If no value were known, its unfairness in training would be "
            f"{unknown:.3f} instead of {known:.3f}."
        )
    return note


def _estimator(prepared: PreparedTable, request: FitRequest) -> Any:
    """An unfitted linear model or network, or unfitted fair decisions on boosted trees."""
    shared = {
        "fairness_measure": request.measure_on(),
        "y_desirable": prepared.desirable,
        "min_group": request.min_group,
        "use_sensitive": prepared.columns.use_sensitive,
        "cost_matrix": request.cost_matrix(sorted(prepared.labels)),
        "random_state": request.seed,
        "verbose": "auto" if output.shows_progress() else False,
    }
    if request.model in TREES:
        return FairDecisionClassifier(boosted_trees(request, len(prepared.training.y)), **shared)
    further: dict[str, Any] = {} if request.epochs is None else {"max_iter": request.epochs}
    if request.layers:  # the paper's: without these, deep ones swing too much to be made fair
        further |= {"hidden_layer_sizes": request.layers, "dropout": 0.2}
    return FairGradClassifier(**shared, **further)


def boosted_trees(request: FitRequest, n_rows: int) -> Any:
    """An unfitted classifier whose trees fit little of the noise, so that fairness carries over.

    Leaves hold at least 100 rows; in small tables a two-hundredth of the rows, but at least 20.
    """
    leaf_rows = min(100, max(20, n_rows // 200))
    shared = {"n_estimators": request.epochs or N_TREES, "random_state": request.seed}
    library = import_module(f"fairgrad.{request.model}")  # optional
    if request.model == "xgboost":
        return library.FairGradXGBClassifier(
            None,
            **shared,
            max_leaves=15,
            max_depth=0,
            grow_policy="lossguide",
            # A row's hessian is at most a quarter.
            min_child_weight=leaf_rows / 4,
            learning_rate=0.1,
            colsample_bytree=0.3,
            n_jobs=1,
            verbosity=0,
        )
    return library.FairGradLGBMClassifier(
        None,
        **shared,
        num_leaves=15,
        min_child_samples=leaf_rows,
        colsample_bytree=0.3,
        deterministic=True,
        force_row_wise=True,
        n_jobs=0,  # as many threads as OpenMP is told to use
        verbose=-1,
    )
