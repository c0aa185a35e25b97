"""A table split into rows to train on, to choose by and to judge on, as numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.cli.request import JudgingPlan
from fairgrad.measures import uses_desirable
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.cli.request import ModelSettings
    from fairgrad.tables.encoding import TrainedFeature
    from fairgrad.tables.roles import ColumnRoles, LabelledTable


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
