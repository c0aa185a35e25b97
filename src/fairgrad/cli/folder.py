"""The folder of a model: where it may be written, what is in it, and reading it again."""

from __future__ import annotations

import copy
import os
import tempfile
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import fairgrad
from fairgrad.cli.provenance import same_data
from fairgrad.columns import with_formulas
from fairgrad.files import read_sealed, sealed_json
from fairgrad.tables.encoding import (
    Oddities,
    TrainedFeature,
    check_columns,
    encode_rows,
    read_features,
    read_groups,
)
from fairgrad.tables.reading import table_name
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

SCHEMA, SCHEMA_VERSION = "fairgrad.model", 2

MARK = "fairgrad.json"
"""The file that marks a folder as written by this program."""

MODEL, AUDIT, CARD, REPORT = "model.skops", "audit.json", "MODEL_CARD.md", "report.html"
POINTS, SAMPLE, ROWS = "frontier.csv", "people.csv", "test_rows.csv"
ENCODER, TREES = "features.skops", "model.txt"
TREE_FILES = (ENCODER, TREES, f"{TREES}.fairness.json")
"""What a folder with boosted trees holds in place of `MODEL`."""

DECISIONS, GROUPS, AWARE = "decisions.skops", "groups.zip", "aware.txt"
"""What it holds besides if decisions on the trees are fair: weights, and the trees of groups; among
these the trees that look at the sensitive values, if there are any."""

OURS = frozenset(
    {MARK, MODEL, AUDIT, CARD, REPORT, POINTS, SAMPLE, ROWS, *TREE_FILES, DECISIONS, GROUPS}
)


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A fitted model with the columns it was fitted to.

    Attributes:
        pipeline: encoder and classifier.
        columns: the role of each column.
        features: what is known of each feature.
        labels: the values of the target, the desirable one last.
        settings: what it was trained for, as plain values.
        groups: what is known of the sensitive columns, if it looks at them to predict.
        missing: texts that meant a missing value in training, besides the usual ones.
        provenance: what it rests on, as plain values; empty for models of older versions.
    """

    pipeline: Any
    columns: ColumnRoles
    features: list[TrainedFeature]
    labels: list[str]
    settings: dict[str, Any]
    groups: Sequence[TrainedFeature] = ()
    missing: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def needed(self) -> list[str]:
        """Names of the columns it needs to predict."""
        return list(dict.fromkeys(one.column for one in (*self.features, *self.groups)))

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures it was trained for."""
        if "measures" in self.settings:
            return tuple(self.settings["measures"])
        return (str(self.settings["measure"]),)  # as earlier versions wrote it

    def scores(
        self, table: pd.DataFrame, missing: Sequence[str] = ()
    ) -> tuple[NDArray[np.float64], Oddities]:
        """(n, labels) the probability of each label, and what was odd about the table.

        Args:
            table: rows to predict.
            missing: further texts that mean a missing value.
        """
        gaps = (*self.missing, *missing)
        features, odd = read_features(table, self.features, gaps)
        if not len(table):
            return np.empty((0, len(self.labels))), odd
        matrix = encode_rows(self.pipeline[0], features)
        classifier, known = self.pipeline[-1], {}
        if self.groups:
            values, strange = read_groups(table, self.groups, self.columns.bins, gaps)
            odd.update({key: n for key, n in strange.items() if key not in odd})
            known["sensitive_features"] = values
        order = [classifier.classes_.tolist().index(label) for label in self.labels]
        return classifier.predict_proba(matrix, **known)[:, order], odd

    def save(self, folder: Path) -> None:
        """Writes the model and what is needed to use it into a folder.

        Boosted trees are in LightGBM's own format, with the encoder and the multipliers beside.
        """
        from fairgrad import persistence  # noqa: PLC0415 - imports PyTorch

        if self.settings["model"] == "lightgbm":
            from fairgrad import lightgbm  # noqa: PLC0415 - optional

            trees = self.pipeline[-1]
            persistence.save(self.pipeline[0], folder / ENCODER)
            if not isinstance(trees, lightgbm.FairGradLGBMClassifier):
                trees = _save_decisions(trees, folder)
            lightgbm.save(trees, folder / TREES)
        else:
            persistence.save(self.pipeline, folder / MODEL)
        known = {
            "target": self.columns.target,
            "labels": self.labels,
            "sensitive": list(self.columns.sensitive),
            "bins": dict(self.columns.bins),
            "uses_sensitive": self.columns.use_sensitive,
            "missing": list(self.missing),
            "provenance": self.provenance,
            "settings": self.settings,
            "features": [asdict(feature) for feature in self.features],
            "groups": [asdict(feature) for feature in self.groups],
        }
        write_mark(folder, SCHEMA, SCHEMA_VERSION, known)


def _save_decisions(model: Any, folder: Path) -> Any:
    """Writes fair decisions on boosted trees, but for the trees of the labels, which it gives."""
    from fairgrad import lightgbm, persistence  # noqa: PLC0415 - as in SavedModel.save
    from fairgrad.boosting.estimator import fairness_file  # noqa: PLC0415 - as above

    bare = copy.copy(model)
    bare.estimator = bare.group_estimator = bare.label_model_ = bare.aware_model_ = None
    bare.cell_models_ = [
        [own if isinstance(own, int) else None for own in part] for part in model.cell_models_
    ]
    persistence.save(bare, folder / DECISIONS)
    trees = {f"{i}-{j}.txt": model.cell_models_[i][j] for i, j in _missing(bare.cell_models_)}
    if model.aware_model_ is not None:
        trees[AWARE] = model.aware_model_
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(folder / GROUPS, "w") as archive:
        for name, own in trees.items():
            path = lightgbm.save(own, Path(place) / name)
            for file in (path, fairness_file(path)):
                archive.write(file, file.name, zipfile.ZIP_DEFLATED)
    return model.label_model_


def _load_decisions(trees: Any, folder: Path) -> Any:
    """The fair decisions that `_save_decisions` wrote, on the trees of the labels."""
    from fairgrad import lightgbm, persistence  # noqa: PLC0415 - as in load_model
    from fairgrad.boosting.estimator import fairness_file  # noqa: PLC0415 - as above

    model = persistence.load(folder / DECISIONS)
    model.label_model_ = trees
    persistence.check_archive(folder / GROUPS)
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(folder / GROUPS) as archive:

        def read(name: str) -> Any:
            path = Path(place) / name
            for file in (path, fairness_file(path)):
                if file.name not in archive.namelist():
                    raise ValueError(f"{folder / GROUPS} is damaged: {file.name} is missing")
                file.write_bytes(archive.read(file.name))
            return lightgbm.load(path)

        for i, j in _missing(model.cell_models_):
            model.cell_models_[i][j] = read(f"{i}-{j}.txt")
        if getattr(model, "sensitive_encoder_", None) is not None:  # files of before have none
            model.aware_model_ = read(AWARE)
    return model


def _missing(cell_models: list[list[Any]]) -> list[tuple[int, int]]:
    """The places of models that are trees, and in files of their own."""
    return [
        (i, j) for i, part in enumerate(cell_models) for j, own in enumerate(part) if own is None
    ]


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
    grows_trees = known["settings"].get("model") == "lightgbm"
    files = list(TREE_FILES if grows_trees else (MODEL,))
    decides = known["settings"].get("method") == "decision" or (path / DECISIONS).is_file()
    files += [DECISIONS, GROUPS] if grows_trees and decides else []
    for file in files:
        if not (path / file).is_file():
            raise ValueError(f"{folder} is incomplete: {file} is missing; fit the model again")
    features = [TrainedFeature.from_dict(values) for values in known["features"]]
    # Older models had sensitive columns among their features, if they looked at them.
    groups = [TrainedFeature.from_dict(values) for values in known.get("groups", ())]
    check_columns(names, [*features, *groups])
    columns = ColumnRoles(
        target=known["target"],
        sensitive=tuple(known["sensitive"]),
        bins=known["bins"],
        y_desirable=known["labels"][-1],
        use_sensitive=known["uses_sensitive"],
    )
    from fairgrad import persistence  # noqa: PLC0415 - PyTorch, after all quick checks

    if not grows_trees:
        pipeline = persistence.load(path / MODEL)
    else:
        try:
            from fairgrad import lightgbm  # noqa: PLC0415 - optional
        except ImportError:
            raise ValueError(
                f"{folder} needs the package lightgbm: pip install 'fairgrad[lightgbm]'"
            ) from None
        trees = lightgbm.load(path / TREES)
        classifier = _load_decisions(trees, path) if decides else trees
        pipeline = (persistence.load(path / ENCODER), classifier)
    return SavedModel(
        pipeline,
        columns,
        features,
        known["labels"],
        known["settings"],
        groups,
        tuple(known.get("missing", ())),
        known.get("provenance", {}),
    )


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
        raise ValueError(f"--held-out: {folder} has no {ROWS}, which says which rows")
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
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({' '.join(str(error).split())})") from error
    if schema != SCHEMA:
        raise ValueError(f"{path.parent} does not contain a model ({schema})")
    if number > SCHEMA_VERSION:
        raise ValueError(
            f"{path} was written by fairgrad {known.get('fairgrad_version')}, which is newer than "
            f"this version ({fairgrad.__version__}): upgrade fairgrad"
        )
    return known


def check_folder(folder: str | Path, *, force: bool) -> Path:
    """Refuses to write where something else is, before any work is done.

    Args:
        folder: to be written.
        force: whether earlier output of this program may be replaced.
    """
    path = Path(folder).expanduser().absolute()
    if path.is_file():
        raise ValueError(f"{folder} is a file; give a folder to write to")
    _check_parent(path)
    if not path.exists() or not any(path.iterdir()):
        return path
    strangers = sorted({entry.name for entry in path.iterdir()} - OURS)
    if strangers or not (path / MARK).is_file():
        found = f", such as {strangers[0]!r}" if strangers else ""
        raise ValueError(
            f"{folder} contains files that fairgrad did not write{found}; choose another folder, "
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
