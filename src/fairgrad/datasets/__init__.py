"""Two data sets to try things on, and the user's own tables in the same form.

``load("adult")`` returns a ``Dataset``: readable columns, label and sensitive attributes. Its
``encode()`` returns the matrix of the paper's experiments and its ``split()`` the paper's parts.
``from_table`` makes a ``Dataset`` of a file or data frame. Nothing here needs PyTorch.
"""

from fairgrad.datasets.bundled import load, names
from fairgrad.datasets.dataset import PAPER_SEEDS, Dataset, Encoded, Split, from_table

__all__ = ["PAPER_SEEDS", "Dataset", "Encoded", "Split", "from_table", "load", "names"]
