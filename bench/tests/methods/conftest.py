"""Small splits on which a plain model treats groups differently."""

from dataclasses import replace

import numpy as np
import pytest

from fairgrad.datasets import Encoded, Split
from fairgrad.evaluate import fairness_levels
from fairgrad_bench.methods import MethodTask

MEASURES = ("accuracy_parity", "equalized_odds", "equality_of_opportunity", "demographic_parity")


def _encoded(rows, rng, n_labels, n_groups):
    """Group 0 has lower scores at the same label, so that a plain model overlooks it."""
    s = rng.choice(n_groups, rows, p=_shares(n_groups))
    y = rng.integers(0, n_labels, rows)
    X = rng.normal(size=(rows, 4))
    X[:, 0] += 1.3 * y + 1.2 * (s > 0)
    X[:, 1] += 0.8 * y
    X[:, 2] += 1.5 * s
    X -= X.mean(axis=0)
    return Encoded(
        X=X.astype(np.float32),
        y=y,
        s=s,
        attributes=s[:, None],
        feature_names=tuple("abcd"),
        label_names=tuple(map(str, range(n_labels))),
        group_names=tuple(f"s={group}" for group in range(n_groups)),
        attribute_names={"s": tuple(map(str, range(n_groups)))},
    )


def _shares(n_groups):
    sizes = np.array([0.35, *[0.65 / (n_groups - 1)] * (n_groups - 1)])
    return sizes / sizes.sum()


def _split(seed, rows, n_labels=2, n_groups=2):
    rng = np.random.default_rng(seed)
    return Split(*(_encoded(size, rng, n_labels, n_groups) for size in (rows, rows, rows)))


def _with_unknown(part):
    """Every fifth row's sensitive value is unknown."""
    return replace(part, s=np.where(np.arange(len(part)) % 5, part.s, -1))


@pytest.fixture(scope="session")
def make_task():
    """A task of synthetic data: ``make_task(measure, model=, seeds=, rows=, ...)``."""

    def make(measure=None, *, seeds=(1,), rows=600, n_labels=2, n_groups=2, **settings):
        splits = {seed: _split(seed, rows, n_labels, n_groups) for seed in seeds}
        if settings.pop("some_unknown", False):
            splits = {seed: Split(*map(_with_unknown, split)) for seed, split in splits.items()}
        chosen = {"model": "linear", "grid": "quick", "epochs": 8} | settings
        return MethodTask(splits=splits, measure=measure, **chosen)

    return make


@pytest.fixture(scope="session")
def judge():
    """Mean accuracy and unfairness on the test rows over all candidates."""

    def mean(task, candidates, measure):
        found = []
        for candidate in candidates:
            test = task.splits[candidate.seed].test
            levels = fairness_levels(test.y, candidate.test, test.s, measure)
            found.append((np.mean(candidate.test == test.y), levels.unfairness))
        return np.mean(found, axis=0)

    return mean


@pytest.fixture(scope="session")
def plain(make_task, judge):
    """Accuracy and unfairness of plain models, by measure."""
    from fairgrad_bench.methods import methods  # noqa: PLC0415 - all of them, with PyTorch

    task = make_task(seeds=(1, 2), rows=2000, epochs=30, combinations=({"batch_size": 64},))
    candidates = methods()["unconstrained"].train(task)
    return {measure: judge(task, candidates, measure) for measure in MEASURES}
