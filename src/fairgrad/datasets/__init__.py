"""The data sets of the paper behind one call, and the user's own tables behind another."""

from fairgrad.datasets.dataset import Dataset
from fairgrad.datasets.encode import Encoded
from fairgrad.datasets.loading import load, names
from fairgrad.datasets.split import PAPER_SEEDS, Split, paper_split

__all__ = ["PAPER_SEEDS", "Dataset", "Encoded", "Split", "load", "names", "paper_split"]
