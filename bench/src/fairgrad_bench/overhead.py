"""What fairness costs in time: seconds per epoch on Adult with and without it, as in the paper.

Epochs with the plain and with the fair loss alternate in one thread, so that whatever else the
machine does disturbs both alike. Seconds depend on the machine; the ratio hardly does.
"""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
import pandas as pd
import torch

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

WORDS = (
    "Seconds per epoch on Adult (equalized odds), means and standard deviations; delta is their "
    "difference, ratio the median over pairs of epochs with the middle half around it. Batches "
    "lie in memory ready to use, so that a plain epoch is shorter here than in the paper and the "
    "same delta a larger ratio."
)
NOTE = "filled: measured here; hollow: the paper; bars: the middle half of the epochs measured"


def network(features: int, hidden: Sequence[int]) -> torch.nn.Module:
    """Linear layers with ReLU between them, for two labels."""
    layers: list[torch.nn.Module] = []
    for before, after in pairwise([features, *hidden]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear([features, *hidden][-1], 2))


def measure_overhead(epochs: int = 20) -> pd.DataFrame:
    """Seconds per epoch of the paper's networks, plain and fair, and the paper's beside them.

    Adult's training part, equalized odds, batches of 512 that lie in memory ready to use: what
    the paper's epochs spend on anything but the steps themselves is not in ours.

    Args:
        epochs: measured for each network and loss; one more before, to warm up.

    Raises:
        ValueError: if epochs is not positive.
    """
    if epochs < 1:
        raise ValueError(f"epochs: expected at least 1, got {epochs}.")
    X, y, s = (torch.from_numpy(np.ascontiguousarray(part)) for part in load("adult").split().train)
    rows = []
    with one_thread():
        for paper in paper_overhead().to_dict(orient="records"):
            times = _interleaved(_sizes(paper["hidden"]), (X, y, s), paper["batch_size"], epochs)
            rows.append(_row(paper, times))
    return pd.DataFrame(rows)


def write_overhead(frame: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Writes the table as CSV and Markdown and draws the ratios; gives the files."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / "overhead.csv", frame.to_csv(index=False))
    write_whole(
        place / "overhead.md", f"# Overhead of fairness\n\n{WORDS}\n\n{markdown_frame(frame)}\n"
    )
    drawn = save_figures([_figure(frame)], place, ("png",), scale=2.0)
    return [place / "overhead.csv", place / "overhead.md", *drawn]


def _interleaved(
    hidden: Sequence[int], data: tuple[torch.Tensor, ...], batch_size: int, epochs: int
) -> dict[str, list[float]]:
    _, y, s = data
    plain = torch.nn.CrossEntropyLoss()
    fair = CrossEntropyLoss(y, s, "equalized_odds")
    losses: dict[str, Callable[..., Any]] = {
        "unconstrained": lambda scores, y, _: plain(scores, y),
        "fairgrad": fair,
    }
    runs = {name: _epoch(hidden, data, batch_size, loss) for name, loss in losses.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for epoch in range(epochs + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name] += [time.perf_counter() - start] if epoch else []
    return times


def _epoch(
    hidden: Sequence[int],
    data: tuple[torch.Tensor, ...],
    batch_size: int,
    loss: Callable[..., torch.Tensor],
) -> Callable[[], None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = network(data[0].shape[1], hidden)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = list(zip(*(torch.split(part, batch_size) for part in data), strict=True))

    def run() -> None:
        for X, y, s in batches:
            optimizer.zero_grad()
            torch.autograd.backward(loss(model(X), y, s))
            optimizer.step()

    return run


def _row(paper: dict[Any, Any], times: dict[str, list[float]]) -> dict[str, Any]:
    row: dict[str, Any] = {name: paper[name] for name in ("setting", "parameters", "batch_size")}
    for name, seconds in times.items():
        row |= {name: round(float(np.mean(seconds)), 4)}
        row |= {f"{name}_std": round(float(np.std(seconds)), 4)}
    row["delta"] = round(row["fairgrad"] - row["unconstrained"], 4)
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
        title="What fairness costs in training time: Adult, batches of 512",
        chart=chart.properties(height=320),
        alternative="Ratio of the time of an epoch with fairness to one without, by network.",
        columns=("parameters", "source", "ratio"),
        rows=[[str(p["parameters"]), str(p["source"]), number(p["ratio"])] for p in points],
    )
