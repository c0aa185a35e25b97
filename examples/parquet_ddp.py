"""Trains a fair network on Parquet files of any size, in several processes.

    torchrun --nproc-per-node 2 examples/parquet_ddp.py TRAIN TEST OUT --target hired \
        --desirable yes --sensitive sex

TRAIN and TEST are folders of Parquet files. Each process reads only its own row groups, one at a
time, so memory does not grow with the table. The processes share one model and one set of
multipliers. OUT/checkpoint.pt is written every `--save-every` steps: start the same command again
after an interruption, and training continues where it stopped, with the same result. At the end
the processes count the predictions for the test rows. The counts are written to OUT/counts.csv, and
their audit to OUT/report.html.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from fairgrad import Audit, Groups, Report
from fairgrad.torch import CrossEntropyLoss

if TYPE_CHECKING:
    from collections.abc import Iterator

MEASURE = "demographic_parity"


@dataclass
class Shard:
    """The row groups of a folder that one process reads.

    Attributes:
        parts: file, row group, number of rows.
    """

    parts: list[tuple[Path, int, int]]

    @classmethod
    def of_process(cls, folder: Path, rank: int, size: int) -> Shard:
        """Every size-th row group, starting with the rank-th."""
        parts = []
        for path in sorted(folder.rglob("*.parquet")):
            metadata = pq.ParquetFile(path).metadata
            parts += [
                (path, i, metadata.row_group(i).num_rows) for i in range(metadata.num_row_groups)
            ]
        return cls(parts[rank::size])

    def frames(self, columns: list[str] | None = None) -> Iterator[pd.DataFrame]:
        """The row groups, one at a time."""
        for path, i, _ in self.parts:
            yield pq.ParquetFile(path).read_row_group(i, columns=columns).to_pandas()

    def batches(self, size: int, epoch: int, first: int) -> Iterator[pd.DataFrame]:
        """Batches of one epoch in an order that depends on the epoch only, from the first-th on.

        A row group that was used up before an interruption is not read again.
        """
        rng = np.random.default_rng(epoch)
        for k in rng.permutation(len(self.parts)):
            path, i, n = self.parts[k]
            order = rng.permutation(n)
            n_batches = n // size
            if first >= n_batches:
                first -= n_batches
                continue
            frame = pq.ParquetFile(path).read_row_group(i).to_pandas()
            for batch in range(first, n_batches):
                yield frame.iloc[order[batch * size : (batch + 1) * size]]
            first = 0

    def n_batches(self, size: int) -> int:
        """Batches in an epoch; rows that do not fill the last batch of a row group are left out."""
        return sum(n // size for _, _, n in self.parts)


class Encoder:
    """Turns rows into numbers: standardised numbers, one column per value of a text column."""

    def __init__(self, options: argparse.Namespace, shard: Shard) -> None:
        self.options = options
        texts: dict[str, set[str]] = {}
        sums: dict[str, np.ndarray] = {}
        counts: Counter[tuple[int, str]] = Counter()
        for frame in shard.frames():
            y = self.labels(frame).tolist()
            counts.update(zip(y, frame[options.sensitive].astype(str), strict=True))
            for name in frame.columns.difference([options.target, options.sensitive]):
                if pd.api.types.is_numeric_dtype(frame[name]):
                    x = frame[name].dropna().to_numpy(float)
                    sums[name] = sums.get(name, 0) + np.array([len(x), x.sum(), (x**2).sum()])
                else:
                    texts.setdefault(name, set()).update(frame[name].dropna().astype(str))
        self._merge(gather((texts, sums, counts)))

    def _merge(self, surveys: list[Any]) -> None:
        """What all processes found."""
        self.counts: Counter[tuple[int, str]] = Counter()
        texts: dict[str, set[str]] = {}
        sums: dict[str, np.ndarray] = {}
        for own_texts, own_sums, own_counts in surveys:
            self.counts.update(own_counts)
            for name, values in own_texts.items():
                texts.setdefault(name, set()).update(values)
            for name, own in own_sums.items():
                sums[name] = sums.get(name, 0) + own
        self.values = {name: sorted(texts[name]) for name in sorted(texts)}
        self.scales = {}
        for name in sorted(sums):
            n, total, squares = sums[name]
            self.scales[name] = (total / n, max((squares / n - (total / n) ** 2) ** 0.5, 1e-9))
        self.groups = sorted({s for _, s in self.counts})

    @property
    def n_features(self) -> int:
        """Columns of the encoded matrix."""
        return len(self.scales) + sum(len(values) for values in self.values.values())

    def labels(self, frame: pd.DataFrame) -> np.ndarray:
        """1 where the target has the desirable value."""
        return (frame[self.options.target].astype(str) == self.options.desirable).to_numpy(int)

    def sensitive(self, frame: pd.DataFrame) -> np.ndarray:
        """The number of each row's group; -1 is a group that no training row has."""
        return pd.Categorical(frame[self.options.sensitive].astype(str), self.groups).codes

    def features(self, frame: pd.DataFrame) -> torch.Tensor:
        """The network's inputs; missing numbers are the mean, unknown texts all 0."""
        columns = [
            ((frame[name].to_numpy(float) - mean) / scale)[:, None]
            for name, (mean, scale) in self.scales.items()
        ]
        columns += [
            (frame[name].astype(str).to_numpy()[:, None] == np.array(values)).astype(float)
            for name, values in self.values.items()
        ]
        return torch.from_numpy(np.nan_to_num(np.hstack(columns))).float()


def gather(value: Any) -> list[Any]:
    """The values of all processes, in the order of their ranks."""
    values = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values


def train(options: argparse.Namespace, shard: Shard, encoder: Encoder) -> nn.Module:
    """The trained network; continues from the checkpoint if there is one."""
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(encoder.n_features, 32), nn.ReLU(), nn.Linear(32, 2))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    codes = {name: code for code, name in enumerate(encoder.groups)}
    counts = {(y, codes[s]): n for (y, s), n in encoder.counts.items()}
    criterion = CrossEntropyLoss(Groups.from_counts(counts), fairness_measure=MEASURE)

    checkpoint, start, first = options.out / "checkpoint.pt", 0, 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        start, first = state["epoch"], state["step"]
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
        criterion.load_state_dict(state["criterion"])  # the multipliers are part of the model
    # Every process must take equally many steps.
    n_steps = min(gather(shard.n_batches(options.batch)))
    for epoch in range(start, options.epochs):
        batches = shard.batches(options.batch, epoch, first)
        for step, frame in zip(range(first, n_steps), batches, strict=False):
            y = torch.from_numpy(encoder.labels(frame))
            s = torch.from_numpy(encoder.sensitive(frame).astype(np.int64))
            optimizer.zero_grad()
            criterion(model(encoder.features(frame)), y, s).backward()
            optimizer.step()
            if (step + 1) % options.save_every == 0 or step + 1 == n_steps:
                place = (epoch, step + 1) if step + 1 < n_steps else (epoch + 1, 0)
                save(checkpoint, place, network, optimizer, criterion)
        first = 0
    return network


def save(
    checkpoint: Path,
    place: tuple[int, int],
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    criterion: nn.Module,
) -> None:
    """Writes the state of the run. An interruption here keeps the previous state."""
    if distributed.get_rank() == 0:
        beside = checkpoint.with_suffix(".new")
        torch.save(
            {
                "epoch": place[0],
                "step": place[1],
                "network": network.state_dict(),
                "optimizer": optimizer.state_dict(),
                "criterion": criterion.state_dict(),
            },
            beside,
        )
        beside.replace(checkpoint)


def audit(
    options: argparse.Namespace, network: nn.Module, shard: Shard, encoder: Encoder
) -> Audit | None:
    """The audit of the test rows, in the first process; rows are counted, not collected."""
    counts: Counter[tuple[str, int, int]] = Counter()
    network.eval()
    for frame in shard.frames():
        with torch.no_grad():
            predicted = network(encoder.features(frame)).argmax(1).tolist()
        s = frame[options.sensitive].astype(str)
        counts.update(zip(s, encoder.labels(frame).tolist(), predicted, strict=True))
    total = sum(gather(counts), Counter())
    if distributed.get_rank() != 0:
        return None
    columns = [options.sensitive, options.target, "prediction"]
    table = pd.DataFrame(total.keys(), columns=columns).assign(count=list(total.values()))
    return Audit.from_counts(
        table, options.target, "prediction", options.sensitive, measures=MEASURE, y_desirable=1
    )


def main() -> None:
    """Trains, or continues, and audits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("train", "test", "out"):
        parser.add_argument(name, type=Path)
    for name in ("--target", "--desirable", "--sensitive"):
        parser.add_argument(name, required=True)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=256, help="rows per process and step")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--save-every", type=int, default=100, help="steps between checkpoints")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    torch.set_num_threads(1)
    distributed.init_process_group("gloo")  # "nccl" with one GPU per process
    place = distributed.get_rank(), distributed.get_world_size()
    shard = Shard.of_process(options.train, *place)
    encoder = Encoder(options, shard)
    network = train(options, shard, encoder)
    result = audit(options, network, Shard.of_process(options.test, *place), encoder)
    if result is not None:
        print(result)
        Report(result).save(options.out / "report.html")
        result.to_counts().to_csv(options.out / "counts.csv", index=False)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
