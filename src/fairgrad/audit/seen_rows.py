"""Whether rows are new: digests of the rows that a model was trained on.

In a table of few columns new rows often equal a training row by chance, about as often as training
rows equal each other. Only far more equal rows show that the rows are not new.

Digests have 32 bits, so that no person's values can be read from them. They are still derived from
personal data: anyone who knows a person's values can test whether the row is likely among them.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.columns import as_pandas
from fairgrad.files import write_whole

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

MOST_DIGESTS = 100_000
"""Of larger tables only the smallest digests are kept, and compared with the smallest ones."""
ALL = 1 << 32
FAR_MORE = 0.02
"""Share of new rows that may equal training rows beyond chance, such as people who came again."""


def row_digests(X: Any) -> NDArray[np.uint32]:
    """(N,) a digest of 32 bits of every row's features, a data frame or an array."""
    frame = as_pandas(X)
    frame = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    digests: Any = pd.util.hash_pandas_object(frame, index=False).to_numpy() >> np.uint64(32)
    return np.asarray(digests, dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class SeenRows:
    """The rows that a model was trained on, as digests. Keep them as long as the rows themselves.

    Attributes:
        digests: the different ones, ascending.
        times: how many rows have each of them.
        below: all training rows whose digest is below this number are among them.

    Example:
        >>> seen = SeenRows.of(np.arange(10.0).reshape(5, 2))
        >>> seen.overlap(row_digests(np.arange(100.0, 110.0).reshape(5, 2)))
        (0, 0)
    """

    digests: NDArray[np.uint32]
    times: NDArray[np.uint32]
    below: int = ALL

    @classmethod
    def of(cls, X: Any) -> SeenRows:
        """The rows with these features."""
        digests, times = np.unique(row_digests(X), return_counts=True)
        below = int(digests[MOST_DIGESTS]) if len(digests) > MOST_DIGESTS else ALL
        return cls(digests[:MOST_DIGESTS], times[:MOST_DIGESTS].astype(np.uint32), below)

    def overlap(self, fresh: NDArray[np.uint32]) -> tuple[int, int]:
        """How many of some `row_digests` equal a training row, and how many would by chance.

        The share of training rows that equal another one is what new rows of the same people would
        have, or a little less.

        Raises:
            ValueError: if far more are equal.
        """
        n, compared = len(fresh), fresh[fresh < self.below]
        n_seen, n_compared = max(int(self.times.sum()), 1), max(len(compared), 1)
        chance = float(self.times[self.times > 1].sum() / n_seen)
        share = float(np.isin(compared, self.digests).sum() / n_compared)
        spread = np.sqrt(max(chance * (1 - chance), 0.25 / n_compared) / n_compared)
        spread = np.hypot(spread, np.sqrt(chance * (1 - chance) / n_seen))
        if share > chance + 5 * spread + FAR_MORE:
            raise ValueError(
                f"fresh: {share * n:,.0f} of {n:,} rows equal a row that the model was trained on; "
                f"by chance about {chance * n:,.0f} would. A certificate needs new rows."
            )
        return round(share * n), round(chance * n)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes them to a file that only its owner may read."""
        content = io.BytesIO()
        np.savez_compressed(content, digests=self.digests, times=self.times, below=self.below)
        write_whole(Path(path), content.getvalue(), private=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SeenRows:
        """Reads what `save` wrote.

        Raises:
            ValueError: if the file is damaged.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                return cls(stored["digests"], stored["times"], int(stored["below"]))
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as wrong:
            raise ValueError(f"{path} is damaged: {wrong}.") from wrong
