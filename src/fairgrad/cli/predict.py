"""``fairgrad predict``: a model's predictions for a table, some thousand rows at a time."""

from __future__ import annotations

import io
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from fairgrad.cli.folder import SavedModel
    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.encoding import Oddities

SCHEMA, SCHEMA_VERSION = "fairgrad.predict", 1


@click.command(short_help="Predict the rows of a table with a model.")
@click.argument("model", type=click.Path())
@click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())
@options.reading_options()
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    help="CSV, TSV or Parquet file to write [default: CSV on the standard output].",
)
@click.option(
    "--column",
    metavar="NAME",
    default="prediction",
    show_default=True,
    help="Name of the new column of predictions.",
)
@options.force_option
@options.json_option
def predict(
    model: str,
    table: tuple[str, ...],
    out: str | None,
    column: str,
    force: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Predict the rows of TABLE with MODEL, a folder that `fairgrad fit` has written.

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, or - for the input.

    The output has all columns of the table, a column of predictions, and the probability of the
    desirable value (of every value, if there are more than two). Sensitive columns are not needed,
    unless the model was fitted with --use-sensitive; missing and new values are unknown then.

    Columns may be in any order, and columns the model does not use are ignored. If a column that
    it needs is missing, an error names it. A category never seen in training counts as none of the
    known ones, and so does a missing one, unless training had some; a missing number is replaced
    by the median.
    """
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import check_file, load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.request import read_options  # noqa: PLC0415 - as above
    from fairgrad.files import naming  # noqa: PLC0415 - as above
    from fairgrad.tables.encoding import Oddities  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import PARQUET_ENDINGS, column_names  # noqa: PLC0415 - as above

    endings = (".csv", ".csv.gz", ".tsv", *PARQUET_ENDINGS)
    if out is None and as_json:
        raise ValueError("--json needs --out, as the predictions themselves are not JSON")
    if out is not None and not out.lower().endswith(endings):
        raise ValueError(f"--out is {out!r}; its name must end in {', '.join(endings)}")
    target = None if out is None else check_file(out, force=force)
    reading = read_options(given)
    names = column_names(table, reading)
    loaded = load_model(model, names)
    new = _new_columns(loaded, column)
    _check_new(names, list(new))
    counts: Counter[str] = Counter()
    odd = Oddities()
    parts = _predicted(loaded, table, new, counts, odd, reading)
    if target is None:
        if isinstance(sys.stdout, io.TextIOWrapper):  # a table's letters stay what they are
            sys.stdout.reconfigure(encoding="utf-8")
        with naming("the standard output"):
            _write_csv(parts, sys.stdout, ",")
            sys.stdout.flush()
    else:
        _write(parts, target)
    if as_json:
        found = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "out": out,
            "rows": counts.total(),
            "predicted": dict(sorted(counts.items())),
            "notes": odd.sentences(),
        }
        terminal.show_json(found)
        return 0
    terminal.notes(odd.sentences())
    if out is not None:
        listed = ", ".join(f"{label}: {n:,}" for label, n in sorted(counts.items()))
        terminal.progress(f"{counts.total():,} rows predicted ({listed}); written to {out}")
    return 0


def _predicted(
    model: SavedModel,
    table: tuple[str, ...],
    new: dict[str, int | None],
    counts: Counter[str],
    odd: Oddities,
    reading: ReadingOptions,
) -> Iterator[pd.DataFrame]:
    """The table's pieces with their predictions; its texts stay as they are."""
    import numpy as np  # noqa: PLC0415 - keeps --help quick
    import pandas as pd  # noqa: PLC0415 - as above

    from fairgrad.tables.reading import pieces  # noqa: PLC0415 - as above

    for piece in pieces(table, texts=True, options=reading):
        scores, strange = model.scores(piece, reading.missing)
        odd.update(strange)
        labels = np.asarray(model.labels, dtype=object)[scores.argmax(axis=1)]
        counts.update(labels.tolist())
        values = {name: labels if i is None else scores[:, i] for name, i in new.items()}
        yield pd.concat([piece, pd.DataFrame(values, index=piece.index)], axis=1)


def _new_columns(model: SavedModel, column: str) -> dict[str, int | None]:
    """Names of the columns to be added, and which label's probability each holds."""
    if len(model.labels) == 2:
        return {column: None, "probability": 1}
    return {column: None} | {f"probability of {name}": i for i, name in enumerate(model.labels)}


def _check_new(names: list[str], new: list[str]) -> None:
    taken = [name for name in new if name in names]
    if taken:
        hint = "choose another name with --column" if taken == new[:1] else "rename it first"
        raise ValueError(f"the table already has a column {taken[0]!r}; {hint}")


def _write(parts: Iterator[pd.DataFrame], target: Path) -> None:
    import pandas as pd  # noqa: PLC0415 - keeps --help quick

    from fairgrad.files import whole_file  # noqa: PLC0415 - as above

    name = target.name.lower()
    with whole_file(target) as path:
        if name.endswith((".csv", ".tsv")):
            with path.open("w", encoding="utf-8", newline="") as file:
                _write_csv(parts, file, "\t" if name.endswith(".tsv") else ",")
        elif name.endswith(".gz"):
            pd.concat(list(parts)).to_csv(path, index=False)
        else:
            try:
                pd.concat(list(parts), ignore_index=True).to_parquet(path, index=False)
            except ImportError:
                hint = "writing Parquet files needs pyarrow: pip install pyarrow"
                raise ImportError(hint) from None


def _write_csv(parts: Iterator[pd.DataFrame], file: Any, separator: str) -> None:
    for number, part in enumerate(parts):
        part.to_csv(file, index=False, header=number == 0, sep=separator)
