"""``fairgrad fit`` on a table that is never held: rows are read, trained on and counted in passes.

Several processes may do this together (``torchrun``): each reads row groups of its own, and the
first one looks at the table, keeps the state and writes the result.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import warnings
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import distributed

from fairgrad.audit.counted import RowCounts
from fairgrad.cli.outcome import AuditedModel, audited, full_audit
from fairgrad.cli.prepared import RowTotals, check_desirable
from fairgrad.cli.provenance import Provenance
from fairgrad.cli.request import read_options, read_tolerance
from fairgrad.cli.training import TrainedModels, by_options, network
from fairgrad.files import read_sealed, sealed_json, whole_file, write_whole
from fairgrad.sklearn.streamed import fit_streamed
from fairgrad.splitting import TEST, TEST_PART, TRAINING_PART, VALIDATION_PART
from fairgrad.tables.encoding import encode_rows, fitted_encoder, read_features
from fairgrad.tables.reading import table_name
from fairgrad.tables.stored import stored_table
from fairgrad.tables.survey import SurveyedTable, survey
from fairgrad.torch.processes import Processes
from fairgrad.training.streamed import RowChunk
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from fairgrad.cli.request import ModelSettings
    from fairgrad.tables.encoding import TrainedFeature
    from fairgrad.tables.roles import ColumnRoles
    from fairgrad.tables.stored import StoredGroup, StoredTable

STAGE_ROWS = 4_000_000
"""Rows of a stage, after which the state is kept."""

MOST_BUFFERED, BUFFER_BYTES = 262_144, 64 << 20
"""Rows that are shuffled at a time, and their largest size."""

PATIENCE = timedelta(minutes=10)
"""How long processes wait for each other."""

SURVEY, STATE, TEXTS = "survey.json", "state.safetensors", "rows"
STOPPED = (
    "another process of this training has stopped, so this one stops, too; nothing was written. "
    "The same command with --resume goes on from the last checkpoint"
)


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """What is told of a table that was never held.

    Attributes:
        table: what duckdb found.
        encoder: the fitted encoder of features.
        seed: of the hashes that divide the rows.
        test: share of the test rows.
    """

    table: SurveyedTable
    encoder: Any
    seed: int
    test: float
    groups: Sequence[TrainedFeature] = ()

    @property
    def columns(self) -> ColumnRoles:
        """The role of each column."""
        return self.table.columns

    @property
    def features(self) -> list[TrainedFeature]:
        """What is known of each feature."""
        return self.table.features

    @property
    def labels(self) -> list[str]:
        """Values of the target, the desirable one last."""
        return self.table.labels

    @property
    def desirable(self) -> str | None:
        """The desirable label; None if there are several and none was named."""
        return self.columns.desirable(self.labels)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the table."""
        return self.table.notes

    @property
    def missing(self) -> tuple[str, ...]:
        """Texts that mean a missing value."""
        return self.table.missing

    @property
    def totals(self) -> RowTotals:
        """How many rows there are."""
        training, validation, test = self.table.sizes()
        return RowTotals(training + validation + test, training, validation, test)

    @property
    def held_out(self) -> dict[str, Any]:
        """How the test rows are found again."""
        return {"seed": self.seed, "share": self.test}


class StreamedRows:
    """The rows of a table in passes, shuffled: what `fairgrad.training.streamed.RowSource` asks.

    Row groups are read in a new order in every pass, several at a time, and the rows of many pieces
    are shuffled together.

    Args:
        stored: the table.
        prepared: what is known of it.
        batch_size: rows per step, of all processes together.
        rank: which of the processes this is.
        world: how many there are.
    """

    def __init__(
        self,
        stored: StoredTable,
        prepared: StreamedTable,
        *,
        batch_size: int,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        table = prepared.table
        self.stored, self.table, self.encoder = stored, table, prepared.encoder
        self.seed, self.rank, self.world = prepared.seed, rank, world
        self.groups = table.frequencies(TRAINING_PART)
        self.judged = table.frequencies(VALIDATION_PART)
        self.n_features = len(table.offset)
        self.scaling = (table.offset, table.scale)
        self.batch_size = max(1, math.ceil(batch_size / world))
        self._cells = table.reader(self.groups)
        most = min(MOST_BUFFERED, BUFFER_BYTES // (4 * max(1, self.n_features)))
        self.buffered = max(self.batch_size, most // self.batch_size * self.batch_size)

    @lru_cache(maxsize=2)  # noqa: B019 - there is one of it in a program
    def _stages(self, epoch: int) -> list[list[int]]:
        """The row groups of each stage of a pass, in its order."""
        order = np.random.default_rng([self.seed, epoch]).permutation(len(self.stored.groups))
        upto = np.cumsum([self.stored.groups[place].n_rows for place in order])
        stage = (upto - 1) // STAGE_ROWS
        return [order[stage == one].tolist() for one in np.unique(stage)]

    def n_stages(self, epoch: int) -> int:
        """How many stages a pass has."""
        return len(self._stages(epoch))

    def n_steps(self, epoch: int) -> int:
        """About how many steps a pass has: one with few rows at the end of each stage."""
        size = self.batch_size * self.world
        return math.ceil(float(self.groups.mass.sum()) / size) + self.n_stages(epoch) - 1

    def rows(self, epoch: int, stage: int, parts: Collection[int]) -> Iterator[RowChunk]:
        """The rows of a stage that this process reads."""
        own = self._stages(epoch)[stage][self.rank :: self.world]
        rng = np.random.default_rng([self.seed, epoch, stage, self.rank])
        waiting: dict[int, list[RowChunk]] = {part: [] for part in parts}
        for chunk in self._read([self.stored.groups[place] for place in own], parts):
            mine = waiting[chunk.part]
            mine.append(chunk)
            if sum(len(one.label) for one in mine) >= self.buffered:
                whole = _joined(mine, rng)
                n = len(whole.label) // self.batch_size * self.batch_size
                yield _cut(whole, slice(n))
                waiting[chunk.part] = [_cut(whole, slice(n, None))]
        for mine in waiting.values():
            if sum(len(one.label) for one in mine):
                yield _joined(mine, rng)

    def counted(self, part: int, predict: Callable[[Any], Any], n: int) -> NDArray[np.int64]:
        """How many rows of a part are in which cell, and predicted in which way.

        Args:
            part: which part.
            predict: gives a number from 0 to n - 1 for each row of a matrix.
            n: of how many ways.

        Returns:
            (labels, groups, n) counts of the rows that this process reads.
        """
        shape = (*self.groups.mass.shape, n)
        counts = np.zeros(math.prod(shape), dtype=np.int64)
        for chunk in self._read(self.stored.groups[self.rank :: self.world], {part}):
            cell = chunk.label * shape[1] + chunk.group
            counts += np.bincount(cell * n + predict(chunk.X), minlength=len(counts))
        return counts.reshape(shape)

    def _read(self, groups: Sequence[StoredGroup], parts: Collection[int]) -> Iterator[RowChunk]:
        table = self.table
        for piece, part in self.stored.read(groups, table.needed):
            for one in sorted(parts):
                chosen = part == one
                if not chosen.any():
                    continue
                own = piece[chosen].reset_index(drop=True)
                own.attrs |= piece.attrs
                known, label, group = self._cells(own)
                own = own if known.all() else own[known].reset_index(drop=True)
                own.attrs |= piece.attrs
                features, _ = read_features(own, table.features, table.missing)
                yield RowChunk(one, encode_rows(self.encoder, features), label, group)


def _joined(chunks: Sequence[RowChunk], rng: np.random.Generator) -> RowChunk:
    """All rows of some chunks, shuffled if they are for training."""
    X, label, group = (
        np.concatenate([getattr(chunk, name) for chunk in chunks])
        for name in ("X", "label", "group")
    )
    part = chunks[0].part
    if part == TRAINING_PART:
        order = rng.permutation(len(label))
        X, label, group = X[order], label[order], group[order]
    return RowChunk(part, X, label, group)


def _cut(chunk: RowChunk, rows: slice) -> RowChunk:
    part, X, label, group = chunk
    return RowChunk(part, X[rows].copy(), label[rows].copy(), group[rows].copy())


class CheckpointFolder:
    """The state of an unfinished training, in a folder beside the one that will be written.

    Args:
        folder: its place.
        request: what was asked for, to be compared when a training is gone on with.
        is_writer: whether this process writes it.
    """

    def __init__(self, folder: Path, request: Mapping[str, Any], *, is_writer: bool) -> None:
        self.folder, self.request, self.is_writer = folder, dict(request), is_writer

    @classmethod
    def beside(cls, target: Path, request: Mapping[str, Any], **how: Any) -> CheckpointFolder:
        """That of a result to be written."""
        return cls(target.with_name(f"{target.name}.checkpoint"), request, **how)

    def check(self, *, resume: bool, force: bool) -> None:
        """Refuses to lose the work of before, or to go on with another one.

        Raises:
            ValueError: if there is an unfinished training and `resume` is not set, or the other way
                round, or it was of another request.
        """
        is_there = self.folder.is_dir()
        if not resume:
            if is_there and not force:
                raise ValueError(
                    f"{self.folder} holds an unfinished training; go on with it by --resume, or "
                    "start anew with --force"
                )
            return
        if not is_there:
            raise ValueError(f"--resume: there is no unfinished training in {self.folder}")
        if not (self.folder / SURVEY).is_file():
            return  # stopped before anything was found: there is nothing that could differ
        known = self._survey()["request"]
        now = json.loads(json.dumps(self.request))
        differ = [name for name, value in now.items() if known.get(name) != value]
        if differ:
            raise ValueError(
                f"--resume: {differ[0]} is not what the training in {self.folder} was started "
                "with; use the same options and files, or start anew with --force"
            )

    def _survey(self) -> dict[str, Any]:
        path = self.folder / SURVEY
        try:
            return read_sealed(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged ({error}); start anew with --force") from error

    def clear(self) -> None:
        """Removes what is there."""
        if self.is_writer:
            shutil.rmtree(self.folder, ignore_errors=True)

    def surveyed(self) -> dict[str, Any] | None:
        """What was found about the table before; None if nothing was."""
        return self._survey()["table"] if (self.folder / SURVEY).is_file() else None

    def keep_survey(self, table: SurveyedTable) -> None:
        """Keeps what was found about the table."""
        known = {"request": self.request, "table": table.to_dict()}
        write_whole(self.folder / SURVEY, sealed_json(known, allow_nan=True), private=True)

    def save(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Keeps a state in place of the last one."""
        if not self.is_writer:
            return
        whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
        with whole_file(self.folder / STATE, private=True) as path:
            save_file(whole, path, metadata={"values": json.dumps(dict(values))})

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last state; None if there is none."""
        path = self.folder / STATE
        if not path.is_file():
            return None
        try:
            with safe_open(path, "pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
                return tensors, json.loads(file.metadata()["values"])
        except Exception as error:
            raise ValueError(f"{path} is damaged ({error}); start anew with --force") from error


_under_way: list[CheckpointFolder] = []
"""The training that this process keeps, while there is one."""


def kept_so_far() -> Path | None:
    """The folder that a training can be gone on with from, if it were stopped now."""
    return next((one.folder for one in _under_way if (one.folder / STATE).is_file()), None)


@dataclass(frozen=True, eq=False)
class Team:
    """The processes that train together, or this one alone.

    Attributes:
        rank: which of them this is.
        world: how many there are.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this process looks at the table and writes the result."""
        return self.rank == 0

    @cached_property
    def processes(self) -> Processes | None:
        """As the training takes them."""
        return Processes() if self.world > 1 else None

    def share(self, make: Callable[[], Any]) -> Any:
        """What the first process makes, in all of them; its error is an error of all.

        Raises:
            ConnectionError: if the first process could not make it.
        """
        if self.world == 1:
            return make()
        box: list[Any] = [None, None]
        failed: Exception | None = None
        if self.is_first:
            try:
                box = [make(), None]
            except Exception as error:  # noqa: BLE001 - raised again, when the others know
                failed, box = error, [None, str(error)]
        distributed.broadcast_object_list(box, src=0)
        if failed is not None:
            raise failed
        if box[1] is not None:
            raise ConnectionError(f"the first process stopped ({box[1]})")
        return box[0]

    def sum(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts of all processes."""
        if self.processes is None:
            return counts
        tensor = torch.from_numpy(counts)
        self.processes.sum(tensor)
        return tensor.numpy()


def is_team() -> bool:
    """Whether ``torchrun`` has started several processes."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined_team() -> Iterator[Team]:
    """The processes that ``torchrun`` has started; this one alone if there are none.

    Raises:
        ConnectionError: if another process stops.
    """
    if not is_team():
        yield Team()
        return
    distributed.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield Team(distributed.get_rank(), distributed.get_world_size())
    except RuntimeError as error:
        said = str(error).lower()
        if any(word in said for word in ("gloo", "connection", "timed out", "timeout", "socket")):
            raise ConnectionError(STOPPED) from error
        raise
    finally:
        distributed.destroy_process_group()


def fit_stream(
    given: Mapping[str, Any],
    columns: ColumnRoles,
    settings: ModelSettings,
    target: Path,
    *,
    progress: Callable[[str], object],
) -> tuple[AuditedModel | None, CheckpointFolder]:
    """Trains on a table in passes, and audits the model on the test rows, which are counted.

    Args:
        given: the options of `fit`.
        columns: the role of each column.
        settings: how to train.
        target: the folder that will be written.
        progress: called with what is done next.

    Returns:
        The model, or None in processes other than the first; and what was kept on the way, which
        is to be removed when the model is written.
    """
    test = given["test_share"] or TEST
    source, options = given["table"], read_options(given)
    with joined_team() as team:
        tell = progress if team.is_first else _silent
        provenance = Provenance.of(source)
        request = {
            "settings": {**asdict(settings), "verbose": None},
            "columns": {**asdict(columns), "bins": dict(columns.bins)},
            "reading": asdict(options),
            "--test-share": test,
            "--no-plain": given["no_plain"],
            "the table": [(one.name, one.bytes, one.sha256) for one in provenance.data],
        }
        kept = CheckpointFolder.beside(target, request, is_writer=team.is_first)
        _under_way[:] = [kept] if team.is_first else []
        found = team.share(lambda: _surveyed(given, columns, kept, settings, test, tell))
        table = SurveyedTable.from_dict(found, columns)
        stored = stored_table(source, kept.folder / TEXTS, options, settings.seed, test=test)
        prepared = StreamedTable(table, fitted_encoder(table.features), settings.seed, test)
        models = [network(prepared, settings, epsilon=settings.epsilon or 0.0)]
        if not given["no_plain"]:
            models.append(
                network(prepared, settings, fairness_measure=None, selection="most_accurate")
            )
        rows = StreamedRows(
            stored,
            prepared,
            batch_size=models[0].batch_size,
            rank=team.rank,
            world=team.world,
        )
        tell(f"Training on {table.sizes()[TRAINING_PART]:,} rows in passes")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            fit_streamed(models, rows, processes=team.processes, checkpoint=kept)
        tell("Auditing the model on the test rows")
        counts = team.sum(_test_counts(rows, models))
        if not team.is_first:
            return None, kept
    fair, plain = [*models, None][:2]
    notes = tuple(dict.fromkeys(str(w.message) for w in caught if w.category is UserWarning))
    faults = [by_options(str(w.message)) for w in caught if w.category is FairnessWarning]
    trained = TrainedModels(
        fair, plain, notes=(_told(stored, team), *notes), faults=tuple(dict.fromkeys(faults))
    )
    frame = _count_frame(counts, table, rows, has_plain=plain is not None)
    audit = full_audit(
        prepared,
        settings,
        (frame[columns.target], frame["prediction"], frame[list(columns.sensitive)]),
        tolerance=read_tolerance(given),
        min_group=given["min_group"],
        baseline=None if plain is None else frame["baseline"],
        sample_weight=RowCounts(frame["count"].to_numpy(dtype=np.float64)),
    )
    return audited(prepared, settings, trained, audit, None, provenance), kept


def _silent(_: str) -> None:
    """The first process says what is done."""


def _surveyed(
    given: Mapping[str, Any],
    columns: ColumnRoles,
    kept: CheckpointFolder,
    settings: ModelSettings,
    test: float,
    progress: Callable[[str], object],
) -> dict[str, Any]:
    """What is known of the table: found now, or kept from before."""
    kept.check(resume=given["resume"], force=given["force"])
    if not given["resume"]:
        kept.clear()
    known = kept.surveyed()
    if known is not None:
        return known
    from fairgrad.cli.counted import run_shown  # noqa: PLC0415 - a bar, where it is needed

    name, options = table_name(given["table"]), read_options(given)
    progress(f"Looking at {name}")
    kept.folder.mkdir(parents=True, exist_ok=True)
    try:
        stored = stored_table(
            given["table"], kept.folder / TEXTS, options, settings.seed, test=test
        )
        table = survey(stored, columns, options, run_shown)
        check_desirable(table.labels, columns, settings)
        _check_parts(table)
    except Exception:
        kept.clear()
        raise
    kept.keep_survey(table)
    return table.to_dict()


def _check_parts(table: SurveyedTable) -> None:
    """Refuses a table so small that a part lacks rows."""
    for part, name in ((TRAINING_PART, "training"), (VALIDATION_PART, "validation"), (2, "test")):
        own = table.cells[table.cells[part] > 0]
        lacking = [one for one in table.labels if one not in set(own[table.columns.target])]
        if lacking:
            raise ValueError(
                f"no {name} row has {table.columns.target} = {lacking[0]!r}: the table has "
                f"{sum(table.sizes()):,} rows, too few to be trained on in passes; leave out "
                "--stream"
            )


def _told(stored: StoredTable, team: Team) -> str:
    """How it was trained."""
    n = len(stored.groups)
    by = f" by {team.world} processes" if team.world > 1 else ""
    few = "; some of them had nothing to read" if n < team.world else ""
    return (
        f"The table was never held in memory: it was read in passes{by}, {n:,} row "
        f"{'group' if n == 1 else 'groups'} each{few}, and the test rows were counted."
    )


def _test_counts(rows: StreamedRows, models: Sequence[Any]) -> NDArray[np.int64]:
    """(labels, groups, labels of each model) how many test rows are predicted in which way."""
    n_labels = len(rows.groups.labels)

    def predict(X: Any) -> Any:
        joint = 0
        for model in models:
            joint = joint * n_labels + np.searchsorted(model.classes_, model.predict(X))
        return joint

    return rows.counted(TEST_PART, predict, n_labels ** len(models))


def _count_frame(
    counts: NDArray[np.int64], table: SurveyedTable, rows: StreamedRows, *, has_plain: bool
) -> pd.DataFrame:
    """One row per combination of sensitive values, label and predictions."""
    groups, labels = rows.groups, np.asarray(rows.groups.labels, dtype=object)
    label, group, joint = np.nonzero(counts)
    fair, plain = np.divmod(joint, len(labels)) if has_plain else (joint, joint)
    found = {
        name: groups.column(place)[group] for place, name in enumerate(table.columns.sensitive)
    }
    found |= {table.columns.target: labels[label], "prediction": labels[fair]}
    found |= {"baseline": labels[plain]} if has_plain else {}
    return pd.DataFrame({**found, "count": counts[label, group, joint]})
