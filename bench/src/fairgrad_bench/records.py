"""What is kept of a unit: counts of every candidate, in one small JSON file.

Every measure is a function of the cells' error rates. So a record holds only how many rows of each
cell a model gets wrong. This is small, and enough to compute other measures later. With more than
two labels it holds how many rows of each cell get each label.

A record belongs to the inputs of its unit and to the version of its method, a number that is raised
by hand when the method's results change. Where the code lies and how it is written plays no role.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.files import write_whole
from fairgrad.groups import Floats, Groups
from fairgrad_bench.plan import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairgrad.datasets import Encoded, Split

SCHEMA, SCHEMA_VERSION = "fairgrad.bench", 2
FINISHED, SKIPPED, FAILED = "finished", "skipped", "failed"


@dataclass(frozen=True)
class CountedCells:
    """The labels and groups that rows are counted by; cell = label position * groups + group's.

    Attributes:
        labels: the L labels.
        groups: the G groups; -1, rows of unknown group, comes last.
    """

    labels: tuple[int, ...]
    groups: tuple[int, ...]

    @classmethod
    def from_splits(cls, splits: Iterable[Split]) -> CountedCells:
        """All labels and groups of all parts."""
        parts = [part for split in splits for part in split]
        labels = np.unique(np.concatenate([part.y for part in parts])).tolist()
        groups = np.unique(np.concatenate([part.s for part in parts])).tolist()
        return cls(tuple(labels), tuple(sorted(groups, key=lambda group: (group < 0, group))))

    def count(self, y: Any, s: Any, weight: Any = None) -> Floats:
        """(L G,) rows, or the sum of their weights, in each cell."""
        place = np.empty(max(self.groups) + 2, dtype=np.int64)
        place[np.add(self.groups, 1)] = np.arange(len(self.groups))
        cell = np.searchsorted(self.labels, y) * len(self.groups) + place[np.add(s, 1)]
        size = len(self.labels) * len(self.groups)
        return np.bincount(cell, weight, minlength=size).astype(np.float64)

    def counted(self, part: Encoded, predicted: Any, what: str) -> Floats:
        """(L G,) rows of each cell with another prediction than their label.

        Of more than two labels, (L L G,) rows of each cell by predicted label.

        Raises:
            ValueError: if there is not one prediction per row.
        """
        labels = np.asarray(predicted)
        if labels.shape != part.y.shape:
            raise ValueError(
                f"{what}: expected one prediction per row ({len(part.y)}), got {labels.shape}."
            )
        if len(self.labels) == 2:
            return self.count(part.y, part.s, labels != part.y)
        return np.concatenate([self.count(part.y, part.s, labels == y) for y in self.labels])

    def expected_wrong(self, part: Encoded, positive_rate: Any) -> Floats:
        """(L G,) what randomised predictions of two labels get wrong on average."""
        rate = np.asarray(positive_rate, dtype=np.float64)
        return self.count(part.y, part.s, np.where(part.y == 1, 1 - rate, rate))

    def as_groups(self, rows: Any) -> Groups:
        """The groups of a part, from its rows per cell."""
        keys = [(label, group) for label in self.labels for group in self.groups]
        return Groups.from_counts(dict(zip(keys, np.asarray(rows).tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class KeptModel:
    """One candidate: its settings, and the rows of each cell that it gets wrong, or by label.

    `expected` is what randomised predictions get wrong in the test part on average.
    """

    seed: int
    settings: dict[str, Any]
    epoch: int
    validation: list[float]
    test: list[float]
    expected: list[float] | None = None


@dataclass(frozen=True, eq=False)
class UnitRecord:
    """What became of a unit.

    Attributes:
        unit: the requested unit.
        version: of the method that did it.
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
    """

    unit: Unit
    version: int
    status: str
    reason: str = ""
    trace: str = ""
    seconds: float = 0.0
    finished_at: float = 0.0
    needs_s_to_predict: bool = False
    full_grid: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    cells: CountedCells = field(default_factory=lambda: CountedCells((), ()))
    rows: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    kept: list[KeptModel] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of its file, without the ending."""
        return self.unit.name(self.version)

    def to_json(self) -> str:
        """Everything, as JSON."""
        content = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **asdict(self)}
        return json.dumps(content, default=_plain, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> UnitRecord:
        """The record again.

        Raises:
            ValueError: if it is not a record that this version can read.
        """
        content = json.loads(text)
        found = (content.pop("schema", None), content.pop("schema_version", None))
        if found == (SCHEMA, 1):
            del content["code"]  # a digest of source text; all methods were then of version 1
            content["version"] = 1
        elif found != (SCHEMA, SCHEMA_VERSION):
            raise ValueError(
                f"record: expected {SCHEMA} version 1 or {SCHEMA_VERSION}, "
                f"got {found[0]} {found[1]}."
            )
        parts = {
            "unit": Unit.from_inputs(content["unit"]),
            "cells": CountedCells(**{key: tuple(own) for key, own in content["cells"].items()}),
            "rows": {int(seed): rows for seed, rows in content["rows"].items()},
            "kept": [KeptModel(**kept) for kept in content["kept"]],
        }
        return cls(**{**content, **parts})


def write_record(record: UnitRecord, folder: Path) -> Path:
    """Writes the record's file, completely or not at all."""
    path = folder / f"{record.name}.json"
    write_whole(path, record.to_json())
    return path


def find_record(folder: Path, unit: Unit, version: int) -> UnitRecord | None:
    """The last record of a unit by this version of its method, or None if there is none.

    Records of schema 1 have other digests in their names, so all that may be the unit's are read. A
    damaged record counts as missing, with a warning: the unit is then computed again.
    """
    pattern = f"{unit.readable}-{'[0-9a-f]' * 12}.json"
    found = [_read_or_warn(path) for path in sorted(folder.glob(pattern))]
    own = [record for record in found if record and record.name == unit.name(version)]
    return max(own, key=lambda record: record.finished_at, default=None)


def read_records(folder: str | Path) -> list[UnitRecord]:
    """All records of a folder, and of nothing else that may lie there.

    Raises:
        ValueError: if there is no such folder, or a file is no record; it names the file.
    """
    if not Path(folder).is_dir():
        raise ValueError(f"records: there is no folder {folder}.")
    return [_read(path) for path in sorted(Path(folder).glob("[!.]*.json"))]


def newest(records: Iterable[UnitRecord]) -> list[UnitRecord]:
    """The last record of every unit, whatever version of the method it comes from."""
    latest: dict[str, UnitRecord] = {}
    for record in sorted(records, key=lambda record: record.finished_at):
        latest[record.unit.name(0)] = record
    return list(latest.values())


def _read(path: Path) -> UnitRecord:
    try:
        return UnitRecord.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a record of the benchmark: {error}") from error


def _read_or_warn(path: Path) -> UnitRecord | None:
    try:
        return _read(path)
    except ValueError as error:
        warnings.warn(f"{error}; its unit is done again.", stacklevel=3)
        return None


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, which settings may hold, as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"settings: {type(value).__name__} cannot be kept as JSON.")
