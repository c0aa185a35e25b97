"""A table split into rows to train on, to choose by and to judge on, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.measures import uses_desirable
from fairgrad.membership import Membership, MembershipModel
from fairgrad.splitting import SplitRows, three_parts
from fairgrad.tables.features import check_columns, describe_groups
from fairgrad.tables.reading import column_names, read_table, table_name
from fairgrad.tables.roles import check_named, number_column
from fairgrad.tables.sample import draw_sample, large_table, needs_sample
from fairgrad.tables.scan import ScanError
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

LEAST_ROWS = 10
"""Fewer rows cannot be divided into three parts."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
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

    def __len__(self) -> int:
        return len(self.y)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Features, labels, sensitive values and weights, as ``validation`` takes them."""
        return (self.X, self.y, self.s, self.weight)

    @property
    def groups(self) -> dict[str, Any]:
        """The sensitive values and weights, as ``fit`` takes them."""
        return {"sensitive_features": self.s, "sample_weight": self.weight}

    @cached_property
    def membership(self) -> Membership | None:
        """Probabilities of the groups, if one attribute is unknown for many rows; else None."""
        unknown = self.s.isna().mean()
        names = unknown.index[unknown > MANY_UNKNOWN]
        model = MembershipModel()
        if len(names) != 1 or self.s[names[0]].value_counts().min() < model.n_folds:
            return None
        found = model.fit_predict(self.X, self.s[names[0]], self.y)
        return Membership(found, attribute=names[0])

    def cut(self, rows: slice) -> EncodedRows:
        """Consecutive rows, without a copy of the matrix."""
        weight = None if self.weight is None else self.weight[rows]
        return EncodedRows(self.X[rows], self.y.iloc[rows], self.s.iloc[rows], weight)


class RowTotals(NamedTuple):
    """How many rows a table has, and what they are used for.

    Attributes:
        table: all of them; those of a test file are not among them. If the table was too large,
            models are trained on a sample of them.
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


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table split into three parts and encoded; the table itself is no longer needed.

    Attributes:
        rest: training rows, then validation rows: one matrix, of which both are views.
        n_training: how many of these are training rows.
        test: the rows to audit on, or some of them if there are too many; no model is trained on
            them or chosen by them, but where there are folds, which then stand for it.
        test_rows: their numbers in the table, or in the table of --test, from 0.
        encoder: the fitted encoder of features.
        labels: values of the target, the desirable one last.
        columns: the role of each column.
        notes: what the reader should know about the table.
        groups: what is known of the sensitive columns, for a model that looks at them.
        folds: the same table divided for cross-validation; none if test rows are held out.
        from_file: whether the test rows are those of a file of their own.
        missing: texts that mean a missing value.
        sample: how the rows were drawn from a table that was too large; None for all rows.
    """

    rest: EncodedRows
    n_training: int
    test: EncodedRows
    test_rows: NDArray[Any]
    encoder: TableEncoder
    labels: list[str]
    columns: ColumnRoles
    notes: tuple[str, ...]
    groups: Sequence[TableFeature] = ()
    folds: tuple[PreparedTable, ...] = ()
    from_file: bool = False
    missing: tuple[str, ...] = ()
    sample: TableSample | None = None

    @property
    def totals(self) -> RowTotals:
        """How many rows there are."""
        n_rest, n_test = len(self.rest), len(self.test_rows)
        if self.sample is not None:
            n_test = n_test if self.from_file else self.sample.n_held_out
            sizes = (self.n_training, n_rest - self.n_training, n_test)
            return RowTotals(self.sample.n_rows, *sizes, from_file=self.from_file)
        others = 0 if self.folds or self.from_file else n_test
        n_validation = n_rest - self.n_training
        folds, sizes = len(self.folds), (self.n_training, n_validation, n_test)
        return RowTotals(n_rest + others, *sizes, folds, self.from_file)

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

    Args:
        request: what was asked.
        folder: for large files of text; it is needed as long as the table is.
    """
    table, options, columns = request.table, request.reading, request.columns
    test, reason_read = (0.0 if request.test else request.test_size), ""
    try:
        if needs_sample(table, options, request.train_rows, test):
            for name, value in {"--folds": request.folds, "--weight": request.weight}.items():
                if value:
                    raise ValueError(
                        f"{name} needs all rows in memory, and {table_name(table)} has more than "
                        f"{request.train_rows:,}; leave it out, or give more --train-rows"
                    )
            hashed = {"seed": request.seed, "test": test, "key": request.key}
            rows = large_table(table, options, folder, **hashed)
            frame, sample = draw_sample(rows, columns, request.train_rows)
            return prepare(frame, request, sample)
    except ScanError as reason:
        reason_read = f"All rows of {table_name(table)} are read: {reason}."
    if request.key:
        raise ValueError("--key has no effect: the table is not sampled; leave it out")
    names = [name for name in column_names(table, options) if name not in columns.drop]
    # The table is not kept: `train` needs its memory.
    prepared = prepare(read_table(table, names, options=options), request)
    return replace(prepared, notes=(reason_read, *prepared.notes)) if reason_read else prepared


def prepare(
    frame: pd.DataFrame, request: FitRequest, sample: TableSample | None = None
) -> PreparedTable:
    """Splits a table by label and group: by default 60 % training, 20 % validation, 20 % test rows.

    Args:
        frame: the table, without the columns to drop.
        request: what was asked.
        sample: how the rows of the table were drawn; None if these are all rows.
    """
    columns = request.columns.without_drop()
    weight = None if request.weight is None else _weights(frame, request.weight)
    people = columns.apply(frame if weight is None else frame.drop(columns=request.weight))
    if len(people) < LEAST_ROWS:
        raise ValueError(
            f"the table has {counted(len(people), 'row')} with a value of {columns.target!r}; at "
            f"least {LEAST_ROWS} are needed to train, choose and judge a model"
        )
    check_desirable(people.values, columns, request.measures)
    request.cost_matrix(people.values)  # refused before anything is trained
    whole = _WholeTable(frame, people, columns, request, weight, sample)
    if request.test is not None:
        return whole.with_test_file(request.test, people.split(request.seed, 0.0))
    if sample is not None:  # the rows to judge on are held out already
        assert people.rows is not None  # noqa: S101 - `apply` sets it
        judged = sample.is_judged[people.rows]
        rest = np.flatnonzero(~judged)
        rows = three_parts(people.cell[rest], request.seed, test=0.0)
        return whole.part(
            SplitRows(rest[rows.train], rest[rows.validation], np.flatnonzero(judged))
        )
    n_folds = request.folds_of(len(people))
    if not n_folds:
        return whole.part(people.split(request.seed, request.test_size))
    folds = [whole.part(rows) for rows in people.folds(request.seed, n_folds)]
    everyone = people.split(request.seed, 0.0)
    tested = np.sort(np.concatenate([fold.test_rows for fold in folds]))
    judged = np.searchsorted(whole.numbers, tested)
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
    prepared = whole.part(SplitRows(everyone.train, everyone.validation, judged))
    return replace(prepared, folds=tuple(folds), notes=(*prepared.notes, note))


def _weights(frame: pd.DataFrame, column: str) -> NDArray[np.float64]:
    """(n,) sample weights, all above 0.

    Raises:
        ValueError: if a row has none.
    """
    weight = number_column(frame, column, "--weight")
    wrong = int((~(weight > 0)).sum())
    if wrong:
        raise ValueError(
            f"--weight: {column!r} is missing or not above 0 in {counted(wrong, 'row')}; every row "
            "needs a weight"
        )
    return weight


@dataclass(frozen=True, eq=False)
class _WholeTable:
    """A table that is about to be split."""

    frame: pd.DataFrame
    people: LabelledTable
    columns: ColumnRoles
    request: FitRequest
    weight: NDArray[np.float64] | None = None
    sample: TableSample | None = None

    @property
    def numbers(self) -> NDArray[Any]:
        """(n,) the number of each row in the file."""
        rows = self.people.rows
        return np.arange(len(self.people)) if rows is None else rows

    def part(self, rows: SplitRows) -> PreparedTable:
        """The table split in this way; medians and ranges are those of training and validation."""
        people, sample = self.people, self.sample
        rest_rows = np.concatenate([rows.train, rows.validation])
        encoder = people.encoder.narrowed(people.features, rest_rows)

        def encoded(subset: NDArray[Any]) -> EncodedRows:
            matrix = encoder.encode(people.features, subset)
            weight = None if self.weight is None else self.weight[self.numbers[subset]]
            return EncodedRows(matrix, people.labels(subset), people.groups(subset), weight)

        rest = encoded(rest_rows)
        if sample is not None:
            rest = replace(rest, weight=sample.weights(rest.y, rest.s))
        return PreparedTable(
            rest=rest,
            n_training=len(rows.train),
            test=encoded(rows.test),
            test_rows=self.numbers[rows.test],
            encoder=encoder,
            labels=people.values,
            columns=self.columns,
            notes=(*(() if sample is None else sample.sentences), *people.all_notes),
            groups=describe_groups(people.sensitive, self.frame, self.columns.bins)
            if self.columns.use_sensitive
            else (),
            missing=self.request.reading.missing,
            sample=sample,
        )

    def with_test_file(self, file: str, rows: SplitRows) -> PreparedTable:
        """All rows for training and validation; those of another file for the test."""
        prepared = self.part(rows)
        encoder, columns, options = prepared.encoder, self.columns, self.request.reading
        names, test_names = (
            column_names(file, options),
            [self.request.weight] if self.request.weight else [],
        )
        columns.check(names)
        check_named(test_names, names, "--weight")
        check_columns(names, encoder.features_)
        needed = [columns.target, *columns.sensitive, *encoder.columns_, *test_names]
        # Dates are read as in training.
        frame = read_table(file, needed, options=options, texts=encoder.date_columns_)
        label, groups, kept = columns.test_rows(frame, prepared.labels)
        features, odd = encoder.read(frame.iloc[kept])
        name = table_name(file)
        notes = [f"{name}: {sentence}" for sentence in odd.sentences()]
        if len(kept) < len(frame):
            n = counted(len(frame) - len(kept), "row")
            notes.append(f"{name}: {n} left out (no {columns.target}).")
        weight = _weights(frame, test_names[0])[kept] if test_names else None
        return replace(
            prepared,
            test=EncodedRows(encoder.encode(features), label, groups, weight),
            test_rows=kept,
            notes=(*prepared.notes, *notes),
            from_file=True,
        )


def check_desirable(labels: list[str], columns: ColumnRoles, measures: Sequence[str]) -> None:
    """Refuses what could only fail after training."""
    for measure in measures if len(labels) > 2 else ():
        if uses_desirable(measure) and columns.y_desirable is None:
            # A label such as NA is often no label at all.
            gap = next((label for label in labels if label in MISSING_TEXTS), None)
            hint = "" if gap is None else f"; use --missing {gap} if it means a missing value"
            raise ValueError(
                f"--measure {measure} needs the desirable value of {columns.target!r}; set "
                f"--desirable to one of {', '.join(labels)}{hint}"
            )
