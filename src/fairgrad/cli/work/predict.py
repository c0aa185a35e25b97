"""What ``fairgrad predict`` does, a piece of the table at a time."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.cli import show
from fairgrad.cli.folder import load_model
from fairgrad.cli.output import check_file
from fairgrad.files import whole_file
from fairgrad.tables.encoding import Oddities
from fairgrad.tables.reading import PARQUET_ENDINGS, column_names, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fairgrad.cli.folder import Model

SCHEMA, SCHEMA_VERSION = "fairgrad.predict", 1
ENDINGS = (".csv", ".csv.gz", ".tsv", *PARQUET_ENDINGS)


def run(given: Mapping[str, Any]) -> int:
    """Predicts and writes."""
    out = given["out"]
    if out is None and given["as_json"]:
        raise ValueError("--json needs --out: the predictions themselves are a table")
    if out is not None and not out.lower().endswith(ENDINGS):
        raise ValueError(f"--out is {out!r}; files ending in {', '.join(ENDINGS)} can be written")
    target = None if out is None else check_file(out, force=given["force"])
    names = column_names(given["table"])
    model = load_model(given["model"], names)
    _check_new(names, list(_new_columns(model, given["column"])))
    counts: Counter[str] = Counter()
    odd = Oddities()
    parts = _predicted(model, given, counts, odd)
    if target is None:
        _write_csv(parts, sys.stdout, ",")
    else:
        with whole_file(target) as beside:
            _write(parts, beside)
    _say(given, counts, odd)
    return 0


def _predicted(
    model: Model, given: Mapping[str, Any], counts: Counter[str], odd: Oddities
) -> Iterator[pd.DataFrame]:
    """The table's pieces with their predictions; its texts stay as they are."""
    for piece in pieces(given["table"], texts=True):
        scores, strange = model.scores(piece)
        odd.add(strange)
        labels = np.asarray(model.labels, dtype=object)[scores.argmax(axis=1)]
        counts.update(labels.tolist())
        names = _new_columns(model, given["column"])
        values = [labels, *(scores[:, i] for i in names.values() if i is not None)]
        new = pd.DataFrame(dict(zip(names, values, strict=True)), index=piece.index)
        yield pd.concat([piece, new], axis=1)


def _new_columns(model: Model, column: str) -> dict[str, int | None]:
    """Names of the columns to be added, and which label's probability each holds."""
    if len(model.labels) == 2:
        return {column: None, "probability": 1}
    return {column: None} | {f"probability of {name}": i for i, name in enumerate(model.labels)}


def _check_new(names: list[str], new: list[str]) -> None:
    taken = [name for name in new if name in names]
    if taken == new[:1]:
        raise ValueError(f"the table has a column {taken[0]!r} already; name another with --column")
    if taken:
        raise ValueError(f"the table has a column {taken[0]!r} already; rename it first")


def _write(parts: Iterator[pd.DataFrame], path: Path) -> None:
    name = path.name.lower()
    if name.endswith(PARQUET_ENDINGS):
        _write_parquet(parts, path)
    elif name.endswith(".gz"):
        pd.concat(list(parts)).to_csv(path, index=False)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            _write_csv(parts, file, "\t" if name.endswith(".tsv") else ",")


def _write_csv(parts: Iterator[pd.DataFrame], file: Any, separator: str) -> None:
    for number, part in enumerate(parts):
        part.to_csv(file, index=False, header=number == 0, sep=separator)


def _write_parquet(parts: Iterator[pd.DataFrame], path: Path) -> None:
    try:
        pd.concat(list(parts), ignore_index=True).to_parquet(path, index=False)
    except ImportError:
        raise ImportError("writing Parquet files needs pyarrow: pip install pyarrow") from None


def _say(given: Mapping[str, Any], counts: Counter[str], odd: Oddities) -> None:
    if given["as_json"]:
        found = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "out": given["out"],
            "rows": counts.total(),
            "predicted": dict(sorted(counts.items())),
            "notes": odd.sentences(),
        }
        show.show_json(found)
        return
    show.notes(odd.sentences())
    if given["out"] is not None:
        listed = ", ".join(f"{n:,} {label}" for label, n in sorted(counts.items()))
        show.tell(f"{counts.total():,} rows predicted ({listed}); written to {given['out']}")
