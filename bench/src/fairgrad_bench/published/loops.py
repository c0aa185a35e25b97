"""The training loops of other authors, with their plain loss, a penalty of theirs or our loss."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn

from fairgrad.torch import BCEWithLogitsLoss
from fairgrad_bench.published.source import BASELINE, Method, Split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

OUR_LOSS = "network with FairGrad's loss"


class Loop(NamedTuple):
    """How a network is trained.

    Attributes:
        network: from a number of features to a network with one output.
        optimizer: from the parameters to an optimizer.
        batches: from a number of rows to the rows of each step.
        scheduler: from the optimizer to a schedule of its rate, if there is one.
    """

    network: Callable[[int], nn.Module]
    optimizer: Callable[[Any], torch.optim.Optimizer]
    batches: Callable[[int], Iterable[Any]]
    scheduler: Callable[[Any], Any] | None = None


def network(inputs: int, dropout: float) -> nn.Module:
    """Three hidden layers, as FFB and ABCFair have them."""
    layers: list[nn.Module] = []
    for width in (512, 256, 64):
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 1))


def epochs(rows: int, size: int, count: int) -> Iterator[Any]:
    """All rows in a random order, `count` times; the last batch of each epoch is smaller."""
    return chain.from_iterable(torch.split(torch.randperm(rows), size) for _ in range(count))


def train_network(
    loop: Loop, loss: str | Callable[..., Any], split: Split, measure: str, seed: int
) -> Any:
    """Trains a network and predicts the test rows.

    Args:
        loop: how to train.
        loss: "plain", "ours", or a penalty that is added to the plain loss: a function of the
            measure and of the scores (0 to 1), labels and groups of a batch.
        split: rows of which the training rows are used.
        measure: of fairness.
        seed: of weights, batches and dropout.
    """
    torch.manual_seed(seed)
    X, y, s = (torch.as_tensor(part) for part in split.train)
    model = loop.network(X.shape[1])
    optimizer = loop.optimizer(model.parameters())
    scheduler = loop.scheduler(optimizer) if loop.scheduler else None
    plain = nn.BCEWithLogitsLoss()
    fair = BCEWithLogitsLoss(y, s, measure) if loss == "ours" else None
    for rows in loop.batches(len(y)):
        optimizer.zero_grad()
        score, label = model(X[rows]).squeeze(1), y[rows].float()
        total = plain(score, label) if fair is None else fair(score, label, s[rows])
        if callable(loss):
            total = total + loss(measure, score.sigmoid(), y[rows], s[rows])
        total.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
    model.eval()
    with torch.no_grad():
        parts = np.array_split(split.test.X, 1 + len(split.test.X) // 4096)
        selected = torch.cat([model(torch.as_tensor(part)).squeeze(1) > 0 for part in parts])
    return selected.numpy().astype(np.int64)


def loop_methods(loop: Loop) -> dict[str, Method]:
    """The rows of a loop: the unconstrained network, and the same with our loss."""
    return {
        "network": Method(partial(train_network, loop, "plain"), BASELINE, uses_measure=False),
        OUR_LOSS: Method(partial(train_network, loop, "ours"), is_default=True),
    }
