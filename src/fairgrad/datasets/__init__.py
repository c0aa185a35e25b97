"""Two data sets to try things on.

``load("adult")`` returns a ``Dataset``: readable columns, label and sensitive attributes. Its
``encode()`` returns the matrix of the paper's experiments and its ``split()`` the paper's parts.
Nothing here needs PyTorch.
"""

from fairgrad.datasets.dataset import PAPER_SEEDS, Dataset, Encoded, Split, load, names

__all__ = ["PAPER_SEEDS", "Dataset", "Encoded", "Split", "load", "names"]
