"""Runs the units of published tables: what has a record is kept, the rest is fitted."""

from __future__ import annotations

import json
import platform
import time
import warnings
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from fairgrad.files import write_whole
from fairgrad_bench.records import FAILED, FINISHED, SKIPPED
from fairgrad_bench.running import Work, on_cluster, on_this_machine, one_thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairgrad_bench.published.source import Source, Split


@dataclass(frozen=True)
class PublishedUnit:
    """One model: a method on one split of a cell; no measure if the method does not use it."""

    source: str
    cell: str
    method: str
    measure: str
    seed: int
    version: int

    def __str__(self) -> str:
        return " / ".join(
            (self.source, self.cell, self.method, self.measure or "-", f"{self.seed}")
        )

    @property
    def name(self) -> str:
        """Of its file, without the ending."""
        words = "-".join(str(value) for value in asdict(self).values())
        return "".join(sign if sign.isalnum() or sign in "-." else "_" for sign in words)


@dataclass(frozen=True, eq=False)
class PublishedRecord:
    """Accuracy and gaps of one model on the test rows, and the processor time of its fit."""

    unit: PublishedUnit
    status: str
    reason: str = ""
    accuracy: float = float("nan")
    gaps: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    warned: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Everything, as JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> PublishedRecord:
        """The record again."""
        content = json.loads(text)
        return cls(**{**content, "unit": PublishedUnit(**content["unit"])})


def source_named(name: str) -> Source:
    """A source by the name of its module."""
    source: Source = import_module(f"fairgrad_bench.published.{name}").SOURCE
    return source


def units(source: Source, seeds: int | None = None) -> Iterator[PublishedUnit]:
    """All units of a source, seed by seed: a run that is stopped has whole seeds.

    Example:
        >>> from fairgrad_bench.published.fairprojection import SOURCE
        >>> print(next(units(SOURCE)))
        fairprojection / COMPAS, race / logistic regression / - / 0
    """
    for seed in range(source.seeds if seeds is None else min(seeds, source.seeds)):
        for cell in source.cells:
            for name, method in source.methods.items():
                for measure in source.measures if method.uses_measure else ("",):
                    yield PublishedUnit(source.name, cell, name, measure, seed, method.version)


_LAST_SPLIT: dict[tuple[str, str, int], Split] = {}
"""Of this process: consecutive units share it."""


def forget_split() -> None:
    """Frees the memory of the last split."""
    _LAST_SPLIT.clear()


def execute(unit: PublishedUnit) -> PublishedRecord:
    """Fits a model and judges it; never raises."""
    try:
        source = source_named(unit.source)
        key = (unit.source, unit.cell, unit.seed)
        if key not in _LAST_SPLIT:
            forget_split()
            _LAST_SPLIT[key] = source.split(unit.cell, unit.seed)
        split = _LAST_SPLIT[key]
        method = source.methods[unit.method]
        if method.version != unit.version:
            raise RuntimeError(  # noqa: TRY301 - recorded as whatever else goes wrong
                f"this worker holds version {method.version} of the method, "
                f"the run asks for {unit.version}."
            )
        with warnings.catch_warnings(record=True) as caught, one_thread():
            warnings.simplefilter("always", UserWarning)
            start = time.process_time()
            predicted = np.asarray(method.fit(split, unit.measure, unit.seed))
            seconds = time.process_time() - start
    except ModuleNotFoundError as error:
        return PublishedRecord(unit, SKIPPED, f"{error.name} is not installed")
    except Exception as error:  # noqa: BLE001 - whatever a method raises must not stop the rest
        return failed(unit, error)
    return PublishedRecord(
        unit,
        FINISHED,
        accuracy=float((predicted == split.test.y).mean()),
        gaps={name: float(gap) for name, gap in source.gaps(split.test, predicted).items()},
        seconds=round(seconds, 3),
        warned=sorted({str(warning.message)[:200] for warning in caught}),
        environment={
            "python": platform.python_version(),
            **{name: version(name) for name in ("fairgrad", "torch", "scikit-learn")},
        },
    )


def failed(unit: PublishedUnit, error: BaseException) -> PublishedRecord:
    """The record of a unit that went wrong."""
    return PublishedRecord(unit, FAILED, f"{type(error).__name__}: {error}")


WORK = Work(execute, failed, key=lambda unit: unit.name)


def run_published(
    names: Sequence[str],
    folder: str | Path,
    *,
    seeds: int | None = None,
    only: str = "*",
    jobs: int = 1,
    cluster: str | None = None,
    console: Console | None = None,
) -> list[PublishedRecord]:
    """Fits every unit that has no record yet, and returns the new records.

    Args:
        names: of the sources.
        folder: of the records; made if it is not there.
        seeds: how many seeds at most; all of the protocol by default.
        only: a pattern of the units to fit, such as "* / Adult, sex / network* / *".
        jobs: processes on this machine.
        cluster: the address of a dask scheduler; the units run there instead.
        console: to report progress to.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True) if console is None else console
    todo = [
        unit
        for name in names
        for unit in units(source_named(name), seeds)
        if fnmatchcase(str(unit), only) and not (place / f"{unit.name}.json").is_file()
    ]
    new = []
    records = on_cluster(todo, cluster, WORK) if cluster else on_this_machine(todo, jobs, WORK)
    for number, record in enumerate(records if todo else (), 1):
        if record.status == FINISHED:
            write_whole(place / f"{record.unit.name}.json", record.to_json())
        new.append(record)
        detail = record.reason or f"{record.seconds:.1f} s"
        console.print(
            f"{number}/{len(todo)} {record.unit}: {record.status}, {detail}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    return new


def read_published(folder: str | Path) -> list[PublishedRecord]:
    """All records of a folder."""
    return [
        PublishedRecord.from_json(path.read_text(encoding="utf-8"))
        for path in sorted(Path(folder).glob("[!.]*.json"))
    ]
