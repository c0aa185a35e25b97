"""What the models of a stack predict."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from fairgrad.groups import Ints
    from fairgrad.training import Network

ROWS_AT_ONCE = 1024
"""Few enough for the activations of many models to stay in memory."""


def predicted_labels(network: Network, X: np.ndarray, labels: np.ndarray) -> Ints:
    """(M, n) the label that each of M models on one stream gives each row.

    A margin of 0 is the first label, as for a softmax.
    """
    codes = [_codes(scores) for scores in _scores(network, X)]
    found: Ints = labels[np.concatenate(codes, axis=1)].astype(np.int64)
    return found


def _scores(network: Network, X: np.ndarray) -> Iterator[Tensor]:
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = torch.from_numpy(np.ascontiguousarray(X[start : start + ROWS_AT_ONCE]))
        yield network.scores(rows.to(network.parameters.dtype)[None])


def _codes(scores: Tensor) -> Ints:
    chosen = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(1)
    codes: Ints = chosen.long().numpy()
    return codes
