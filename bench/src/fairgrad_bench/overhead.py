"""What fairness costs in time: seconds per epoch with and without it, as in the paper's table.

An epoch is the paper's: a data loader that shuffles, forward, backward, clipping and a step of
gradient descent. Epochs with the plain and with the fair loss alternate in one thread, so that
whatever else the machine does disturbs both alike; times are of the processor. Seconds depend on
the machine; the ratio hardly does. The two large networks have the paper's sizes and random
weights; a few of their steps are measured on the processor, where the paper had a graphics card,
and an epoch is as many of them as it has batches.
"""

from __future__ import annotations

import time
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from fairgrad.datasets import load
from fairgrad.files import write_whole
from fairgrad.report import ReportFigure, number, save_figures
from fairgrad.torch import CrossEntropyLoss
from fairgrad_bench.figures import OURS, PAPER, scatter
from fairgrad_bench.paper import paper_overhead
from fairgrad_bench.running import one_thread
from fairgrad_bench.tables import markdown_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

WORDS = (
    "Seconds of processor time per epoch (equalized odds), data loader, clipping and optimiser in: "
    "means and standard deviations; delta is their difference, ratio the median over pairs of "
    "epochs with the middle half around it. Of the two large networks a few steps were measured, "
    "and multiplied by the batches of an epoch: their noise is larger than what fairness costs. "
    "Loss delta is what the fair loss by itself, timed alone, costs more than the plain one in an "
    "epoch. The paper measured the large networks on a graphics card."
)
NOTE = "filled: measured here; hollow: the paper; bars: the middle half of the epochs measured"
CLIP_NORM = 0.05
FEW = 5
"""Steps of the large networks that are measured, at most."""
RESNET, BERT = "ResNet18, UTKFace", "BERT, Twitter"
IMAGES, TWEETS = 14_224, 120_000
"""Training rows: 60 % of UTKFace's images and of the tweets."""

PIXELS, TOKENS = 64, 16
VOCABULARY, WIDTH, HEADS, LAYERS, POSITIONS = 30_522, 768, 12, 12, 512
"""BERT's (base, uncased) sizes."""


def network(features: int, hidden: Sequence[int]) -> nn.Module:
    """Linear layers with ReLU between them, for two labels."""
    layers: list[nn.Module] = []
    for before, after in pairwise([features, *hidden]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear([features, *hidden][-1], 2))


class ResidualBlock(nn.Module):
    """Two convolutions of 3 x 3 around which the input passes by, as in He et al. (2016)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, images: Tensor) -> Tensor:
        """The sum of both ways."""
        return torch.relu(self.way(images) + self.shortcut(images))


def resnet18() -> nn.Module:
    """A ResNet18 for two labels, with random weights."""
    widths = [64, 64, 128, 256, 512]
    blocks = [
        ResidualBlock(before if first else after, after, 1 + (first and after > widths[0]))
        for before, after in pairwise(widths)
        for first in (True, False)
    ]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 2)]
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *blocks, *head)


class Bert(nn.Module):
    """A transformer of the size of BERT (base) for two labels, with random weights."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(POSITIONS, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, activation="gelu", batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, words: Tensor) -> Tensor:
        """Logits by what becomes of the first word."""
        places = torch.arange(words.shape[1])
        inputs = self.words(words) + self.places(places) + self.segments.weight[0]
        scores: Tensor = self.head(torch.tanh(self.pooler(self.layers(self.norm(inputs))[:, 0])))
        return scores


class EpochCase(NamedTuple):
    """What is measured for one row of the table.

    Attributes:
        make: the network.
        data: features, labels and sensitive values; the last two of the whole training set.
        steps: how many steps are measured; None for all of an epoch.
        rows: of an epoch.
    """

    make: Callable[[], nn.Module]
    data: tuple[Tensor, Tensor, Tensor]
    steps: int | None
    rows: int


def measure_overhead(epochs: int = 20, *, large: bool = True) -> pd.DataFrame:
    """Seconds per epoch of the paper's networks, plain and fair, and the paper's beside them.

    Adult's training part in batches of 512; images and tweets are random numbers of their sizes.

    Args:
        epochs: measured for each network and loss; one more before, to warm up. Of the large
            networks as many steps, at most five.
        large: whether to measure the two large networks, which need 2 GB and some minutes.

    Raises:
        ValueError: if epochs is not positive.
    """
    if epochs < 1:
        raise ValueError(f"epochs: expected at least 1, got {epochs}.")
    rows = []
    with one_thread():
        for paper in paper_overhead().to_dict(orient="records"):
            if paper["setting"] in {RESNET, BERT} and not large:
                continue
            case = _case(paper)
            repeats = epochs if case.steps is None else min(epochs, FEW)
            times = _interleaved(case, paper["batch_size"], repeats)
            rows.append(_row(paper, times, _loss_delta(case, paper["batch_size"])))
    return pd.DataFrame(rows)


def write_overhead(frame: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Writes the table as CSV and Markdown and draws the ratios; gives the files."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / "overhead_paper.csv", frame.to_csv(index=False))
    write_whole(
        place / "overhead_paper.md",
        f"# Overhead of fairness\n\n{WORDS}\n\n{markdown_frame(frame)}\n",
    )
    drawn = save_figures([_figure(frame)], place, ("png",), scale=2.0)
    return [place / "overhead_paper.csv", place / "overhead_paper.md", *drawn]


def _case(paper: dict[Any, Any]) -> EpochCase:
    """The network and data of a row of the paper's table."""
    source = torch.Generator().manual_seed(0)
    if paper["setting"] == RESNET:
        X = torch.randn(paper["batch_size"], 3, PIXELS, PIXELS, generator=source)
        return EpochCase(resnet18, (X, *_labels(IMAGES, source)), 1, IMAGES)
    if paper["setting"] == BERT:
        X = torch.randint(VOCABULARY, (paper["batch_size"], TOKENS), generator=source)
        return EpochCase(Bert, (X, *_labels(TWEETS, source)), 1, TWEETS)
    X, y, s = (torch.from_numpy(np.ascontiguousarray(part)) for part in load("adult").split().train)
    hidden = _sizes(paper["hidden"])
    return EpochCase(lambda: network(X.shape[1], hidden), (X, y, s), None, len(y))


def _labels(n: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
    """Labels and groups by chance: what the loss costs does not depend on them."""
    y, s = (torch.randint(2, (n,), generator=source) for _ in range(2))
    return y, s


def _interleaved(case: EpochCase, batch_size: int, epochs: int) -> dict[str, list[float]]:
    """Seconds of epochs with each loss, taken in turns, the first of each left out."""
    runs = {name: _epoch(case, batch_size, loss) for name, loss in _losses(case).items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    factor = 1.0 if case.steps is None else case.rows / batch_size / case.steps
    for epoch in range(epochs + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name] += [factor * (time.process_time() - start)] if epoch else []
    return times


def _losses(case: EpochCase) -> dict[str, Callable[..., Tensor]]:
    _, y, s = case.data
    plain = nn.CrossEntropyLoss()
    return {
        "unconstrained": lambda scores, y, _: plain(scores, y),
        "fairgrad": CrossEntropyLoss(y, s, "equalized_odds"),
    }


def _epoch(case: EpochCase, batch_size: int, loss: Callable[..., Tensor]) -> Callable[[], None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = case.make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    X, y, s = case.data
    rows = TensorDataset(X, y[: len(X)], s[: len(X)])
    shuffling = torch.Generator().manual_seed(0)
    loader = DataLoader(rows, batch_size, shuffle=True, generator=shuffling)

    def run() -> None:
        with torch.random.fork_rng(devices=[]):  # of dropout
            for X, y, s in loader if case.steps is None else islice(cycle(loader), case.steps):
                optimizer.zero_grad()
                torch.autograd.backward(loss(model(X), y, s))
                nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
                optimizer.step()

    return run


def _loss_delta(case: EpochCase, batch_size: int, repeats: int = 300) -> float:
    """What the fair loss alone costs more than the plain one in an epoch, there and back."""
    _, y, s = (part[:batch_size] for part in case.data)
    scores = torch.zeros(batch_size, 2, requires_grad=True)
    differences = []
    losses = _losses(case)
    for _ in range(repeats):
        own = []
        for loss in losses.values():
            start = time.process_time()
            torch.autograd.backward(loss(scores, y, s))
            own.append(time.process_time() - start)
        differences.append(own[1] - own[0])
    return float(np.median(differences)) * case.rows / batch_size


def _row(paper: dict[Any, Any], times: dict[str, list[float]], loss_delta: float) -> dict[str, Any]:
    row: dict[str, Any] = {name: paper[name] for name in ("setting", "parameters", "batch_size")}
    for name, seconds in times.items():
        row |= {name: round(float(np.mean(seconds)), 4)}
        row |= {f"{name}_std": round(float(np.std(seconds)), 4)}
    row["delta"] = round(row["fairgrad"] - row["unconstrained"], 4)
    row["loss_delta"] = round(loss_delta, 4)
    ratios = np.divide(times["fairgrad"], times["unconstrained"])
    names = ("ratio_low", "ratio", "ratio_high")
    row |= dict(zip(names, np.quantile(ratios, (0.25, 0.5, 0.75)).round(3).tolist(), strict=True))
    row |= {f"paper_{name}": paper[name] for name in ("unconstrained", "fairgrad")}
    row["paper_delta"] = round(paper["fairgrad"] - paper["unconstrained"], 3)
    return row | {"paper_ratio": round(paper["fairgrad"] / paper["unconstrained"], 3)}


def _sizes(text: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in str(text).split()) if isinstance(text, str) else ()


def _figure(frame: pd.DataFrame) -> ReportFigure:
    points = []
    for row in frame.to_dict(orient="records"):
        own = {"parameters": row["parameters"], "series": OURS, "source": OURS}
        points.append(own | {name: row[name] for name in ("ratio", "ratio_low", "ratio_high")})
        paper = dict.fromkeys(("ratio", "ratio_low", "ratio_high"), row["paper_ratio"])
        points.append({"parameters": row["parameters"], "series": PAPER, "source": PAPER, **paper})
    chart = scatter(
        points,
        alt.X("parameters:Q", title=["parameters of the network", NOTE]).scale(type="log"),
        alt.Y("ratio:Q", title="time with fairness / without").scale(zero=False),
        field="series",
        names=(OURS, PAPER),
        error_bars=("y",),
    )
    return ReportFigure(
        id="overhead",
        title="What fairness costs in training time",
        chart=chart.properties(height=320),
        alternative="Ratio of the time of an epoch with fairness to one without, by network.",
        columns=("parameters", "source", "ratio"),
        rows=[[str(p["parameters"]), str(p["source"]), number(p["ratio"])] for p in points],
    )
