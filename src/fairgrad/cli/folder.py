"""The folder of a model: where it may be written, what is in it, and what it rests on."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import shlex
import tempfile
import zipfile
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import fairgrad
from fairgrad.audit.record import made_at, used_versions
from fairgrad.audit.seen_rows import row_digests
from fairgrad.columns import with_formulas
from fairgrad.files import read_sealed, sealed_json
from fairgrad.tables.features import Oddities, TableFeature, check_columns, read_groups
from fairgrad.tables.reading import table_files, table_name
from fairgrad.tables.roles import ColumnRoles
from fairgrad.tables.scan import database_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.audit import Audit, Certificate, SeenRows
    from fairgrad.tables.encoder import TableEncoder
    from fairgrad.tables.reading import TableSource

SCHEMA, SCHEMA_VERSION = "fairgrad.model", 4

MARK = "fairgrad.json"
"""The file that marks a folder as written by this program."""

MODEL, AUDIT, CARD, REPORT = "model.skops", "audit.json", "MODEL_CARD.md", "report.html"
POINTS, SAMPLE, ROWS = "frontier.csv", "people.csv", "test_rows.csv"
DIGESTS, LOOKS = "training_rows.npz", "looks.json"
"""Digests of the training rows (`SeenRows`), and the certificates that were asked for."""

TREES = "trees.zip"
"""The boosted trees of a model, in their library's own format, beside `MODEL`."""

TREE = "boosted trees "
"""What stands in `MODEL` instead of trees, before their number."""

TREE_LIBRARIES = {"lightgbm": "txt", "xgboost": "ubj"}
"""Libraries that grow boosted trees, and the ending of their files."""

FEATURE = {
    "name": str, "kind": str, "values": [str], "numbers": bool, "median": float, "low": float,
    "high": float, "has_gaps": bool,
}  # fmt: skip
FORM = {
    "target": str, "labels": [str], "sensitive": [str], "bins": dict, "uses_sensitive": bool,
    "missing": [str], "provenance": dict, "held_out": dict, "features": dict,
    "groups": [FEATURE], "settings": {"model": str, "measures": list},
}  # fmt: skip
"""What `MARK` must hold: types by name, a list for any number of the same."""

OURS = frozenset(
    {
        MARK, MODEL, AUDIT, CARD, REPORT, POINTS, SAMPLE, ROWS, TREES, DIGESTS, LOOKS,
        f".{LOOKS}.lock",
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted model with the columns it was fitted to.

    Attributes:
        pipeline: encoder and classifier.
        columns: the role of each column.
        labels: the values of the target, the desirable one last.
        settings: what it was trained for, as plain values.
        groups: what is known of the sensitive columns, if it looks at them to predict.
        missing: texts that meant a missing value in training, besides the usual ones.
        provenance: what it rests on, as plain values; empty for models of older versions.
        held_out: how the test rows of a large table are found again (`LargeTable`); empty if a
            file names them.
        seen: digests of the rows it was trained on and chosen by; they are not loaded.
    """

    pipeline: Any
    columns: ColumnRoles
    labels: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    groups: Sequence[TableFeature] = ()
    missing: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    held_out: dict[str, Any] = field(default_factory=dict)
    seen: SeenRows | None = None

    @property
    def needed(self) -> list[str]:
        """Names of the columns it needs to predict."""
        return list(dict.fromkeys([*self.encoder.columns_, *(one.column for one in self.groups)]))

    @property
    def encoder(self) -> TableEncoder:
        """What turns tables into numbers."""
        return self.pipeline[0]  # type: ignore[no-any-return] # a pipeline holds anything

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures it was trained for."""
        return tuple(self.settings["measures"])

    def predict(
        self, table: pd.DataFrame, missing: Sequence[str] = ()
    ) -> tuple[NDArray[Any], NDArray[np.float64], Oddities]:
        """(n,) labels, (n, labels) the probability of each, and what was odd about the table.

        A fair decision need not be the most probable label.

        Args:
            table: rows to predict.
            missing: further texts that mean a missing value.
        """
        gaps = (*self.missing, *missing)
        features, odd = self.encoder.read(table, gaps)
        if not len(table):
            return np.empty(0, dtype=object), np.empty((0, len(self.labels))), odd
        matrix: Any = self.encoder.encode(features)
        classifier, known = self.pipeline[-1], {}
        if "feature_names_in_" in vars(classifier):
            matrix = type(table)(matrix, columns=classifier.feature_names_in_, copy=False)
        if self.groups:
            values, strange = read_groups(table, self.groups, self.columns.bins, gaps)
            odd.update({key: n for key, n in strange.items() if key not in odd})
            known["sensitive_features"] = values
        order = [classifier.classes_.tolist().index(label) for label in self.labels]
        predicted = np.asarray(classifier.predict(matrix, **known)).astype(object)
        return predicted, classifier.predict_proba(matrix, **known)[:, order], odd

    def row_digests(self, table: pd.DataFrame, missing: Sequence[str] = ()) -> NDArray[np.uint32]:
        """(n,) digests of the features of a table, as `SeenRows` compares them."""
        features, _ = self.encoder.read(table, (*self.missing, *missing))
        return row_digests(self.encoder.encode(features))

    def save(self, folder: Path) -> None:
        """Writes the model and what is needed to use it into a folder.

        Boosted trees are in their library's own format.
        """
        from fairgrad import persistence  # noqa: PLC0415 - imports PyTorch

        pipeline = self.pipeline
        if self.settings["model"] in TREE_LIBRARIES:
            pipeline = _without_trees(pipeline, self.settings["model"], folder)
        else:  # so that the pipeline takes tables as they are
            pipeline = copy.deepcopy(pipeline)
            pipeline[-1].feature_names_in_ = self.encoder.get_feature_names_out()
        persistence.save(pipeline, folder / MODEL)
        known = {
            "target": self.columns.target,
            "labels": self.labels,
            "sensitive": list(self.columns.sensitive),
            "bins": dict(self.columns.bins),
            "uses_sensitive": self.columns.use_sensitive,
            "missing": list(self.missing),
            "provenance": self.provenance,
            "held_out": self.held_out,
            "settings": self.settings,
            "features": {one.name: one.kind for one in self.encoder.features_},
            "groups": [asdict(feature) for feature in self.groups],
        }
        if self.seen is not None:
            self.seen.save(folder / DIGESTS)
        write_mark(folder, SCHEMA, SCHEMA_VERSION, known)


def _without_trees(pipeline: Any, library: str, folder: Path) -> Any:
    """A copy of a pipeline with numbers instead of boosted trees, which are written by number."""
    library_module = import_module(f"fairgrad.{library}")
    kinds = (library_module.FairBoostingMixin,)
    trees: list[Any] = []

    def number(tree: Any) -> str:
        trees.append(tree)
        return f"{TREE}{len(trees) - 1}"

    bare = copy.copy(pipeline)
    classifier = copy.copy(pipeline[-1])
    classifier.estimator = None  # unfitted, and not needed any more
    fitted = {
        name: _replaced(value, lambda one: isinstance(one, kinds), number)
        for name, value in vars(classifier).items()
    }
    classifier.__dict__ |= fitted
    bare.steps = [*pipeline.steps[:-1], (pipeline.steps[-1][0], classifier)]
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(folder / TREES, "w") as archive:
        for i, tree in enumerate(trees):
            library_module.save(tree, Path(place) / f"{i}.{TREE_LIBRARIES[library]}")
        for file in sorted(Path(place).iterdir()):
            archive.write(file, file.name, zipfile.ZIP_DEFLATED)
    return bare


def _with_trees(pipeline: Any, library: str, folder: Path) -> Any:
    """The pipeline that `_without_trees` has taken apart."""
    from fairgrad import persistence  # noqa: PLC0415 - as in load_model

    try:
        library_module = import_module(f"fairgrad.{library}")
    except ImportError:
        raise ValueError(
            f"{folder} needs the package {library}: pip install 'fairgrad[{library}]'"
        ) from None
    persistence.check_archive(folder / TREES)
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(folder / TREES) as archive:
        for name in archive.namelist():
            if Path(name).name == name:  # nothing is written elsewhere
                (Path(place) / name).write_bytes(archive.read(name))

        def read(marker: str) -> Any:
            path = Path(place) / f"{marker.removeprefix(TREE)}.{TREE_LIBRARIES[library]}"
            if not path.is_file():
                raise ValueError(f"{folder / TREES} is damaged: {path.name} is missing")
            return library_module.load(path)

        classifier = pipeline[-1]
        classifier.__dict__ |= {
            name: _replaced(value, _is_marker, read) for name, value in vars(classifier).items()
        }
    return pipeline


def _is_marker(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(TREE)


def _replaced(value: Any, is_wanted: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """A value with some parts of its lists and dictionaries changed."""
    if is_wanted(value):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_replaced(one, is_wanted, change) for one in value)
    if isinstance(value, dict):
        return {name: _replaced(one, is_wanted, change) for name, one in value.items()}
    return value


def load_model(folder: str | Path, names: list[str]) -> SavedModel:
    """Reads a model's folder; no code in it is run.

    Args:
        folder: as `fairgrad fit` writes it.
        names: columns of the table that the model is for.

    Raises:
        ValueError: if it is not such a folder, or of a newer version, or the table lacks columns.
    """
    path = Path(folder).expanduser()
    if not (path / MARK).is_file():
        what = "is not a folder" if not path.is_dir() else f"is not a model: it has no {MARK}"
        raise ValueError(f"{folder} {what}; give a folder that `fairgrad fit` has written")
    known = _read_mark(path / MARK)
    library = known["settings"]["model"]
    grows_trees = library in TREE_LIBRARIES
    for file in (MODEL, TREES) if grows_trees else (MODEL,):
        if not (path / file).is_file():
            raise ValueError(f"{folder} is incomplete: {file} is missing; fit the model again")
    groups = [TableFeature.from_dict(values) for values in known["groups"]]
    columns = ColumnRoles(
        target=known["target"],
        sensitive=tuple(known["sensitive"]),
        bins=known["bins"],
        y_desirable=known["labels"][-1],
        use_sensitive=known["uses_sensitive"],
    )
    from fairgrad import persistence  # noqa: PLC0415 - PyTorch, after all quick checks

    pipeline = persistence.load(path / MODEL)
    if grows_trees:
        pipeline = _with_trees(pipeline, library, path)
    check_columns(names, [*getattr(pipeline[0], "features_", ()), *groups])
    same = {name: known[name] for name in ("labels", "settings", "provenance", "held_out")}
    missing = tuple(known["missing"])
    model = SavedModel(pipeline, columns, groups=groups, missing=missing, **same)
    _check_works(model, folder)
    return model


def _check_works(model: SavedModel, folder: str | Path) -> None:
    """Predicts a row without values: finds parts that do not fit together before any work."""
    import pandas as pd  # noqa: PLC0415 - after the quick checks

    try:
        _, scores, _ = model.predict(pd.DataFrame([dict.fromkeys(model.needed)]))
        if len(model.labels) != len(model.pipeline[-1].classes_):
            raise ValueError(f"it has other labels than {model.labels}")  # noqa: TRY301 - as below
    except Exception as error:  # whatever a library raises if its parts were changed
        raise ValueError(
            f"{folder} is damaged: the model cannot predict ({type(error).__name__}: {error}). Fit "
            "the model again"
        ) from error
    if not np.isfinite(scores).all():
        raise ValueError(f"{folder}: The model's weights are not numbers. Fit the model again")


def held_out_rows(
    frame: pd.DataFrame, folder: str, table: Sequence[str], model: SavedModel
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """The rows of the training table that a model was judged on when it was trained.

    Args:
        frame: the table.
        folder: of the model.
        table: its files.
        model: as loaded from the folder.

    Returns:
        The rows; and, if they were judged by cross-validation, the predictions kept of it.

    Raises:
        ValueError: if the table is another one, or the folder does not say which rows.
    """
    import pandas as pd  # noqa: PLC0415 - after the quick checks

    path = Path(folder).expanduser() / ROWS
    if not path.is_file():
        raise ValueError(f"--held-out: {folder} has no {ROWS}, which lists the rows held out")
    known = "test" if model.provenance.get("test") else "data"
    if not same_data(table, {"data": model.provenance.get(known, ())}):
        raise ValueError(
            f"--held-out: {table_name(table)} is not the table this model was judged on"
        )
    judged = pd.read_csv(path, dtype={"prediction": str}, keep_default_na=False)
    judged["prediction"] = with_formulas(judged["prediction"])
    rows = frame.iloc[judged["row"].to_numpy() - 1].reset_index(drop=True)
    return rows, judged if "fold" in judged else None


def write_mark(folder: Path, schema: str, schema_version: int, known: dict[str, Any]) -> None:
    """Writes the file that says what a folder holds."""
    head = {
        "schema": schema,
        "schema_version": schema_version,
        "fairgrad_version": fairgrad.__version__,
    }
    (folder / MARK).write_text(sealed_json(head | known) + "\n", encoding="utf-8")


def _read_mark(path: Path) -> dict[str, Any]:
    try:
        known = read_sealed(path.read_text(encoding="utf-8"))
        schema, number = known["schema"], int(known["schema_version"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"{path} is damaged ({' '.join(str(error).split())})") from error
    if schema != SCHEMA:
        raise ValueError(f"{path.parent} does not contain a model ({schema})")
    if number > SCHEMA_VERSION:
        raise ValueError(
            f"{path} was written by fairgrad {known.get('fairgrad_version')}, which is newer than "
            f"this version ({fairgrad.__version__}): upgrade fairgrad"
        )
    if number < SCHEMA_VERSION:
        raise ValueError(
            f"{path.parent} was written by an earlier version of fairgrad "
            f"({known.get('fairgrad_version')}); fit the model again"
        )
    for name, form in FORM.items():
        _check_form(known.get(name), form, name, path)
    if not known["labels"]:
        raise ValueError(f"{path} is damaged (labels: there are none)")
    return known


def _check_form(value: Any, form: Any, place: str, path: Path) -> None:
    """Refuses a value that is not of its form: a type, a list of them, or a dictionary."""
    kind: Any = type(form) if isinstance(form, list | dict) else form
    if kind is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise ValueError(
            f"{path} is damaged ({place}: expected {kind.__name__}, got {value!r:.40})"
        )
    if isinstance(form, list):
        for i, one in enumerate(value):
            _check_form(one, form[0], f"{place}[{i}]", path)
    elif isinstance(form, dict):
        for name, entry in form.items():
            _check_form(value.get(name), entry, f"{place}.{name}", path)


def check_folder(
    folder: str | Path,
    *,
    force: bool,
    mark: str = MARK,
    known: frozenset[str] | None = OURS,
) -> Path:
    """Refuses to write where something else is, before any work is done.

    Args:
        folder: to be written.
        force: whether earlier output of this program may be replaced.
        mark: the file that says that this program wrote the folder.
        known: names of all files that it writes; None if they cannot be known.
    """
    path = Path(folder).expanduser().absolute()
    if path.is_file():
        raise ValueError(f"{folder} is a file; give a folder to write to")
    _check_parent(path)
    if not path.exists() or not any(path.iterdir()):
        return path
    others = sorted({entry.name for entry in path.iterdir()} - (known or frozenset()))
    if (others and known) or not (path / mark).is_file():
        example = f", such as {others[0]!r}" if others else ""
        raise ValueError(
            f"{folder} contains files that fairgrad did not write{example}; choose another folder, "
            "as they would be lost"
        )
    if not force:
        raise ValueError(f"{folder} exists; use --force to replace it, or choose another folder")
    return path


def check_file(file: str | Path, *, force: bool) -> Path:
    """Refuses to overwrite a file unless that was asked for."""
    path = Path(file).expanduser().absolute()
    if path.is_dir():
        raise ValueError(f"{file} is a folder; give a file to write to")
    _check_parent(path)
    if path.exists() and not force:
        raise ValueError(f"{file} exists; use --force to replace it, or choose another file")
    return path


def _check_parent(path: Path) -> None:
    """Refuses a place that cannot be written, before the work and not after it."""
    above = next(parent for parent in path.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ValueError(f"{path} cannot be written: {above} is not a writable folder")


MUCH = 1 << 30
"""Bytes of data from which on files are named by their size, and not hashed."""

MOST_NAMED = 20


@dataclass(frozen=True)
class TableFile:
    """A file that was read.

    Attributes:
        name: without its folder.
        bytes: its size.
        sha256: its hash, as ``sha256sum`` prints it; empty where there is much data, of which a
            query needs a few columns only.
    """

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Provenance:
    """What a result rests on.

    Attributes:
        data: the files of the table.
        test: the files of the table of --test.
        command: as it was typed.
        date: of the result, in UTC; that of SOURCE_DATE_EPOCH if it is set.
        versions: of Python and the packages.
    """

    data: tuple[TableFile, ...]
    test: tuple[TableFile, ...]
    command: str
    date: str
    versions: Mapping[str, str]

    @classmethod
    def of(cls, table: TableSource, test: str | None = None) -> Provenance:
        """That of a result of the running command."""
        data, judged = (_hashed(source) for source in (table, test or ()))
        return cls(data, judged, _command(), made_at(), used_versions())

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        known = asdict(self)
        return {**known, "data": [*known["data"]], "test": [*known["test"]]}

    def in_words(self) -> dict[str, str]:
        """For people."""
        files = {"Data": self.data, "Test data": self.test}
        texts = {name: _in_words(hashed) for name, hashed in files.items() if hashed}
        packages = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return {**texts, "Date": self.date, "Versions": packages, "Command": self.command}


def _in_words(files: Sequence[TableFile]) -> str:
    names = [
        f"{one.name}, SHA-256 {one.sha256}" if one.sha256 else f"{one.name}, {one.bytes:,} bytes"
        for one in files[:MOST_NAMED]
    ]
    more = len(files) - MOST_NAMED
    return "; ".join([*names, *([f"and {more:,} more files"] if more > 0 else ())])


def audit_values(audit: Audit, source: Provenance) -> dict[str, Any]:
    """An audit, with what it rests on, as plain values."""
    return {**audit.to_dict(), "provenance": source.to_dict()}


def audit_json(audit: Audit, source: Provenance, certificate: Certificate | None = None) -> str:
    """The same as JSON, with the certificate that rests on it, if there is one."""
    values = audit_values(audit, source)
    if certificate is not None:
        values["certificate"] = certificate.to_dict()
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def same_data(table: TableSource, known: Mapping[str, Any]) -> bool:
    """Whether a file of the table is one that a model was trained on.

    Args:
        table: what is read now.
        known: a provenance as plain values; empty for models of older versions.
    """
    files = known.get("data", ())
    hashes = {one["sha256"] for one in files} - {""}
    # Much data is not hashed: there a name and a size stand for a file.
    names = {(one["name"], one["bytes"]) for one in files if not one["sha256"]}
    if not hashes and not names:
        return False
    return any(one.sha256 in hashes or (one.name, one.bytes) in names for one in _hashed(table))


def all_files(table: TableSource) -> list[Path]:
    """The files of a table, with those in folders."""
    inside = (sorted(p.rglob("*")) if p.is_dir() else [p] for p in table_files(table))
    return [file for files in inside for file in files if file.is_file()]


def _hashed(table: TableSource) -> tuple[TableFile, ...]:
    database = database_table(table) if table else None
    if database is not None:
        path, name = database
        size = path.stat().st_size if path.is_file() else 0
        return (TableFile("::".join(piece for piece in (path.name, name) if piece), size, ""),)
    files = all_files(table)
    is_much = sum(file.stat().st_size for file in files) > MUCH
    return tuple(
        TableFile(file.name, file.stat().st_size, "" if is_much else _sha256(file))
        for file in files
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _command() -> str:
    context = click.get_current_context(silent=True)
    arguments = context.find_root().obj if context else None
    return shlex.join(["fairgrad", *(arguments or ())]) if context else ""
