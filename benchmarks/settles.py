"""Whether the fair loss converges in ordinary training loops: accuracy and levels after each loop.

Run: ``python benchmarks/settles.py``. Every loop is trained with the plain loss, with the paper's
constant rate and with the automatic rate, for each seed. Results go to results/settles.csv, one
line per run; runs that are there already are skipped, so that an interrupted run resumes.
``--first N`` runs the first N loops only: the first nine are those that the constant rate fails in.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from fairgrad import fairness_levels
from fairgrad.torch import CrossEntropyLoss
from fairgrad_bench.datasets import load

RESULTS = Path(__file__).parents[1] / "results" / "settles.csv"
RATES = {"plain": None, "paper": 0.01, "auto": "auto"}


class Loop(NamedTuple):
    """One training loop: data, measure, network, optimizer, rows per batch, and how long."""

    data: str
    measure: str
    hidden: tuple[int, ...]
    optimizer: str
    learning_rate: float
    batch: int
    epochs: int = 0
    steps: int = 0

    @property
    def name(self) -> str:
        """The key of its results."""
        layers = "linear" if not self.hidden else "mlp " + "-".join(map(str, self.hidden))
        length = f"{self.epochs} epochs" if self.epochs else f"{self.steps} steps"
        return (
            f"{self.data}, {self.measure}, {layers}, {self.optimizer} {self.learning_rate:g}, "
            f"batch {self.batch}, {length}"
        )


ODDS, PARITY, EQUAL = "equalized_odds", "demographic_parity", "accuracy_parity"
TWO = (64, 64)

LOOPS = [
    Loop("adult", ODDS, (), "sgd", 0.1, 512, 20),
    Loop("adult", ODDS, (), "sgd", 0.1, 512, 96),
    Loop("adult", ODDS, (), "sgd", 0.1, 64, 12),
    Loop("adult", ODDS, (), "sgd", 0.1, 32, 12),
    Loop("adult", ODDS, (), "adam", 1e-3, 256, 30),
    Loop("adult", ODDS, TWO, "adam", 1e-3, 128, 12),
    Loop("adult", ODDS, TWO, "sgd", 0.1, 128, 12),
    Loop("adult", EQUAL, TWO, "sgd", 0.1, 128, 12),
    Loop("adult", PARITY, (512, 256, 64), "adam", 0.01, 1024, steps=150),
]


def make_optimizer(loop: Loop, parameters: Any, n_steps: int) -> tuple[Any, Any]:
    """The optimizer and its schedule, if it has one."""
    if loop.optimizer == "momentum":
        optimizer = torch.optim.SGD(parameters, lr=loop.learning_rate, momentum=0.9)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[loop.optimizer](parameters, lr=loop.learning_rate), None


def network(loop: Loop, n_features: int, n_labels: int) -> nn.Module:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for width in loop.hidden:
        layers += [nn.Linear(n_features, width), nn.ReLU()]
        n_features = width
    return nn.Sequential(*layers, nn.Linear(n_features, n_labels))


def judge(model: nn.Module, rows: tuple[Tensor, ...], measure: str) -> tuple[float, Any]:
    """Accuracy and levels."""
    x, y, s = rows
    with torch.no_grad():
        predicted = model(x).argmax(1)
    levels = fairness_levels(y.numpy(), predicted.numpy(), s.numpy(), measure).values
    return float((predicted == y).double().mean()), levels


def run(loop: Loop, rate: str, seed: int) -> dict[str, Any]:
    """Trains one loop; its figures."""
    parts = load(loop.data).split(seed=10 * (seed + 1))
    train, _, test = (tuple(torch.as_tensor(part) for part in rows) for rows in parts)
    x, y, s = train
    torch.manual_seed(seed)
    model = network(loop, x.shape[1], int(y.max()) + 1)
    per_epoch = -(-len(y) // loop.batch)
    n_steps = loop.steps or loop.epochs * per_epoch
    optimizer, schedule = make_optimizer(loop, model.parameters(), n_steps)
    plain = nn.CrossEntropyLoss()
    fair = None
    if RATES[rate] is not None:
        fair = CrossEntropyLoss(y, s, loop.measure, fairness_rate=RATES[rate])
    least, best, started = 1.0, np.inf, time.process_time()
    order: list[Tensor] = []
    for step in range(n_steps):
        order = order or list(torch.randperm(len(y)).split(loop.batch))
        rows = order.pop(0)
        optimizer.zero_grad()
        scores = model(x[rows])
        loss = plain(scores, y[rows]) if fair is None else fair(scores, y[rows], s[rows])
        loss.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        if fair is not None and step % 20 == 0:
            least = min(least, float(fair.cell_weights.min()))
        if step % per_epoch == per_epoch - 1:
            best = min(best, float(np.abs(judge(model, train, loop.measure)[1]).max()))
    trained, tested = judge(model, train, loop.measure), judge(model, test, loop.measure)
    return {
        "loop": loop.name,
        "rate": rate,
        "seed": seed,
        "accuracy": round(tested[0], 4),
        "mean_level": round(float(np.abs(tested[1]).mean()), 4),
        "train_mean_level": round(float(np.abs(trained[1]).mean()), 4),
        "train_max_level": round(float(np.abs(trained[1]).max()), 4),
        "best_max_level": round(best, 4),
        "least_weight": round(least, 3),
        "steps": n_steps,
        "seconds": round(time.process_time() - started, 1),
    }


def main() -> None:
    """Runs what is missing, and prints every result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=len(LOOPS), help="how many loops to run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rates", nargs="+", choices=list(RATES), default=list(RATES))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = set()
    if options.output.exists():
        with options.output.open(newline="") as file:
            done = {(row["loop"], row["rate"], row["seed"]) for row in csv.DictReader(file)}
    for seed in range(options.seeds):
        for loop in LOOPS[: options.first]:
            for rate in options.rates:
                if (loop.name, rate, str(seed)) in done:
                    continue
                figures = run(loop, rate, seed)
                is_new = not options.output.exists()
                with options.output.open("a", newline="") as file:
                    writer = csv.DictWriter(file, figures)
                    if is_new:
                        writer.writeheader()
                    writer.writerow(figures)
                print(*figures.values(), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
