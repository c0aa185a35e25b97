"""Audits of tables of any size, and ``fairgrad sql``: who counts rows, and by what.

duckdb counts large tables where they lie, a warehouse runs our query, or the user has counts. What
an audit needs is the same in all cases, and as if the rows had been read: `AuditedPeople`.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pandas as pd

from fairgrad.audit.counts import RowCounts
from fairgrad.cli import output
from fairgrad.cli.folder import BASELINE, PREDICTED, STORED, check_judged_on
from fairgrad.cli.people import (
    AuditedPeople,
    gathered,
    model_columns,
    model_predictions,
    read_people,
)
from fairgrad.cli.request import AuditRequest, read_columns, read_options
from fairgrad.tables.column import ReadingReport, cut_names
from fairgrad.tables.features import Oddities, TableFeature, read_groups
from fairgrad.tables.reading import (
    column_names,
    database_table,
    is_parquet,
    parquet_size,
    pieces,
    table_bytes,
    table_files,
    table_name,
    typed_table,
)
from fairgrad.tables.sample import cell_query, large_table, planned
from fairgrad.tables.scan import MOST_COMBINATIONS, CountedAnswer, ScanError, open_scan
from fairgrad.tables.sql import LEAST, N_ROWS, SQUARES, CountQuery, SampleQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairgrad.cli.folder import SavedModel
    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.reading import TableSource
    from fairgrad.tables.roles import ColumnRoles

MOST_WAITING = 64
"""Pieces whose counts wait to be added."""

LARGE_TABLE, LARGE_TEXT = 100_000_000, 1 << 30
"""Values of Parquet files, or bytes of text files, from which on rows are not held."""


def audited_people(request: AuditRequest) -> AuditedPeople:
    """The rows of a table with predictions, counted; read if duckdb would read them otherwise."""
    table = request.table
    if request.counts:
        answer = read_counts(table, request.columns, request.further, request.reading)
        return _gather(answer, table_name(table), request.columns, request.further)
    try:
        query = count_query(request)
        bar = output.progress_bar(100, "Counting rows")
        with open_scan(table, request.reading) as scan, bar:
            request.columns.check(scan.names, request.further)
            scan.tell = bar.update
            answer = scan.count(query)
            return _gather(answer, scan.name, request.columns, request.further)
    except ScanError as reason:
        if database_table(table) is not None:
            raise ValueError(f"{table_name(table)}: {reason}") from None
        note = f"{table_name(table)} is read row by row: {reason}."
    people = read_people(request)
    people.notes.append(note)
    return people


def count_query(request: AuditRequest) -> CountQuery:
    """What to count for an audit of a table with predictions.

    Raises:
        ScanError: if single rows are needed.
    """
    columns, further = request.columns, request.further
    score = further.get("score")
    if score is not None and (request.threshold is None or "prediction" in further):
        raise ScanError("--score with --prediction needs the score of every row")
    cells = cell_query(columns)
    predicted = [further["prediction"]] if "prediction" in further else []
    query = replace(
        cells,
        keys=tuple(dict.fromkeys([*cells.keys, *predicted])),
        score=None if score is None else (score, float(request.threshold or 0)),
        weight=further.get("weight"),
        over=(request.time, request.period) if request.time else None,
    )
    numeric = [*query.bins, score, query.weight, request.time]
    apart = [name for name in (*query.keys, *numeric) if name is not None]
    if len(set(apart)) < len(apart):
        raise ScanError("one column has two roles")
    return query


def _gather(
    answer: CountedAnswer,
    table: str,
    columns: ColumnRoles,
    further: Mapping[str, str],
    models: Sequence[SavedModel] = (),
) -> AuditedPeople:
    frame, weight = answer.frame, None
    if "weight" in further:
        weight = frame[further["weight"]].to_numpy(dtype=np.float64)
    counts = RowCounts(answer.times.astype(np.float64), weight, answer.squares)
    return gathered(frame, ReadingReport.of(frame), table, columns, further, models, counts)


def read_counts(
    table: TableSource,
    columns: ColumnRoles,
    further: Mapping[str, str],
    reading: ReadingOptions,
) -> CountedAnswer:
    """A table of counts, such as a warehouse's answer to the query of `fairgrad sql counts`."""
    names = column_names(table, reading)
    columns.check(names, further)
    weighted = [SQUARES, LEAST] if "weight" in further else []
    needed = [N_ROWS, *weighted]
    lacking = [name for name in needed if name not in names]
    if lacking:
        raise ValueError(
            f"--counts: {table_name(table)} has no column {lacking[0]!r}; expected the answer to "
            "the query of `fairgrad sql counts`"
        )
    kept = list(dict.fromkeys([columns.target, *columns.sensitive, *further.values(), *needed]))
    raw = pd.concat(list(pieces(table, kept, kept, options=reading)), ignore_index=True)
    numbers = {name: _numbers(raw[name], table) for name in needed}
    if (numbers[N_ROWS] % 1 != 0).any():
        raise ValueError(f"--counts: {N_ROWS} contains fractions; expected whole numbers")
    is_used = numbers[N_ROWS] > 0
    raw = raw[is_used].reset_index(drop=True)
    numbers = {name: values[is_used] for name, values in numbers.items()}
    if not len(raw):
        raise ValueError(f"{table_name(table)} has no rows")
    times = numbers[N_ROWS].astype(np.int64)
    report = ReadingReport(missing=reading.missing)
    frame = typed_table(raw.drop(columns=needed).items(), report, times=times)
    if "score" in further and not set(frame[further["score"]].dropna()) <= {0, 1}:
        raise ValueError(
            f"--counts: {further['score']!r} holds scores; the query of `fairgrad sql counts` "
            "gives 1 where the score reaches the threshold, and 0 elsewhere"
        )
    return CountedAnswer(frame, times, raw, numbers.get(SQUARES))


def _numbers(column: pd.Series, table: TableSource) -> Any:
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    if column.name != N_ROWS:  # the rows without a weight have none
        numbers = np.where(column.isna(), 0.0, numbers)
    if not (numbers >= 0).all():
        raise ValueError(
            f"--counts: {column.name} of {table_name(table)} is "
            f"{column[~(numbers >= 0)].iloc[0]!r} in a row; a number of at least 0 is needed"
        )
    return numbers


def predicted_people(model: SavedModel, request: AuditRequest) -> AuditedPeople:
    """The rows of a table, with what a model predicts for them: counted, or held.

    Counted rows have no scores: curves, calibration and thresholds rest on the score of every row.

    Raises:
        ValueError: if rows must be counted, and an option needs single ones.
    """
    per_row = ("score", "weight", "cluster", "time", "search")
    needs = [name for name in per_row if getattr(request, name)]
    columns = model_columns(model, request)
    if request.held_out and model.held_out:
        if needs:
            raise ValueError(
                f"--{needs[0]} needs single rows, but the rows held out for this model are "
                "counted; leave out one of the two"
            )
    elif needs or request.held_out or not _is_large(request.table):
        people = read_people(replace(request, columns=columns), [model])
        in_order = np.argsort(np.asarray(model.labels, dtype=str))  # as the audit sorts labels
        stored = [f"{STORED}probability of {model.labels[i]}" for i in in_order]
        if stored[0] in people.frame:  # by models that were not kept
            people.predicted = people.frame[f"{STORED}prediction"].to_numpy(dtype=object)
            people.further["y_score"] = people.frame[stored].to_numpy(dtype=np.float64)
            people.asked["Model"] = ", cross-validated"
        else:
            people.predicted, scores = model_predictions(model, people, request.reading.missing)
            people.further["y_score"] = scores[:, in_order]
        return people
    table, reading = request.table, request.reading
    columns.check(column_names(table, reading))
    reading = replace(reading, missing=(*reading.missing, *model.missing))
    needed = list(dict.fromkeys([columns.target, *columns.sensitive, *model.needed]))
    with tempfile.TemporaryDirectory() as folder:
        if request.held_out:
            check_judged_on(table, model)
            rows = large_table(table, reading, Path(folder), **model.held_out).held_out(needed)
        else:
            rows = pieces(table, needed, texts=True, options=reading)
        people = counted_people(rows, [model], table_name(table), reading, columns)
    people.predicted = people.frame[PREDICTED].to_numpy(dtype=object)
    return people


def _is_large(table: TableSource) -> bool:
    """Whether a table is so large that its rows should not be held."""
    files = table_files(table)
    if not all(is_parquet(path) for path in files):
        return table_bytes(table) >= LARGE_TEXT
    return parquet_size(files)[1] >= LARGE_TABLE


def counted_people(
    rows: Iterable[pd.DataFrame],
    models: Sequence[SavedModel],
    table: str,
    reading: ReadingOptions,
    columns: ColumnRoles,
) -> AuditedPeople:
    """Rows counted by what they hold and what models predict for them.

    Args:
        rows: pieces of a table.
        models: one or two; their predictions are the columns `PREDICTED` and `BASELINE`.
        table: the name of the table.
        reading: what the user says about its files.
        columns: the role of each column.
    """
    model = models[0]
    keys = [columns.target, *columns.sensitive]
    predicted = [PREDICTED, BASELINE][: len(models)]
    cut = [TableFeature(name, "number", has_gaps=True) for name in columns.bins]
    odd, report = Oddities(), ReadingReport()
    waiting: list[pd.DataFrame] = []
    with output.progress_bar(1.0, "Predicting") as bar:
        n_rows = 0
        for piece in rows:
            report.note_piece(piece)
            wanted = piece[keys].astype(object)
            groups, _ = read_groups(piece, cut, columns.bins, reading.missing)
            wanted = wanted.assign(**{str(name): groups[name].astype(object) for name in groups})
            for name, one in zip(predicted, models, strict=True):
                wanted[name], _, oddities = one.predict(piece, reading.missing)
                odd.update(oddities if one is model else {})
            waiting.append(
                wanted.groupby([*keys, *predicted], dropna=False).size().reset_index(name=N_ROWS)
            )
            n_rows += len(piece)
            bar.text = f"{n_rows:,} rows"
            bar.update(piece.attrs.get("done", 0.0))
            if len(waiting) == MOST_WAITING:
                waiting = [_added(waiting, [*keys, *predicted])]
    if not waiting:
        raise ValueError(f"{table} has no rows to judge on")
    counts = _added(waiting, [*keys, *predicted])
    times = counts[N_ROWS].to_numpy(dtype=np.int64)
    report.missing = reading.missing
    uncut = [name for name in keys if name not in columns.bins]
    frame = typed_table(counts[uncut].items(), report, times=times)
    for name, edges in columns.bins.items():
        frame[name] = pd.Categorical(counts[name], categories=pd.Index(cut_names(edges)))
    for name in predicted:
        frame[name] = counts[name].to_numpy(dtype=object)
    people = _gather(CountedAnswer(frame, times, counts), table, columns, {}, [model])
    people.notes += odd.sentences()
    return people


def _added(counts: Sequence[pd.DataFrame], keys: list[str]) -> pd.DataFrame:
    """Counts of several pieces together."""
    joined = pd.concat(counts, ignore_index=True)
    sums = joined.groupby(keys, dropna=False, sort=False)[N_ROWS].sum().reset_index()
    if len(sums) > MOST_COMBINATIONS:
        raise ValueError(
            f"there are more than {MOST_COMBINATIONS:,} combinations of the values of "
            f"{', '.join(keys[:-1])}; a group needs many rows, so name other columns"
        )
    return sums


def print_counts(params: dict[str, Any]) -> int:
    """Prints the query that counts the rows of a table in a warehouse for an audit."""
    table, dialect = params["table"], params["dialect"]
    request = AuditRequest.from_options({**params, "table": (table,)})
    if request.prediction or request.score or not (request.target and request.columns.sensitive):
        request.check_columns()
    try:
        click.echo(count_query(request).sql(table, dialect), nl=False)
    except ScanError as reason:
        raise ValueError(f"fairgrad sql: {reason}") from None
    return 0


def print_sample(params: dict[str, Any]) -> int:
    """Prints the query that draws a sample of a table in a warehouse to train on."""
    columns, key = read_columns(params), tuple(params["key"])
    if not key:
        raise ValueError("--key is missing; name the columns that identify a row")
    counted = (params["counts"],)
    answer = read_counts(counted, columns, {}, read_options(params, counted))
    query = SampleQuery(cell_query(columns), key=key, seed=params["seed"], test=params["test_size"])
    drawn, _ = planned(query, answer, columns, params["train_rows"])
    click.echo(drawn.sql(params["table"], params["dialect"]), nl=False)
    return 0
