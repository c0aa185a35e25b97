"""How long loading and encoding take, against a bare ``pandas.read_csv`` of the same file.

Run ``python benchmarks/datasets_loading.py``; CelebA's attributes are found through
``FAIRGRAD_DATA``, in the data folder beside the repository, or in the cache. The three ways are
timed in turns, each round in the same process with one thread, and the medians are compared.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.datasets import DataNotFoundError, load
from fairgrad.datasets.loading import find_schema
from fairgrad.datasets.places import copies, places
from fairgrad.files import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7
NAMES = ("celeba", "adult", "dutch")
SHARED = Path(__file__).parents[2] / "shared" / "datasets"


def source_of(name: str) -> Path:
    """The file that the data set is read from."""
    for _, folder in places():
        for path in copies(folder, find_schema(name).files) if folder else ():
            return path
    raise DataNotFoundError(f"{name} is not on this machine: fairgrad data fetch {name}")


def timed(work: Callable[[], object]) -> float:
    """Seconds that the work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def load_and_encode(name: str) -> None:
    """Load and encode once, with whatever the cache holds."""
    load(name).encode()


def load_afresh(name: str) -> None:
    """Load and encode once with an empty cache, writing it included."""
    kept = os.environ["FAIRGRAD_CACHE"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FAIRGRAD_CACHE"] = folder
        try:
            load_and_encode(name)
        finally:
            os.environ["FAIRGRAD_CACHE"] = kept


def measure(name: str) -> tuple[float, float, float]:
    """Median seconds of read_csv, of the first and of later loads."""
    path = source_of(name)
    ways = (
        lambda: pd.read_csv(path),
        lambda: load_afresh(name),
        lambda: load_and_encode(name),
    )
    load_and_encode(name)
    rounds = [[timed(way) for way in ways] for _ in range(ROUNDS)]
    bare, first, later = (median(times) for times in zip(*rounds, strict=True))
    return bare, first, later


def main() -> None:
    """Print the table."""
    print(f"{'':8}{'read_csv':>12}{'first load':>12}{'later loads':>13}   (x read_csv)")
    for name in NAMES:
        bare, first, later = measure(name)
        print(
            f"{name:8}{bare:10.3f} s{first:10.3f} s{later:11.3f} s"
            f"   {first / bare:.2f}x, {later / bare:.2f}x"
        )


if __name__ == "__main__":
    # The cache is replaced by an empty one below; what was fetched into it serves as a folder.
    os.environ.setdefault("FAIRGRAD_DATA", str(SHARED if SHARED.is_dir() else cache_folder()))
    with tempfile.TemporaryDirectory() as own_cache:
        os.environ["FAIRGRAD_CACHE"] = own_cache
        main()
