"""The data sets of the paper behind one call, and the user's own tables behind another.

``load("adult")`` gives a ``Dataset``: readable columns, label, sensitive attributes, source and
licence. Its ``encode()`` gives the paper's matrix and its ``split()`` the paper's parts;
``from_table`` makes the same of a CSV or Parquet file. Nothing here needs PyTorch.
"""

from fairgrad.datasets.dataset import Dataset, Encoded, from_table
from fairgrad.datasets.fetch import fetch
from fairgrad.datasets.images import Images
from fairgrad.datasets.loading import describe, load, names, overview
from fairgrad.datasets.places import CorruptFileError, DataNotFoundError, FetchError
from fairgrad.datasets.split import PAPER_SEEDS, Split

__all__ = [
    "PAPER_SEEDS",
    "CorruptFileError",
    "DataNotFoundError",
    "Dataset",
    "Encoded",
    "FetchError",
    "Images",
    "Split",
    "describe",
    "fetch",
    "from_table",
    "load",
    "names",
    "overview",
]
