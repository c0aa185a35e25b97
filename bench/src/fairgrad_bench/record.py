"""What is kept of a unit: counts of every candidate, in one small JSON file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.bench.counts import Cells
from fairgrad.bench.unit import Unit
from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA, SCHEMA_VERSION = "fairgrad.bench", 1
FINISHED, SKIPPED, FAILED = "finished", "skipped", "failed"


@dataclass(frozen=True, eq=False)
class Kept:
    """One candidate: its settings, and the rows of each cell that it gets wrong.

    `expected` is what randomised predictions get wrong in the test part on average.
    """

    seed: int
    settings: dict[str, Any]
    epoch: int
    validation: list[float]
    test: list[float]
    expected: list[float] | None = None


@dataclass(frozen=True, eq=False)
class Record:
    """The outcome of a unit.

    Attributes:
        unit: what was asked for.
        code: the version of the code that did it.
        status: "finished", "skipped" (the method cannot do it) or "failed".
        reason: why it was skipped or failed.
        trace: where it failed.
        seconds: processor time it took.
        finished_at: seconds since 1970.
        needs_s_to_predict: whether the method's predictions need the sensitive value.
        full_grid: whether all of the paper's combinations were trained.
        environment: versions of what computed it.
        cells: how rows are counted.
        rows: for each seed, rows per cell of the parts "validation" and "test".
        kept: the candidates.

    Example:
        >>> record = Record(Unit("german", "linear", "constant"), "abc", "skipped", "not asked for")
        >>> Record.from_json(record.to_json()).reason
        'not asked for'
    """

    unit: Unit
    code: str
    status: str
    reason: str = ""
    trace: str = ""
    seconds: float = 0.0
    finished_at: float = 0.0
    needs_s_to_predict: bool = False
    full_grid: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    cells: Cells = field(default_factory=lambda: Cells((), ()))
    rows: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    kept: list[Kept] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of its file, without the ending."""
        return self.unit.name(self.code)

    def to_json(self) -> str:
        """Everything, as JSON."""
        content = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **asdict(self)}
        return json.dumps(content, default=_plain, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Record:
        """The record again.

        Raises:
            ValueError: if it is not a record that this version can read.
        """
        content = json.loads(text)
        found = (content.pop("schema", None), content.pop("schema_version", None))
        if found != (SCHEMA, SCHEMA_VERSION):
            raise ValueError(
                f"record: expected {SCHEMA} version {SCHEMA_VERSION}, got {found[0]} {found[1]}."
            )
        parts = {
            "unit": Unit.from_inputs(content["unit"]),
            "cells": Cells(**{key: tuple(value) for key, value in content["cells"].items()}),
            "rows": {int(seed): rows for seed, rows in content["rows"].items()},
            "kept": [Kept(**kept) for kept in content["kept"]],
        }
        return cls(**{**content, **parts})


def write_record(record: Record, folder: Path) -> Path:
    """Writes the record's file; nobody ever sees half of it."""
    path = folder / f"{record.name}.json"
    write_whole(path, record.to_json())
    return path


def read_record(folder: Path, name: str) -> Record | None:
    """The record of this name, or None if there is none yet."""
    path = folder / f"{name}.json"
    return Record.from_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def read_records(folder: str | Path) -> list[Record]:
    """All records of a folder, and of nothing else that may lie there.

    Raises:
        ValueError: if there is no such folder, or a file is no record; it names the file.

    Example:
        >>> import tempfile
        >>> record = Record(Unit("german", "linear", "constant"), "abc", "failed")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = write_record(record, Path(folder))
        ...     [record.status for record in read_records(folder)]
        ['failed']
    """
    if not Path(folder).is_dir():
        raise ValueError(f"records: there is no folder {folder}.")
    return [_read(path) for path in sorted(Path(folder).glob("[!.]*.json"))]


def newest(records: Iterable[Record]) -> list[Record]:
    """The last record of every unit, whatever version of the code it comes from.

    Example:
        >>> old = Record(Unit("german", "linear", "constant"), "abc", "failed", finished_at=1.0)
        >>> new = Record(Unit("german", "linear", "constant"), "abd", "finished", finished_at=2.0)
        >>> [record.status for record in newest([old, new])]
        ['finished']
    """
    latest: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: record.finished_at):
        latest[record.unit.name("")] = record
    return list(latest.values())


def _read(path: Path) -> Record:
    try:
        return Record.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a record of the benchmark: {error}") from error


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, which settings may hold, as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"settings: {type(value).__name__} cannot be kept as JSON.")
