"""What a fair training step costs: plain cross entropy, ours and fairgrad 0.2.0, interleaved.

Run: ``make bench-overhead``. Ratios are medians over blocks of steps that alternate between the
losses in one process and one thread, so that a noisy machine disturbs all of them alike.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import psutil
import torch
from old_fairgrad import load_old_loss
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import fairgrad.torch

if TYPE_CHECKING:
    from collections.abc import Callable

FEATURES = 52
ROWS = 45_222
GROUPS = (2, 8, 32, 128, 512, 2_000, 5_000, 10_000)


class Case(NamedTuple):
    """One network at one batch size, and the paper's ratio for it (seconds per epoch)."""

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


def stepper(case: Case, loss: str, old: Any, n_groups: int = 2) -> Callable[[int], None]:
    """A function that trains for so many steps with the named loss."""
    x, y, s = training_data(case, n_groups)
    torch.manual_seed(0)
    model = case.network()
    model(x[: case.batch])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [
        tuple(part[start : start + case.batch] for part in (x, y, s))
        for start in range(0, len(x) - case.batch + 1, case.batch)
    ]
    if loss == "plain":
        plain = nn.CrossEntropyLoss()
        criterion = lambda logits, y, _: plain(logits, y)  # noqa: E731 - the same call for all
    elif loss in {"ours", "tensors"}:
        criterion = fairgrad.torch.CrossEntropyLoss(y, s, "equalized_odds")
        criterion.state.is_compiled &= loss == "ours"
    else:
        criterion = old(y_train=y, s_train=s, fairness_measure="equal_odds")
    stream = itertools.cycle(batches)

    def run(steps: int) -> None:
        for x, y, s in itertools.islice(stream, steps):
            optimizer.zero_grad()
            criterion(model(x), y, s).backward()
            optimizer.step()

    return run


def ratios_to_plain(
    case: Case, losses: list[str], old: Any, blocks: int, steps: int, n_groups: int = 2
) -> dict[str, float]:
    """Median ratio of each loss to plain over interleaved blocks, and plain's seconds per step."""
    runs = {loss: stepper(case, loss, old, n_groups) for loss in losses}
    for run in runs.values():
        run(steps)
    times: dict[str, list[float]] = {loss: [] for loss in losses}
    for _ in range(blocks):
        for loss, run in runs.items():
            start = time.perf_counter()
            run(steps)
            times[loss].append((time.perf_counter() - start) / steps)
    ratios = {
        loss: statistics.median(a / b for a, b in zip(times[loss], times["plain"], strict=True))
        for loss in losses
    }
    return {**ratios, "seconds": statistics.median(times["plain"])}


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=30)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--only", default="", help="only networks whose name contains this")
    parser.add_argument("--without-old", action="store_true", help="leave fairgrad 0.2.0 out")
    parser.add_argument("--out", default="", help="also write the ratios into this CSV file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    old = None if options.without_old else load_old_loss()
    losses = ["plain", "ours", "tensors", *([] if old is None else ["0.2.0"])]
    print("The step is compiled." if fairgrad.torch.is_compiled else "The step is not compiled.")
    if not options.only:
        print_memory(losses, old)  # first, while no freed memory can hide what is kept
    table = Table(title="Time of a training step as a multiple of plain cross entropy")
    for column in ("network", "batch", "plain, µs", "ours", "not compiled", "0.2.0", "paper"):
        table.add_column(column, justify="left" if column == "network" else "right")
    rows: list[dict[str, Any]] = []
    for case in cases():
        if options.only not in case.name:
            continue
        ratio = ratios_to_plain(case, losses, old, options.blocks, options.steps)
        rows.append({"network": case.name, "batch": case.batch, **ratio, "paper": case.paper})
        shown = [
            f"{ratio[loss]:.2f}" if loss in ratio else "" for loss in ("ours", "tensors", "0.2.0")
        ]
        table.add_row(
            case.name, str(case.batch), f"{ratio['seconds'] * 1e6:.0f}", *shown, case.paper
        )
    Console(width=110).print(table)
    if options.out:
        columns = {
            "seconds": "plain_microseconds",
            "tensors": "not_compiled",
            "0.2.0": "fairgrad_0_2_0",
        }
        frame = pd.DataFrame(rows).drop(columns="plain").rename(columns=columns)
        frame["plain_microseconds"] *= 1e6
        frame.round(2).to_csv(options.out, index=False)
    if not options.only:
        print_growth_with_groups(options.blocks, options.steps)


def print_memory(losses: list[str], old: Any, steps: int = 3000) -> None:
    """How much the process grows per step of the linear network at batch 512, once warm."""
    table = Table(title="Growth of memory, linear network, batch 512")
    table.add_column("loss")
    table.add_column("bytes per step", justify="right")
    for loss in losses:
        run = stepper(cases()[0], loss, old)
        run(300)
        gc.collect()
        before = psutil.Process().memory_info().rss
        run(steps)
        gc.collect()
        table.add_row(loss, f"{(psutil.Process().memory_info().rss - before) / steps:,.0f}")
    Console(width=110).print(table)


def print_growth_with_groups(blocks: int, steps: int) -> None:
    """The same ratio for the linear network against the number of cells."""
    case = cases()[0]
    table = Table(title="Linear network, batch 512, against the number of cells (equalized odds)")
    for column in ("cells", "ours / plain", "not compiled / plain", "constants, MB"):
        table.add_column(column, justify="right")
    for n_groups in GROUPS:
        losses = ["plain", "ours", "tensors"]
        ratio = ratios_to_plain(case, losses, None, blocks, steps, n_groups)
        _, y, s = training_data(case, n_groups)
        buffers = fairgrad.torch.CrossEntropyLoss(y, s, "equalized_odds").buffers()
        size = sum(buffer.nbytes for buffer in buffers) / 1e6
        shown = [f"{ratio[loss]:.2f}" for loss in ("ours", "tensors")]
        table.add_row(f"{2 * n_groups:,}", *shown, f"{size:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
