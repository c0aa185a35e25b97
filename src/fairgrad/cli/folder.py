"""A fitted model as a folder: the model itself, and what is needed to read later tables."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.cli import trees
from fairgrad.cli.output import MARK, MODEL
from fairgrad.tables.encoding import (
    Oddities,
    TrainedFeature,
    check_columns,
    encode_rows,
    read_features,
)
from fairgrad.tables.roles import ColumnRoles

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

SCHEMA, SCHEMA_VERSION = "fairgrad.model", 1


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model with the columns it was fitted to.

    Attributes:
        pipeline: encoder and classifier.
        columns: which column played which part.
        features: what is known of each feature.
        labels: the values of the target, the desirable one last.
        settings: what it was trained for, as plain values.
    """

    pipeline: Any
    columns: ColumnRoles
    features: list[TrainedFeature]
    labels: list[str]
    settings: dict[str, Any]

    @property
    def measure(self) -> str:
        """The name of the measure it was trained for."""
        return str(self.settings["measure"])

    def scores(self, table: pd.DataFrame) -> tuple[NDArray[np.float64], Oddities]:
        """(n, labels) the probability of each label, and what was odd about the table."""
        features, odd = read_features(table, self.features)
        matrix = encode_rows(self.pipeline[0], features)
        classifier = self.pipeline[-1]
        order = [classifier.classes_.tolist().index(label) for label in self.labels]
        return classifier.predict_proba(matrix)[:, order], odd

    def save(self, folder: Path) -> None:
        """Writes the model and what is needed to use it into a folder."""
        if self.settings["model"] == "lightgbm":
            trees.save(self.pipeline, folder)
        else:
            from fairgrad import persistence  # noqa: PLC0415 - torch, which describing needs not

            persistence.save(self.pipeline, folder / MODEL)
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)
        (folder / MARK).write_text(text + "\n", encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights, as plain values."""
        parts = self.columns
        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "fairgrad_version": version("fairgrad"),
            "target": parts.target,
            "labels": self.labels,
            "sensitive": list(parts.sensitive),
            "bins": dict(parts.bins),
            "uses_sensitive": parts.use_sensitive,
            "settings": self.settings,
            "features": [feature.to_dict() for feature in self.features],
        }


def load_model(folder: str | Path, names: list[str]) -> Model:
    """Reads a model's folder; nothing in it is run.

    Args:
        folder: as `fairgrad fit` writes it.
        names: columns of the table that the model is for.

    Raises:
        ValueError: if it is no such folder, or of a newer version, or the table lacks columns.
    """
    path = Path(folder).expanduser()
    if not (path / MARK).is_file():
        what = "is no folder" if not path.is_dir() else f"has no {MARK}"
        raise ValueError(f"{folder} {what}; name the folder that `fairgrad fit` has written")
    known = _read(path / MARK)
    grows_trees = known["settings"].get("model") == "lightgbm"
    for file in trees.FILES if grows_trees else (MODEL,):
        if not (path / file).is_file():
            raise ValueError(f"{folder} holds no model ({file}); `fairgrad fit` writes one")
    features = [TrainedFeature.from_dict(values) for values in known["features"]]
    check_columns(names, features)
    columns = ColumnRoles(
        target=known["target"],
        sensitive=tuple(known["sensitive"]),
        bins=known["bins"],
        positive=known["labels"][-1],
        use_sensitive=known["uses_sensitive"],
    )
    pipeline = trees.load(path) if grows_trees else _network(path / MODEL)
    return Model(pipeline, columns, features, known["labels"], known["settings"])


def _network(path: Path) -> Any:
    from fairgrad import persistence  # noqa: PLC0415 - torch, after all that can be refused without

    return persistence.load(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        schema, number = known["schema"], int(known["schema_version"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({' '.join(str(error).split())})") from error
    if schema != SCHEMA:
        raise ValueError(f"{path.parent} holds no model, but {schema}")
    if number > SCHEMA_VERSION:
        raise ValueError(
            f"{path} was written by fairgrad {known.get('fairgrad_version')}, which is newer than "
            f"this one ({version('fairgrad')}): upgrade it"
        )
    return known
