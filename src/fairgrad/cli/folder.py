"""The folder of a model: where it may be written, what is in it, and what it rests on."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import fairgrad
from fairgrad.audit.record import made_at, used_versions
from fairgrad.columns import with_formulas
from fairgrad.definitions import BOUND, DEFINITIONS
from fairgrad.files import read_sealed, sealed_json
from fairgrad.tables.features import Oddities, TableFeature, check_columns, read_groups
from fairgrad.tables.reading import all_files, database_table, table_files, table_name
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.audit import SeenRows
    from fairgrad.tables.encoder import TableEncoder
    from fairgrad.tables.reading import TableSource

SCHEMA, SCHEMA_VERSION = "fairgrad.model", 5

MARK = "fairgrad.json"
"""The file that marks a folder as written by this program."""

MODEL, AUDIT, CARD, REPORT = "model.skops", "audit.json", "MODEL_CARD.md", "report.html"
POINTS, SAMPLE, ROWS = "frontier.csv", "people.csv", "test_rows.csv"
DIGESTS, LOOKS = "training_rows.npz", "looks.json"
"""Digests of the training rows (`SeenRows`), and the certificates that were asked for."""

PREDICTED, BASELINE = "prediction of the model", "prediction of the plain model"
STORED = "cross-validation: "
"""Names of columns of predictions, and what those of kept predictions begin with."""

FEATURE = {
    "name": str, "kind": str, "values": [str], "numbers": bool, "median": float, "low": float,
    "high": float, "has_gaps": bool,
}  # fmt: skip
FILES = [{"name": str, "bytes": int, "sha256": str}]
FORM = {
    "target": str, "labels": [str], "sensitive": [str], "bins": {str: [float]},
    "uses_sensitive": bool, "missing": [str], "provenance": {"data": FILES, "test": FILES},
    "held_out": dict, "features": dict, "groups": [FEATURE],
    "settings": {
        "model": str, "measures": [str], "within": [str], "separate": bool,
        "desirable": (str, type(None)),
    },
}  # fmt: skip
"""What `MARK` must hold: types by name, several in a tuple, a list for any number of the same, and
`str` for any name."""

OURS = frozenset(
    {
        MARK, MODEL, AUDIT, CARD, REPORT, POINTS, SAMPLE, ROWS, DIGESTS, LOOKS,
        f".{LOOKS}.lock",
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted model with the columns it was fitted to.

    Attributes:
        encoder: what turns tables into numbers.
        classifier: what predicts from these.
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

    encoder: TableEncoder
    classifier: Any
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
        return list(dict.fromkeys([*self.encoder.columns_, *(f.column for f in self.groups)]))

    def predict(
        self, table: pd.DataFrame, missing: Sequence[str] = ()
    ) -> tuple[NDArray[Any], NDArray[np.float64], Oddities]:
        """(n,) labels, (n, labels) the probability of each, and what was odd about the table.

        A fair decision need not be the most probable label.

        Args:
            table: rows to predict.
            missing: further texts that mean a missing value.
        """
        matrix, odd = self.encoded(table, missing)
        if not len(table):
            return np.empty(0, dtype=object), np.empty((0, len(self.labels))), odd
        classifier, known = self.classifier, {}
        if "feature_names_in_" in vars(classifier):
            matrix = type(table)(matrix, columns=classifier.feature_names_in_, copy=False)
        if self.groups:
            gaps = (*self.missing, *missing)
            values, strange = read_groups(table, self.groups, self.columns.bins, gaps)
            odd.update({key: n for key, n in strange.items() if key not in odd})
            known["sensitive_features"] = values
        order = [classifier.classes_.tolist().index(label) for label in self.labels]
        predicted = np.asarray(classifier.predict(matrix, **known)).astype(object)
        return predicted, classifier.predict_proba(matrix, **known)[:, order], odd

    def encoded(self, table: pd.DataFrame, missing: Sequence[str] = ()) -> tuple[Any, Oddities]:
        """(n, columns) the features of a table as numbers, and what was odd about it."""
        features, odd = self.encoder.read(table, (*self.missing, *missing))
        return self.encoder.encode(features), odd

    def save(self, folder: Path) -> None:
        """Writes the model and what is needed to use it into a folder."""
        from sklearn.pipeline import Pipeline  # noqa: PLC0415 - what is saved is loaded already

        from fairgrad import persistence  # noqa: PLC0415 - as above

        classifier = copy.copy(self.classifier)  # so that it takes tables
        classifier.feature_names_in_ = self.encoder.get_feature_names_out()
        steps = [("features", self.encoder), ("classifier", classifier)]
        persistence.save(Pipeline(steps), folder / MODEL)
        known = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "fairgrad_version": fairgrad.__version__,
            "target": self.columns.target,
            "labels": self.labels,
            "sensitive": list(self.columns.sensitive),
            "bins": dict(self.columns.bins),
            "uses_sensitive": self.columns.use_sensitive,
            "missing": list(self.missing),
            "provenance": self.provenance,
            "held_out": self.held_out,
            "settings": self.settings,
            "features": {f.name: f.kind for f in self.encoder.features_},
            "groups": [asdict(feature) for feature in self.groups],
        }
        if self.seen is not None:
            self.seen.save(folder / DIGESTS)
        (folder / MARK).write_text(sealed_json(known) + "\n", encoding="utf-8")


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
    if not (path / MODEL).is_file():
        raise ValueError(f"{folder} is incomplete: {MODEL} is missing; fit the model again")
    groups = [TableFeature(**{**g, "values": tuple(g["values"])}) for g in known["groups"]]
    columns = ColumnRoles(
        target=known["target"],
        sensitive=tuple(known["sensitive"]),
        bins=known["bins"],
        y_desirable=known["labels"][-1],
        use_sensitive=known["uses_sensitive"],
    )
    from fairgrad import persistence  # noqa: PLC0415 - PyTorch, after all quick checks

    pipeline = persistence.load(path / MODEL)
    check_columns(names, [*getattr(pipeline[0], "features_", ()), *groups])
    same = {name: known[name] for name in ("labels", "settings", "provenance", "held_out")}
    missing = tuple(known["missing"])
    model = SavedModel(pipeline[0], pipeline[-1], columns, groups=groups, missing=missing, **same)
    import pandas as pd  # noqa: PLC0415 - after the quick checks

    try:  # a row without values finds parts that do not fit together before any work
        _, scores, _ = model.predict(pd.DataFrame([dict.fromkeys(model.needed)]))
        if len(model.labels) != len(model.classifier.classes_):
            raise ValueError(f"it has other labels than {model.labels}")  # noqa: TRY301 - as below
    except Exception as error:  # whatever a library raises if its parts were changed
        raise ValueError(
            f"{folder} is damaged: the model cannot predict ({type(error).__name__}: {error}). Fit "
            "the model again"
        ) from error
    if not np.isfinite(scores).all():
        raise ValueError(f"{folder}: The model's weights are not numbers. Fit the model again")
    return model


def held_out_rows(
    frame: pd.DataFrame, folder: str, table: Sequence[str], model: SavedModel
) -> pd.DataFrame:
    """The rows of the training table that a model was judged on when it was trained.

    If they were judged by cross-validation, the predictions kept of it are columns whose names
    begin with `STORED`.

    Raises:
        ValueError: if it is a different table, or the folder does not name the rows.
    """
    import pandas as pd  # noqa: PLC0415 - after the quick checks

    path = Path(folder).expanduser() / ROWS
    if not path.is_file():
        raise ValueError(f"--held-out: {folder} has no {ROWS}, which lists the rows held out")
    check_judged_on(table, model)
    judged = pd.read_csv(path, dtype={"prediction": str}, keep_default_na=False)
    judged["prediction"] = with_formulas(judged["prediction"])
    rows = frame.iloc[judged["row"].to_numpy() - 1].reset_index(drop=True)
    return rows.join(judged.add_prefix(STORED)) if "fold" in judged else rows


def check_judged_on(table: Sequence[str], model: SavedModel) -> None:
    """Refuses a table that does not hold the rows that were held out for a model."""
    known = "test" if model.provenance.get("test") else "data"
    if not same_data(table, {"data": model.provenance.get(known, ())}):
        raise ValueError(
            f"--held-out: {table_name(table)} is not the table this model was judged on"
        )


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
    for name in known["settings"]["measures"]:
        if name not in DEFINITIONS and not BOUND.fullmatch(name.strip()):
            raise ValueError(f"{path} is damaged (settings.measures: {name!r:.40} is unknown)")
    return known


def _check_form(value: Any, form: Any, place: str, path: Path) -> None:
    """Refuses a value that is not of its form: a type, a list of them, or a dictionary."""
    if isinstance(form, tuple):
        form = type(value) if type(value) in form else form[0]
    kind: Any = type(form) if isinstance(form, list | dict) else form
    if kind is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise ValueError(
            f"{path} is damaged ({place}: expected {kind.__name__}, got {value!r:.40})"
        )
    if isinstance(form, list):
        for i, item in enumerate(value):
            _check_form(item, form[0], f"{place}[{i}]", path)
    elif isinstance(form, dict):
        for name in value if str in form else form:
            _check_form(value.get(name), form.get(str, form.get(name)), f"{place}.{name}", path)


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
        mark: the file that shows that this program wrote the folder.
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


def provenance(table: TableSource, test: str | None = None) -> dict[str, Any]:
    """What a result of the running command rests on: data, command, date, versions.

    Much data is not hashed, as a query needs a few columns only.
    """
    context = click.get_current_context(silent=True)
    typed = (context.find_root().obj if context else None) or ()
    return {
        "data": _hashed(table),
        "test": _hashed(test or ()),
        "command": shlex.join(["fairgrad", *typed]) if context else "",
        "date": made_at(),
        "versions": used_versions(),
    }


def provenance_words(source: Mapping[str, Any]) -> dict[str, str]:
    """A provenance for people."""
    words: dict[str, str] = {}
    for name, files in {"Data": source["data"], "Test data": source["test"]}.items():
        listed = [
            f"{one['name']}, SHA-256 {one['sha256']}"
            if one["sha256"]
            else f"{one['name']}, {one['bytes']:,} bytes"
            for one in files[:MOST_NAMED]
        ]
        more = len(files) - MOST_NAMED
        listed += [f"and {more:,} more files"] if more > 0 else []
        words |= {name: "; ".join(listed)} if files else {}
    packages = ", ".join(f"{name} {number}" for name, number in source["versions"].items())
    return {**words, "Date": source["date"], "Versions": packages, "Command": source["command"]}


def as_json(values: Mapping[str, Any]) -> str:
    """Plain values as a JSON file."""
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def same_data(table: TableSource, known: Mapping[str, Any]) -> bool:
    """Whether a file of the table is one that a model was trained on, by its provenance."""
    files = known.get("data", ())
    hashes = {one["sha256"] for one in files} - {""}
    # Much data is not hashed: there a name and a size stand for a file.
    names = {(one["name"], one["bytes"]) for one in files if not one["sha256"]}
    if not hashes and not names:
        return False
    return any(
        one["sha256"] in hashes or (one["name"], one["bytes"]) in names for one in _hashed(table)
    )


def _hashed(table: TableSource) -> list[dict[str, Any]]:
    """The files of a table: name, size, and SHA-256 as ``sha256sum`` prints it."""
    database = database_table(table) if table else None
    if database is not None:
        path, name = database
        size = path.stat().st_size if path.is_file() else 0
        return [{"name": "::".join(filter(None, (path.name, name))), "bytes": size, "sha256": ""}]
    files, known = all_files(table_files(table)), []
    is_much = sum(file.stat().st_size for file in files) > MUCH
    for path in files:
        sha256 = ""
        if not is_much:
            with path.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        known.append({"name": path.name, "bytes": path.stat().st_size, "sha256": sha256})
    return known
