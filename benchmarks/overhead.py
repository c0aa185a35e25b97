"""What fairness costs in training: plain cross entropy, ours and fairgrad 0.2.0, interleaved.

Run: ``make bench-overhead``. Three tables: bare steps on batches that lie in memory, epochs as the
paper measures them, with a data loader, clipping and SGD, and steps with many cells. Ratios are
medians over blocks of steps, or over short epochs (an eighth of Adult's rows), of processor times.
Losses take turns in an order drawn anew each time, in one process and one thread, so that a noisy
machine disturbs all of them alike. The standard error of the median of our ratio stands beside it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import math
import random
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import psutil
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from wheels import load_old_loss

import fairgrad.torch

if TYPE_CHECKING:
    from collections.abc import Callable

FEATURES = 52
ROWS = 45_222
GROUPS = (2, 8, 32, 128, 512, 2_000, 5_000, 10_000)

SHORT = 8
"""Epochs are of this part of the rows: many short ones say more than few long ones."""


class Case(NamedTuple):
    """One network at one batch size, and the paper's ratio of seconds per epoch for it."""

    name: str
    network: Callable[[], nn.Module]
    batch: int
    paper: str = ""


def mlp(*hidden: int) -> nn.Module:
    """Linear layers with ReLU between them."""
    sizes = [FEATURES, *hidden, 2]
    layers = [[nn.Linear(a, b), nn.ReLU()] for a, b in itertools.pairwise(sizes)]
    return nn.Sequential(*itertools.chain.from_iterable(layers))[:-1]


def convolutional() -> nn.Module:
    """Three convolutions over images of 3 x 32 x 32."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.LazyLinear(2),
    )  # fmt: skip


def cases() -> list[Case]:
    """The paper's networks, those of round depth, and one that is not small."""
    paper = [
        ("linear", (), "1.11"),
        ("hidden 32", (32,), "1.00"),
        ("hidden 128-64-64-32", (128, 64, 64, 32), "1.06"),
        ("hidden 128, 6 x 64, 2 x 32", (128, *[64] * 6, 32, 32), "1.03"),
        ("hidden 128, 16 x 64, 2 x 32", (128, *[64] * 16, 32, 32), "1.03"),
        ("hidden 2 x 64", (64,) * 2, ""),
        ("hidden 10 x 64", (64,) * 10, ""),
    ]
    found = [Case(name, lambda h=hidden: mlp(*h), 512, ratio) for name, hidden, ratio in paper]
    found += [Case(name, lambda h=hidden: mlp(*h), 64) for name, hidden, _ in paper]
    return [*found, Case("convolutional", convolutional, 64)]


def training_data(case: Case, n_groups: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Random data of Adult's size and, with two groups, its group shares."""
    generator = torch.Generator().manual_seed(0)
    shape = (2048, 3, 32, 32) if case.network is convolutional else (ROWS, FEATURES)
    x = torch.randn(shape, generator=generator)
    y = (torch.rand(len(x), generator=generator) < 0.25).long()
    s = (torch.rand(len(x), generator=generator) < 0.675).long()
    if n_groups > 2:  # every label in every group
        y, s = torch.arange(len(x)) % 2, torch.arange(len(x)) // 2 % n_groups
        order = torch.randperm(len(x), generator=generator)
        y, s = y[order], s[order]
    return x, y, s


class Trainer:
    """A network that is trained with the named loss.

    Args:
        case: network and batch size.
        loss: "plain", "ours", "tensors" (ours, not compiled) or "0.2.0".
        old: the loss of fairgrad 0.2.0.
        n_groups: groups in the data.
    """

    def __init__(self, case: Case, loss: str, old: Any, n_groups: int = 2) -> None:
        self.case, self.data = case, training_data(case, n_groups)
        x, y, s = self.data
        torch.manual_seed(0)
        self.model = case.network()
        self.model(x[: case.batch])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        if loss == "plain":
            plain = nn.CrossEntropyLoss()
            self.criterion = lambda logits, y, _: plain(logits, y)
        elif loss in {"ours", "tensors"}:
            self.criterion = fairgrad.torch.CrossEntropyLoss(y, s, "equalized_odds")
            self.criterion.state.is_compiled &= loss == "ours"
        else:
            self.criterion = old(y_train=y, s_train=s, fairness_measure="equal_odds")
        starts = range(0, len(x) - case.batch + 1, case.batch)
        batches = [tuple(part[i : i + case.batch] for part in self.data) for i in starts]
        self.stream = itertools.cycle(batches)
        short = TensorDataset(*(part[: len(x) // SHORT] for part in self.data))
        self.loader = DataLoader(short, case.batch, shuffle=True)

    def steps(self, n: int) -> None:
        """Bare steps on batches that lie in memory."""
        for x, y, s in itertools.islice(self.stream, n):
            self.optimizer.zero_grad()
            self.criterion(self.model(x), y, s).backward()
            self.optimizer.step()

    def epoch(self) -> None:
        """A pass over a part of the data as in the paper's experiments."""
        for x, y, s in self.loader:
            self.optimizer.zero_grad()
            self.criterion(self.model(x), y, s).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.05)
            self.optimizer.step()


def interleaved(runs: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Median ratio of each run to the plain one, taken in turns.

    "seconds" are the plain one's, "error" is the standard error of the median of our ratio: that of
    a normal distribution, whose spread is estimated by the middle half of the ratios.
    """
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {loss: [] for loss in runs}
    order, draw = list(runs), random.Random(0)  # noqa: S311 - an order needs no secrecy
    for _ in range(repeats):
        draw.shuffle(order)
        for loss in order:
            start = time.process_time()
            runs[loss]()
            times[loss].append(time.process_time() - start)
    ratios = {
        loss: [a / b for a, b in zip(times[loss], times["plain"], strict=True)] for loss in runs
    }
    low, _, high = statistics.quantiles(ratios["ours"], n=4)
    error = 1.2533 * (high - low) / 1.349 / math.sqrt(repeats)
    medians = {loss: statistics.median(own) for loss, own in ratios.items()}
    return {**medians, "error": error, "seconds": statistics.median(times["plain"])}


def step_ratios(
    case: Case, losses: list[str], old: Any, blocks: int, steps: int, n_groups: int = 2
) -> dict[str, float]:
    """Ratios of steps to plain ones, and the plain one's seconds."""
    trainers = {loss: Trainer(case, loss, old, n_groups) for loss in losses}
    runs = {loss: lambda own=own: own.steps(steps) for loss, own in trainers.items()}
    found = interleaved(runs, blocks)
    return {**found, "seconds": found["seconds"] / steps}


def epoch_ratios(case: Case, losses: list[str], old: Any, epochs: int) -> dict[str, float]:
    """Ratios of epochs to plain ones, and the plain one's seconds."""
    trainers = {loss: Trainer(case, loss, old) for loss in losses}
    found = interleaved({loss: own.epoch for loss, own in trainers.items()}, epochs)
    return {**found, "seconds": found["seconds"] * SHORT}


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=48, help="short ones, of each loss")
    parser.add_argument("--without-steps", action="store_true", help="only epochs")
    parser.add_argument("--only", default="", help="only networks whose name contains this")
    parser.add_argument("--without-old", action="store_true", help="leave fairgrad 0.2.0 out")
    parser.add_argument("--out", type=Path, help="folder to write the ratios into as CSV")
    options = parser.parse_args()
    torch.set_num_threads(1)
    old = None if options.without_old else load_old_loss()
    losses = ["plain", "ours", "tensors", *([] if old is None else ["0.2.0"])]
    print("The step is compiled." if fairgrad.torch.is_compiled else "The step is not compiled.")
    if not options.only and not options.without_steps:
        print_memory(losses, old)  # first, while no freed memory can hide what is kept
    chosen = [case for case in cases() if options.only in case.name]
    if not options.without_steps:
        steps = [
            row_of(case, step_ratios(case, losses, old, options.blocks, options.steps), 1e6)
            for case in chosen
        ]
        show("Time of a training step as a multiple of plain cross entropy", steps, "microseconds")
        write(options.out, "overhead", steps, "microseconds")
    epochs = [
        row_of(case, epoch_ratios(case, losses, old, options.epochs), 1.0) | {"paper": case.paper}
        for case in chosen
        if case.batch == 512 or case.name in {"linear", "convolutional"}
    ]
    show("Time of an epoch, with data loader and clipping", epochs, "seconds")
    write(options.out, "overhead_epochs", epochs, "seconds")
    if not options.only and not options.without_steps:
        cells = growth_with_groups(options.blocks, options.steps)
        show("Linear network, batch 512, against the number of cells", cells, "microseconds")
        write(options.out, "overhead_cells", cells, "microseconds")


def write(folder: Path | None, name: str, rows: list[dict[str, Any]], unit: str) -> None:
    """Writes one of the tables as CSV, if a folder was given, before the next is measured."""
    if folder:
        frame = pd.DataFrame(rows).rename(columns={"plain": f"plain_{unit}"})
        frame.round(3 if unit == "seconds" else 2).to_csv(folder / f"{name}.csv", index=False)


def row_of(case: Case, ratios: dict[str, float], unit: float) -> dict[str, Any]:
    """A row of the results; ratios have two digits, as more would be noise."""
    names = {"ours": "ours", "tensors": "not_compiled", "0.2.0": "fairgrad_0_2_0"}
    found = {new: round(ratios[name], 2) for name, new in names.items() if name in ratios}
    found["error"] = round(ratios["error"], 3)
    row = {"network": case.name, "batch": case.batch, **found}
    return row | {"plain": ratios["seconds"] * unit}


def show(title: str, rows: list[dict[str, Any]], unit: str) -> None:
    """Prints one of the tables."""
    table = Table(title=title)
    for column in rows[0]:
        name = f"plain, {unit}" if column == "plain" else column.replace("_", " ")
        table.add_column(name, justify="left" if column == "network" else "right")
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=110).print(table)


def print_memory(losses: list[str], old: Any, steps: int = 3000) -> None:
    """How much the process grows per step of the linear network at batch 512, once warm."""
    table = Table(title="Growth of memory, linear network, batch 512")
    table.add_column("loss")
    table.add_column("bytes per step", justify="right")
    for loss in losses:
        trainer = Trainer(cases()[0], loss, old)
        trainer.steps(300)
        gc.collect()
        before = psutil.Process().memory_info().rss
        trainer.steps(steps)
        gc.collect()
        table.add_row(loss, f"{(psutil.Process().memory_info().rss - before) / steps:,.0f}")
    Console(width=110).print(table)


def growth_with_groups(blocks: int, steps: int) -> list[dict[str, Any]]:
    """The same ratio for the linear network, by the number of cells (equalized odds)."""
    case, rows = cases()[0], []
    for n_groups in GROUPS:
        ratios = step_ratios(case, ["plain", "ours", "tensors"], None, blocks, steps, n_groups)
        _, y, s = training_data(case, n_groups)
        buffers = fairgrad.torch.CrossEntropyLoss(y, s, "equalized_odds").buffers()
        held = {"kilobytes_of_buffers": round(sum(buffer.nbytes for buffer in buffers) / 1e3, 1)}
        rows.append({"cells": 2 * n_groups, **row_of(case, ratios, 1e6), **held})
    return [{k: v for k, v in row.items() if k not in {"network", "batch"}} for row in rows]


if __name__ == "__main__":
    main()
