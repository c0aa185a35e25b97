"""A table split into rows to train on, to choose by and to judge on, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.cli import output
from fairgrad.measures import uses_desirable
from fairgrad.membership import Membership, MembershipModel
from fairgrad.splitting import SplitRows, three_parts
from fairgrad.tables.column import ReadingReport
from fairgrad.tables.features import check_columns, describe_groups
from fairgrad.tables.reading import column_names, may_exceed, read_table, table_name
from fairgrad.tables.roles import check_named, number_column
from fairgrad.tables.values import MISSING_TEXTS, counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.cli.request import FitRequest
    from fairgrad.tables.encoder import TableEncoder
    from fairgrad.tables.features import TableFeature
    from fairgrad.tables.roles import ColumnRoles, LabelledTable
    from fairgrad.tables.sample import TableSample


MANY_UNKNOWN = 0.2
"""Beyond this share of unknown groups, rows count in every group by its probability; below it they
are set aside, as the gain would not be worth the time."""

SMALL_TABLE, FOLDS = 2_000, 5
"""Tables with fewer rows are audited by cross-validation: a fifth of them would settle nothing."""

LEAST_ROWS = 10
"""Fewer rows cannot be divided into three parts."""


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

    def cut(self, rows: slice) -> EncodedRows:
        """Consecutive rows, without a copy of the matrix."""
        weight = None if self.weight is None else self.weight[rows]
        return EncodedRows(self.X[rows], self.y.iloc[rows], self.s.iloc[rows], weight)


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table split into three parts and encoded; the table itself is no longer needed.

    Attributes:
        rest: training rows, then validation rows: one matrix, of which both are views.
        n_training: how many of these are training rows.
        n_rows: how many rows the table has; those of a test file are not among them.
        n_test: how many rows the audit is about.
        test: the rows to audit on, or some of them if there are too many; no model is trained on
            them or chosen by them, but where there are folds, which then stand for it.
        test_rows: their numbers in the table, or in the table of --test, from 0.
        encoder: the fitted encoder of features.
        labels: values of the target, the desirable one last.
        columns: the role of each column.
        notes: what the reader should know about the table.
        groups: what is known of the sensitive columns, for a model that looks at them.
        folds: the same table divided for cross-validation; none if test rows are held out.
        sample: how the rows were drawn from a table that was too large; None for all rows.
    """

    rest: EncodedRows
    n_training: int
    n_rows: int
    n_test: int
    test: EncodedRows
    test_rows: NDArray[Any]
    encoder: TableEncoder
    labels: list[str]
    columns: ColumnRoles
    notes: tuple[str, ...]
    groups: Sequence[TableFeature] = ()
    folds: tuple[PreparedTable, ...] = ()
    sample: TableSample | None = None

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


def read_prepared(request: FitRequest, folder: Path) -> PreparedTable:
    """Reads the table, or a sample of its rows if there are more than are to be trained on.

    The folder is for large files of text, and needed as long as the table is.
    """
    table, options = request.table, request.reading
    sampled = _sampled(request, folder)
    if isinstance(sampled, PreparedTable):
        return sampled
    if request.key:
        raise ValueError("--key has no effect: the table is not sampled; leave it out")
    names = [name for name in column_names(table, options) if name not in request.columns.drop]
    with output.progress_bar(1.0, "reading") as bar:
        frame = read_table(table, names, options=options, done=bar.update)
    taken = {text for texts in ReadingReport.of(frame).gaps.values() for text in texts}
    unused = [text for text in options.missing if text not in taken]
    if unused:
        raise ValueError(f"--missing names {unused[0]!r}, which is not a value of the table")
    if not sampled and len(frame) * (1 - request.test_size) > request.train_rows:
        sampled = f"All {len(frame):,} rows are used: --train-rows has no effect on such files."
    prepared = prepare(frame, request)
    return replace(prepared, notes=(sampled, *prepared.notes)) if sampled else prepared


def _sampled(request: FitRequest, folder: Path) -> PreparedTable | str | None:
    """A sample of a table; None if it is small, and the reason if duckdb cannot read it."""
    table, options = request.table, request.reading
    test = 0.0 if request.test else request.test_size
    if not may_exceed(table, options, request.train_rows, test):
        return None
    from fairgrad.tables import sample  # noqa: PLC0415 - for large tables only
    from fairgrad.tables.scan import ScanError  # noqa: PLC0415 - as above

    try:
        if not sample.needs_sample(table, options, request.train_rows, test):
            return None
        for name, value in {"--folds": request.folds, "--weight": request.weight}.items():
            if value:
                raise ValueError(
                    f"{name} needs all rows in memory, and {table_name(table)} has more than "
                    f"{request.train_rows:,}; leave it out, or give more --train-rows"
                )
        hashed = {"seed": request.seed, "test": test, "key": request.key}
        rows = sample.large_table(table, options, folder, **hashed)
        frame, drawn = sample.draw_sample(rows, request.columns, request.train_rows)
        return prepare(frame, request, drawn)
    except ScanError as reason:
        return f"All rows of {table_name(table)} are read: {reason}."


def prepare(
    frame: pd.DataFrame, request: FitRequest, sample: TableSample | None = None
) -> PreparedTable:
    """Splits a table by label and group: by default 60 % training, 20 % validation, 20 % test rows.

    Args:
        frame: the table, without the columns to drop.
        request: what was asked.
        sample: how the rows of the table were drawn; None if these are all rows.
    """
    columns = replace(request.columns, drop=())
    weight = None if request.weight is None else _weights(frame, request.weight)
    table = frame if weight is None else frame.drop(columns=request.weight)
    people = columns.apply(table, is_only=request.test is None)
    _check_people(people, columns, request)
    numbers = people.rows

    def split_table(rows: SplitRows) -> PreparedTable:
        """The table split in this way; medians and ranges are those of training and validation."""
        rest_rows = np.concatenate([rows.train, rows.validation])
        encoder = people.encoder.narrowed(people.features, rest_rows)

        def encoded(subset: NDArray[Any]) -> EncodedRows:
            matrix = encoder.encode(people.features, subset)
            its_weight = None if weight is None else weight[numbers[subset]]
            return EncodedRows(matrix, people.labels(subset), people.groups(subset), its_weight)

        rest, notes, groups = encoded(rest_rows), people.notes, []
        if sample is not None:
            rest = rest._replace(weight=sample.weights(rest.y, rest.s))
            notes = (*sample.sentences, *notes)
        if columns.use_sensitive:
            groups = describe_groups(people.sensitive, frame, columns.bins)
        return PreparedTable(
            rest=rest,
            n_training=len(rows.train),
            n_rows=len(people) if sample is None else sample.n_rows,
            n_test=len(rows.test) if sample is None else sample.n_held_out,
            test=encoded(rows.test),
            test_rows=numbers[rows.test],
            encoder=encoder,
            labels=people.values,
            columns=columns,
            notes=notes,
            groups=groups,
            sample=sample,
        )

    if request.test is not None:
        return _with_test_file(split_table(people.split(request.seed, 0.0)), request, request.test)
    if sample is not None:  # the rows to judge on are held out already
        judged = sample.is_judged[numbers]
        rest = np.flatnonzero(~judged)
        rows = three_parts(people.cell[rest], request.seed, test=0.0)
        return split_table(
            SplitRows(rest[rows.train], rest[rows.validation], np.flatnonzero(judged))
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


def group_membership(X: Any, y: pd.Series, s: pd.DataFrame) -> Membership | None:
    """Probabilities of the groups, if one attribute is unknown for many rows; else None."""
    unknown = s.isna().mean()
    names = unknown.index[unknown > MANY_UNKNOWN]
    if len(names) != 1:
        return None
    model = MembershipModel()
    if s[names[0]].value_counts().min() < model.n_folds:
        return None
    return Membership(model.fit_predict(X, s[names[0]], y), attribute=names[0])
