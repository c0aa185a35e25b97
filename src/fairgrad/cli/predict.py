"""``fairgrad predict``: a model's predictions for a table, some thousand rows at a time."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd

    from fairgrad.cli.folder import SavedModel
    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.features import Oddities
    from fairgrad.tables.reading import ParquetFile, TableSource

    Piece = tuple[pd.DataFrame, pd.DataFrame, Any]
    """Some thousand rows, their texts as they are; the new columns; and the rows as Arrow has them,
    if they come from a Parquet file, else None."""

SCHEMA, SCHEMA_VERSION = "fairgrad.predict", 1
PARQUET = (".parquet", ".pq")
"""`fairgrad.tables.reading.PARQUET_ENDINGS`, written out because that module imports pandas."""

ENDINGS = (".csv", ".csv.gz", ".tsv", *PARQUET)
MARK = "_fairgrad.json"
"""A file of a folder of predictions that says who wrote it; readers of folders pass over it."""


@click.command(cls=options.Command, short_help="Predict the rows of a table with a model.")
@click.argument("model", type=click.Path())
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.takes(
    "out", "column", "force", "json",
    out={
        "metavar": "FILE|FOLDER",
        "help": "CSV, TSV or Parquet file to write, or a folder (with / at its end) with one file "
        "for each file of the table [default: CSV on the standard output].",
    },
)  # fmt: skip
def predict(
    model: str,
    table: tuple[str, ...],
    out: str | None,
    column: str,
    force: bool,
    as_json: bool,
    **params: Any,
) -> int:
    """Predict the rows of TABLE with MODEL, a folder that `fairgrad fit` has written.

    \b
      fairgrad predict model new.csv --out predictions.csv

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, or - for the standard
    input. It can have any number of rows: some thousand are predicted at a time.

    The output has all columns of the table, a column of predictions, and the probability of the
    desirable value (of every value, if there are more than two). Sensitive columns are needed only
    if the model was fitted with --use-sensitive.

    Columns may be in any order, and columns the model does not use are ignored. A category that
    training did not have counts as none of the known ones, and so does a missing category, unless
    training had some. A missing number is replaced by the median.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import check_file, check_folder, load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.request import read_options  # noqa: PLC0415 - as above
    from fairgrad.files import naming, whole_file  # noqa: PLC0415 - as above
    from fairgrad.tables.features import Oddities  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import column_names  # noqa: PLC0415 - as above

    if out is None and as_json:
        raise ValueError("--json needs --out, as the predictions themselves are not JSON")
    if out is None and force:
        raise ValueError("--force has no effect without --out; leave it out")
    to_folder = out is not None and _is_folder(out)
    if out is not None and not to_folder and not out.lower().endswith(ENDINGS):
        raise ValueError(
            f"--out is {out!r}; its name must end in {', '.join(ENDINGS)}, or in / for a folder "
            "with one file for each file of the table"
        )
    target = None
    if out is not None:
        target = (
            check_folder(out, force=force, mark=MARK, known=None)
            if to_folder
            else check_file(out, force=force)
        )
    reading = read_options(params, table)
    names = column_names(table, reading)
    loaded = load_model(model, names)
    new = _new_columns(loaded, column, names)
    counts: Counter[str] = Counter()
    odd = Oddities()
    if target is None:
        predictor = PiecePredictor(loaded, new, counts, odd, reading)
        if isinstance(sys.stdout, io.TextIOWrapper):  # a table's letters stay what they are
            sys.stdout.reconfigure(encoding="utf-8")
        with naming("the standard output"):
            _write_csv(predictor.pieces(table), sys.stdout, ",")
            sys.stdout.flush()
    else:
        with output.progress_bar(None) as tell:
            predictor = PiecePredictor(loaded, new, counts, odd, reading, tell)
            if to_folder:
                _write_folder(predictor, table, target)
            else:
                with whole_file(target) as path:
                    _write(predictor.pieces(table), path)
    if as_json:
        summary = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "out": out,
            "rows": counts.total(),
            "predicted": dict(sorted(counts.items())),
            "notes": odd.sentences(),
        }
        output.show_json(summary)
        return 0
    output.notes(odd.sentences())
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
        counts: how many rows were predicted, by label; counted on the way.
        odd: what was odd about the rows; found on the way.
        reading: what the user says about files.
        tell: is told how far it is.
    """

    model: SavedModel
    new: Mapping[str, int | None]
    counts: Counter[str]
    odd: Oddities
    reading: ReadingOptions
    tell: Callable[[str], object] = lambda _: None

    def pieces(self, table: TableSource) -> Iterator[Piece]:
        """All rows of a table; those of Parquet files also as Arrow has them."""
        from fairgrad.tables.reading import (  # noqa: PLC0415 - keeps --help quick
            is_parquet,
            parquet_files,
            pieces,
            refuse_columns,
            table_files,
        )

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
        from fairgrad.tables.reading import plain_frame  # noqa: PLC0415 - keeps --help quick

        for batch in file.batches:
            chosen = batch if columns is None else batch.select(columns)
            yield self._predicted(plain_frame(chosen.to_pandas()), chosen)

    def _predicted(self, piece: pd.DataFrame, batch: Any = None) -> Piece:
        import pandas as pd  # noqa: PLC0415 - keeps --help quick

        labels, scores, strange = self.model.predict(piece, self.reading.missing)
        self.odd.update(strange)
        self.counts.update(labels.tolist())
        self.tell(f"{self.counts.total():,} rows predicted")
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


def _is_folder(out: str) -> bool:
    """Whether --out names a folder: by a slash at its end, or because there is one."""
    return out.endswith(("/", os.sep)) or Path(out).expanduser().is_dir()


def _write_folder(predictor: PiecePredictor, table: Sequence[str], target: Path) -> None:
    """One file for each file of the table, in folders as theirs."""
    from fairgrad.files import whole_folder  # noqa: PLC0415 - keeps --help quick
    from fairgrad.tables.reading import (  # noqa: PLC0415 - as above
        is_parquet,
        parquet_files,
        table_files,
    )

    seen: set[Path] = set()

    def place(folder: Path, relative: Path) -> Path:
        if relative in seen:
            raise ValueError(f"two files of the table are called {str(relative)!r}; name a folder")
        seen.add(relative)
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        return folder / relative

    sources = [Path(one).expanduser() for one in table]
    with whole_folder(target) as folder:
        for path in table_files(table):
            root = next(
                (one for one in sources if one.is_dir() and one in (path, *path.parents)), None
            )
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


def _write(parts: Iterator[Piece], path: Path) -> None:
    """One file, in the format that its name says."""
    name = path.name.lower()
    if name.endswith(PARQUET):
        _write_parquet(parts, path)
        return
    separator = "\t" if name.endswith(".tsv") else ","
    opened: Any = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        _write_csv(parts, file, separator)


def _write_csv(parts: Iterator[Piece], file: Any, separator: str) -> None:
    import pandas as pd  # noqa: PLC0415 - keeps --help quick

    from fairgrad.columns import without_formulas  # noqa: PLC0415 - as above

    for number, (rows, new, _) in enumerate(parts):
        # The user's own columns stay as they are; what is added is no formula in a spreadsheet.
        both = pd.concat([rows, without_formulas(new)], axis=1)
        both.to_csv(file, index=False, header=number == 0, sep=separator)


def _write_parquet(parts: Iterator[Piece], path: Path, keys: Sequence[str] = ()) -> None:
    """Batch by batch; columns that stand in the names of folders are left to them."""
    import pandas as pd  # noqa: PLC0415 - keeps --help quick

    try:
        pa, parquet = (importlib.import_module(n) for n in ("pyarrow", "pyarrow.parquet"))
    except ImportError:
        raise ImportError("writing Parquet files needs pyarrow: pip install pyarrow") from None
    writer, schema = None, None
    try:
        for rows, new, batch in parts:
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
