"""What a fair step costs in networks that are not small: EfficientNet-lite0 and all-MiniLM-L6-v2.

Steps with the plain loss and with ours alternate on the same network and batch, in one process and
one thread. Noise of a step is larger than what is looked for, so there are two figures: the median
of paired differences with its interval, and the cost of our loss less that of the plain one, timed
by itself, as a share of the step. Times are of the processor, which other programs disturb least.

    python benchmarks/large_networks.py [--pairs 25] [--out results/large_networks.csv]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the weights are on this machine
sys.path.append(str(Path(__file__).parents[1] / "examples"))

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import binom
from torch import nn

from fairgrad.files import write_whole
from fairgrad.torch import CrossEntropyLoss

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


class Case(NamedTuple):
    """A network with a batch, and the problem it is trained on.

    Attributes:
        name: of the network.
        network: itself.
        run: from the network to its logits of the batch.
        labels: how many there are.
        groups: how many there are.
        measure: fairness measure.
        batch: rows.
        paper: overhead that the paper reports for its network, in per cent.
    """

    name: str
    network: nn.Module
    run: Callable[[nn.Module], Tensor]
    labels: int
    groups: int
    measure: str
    batch: int
    paper: str


def faces(batch: int) -> Case:
    """Age groups of portraits of 64 x 64: 20 cells."""
    from utkface import network  # noqa: PLC0415 - either network can be left out

    found = network()
    found._fc = nn.Linear(1280, 4)  # noqa: SLF001 - the package's name of its head
    images = torch.randn(batch, 3, 64, 64).contiguous(memory_format=torch.channels_last)
    return Case(
        "EfficientNet-lite0, 64 px", found, lambda network: network(images), 4, 5,
        "equalized_odds", batch, "1.3 (ResNet18)",
    )  # fmt: skip


def texts(batch: int) -> Case:
    """Two labels and two groups of short texts."""
    from compas_text import SentenceClassifier  # noqa: PLC0415 - see above

    words = torch.randint(1000, 20_000, (batch, 26))
    shown = torch.ones_like(words)
    return Case(
        "all-MiniLM-L6-v2, 26 tokens", SentenceClassifier(),
        lambda network: network(words, shown)["logits"], 2, 2,
        "equalized_odds", batch, "2.1 (BERT)",
    )  # fmt: skip


def losses_of(case: Case) -> tuple[Callable[..., Tensor], Callable[..., Tensor], Tensor]:
    """The plain loss and ours as functions of logits, and the labels of the batch."""
    generator = torch.Generator().manual_seed(0)
    y = torch.randint(case.labels, (20_000,), generator=generator)
    s = torch.randint(case.groups, (20_000,), generator=generator)
    plain, ours = nn.CrossEntropyLoss(), CrossEntropyLoss(y, s, case.measure)
    label, group = y[: case.batch], s[: case.batch]
    return (lambda logits: plain(logits, label)), (lambda logits: ours(logits, label, group)), label


def seconds(run: Callable[[], Any]) -> float:
    """Processor time of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def paired_steps(case: Case, pairs: int) -> np.ndarray:
    """(pairs, 2) seconds of steps with the plain loss and with ours, which goes first in turns."""
    plain, ours, _ = losses_of(case)
    optimizer = torch.optim.SGD(case.network.parameters(), lr=1e-4)
    case.network.train()

    def step(loss: Callable[..., Tensor]) -> None:
        optimizer.zero_grad()
        loss(case.run(case.network)).backward()
        optimizer.step()

    times = []
    for turn in range(pairs + 2):
        order = (0, 1) if turn % 2 else (1, 0)
        own = {which: seconds(lambda w=which: step((plain, ours)[w])) for which in order}
        times.append([own[0], own[1]])
    return np.array(times[2:])  # the first ones warm up


def paired_losses(case: Case, repeats: int = 3000) -> np.ndarray:
    """(repeats, 2) seconds of the losses alone, forwards and back to the logits."""
    plain, ours, label = losses_of(case)
    logits = torch.randn(len(label), case.labels, requires_grad=True)
    times = []
    for turn in range(repeats + 50):
        order = (0, 1) if turn % 2 else (1, 0)
        own = {w: seconds(lambda w=w: (plain, ours)[w](logits).backward()) for w in order}
        times.append([own[0], own[1]])
    return np.array(times[50:])


def median_interval(values: np.ndarray, confidence: float = 0.95) -> tuple[float, float, float]:
    """The median and the ends of its interval, by order statistics: no shape is assumed."""
    ordered, n = np.sort(values), len(values)
    low = int(binom.ppf((1 - confidence) / 2, n, 0.5))
    return float(np.median(values)), float(ordered[max(low - 1, 0)]), float(ordered[-max(low, 1)])


def measure(case: Case, pairs: int) -> dict[str, Any]:
    """One row of the table."""
    steps, losses = paired_steps(case, pairs), paired_losses(case)
    step = float(np.median(steps[:, 0]))
    change, low, high = median_interval(100 * (steps[:, 1] - steps[:, 0]) / step)
    more = float(np.median(losses[:, 1] - losses[:, 0]))
    return {
        "network": case.name,
        "parameters": sum(p.numel() for p in case.network.parameters()),
        "batch": case.batch,
        "pairs": pairs,
        "step_ms": 1e3 * step,
        "step_percent": change,
        "step_percent_low": low,
        "step_percent_high": high,
        "loss_microseconds": 1e6 * more,
        "loss_percent": 100 * more / step,
        "paper_percent": case.paper,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the table."""
    table = Table(title="Cost of our loss beyond the plain one, in per cent of a training step")
    for column in ("network", "batch", "plain step", "paired steps", "loss by itself", "paper"):
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(
            row["network"],
            str(row["batch"]),
            f"{row['step_ms']:.0f} ms",
            f"{row['step_percent']:.2f} [{row['step_percent_low']:.2f}, "
            f"{row['step_percent_high']:.2f}]",
            f"{row['loss_percent']:.3f} ({row['loss_microseconds']:.0f} µs)",
            row["paper_percent"],
        )
    Console(width=120).print(table)


def main() -> None:
    """Measures both networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=25)
    parser.add_argument("--out", type=Path, help="a CSV file for the results")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measure(make(size), options.pairs) for make, size in ((faces, 64), (texts, 32))]
    show(rows)
    if options.out is not None:
        write_whole(options.out, pd.DataFrame(rows).round(4).to_csv(index=False))


if __name__ == "__main__":
    main()
