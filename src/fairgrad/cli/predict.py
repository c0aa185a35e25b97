"""``fairgrad predict``: a model's predictions for a table, a few thousand rows at a time."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairgrad.cli import output
from fairgrad.cli.folder import check_file, check_folder, load_model
from fairgrad.cli.request import read_options, refuse_idle
from fairgrad.columns import without_formulas
from fairgrad.files import naming, whole_file, whole_folder
from fairgrad.tables.features import Oddities
from fairgrad.tables.reading import (
    PARQUET_ENDINGS,
    column_names,
    import_library,
    is_parquet,
    parquet_files,
    parquet_size,
    pieces,
    plain_frame,
    refuse_columns,
    table_files,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairgrad.cli.folder import SavedModel
    from fairgrad.progress import ProgressBar
    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.reading import ParquetFile, TableSource

    Piece = tuple[pd.DataFrame, pd.DataFrame, Any]
    """A few thousand rows with unchanged texts; the new columns; and the rows as an Arrow table, if
    they come from a Parquet file, else None."""

SCHEMA, SCHEMA_VERSION = "fairgrad.predict", 1
ENDINGS = (".csv", ".csv.gz", ".tsv", *PARQUET_ENDINGS)
MARK = "_fairgrad.json"
"""A file of a folder of predictions that says who wrote it; readers of folders pass over it."""


def predict(params: dict[str, Any]) -> int:
    """Predicts the rows of a table with a model."""
    table, out, force = params["table"], params["out"], params["force"]
    # A folder is named by a slash at its end, or because there is one.
    to_folder = out is not None and (out.endswith(("/", os.sep)) or Path(out).expanduser().is_dir())
    target = None
    if out is None:
        if params["as_json"]:
            raise ValueError("--json needs --out, as the predictions themselves are not JSON")
        refuse_idle(params, ["force"], "without --out")
    elif to_folder:
        target = check_folder(out, force=force, mark=MARK, known=None)
    elif out.lower().endswith(ENDINGS):
        target = check_file(out, force=force)
    else:
        raise ValueError(
            f"--out is {out!r}; its name must end in {', '.join(ENDINGS)}, or in / for a folder "
            "with one file for each file of the table"
        )
    reading = read_options(params, table)
    names = column_names(table, reading)
    model = load_model(params["model"], names)
    new = _new_columns(model, params["column"], names)
    bar = output.progress_bar(1.0, "Predicting")
    bar.enabled = bar.enabled if out else False  # the standard output may be the same terminal
    files = table_files(table)
    n_rows = parquet_size(files)[0] if all(map(is_parquet, files)) else 0
    with bar:
        predictor = PiecePredictor(model, new, reading, bar, n_rows)
        if target is None:
            if isinstance(sys.stdout, io.TextIOWrapper):  # a table's letters stay what they are
                sys.stdout.reconfigure(encoding="utf-8")
            with naming("the standard output"):
                _write_csv(predictor.pieces(table), sys.stdout, ",")
                sys.stdout.flush()
        elif to_folder:
            _write_folder(predictor, table, target)
        else:
            with whole_file(target) as path:
                _write(predictor.pieces(table), path)
    counts, notes = predictor.counts, predictor.odd.sentences()
    if params["as_json"]:
        summary = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "out": out,
            "rows": counts.total(),
            "predicted": dict(sorted(counts.items())),
            "notes": notes,
        }
        output.show_json(summary)
        return 0
    output.notes(notes)
    if out is not None:
        listed = ", ".join(f"{label}: {n:,}" for label, n in sorted(counts.items()))
        shown = f" ({listed})" if listed else ""
        output.inform(f"{counts.total():,} rows predicted{shown}; written to {out}")
    return 0


@dataclass(frozen=True, eq=False)
class PiecePredictor:
    """Predicts a table piece by piece.

    Attributes:
        model: what predicts.
        new: the columns to be added, and which label's probability each holds.
        reading: what the user says about files.
        bar: shows how far it is.
        n_rows: of Parquet files; 0 if that is not known.
        counts: how many rows were predicted, by label; counted on the way.
        odd: what was odd about the rows; found on the way.
    """

    model: SavedModel
    new: Mapping[str, int | None]
    reading: ReadingOptions
    bar: ProgressBar
    n_rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    odd: Oddities = field(default_factory=Oddities)

    def pieces(self, table: TableSource) -> Iterator[Piece]:
        """All rows of a table; those of Parquet files also as Arrow has them."""
        files = table_files(table)
        if not all(is_parquet(path) for path in files):
            for piece in pieces(table, texts=True, options=self.reading):
                yield self._predicted(piece)
            return
        first: list[str] = []
        for file in (file for path in files for file in parquet_files(path)):
            first = first or file.schema.names
            if set(first) != set(file.schema.names):
                refuse_columns(file.path, file.schema.names, first)
            yield from self.of_file(file, first)

    def of_file(self, file: ParquetFile, columns: Sequence[str] | None = None) -> Iterator[Piece]:
        """The rows of one Parquet file, their columns in this order."""
        for batch in file.batches:
            chosen = batch if columns is None else batch.select(columns)
            yield self._predicted(plain_frame(chosen.to_pandas()), chosen)

    def _predicted(self, piece: pd.DataFrame, batch: Any = None) -> Piece:
        labels, scores, strange = self.model.predict(piece, self.reading.missing)
        self.odd.update(strange)
        self.counts.update(labels.tolist())
        done = self.counts.total()
        self.bar.text = f"{done:,} rows"
        self.bar.update(done / self.n_rows if self.n_rows else piece.attrs.get("done", 0.0))
        values = {name: labels if i is None else scores[:, i] for name, i in self.new.items()}
        return piece, pd.DataFrame(values, index=piece.index), batch


def _new_columns(model: SavedModel, column: str, names: Sequence[str]) -> dict[str, int | None]:
    """Names of the columns to be added, and which label's probability each holds.

    Raises:
        ValueError: if the table has a column of such a name.
    """
    scores: dict[str, int | None] = {f"probability of {n}": i for i, n in enumerate(model.labels)}
    new = {column: None, **(scores if len(scores) != 2 else {"probability": 1})}
    taken = [name for name in new if name in names]
    if taken:
        hint = "choose another name with --column" if taken == [column] else "rename it first"
        raise ValueError(f"the table already has a column {taken[0]!r}; {hint}")
    return new


def _write_folder(predictor: PiecePredictor, table: Sequence[str], target: Path) -> None:
    """One file for each file of the table, in folders as theirs."""
    seen: set[Path] = set()

    def place(folder: Path, relative: Path) -> Path:
        if relative in seen:
            raise ValueError(f"two files of the table are called {str(relative)!r}; name a folder")
        seen.add(relative)
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        return folder / relative

    sources = [Path(name).expanduser() for name in table]
    with whole_folder(target) as folder:
        for path in table_files(table):
            root = next((s for s in sources if s.is_dir() and s in (path, *path.parents)), None)
            if is_parquet(path):
                for file in parquet_files(path):
                    inside = file.path.relative_to(root) if root else Path(file.path.name)
                    _write_parquet(predictor.of_file(file), place(folder, inside), file.keys)
                continue
            inside = path.relative_to(root) if root else Path(path.name)
            ending = next((end for end in ENDINGS if inside.name.lower().endswith(end)), "")
            name = inside.name if ending else f"{inside.name.split('.')[0]}.csv"
            _write(predictor.pieces(str(path)), place(folder, inside.with_name(name)))
        (folder / MARK).write_text(json.dumps({"schema": SCHEMA, "rows": predictor.counts.total()}))


def _write(predicted: Iterator[Piece], path: Path) -> None:
    """One file, in the format that its name says."""
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        _write_parquet(predicted, path)
        return
    separator = "\t" if name.endswith(".tsv") else ","
    opened: Any = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        _write_csv(predicted, file, separator)


def _write_csv(predicted: Iterator[Piece], file: Any, separator: str) -> None:
    for number, (rows, new, _) in enumerate(predicted):
        # The user's columns do not change; new columns must not become formulas.
        both = pd.concat([rows, without_formulas(new)], axis=1)
        both.to_csv(file, index=False, header=number == 0, sep=separator)


def _write_parquet(predicted: Iterator[Piece], path: Path, keys: Sequence[str] = ()) -> None:
    """Batch by batch; columns that stand in the names of folders are left to them."""
    modules = ("pyarrow", "pyarrow.parquet")
    pa, parquet = (import_library(name, "writing Parquet files") for name in modules)
    writer, schema = None, None
    try:
        for rows, new, batch in predicted:
            if batch is None:
                both = pd.concat([rows, new], axis=1)
                output = pa.Table.from_pandas(both, schema=schema, preserve_index=False)
            else:
                output = pa.Table.from_batches([batch]).drop_columns(list(keys))
                for name in new:
                    output = output.append_column(name, pa.array(new[name], from_pandas=True))
                output = output if schema is None else output.cast(schema)
            if writer is None:
                schema = output.schema
                writer = parquet.ParquetWriter(path, schema)
            writer.write_table(output)
    finally:
        if writer is not None:
            writer.close()
