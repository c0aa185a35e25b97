"""Twitter sentiment: is a tweet happy or sad? Tweets are given as DeepMoji vectors."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairgrad.files import cache_folder
from fairgrad.splitting import SplitRows
from fairgrad_bench.datasets.loading import RawTable, from_schema
from fairgrad_bench.datasets.places import (
    CorruptFileError,
    DataNotFoundError,
    recorded_hash,
    user_folder,
)
from fairgrad_bench.datasets.schema import Attribute, Carrier, DataFile, FeatureColumn, Schema

if TYPE_CHECKING:
    from fairgrad_bench.datasets.dataset import PaperDataset

#: Files, in the order of the training shares: sentiment (1: happy), race (1: AAE), share.
PARTS = (
    ("pos_pos.npy", 1, 1, 0.4),
    ("pos_neg.npy", 1, 0, 0.1),
    ("neg_pos.npy", 0, 1, 0.1),
    ("neg_neg.npy", 0, 0, 0.4),
)
FOLDER = "deepmoji"
_ADDRESS = "https://storage.googleapis.com/ai2i/nullspace/deepmoji"

#: Of every 44 vectors of a file, 40 may serve for training, 2 for validation and 2 for test.
SHARES = (40 / 44, 2 / 44, 2 / 44)
#: The split is the same in every repetition.
_SPLIT_SEED = 10

SCHEMA = Schema(
    name="twitter",
    title="Twitter sentiment, DeepMoji vectors",
    label=Attribute(
        "sentiment", "sentiment of the emoji that were in the tweet", {0: "sad", 1: "happy"}
    ),
    sensitive=(
        Attribute(
            "race",
            "standard or African American English, estimated from the wording",
            {0: "SAE", 1: "AAE"},
        ),
    ),
    features=(),
    files=tuple(DataFile(f"{FOLDER}/{name}", "") for name, *_ in PARTS),
    carriers=tuple(
        Carrier("publisher", f"{_ADDRESS}/{name}", makes=f"{FOLDER}/{name}", part=name)
        for name, *_ in PARTS
    ),
    source="https://slanglab.cs.umass.edu/TwitterAAE/, as vectors: " + _ADDRESS,
    licence="research; Twitter's terms apply to the tweets",
    restricted=True,
    citation=(
        "Su Lin Blodgett, Lisa Green and Brendan O'Connor. Demographic dialectal variation in "
        "social media. EMNLP 2016. Vectors: Yanai Elazar and Yoav Goldberg. Adversarial removal "
        "of demographic attributes from text data. EMNLP 2018."
    ),
    notes=(
        (
            "Training rows are skewed: 40 % happy AAE, 10 % happy SAE, 10 % sad AAE, 40 % sad SAE; "
            "validation and test rows are balanced."
        ),
    ),
)


def load(path: str | Path | None = None) -> PaperDataset:
    """Load the four arrays, split and skewed as in the paper.

    Every file is shuffled once, always in the same way, and cut into rows for training,
    validation and test in the proportion 40 : 2 : 2; the training rows are then thinned to
    40/10/10/40 %. With the original files (44,000 vectors each and more) that gives 100,000
    training, 8,000 validation and 8,000 test rows.

    Args:
        path: Folder with ``pos_pos.npy``, ``pos_neg.npy``, ``neg_pos.npy`` and ``neg_neg.npy``
            (sentiment, then race); otherwise the usual places are searched for a folder
            ``deepmoji``.
    """
    arrays = _arrays(_folder(path))
    per_file = min(len(array) for array in arrays)
    vectors, labels, parts = _assembled(arrays, min(per_file, 44_000))
    names = [f"d{place}" for place in range(vectors.shape[1])]
    frame = pd.DataFrame(vectors, columns=names, copy=False)
    schema = replace(
        SCHEMA, features=tuple(FeatureColumn(name, "DeepMoji vector") for name in names)
    )
    table = pd.concat([frame, labels], axis=1)
    data = from_schema(schema, RawTable(table, DataFile("", ""), "deepmoji"))
    return replace(data, own_split=parts)


def _assembled(
    arrays: list[np.ndarray], per_file: int
) -> tuple[np.ndarray, pd.DataFrame, SplitRows]:
    """Vectors, labels and parts; train rows first, then validation, then test."""
    train, validation, test = (int(share * per_file + 1e-9) for share in SHARES)
    total = int(train / max(share for *_, share in PARTS) + 1e-9)
    chosen: list[list[tuple[np.ndarray, int, int]]] = [[], [], []]
    for array, (_, sentiment, race, share) in zip(arrays, PARTS, strict=True):
        # The legacy generator, as its stream is frozen: the same rows for ever.
        order = np.random.RandomState(_SPLIT_SEED).permutation(len(array))
        bounds = (0, train, train + validation, train + validation + test)
        cuts = [order[low:high] for low, high in itertools.pairwise(bounds)]
        cuts[0] = cuts[0][: int(share * total + 1e-9)]
        for part, rows in zip(chosen, cuts, strict=True):
            part.append((array[rows], sentiment, race))
    pieces = [piece for part in chosen for piece in part]
    vectors = np.concatenate([vectors for vectors, _, _ in pieces]).astype(np.float32, copy=False)
    labels = pd.DataFrame(
        {
            "sentiment": np.concatenate([np.full(len(v), y) for v, y, _ in pieces]),
            "race": np.concatenate([np.full(len(v), s) for v, _, s in pieces]),
        }
    )
    sizes = [sum(len(v) for v, _, _ in part) for part in chosen]
    return vectors, labels, SplitRows(*np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:2]))


def _folder(path: str | Path | None) -> Path:
    if path is not None:
        return Path(path)
    places = [folder / FOLDER for folder in (user_folder(), cache_folder()) if folder is not None]
    for folder in places:
        if all((folder / name).is_file() for name, *_ in PARTS):
            return folder
    searched = " nor in ".join(str(folder) for folder in places)
    raise DataNotFoundError(
        f"no usable copy of the data set 'twitter': its four .npy files are not in {searched}; "
        "try `fairgrad-bench data fetch twitter`"
    )


def _arrays(folder: Path) -> list[np.ndarray]:
    arrays = [_array(folder / name) for name, *_ in PARTS]
    widths = {array.shape[1] for array in arrays}
    if len(widths) != 1:
        raise ValueError(f"the arrays in {folder} have different widths: {sorted(widths)}")
    return arrays


def _array(path: Path) -> np.ndarray:
    if not path.is_file():
        raise DataNotFoundError(f"{path} does not exist")
    recorded = recorded_hash(path)
    if recorded and recorded != hashlib.sha256(path.read_bytes()).hexdigest():
        raise CorruptFileError(f"{path} has changed since it was fetched; fetch it again")
    try:
        array: np.ndarray = np.load(path, allow_pickle=False, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise CorruptFileError(f"{path} is not a NumPy array file ({error})") from error
    if array.ndim != 2 or array.dtype.kind != "f" or len(array) < 22:
        raise ValueError(
            f"{path} holds an array of shape {array.shape} and type {array.dtype}; "
            "at least 22 rows of real numbers are needed"
        )
    return array
