"""UTKFace: 23,708 portraits with age, gender and race in the file names."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairgrad_bench.datasets.images import Images, image_names
from fairgrad_bench.datasets.loading import RawTable, from_schema
from fairgrad_bench.datasets.places import first_usable, verified
from fairgrad_bench.datasets.schema import Attribute, DataFile, FeatureColumn, Schema

if TYPE_CHECKING:
    from fairgrad_bench.datasets.dataset import PaperDataset

#: Ages at which the groups of the age task begin; the paper does not print its own.
AGE_EDGES = (0, 21, 41, 61)

_HOW = "estimated from the portrait and checked by an annotator"
GENDER = Attribute("gender", f"gender, {_HOW}", {0: "male", 1: "female"})

SCHEMA = Schema(
    name="utkface",
    title="UTKFace, aligned and cropped portraits",
    label=GENDER,
    sensitive=(
        Attribute(
            "race",
            f"race, {_HOW}",
            {0: "White", 1: "Black", 2: "Asian", 3: "Indian", 4: "Other"},
        ),
    ),
    features=(FeatureColumn("image", "file name"),),
    files=(
        DataFile(
            "utkface_64px.zip",
            "9b9c4c2412967c748e60fa80451ef2c125caa279668788780a92cba15b14f8b3",
            note="Portraits scaled down to 64 x 64; one of the publisher's 23,708 is missing.",
        ),
    ),
    source=(
        "https://susanqq.github.io/UTKFace/ (ask there for the aligned and cropped faces, then "
        'load("utkface", path=...) with their folder or zip archive)'
    ),
    licence="non-commercial research only; the images belong to their owners",
    restricted=True,
    citation=(
        "Zhifei Zhang, Yang Song and Hairong Qi. Age progression/regression by conditional "
        "adversarial autoencoder. CVPR 2017."
    ),
    notes=("The publisher's split is not published: the paper's seeded shuffle is used.",),
)

# age_gender_race_time; what follows the time differs between copies.
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_\d{5,}")


def load(
    task: str = "gender",
    path: str | Path | None = None,
    age_edges: tuple[int, ...] = AGE_EDGES,
    size: tuple[int, int] | None = None,
) -> PaperDataset:
    """Load the portraits, undecoded, for one of the paper's two tasks.

    Args:
        task: ``"gender"`` (two labels, for demographic parity) or ``"age"`` (one label per age
            group, for equalized odds); the sensitive attribute is race.
        path: Folder or zip archive of images; otherwise the usual places are searched.
        age_edges: Youngest age of each age group: 0-20, 21-40, 41-60, 61 and over by default.
        size: Height and width to scale every image to.
    """
    if task not in {"gender", "age"}:
        raise ValueError(f"task is {task!r}; allowed are 'gender' and 'age'")
    schema = replace(SCHEMA, label=GENDER if task == "gender" else age_label(age_edges))
    if path is None:
        folder, file = first_usable(SCHEMA, _checked)
    else:
        folder, file = Path(path), DataFile("", "")
        if not folder.exists():
            raise FileNotFoundError(f"path is {path}, which does not exist")
    table, unreadable = labelled(image_names(folder), age_edges)
    if table.empty:
        raise ValueError(f"{folder} holds no image whose name is age_gender_race_time")
    data = from_schema(schema, RawTable(table, file, str(folder)))
    return replace(
        data,
        images=Images(folder.absolute(), table["image"].to_numpy(dtype=str), size),
        left_out={"age, gender or race missing in the name": unreadable} if unreadable else {},
    )


def age_label(edges: tuple[int, ...]) -> Attribute:
    """The label of the age task: "0-20", "21-40", "41-60", "61 and over" by default."""
    if len(edges) < 2 or list(edges) != sorted(set(edges)):
        raise ValueError(f"age_edges is {edges}; at least two rising ages are needed")
    names = [f"{low}-{high - 1}" for low, high in itertools.pairwise(edges)]
    names.append(f"{edges[-1]} and over")
    return Attribute("age", f"age group, {_HOW}", dict(enumerate(names)), column="age_group")


def labelled(names: list[str], age_edges: tuple[int, ...]) -> tuple[pd.DataFrame, int]:
    """A table of image, gender, race and age group; and the number of unreadable names."""
    matches = [(name, _NAME.match(Path(name).name)) for name in names]
    rows = [(name, *map(int, match.groups())) for name, match in matches if match]
    table = pd.DataFrame(rows, columns=["image", "age", "gender", "race"])
    table["age_group"] = np.searchsorted(age_edges, table["age"], side="right") - 1
    return table, len(names) - len(rows)


def _checked(path: Path, _place: str) -> tuple[Path, DataFile]:
    return path, verified(path, path.read_bytes(), SCHEMA.files)[0]
