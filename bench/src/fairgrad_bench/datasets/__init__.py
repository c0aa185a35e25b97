"""The data sets of the paper's experiments, fetched where they do not come with fairgrad.

``load("compas")`` returns a ``fairgrad.datasets.Dataset``. A data set is one file in ``catalogue``.
"""

from fairgrad_bench.datasets.dataset import PaperDataset
from fairgrad_bench.datasets.fetch import fetch
from fairgrad_bench.datasets.images import Images
from fairgrad_bench.datasets.loading import describe, load, names, overview
from fairgrad_bench.datasets.places import CorruptFileError, DataNotFoundError, FetchError

__all__ = [
    "CorruptFileError",
    "DataNotFoundError",
    "FetchError",
    "Images",
    "PaperDataset",
    "describe",
    "fetch",
    "load",
    "names",
    "overview",
]
