"""How fast stacks train: against fairgrad 0.2.0, one model at a time, fairlearn; and growth.

Times are medians of interleaved runs with one thread. Run it from anywhere; name sections
(epoch, stack, sweep, fairlearn, growth) to run some of them only.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from wheels import load_old_loss

from fairgrad import fairness_levels
from fairgrad.datasets import PAPER_SEEDS, load
from fairgrad.sklearn import FairGradClassifier
from fairgrad.training import Member, TrainingPlan, TrainingTable, train

if TYPE_CHECKING:
    from collections.abc import Callable

PAPER = {"learning_rate": 0.1, "clip_norm": 0.05, "fairness_rate": 0.01}
ODDS = {"fairness_measure": "equalized_odds"}


def seconds(task: Callable[[], Any]) -> float:
    """How long a task takes."""
    started = time.perf_counter()
    task()
    return time.perf_counter() - started


def interleaved(tasks: dict[str, Callable[[], Any]], repeats: int = 3) -> dict[str, float]:
    """The median time of each task, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            times[name].append(seconds(task))
    return {name: median(taken) for name, taken in times.items()}


def epoch() -> None:
    """One epoch of Adult, linear, batch 512, against the loop in the README of 0.2.0."""
    part = load("adult").split(seed=10).train
    X, y, s = (torch.from_numpy(column) for column in (part.X, part.y, part.s))
    table, old_loss, n_epochs = TrainingTable.from_data(X, y, s), load_old_loss(), 3

    def readme_loop() -> None:
        model = nn.Linear(X.shape[1], 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        criterion = old_loss(y_train=y, s_train=s, fairness_measure="equal_odds")
        batches = DataLoader(TensorDataset(X, y, s), 512, shuffle=True)
        for _ in range(n_epochs):
            for inputs, labels, sensitive in batches:
                model.train()
                optimizer.zero_grad()
                loss = criterion(model(inputs), labels, sensitive, mode="train")
                loss.backward()
                optimizer.step()

    member = Member(learning_rate=0.1, fairness_rate=0.01)
    plan = TrainingPlan(epochs=n_epochs, batch_size=512, **ODDS)
    times = interleaved(
        {
            "0.2.0": readme_loop,
            "ours": lambda: train(table, [member], plan),
        },
        repeats=5,
    )
    times = {name: taken / n_epochs for name, taken in times.items()}
    print(f"\nOne epoch of Adult (of {n_epochs}), linear, batch 512, set-up and records included")
    print(f"  fairgrad 0.2.0, README loop with a DataLoader  {times['0.2.0'] * 1e3:8.1f} ms")
    print(f"  fairgrad.training, a stack of one              {times['ours'] * 1e3:8.1f} ms")
    print(f"  ratio {times['0.2.0'] / times['ours']:.1f}x")


def stack() -> None:
    """Per member, a stack of many against one member at a time."""
    part = load("adult").split(seed=10).train
    table = TrainingTable.from_data(part.X, part.y, part.s)
    print("\nTime per member and epoch of Adult: one at a time against a stack")
    for name, hidden, batch_size, many in (
        ("linear, batch 64", (), 64, 32),
        ("linear, batch 512", (), 512, 32),
        ("128-64-32, batch 64", (128, 64, 32), 64, 16),
    ):
        members = [Member(epsilon=e, **PAPER) for e in np.linspace(0, 0.1, many)]
        plan = TrainingPlan(hidden=hidden, batch_size=batch_size, epochs=1, **ODDS)
        times = interleaved(
            {
                "one": lambda plan=plan, members=members: train(table, members[:1], plan),
                "many": lambda plan=plan, members=members: train(table, members, plan),
            }
        )
        each = times["many"] / many
        print(
            f"  {name:20s} one {times['one'] * 1e3:7.1f} ms, {many} members {each * 1e3:7.1f} ms "
            f"each: {times['one'] / each:.1f}x; the stack takes {times['many'] / times['one']:.1f}x"
            " the time of one"
        )


def pooled_adult() -> tuple[TrainingTable, list[np.ndarray], list[np.ndarray]]:
    """The five splits of Adult, each standardised on its own, as one table."""
    data = load("adult")
    parts, rows, validation, first = [], [], [], 0
    for seed in PAPER_SEEDS:
        train_part, validation_part, _ = data.split(seed=seed)
        parts += [train_part, validation_part]
        rows.append(first + np.arange(len(train_part.y)))
        validation.append(rows[-1][-1] + 1 + np.arange(len(validation_part.y)))
        first = int(validation[-1][-1]) + 1
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "s"))
    return TrainingTable.from_data(*columns), rows, validation


def paper_grid(
    table: TrainingTable, rows: list[np.ndarray], validation: list[np.ndarray], batch_size: int
) -> None:
    """Five seeds x three decays, equalized odds, 50 epochs each."""
    members = [Member(weight_decay=decay, **PAPER) for decay in (0.0, 0.001, 0.01)]
    for seed, own_rows, held in zip(PAPER_SEEDS, rows, validation, strict=True):
        plan = TrainingPlan(epochs=50, batch_size=batch_size, seed=seed, **ODDS)
        train(table, members, plan, rows=own_rows, validation=held)


def sweep() -> None:
    """The paper's 5 seeds x 6 combinations of one measure on Adult, 50 epochs each."""
    pooled = pooled_adult()
    print("\nAdult, linear, equalized odds: 5 seeds x 6 combinations, 50 epochs, with records")
    total = 0.0
    for batch_size in (512, 64):
        taken = seconds(lambda batch_size=batch_size: paper_grid(*pooled, batch_size))
        total += taken
        print(f"  15 members, batch {batch_size:3d}  {taken:6.1f} s")
    print(f"  30 members             {total:6.1f} s, {total / 30:.2f} s each")


def fairlearn() -> None:
    """The default estimator against ExponentiatedGradient with logistic regression."""
    data, rows = load("adult"), {"fairlearn": [], "fairgrad": []}
    for seed in PAPER_SEEDS:
        part, _, test = data.split(seed=seed)
        theirs = ExponentiatedGradient(LogisticRegression(max_iter=1000), EqualizedOdds())
        ours = FairGradClassifier("equalized_odds", random_state=seed)
        for name, model in (("fairlearn", theirs), ("fairgrad", ours)):
            taken = seconds(
                lambda m=model, part=part: m.fit(part.X, part.y, sensitive_features=part.s)
            )
            seeded = {"random_state": seed} if name == "fairlearn" else {}
            predicted = np.asarray(model.predict(test.X, **seeded))
            levels = fairness_levels(test.y, predicted, test.s, "equalized_odds")
            rows[name].append((np.mean(predicted == test.y), levels.unfairness, taken))
    print("\nAdult, equalized odds, 5 seeds: accuracy / mean |F| on the test set, seconds per fit")
    for name, label in (
        ("fairlearn", "ExponentiatedGradient, logistic regression"),
        ("fairgrad", "FairGradClassifier, linear, defaults"),
    ):
        accuracy, unfairness, taken = np.mean(rows[name], axis=0)
        print(f"  {label:44s} {accuracy:.4f} / {unfairness:.4f}  {taken:6.2f} s")
    ratio = np.mean(rows["fairlearn"], axis=0)[2] / np.mean(rows["fairgrad"], axis=0)[2]
    print(f"  ratio of times {ratio:.1f}x")


def growth() -> None:
    """Time when rows, members or features double."""
    rng = np.random.default_rng(0)
    base = {"rows": 20_000, "members": 16, "features": 64}

    def task(rows: int, members: int, features: int) -> Callable[[], Any]:
        X = rng.normal(size=(rows, features)).astype(np.float32)
        s, y = rng.integers(0, 2, rows), (X[:, 0] + rng.normal(size=rows) > 0).astype(int)
        table = TrainingTable.from_data(X, y, s)
        stack_members = [Member(epsilon=e, **PAPER) for e in np.linspace(0, 0.1, members)]
        return lambda: train(table, stack_members, TrainingPlan(epochs=2, batch_size=256, **ODDS))

    tasks = {"base": task(**base)}
    for name, size in base.items():
        for factor in (2, 4):
            tasks[f"{factor}x {name}"] = task(**{**base, name: factor * size})
    times = interleaved(tasks)
    print(f"\nGrowth from {base}, linear, batch 256, 2 epochs")
    for name, taken in times.items():
        print(f"  {name:12s} {taken * 1e3:8.1f} ms  {taken / times['base']:.2f}x")


SECTIONS = {
    "epoch": epoch,
    "stack": stack,
    "sweep": sweep,
    "fairlearn": fairlearn,
    "growth": growth,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    for section in sys.argv[1:] or SECTIONS:
        SECTIONS[section]()
