"""Records -> one model per seed and measure, chosen by the paper's rule, and its figures."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.bench.record import FINISHED, Kept, Record
from fairgrad.bench.unit import MEASURES
from fairgrad.measures import constraints_of
from fairgrad.training import fairest_of_accurate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairgrad.groups import Floats

KEYS = ("dataset", "model", "method", "measure")
NOISE_DIGITS = 12
"""Sums of floating-point numbers differ from 0 beyond these; equally fair models must tie."""
FIGURES = ("accuracy", "mean_abs_fairness", "max_fairness", "min_fairness")


@dataclass(frozen=True, eq=False)
class Figures:
    """Accuracy (n,) and levels (n, J) of n candidates on one part."""

    accuracy: Floats
    levels: Floats

    @property
    def unfairness(self) -> Floats:
        """(n,) mean of |F| over the levels that are defined."""
        mean = np.nanmean(np.abs(self.levels), axis=1)
        return np.asarray(np.round(mean, NOISE_DIGITS), dtype=np.float64)

    def row(self, position: int) -> dict[str, float]:
        """The paper's four figures of one candidate."""
        levels = self.levels[position]
        found = (
            self.accuracy[position],
            np.nanmean(np.abs(levels)),
            np.nanmax(levels),
            np.nanmin(levels),
        )
        return {
            name: round(float(value), NOISE_DIGITS) + 0.0  # no negative zero
            for name, value in zip(FIGURES, found, strict=True)
        }


def figures_of(record: Record, seed: int, part: str, wrong: Sequence[Any], measure: str) -> Figures:
    """What candidates reach on a part of a seed's split.

    ``F = c0 + C e`` with the frequencies of this very part; e are the error rates of its cells.

    Args:
        record: whose candidates they are.
        seed: of the split.
        part: "validation" or "test".
        wrong: (n, cells) the rows that each candidate gets wrong.
        measure: the name of a fairness measure.
    """
    counts, rows = np.asarray(wrong, dtype=np.float64), np.asarray(record.rows[seed][part])
    groups = record.cells.as_groups(rows)
    constraints = constraints_of(measure, groups)
    accuracy = 1 - counts.sum(axis=1) / rows.sum()
    if not constraints.by_label:
        shape = (len(record.cells.labels), len(record.cells.groups))
        counts, rows = counts.reshape(-1, *shape).sum(axis=1), rows.reshape(shape).sum(axis=0)
    errors = counts / np.where(rows > 0, rows, 1.0)
    return Figures(accuracy, constraints.c0 + errors @ constraints.C.T)


def per_seed(records: Iterable[Record], measures: Sequence[str] = MEASURES) -> pd.DataFrame:
    """One row per unit, seed and measure: the chosen model's figures on the test part.

    A method that is trained for a measure is judged by that one, the others by all of them.
    Where a unit varies a setting, there is one row for every value of it.

    Example:
        >>> import tempfile
        >>> from fairgrad.bench import Plan, run
        >>> plan = Plan(datasets=("german",), models=("linear",), methods=("constant",),
        ...             seeds=(10,))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     per_seed(run(plan, folder).new)["accuracy"].round(3).unique()
        array([0.675])
    """
    rows = [
        row
        for record in records
        if record.status == FINISHED
        for measure in _judged_by(record, measures)
        for row in _chosen_rows(record, measure)
    ]
    return pd.DataFrame(rows)


def _judged_by(record: Record, measures: Sequence[str]) -> list[str]:
    own = record.unit.measure
    wanted = [name for name in measures if own is None or name == own]
    binary_only = len(record.cells.labels) > 2
    return [name for name in wanted if not (binary_only and name == "demographic_parity")]


def _chosen_rows(record: Record, measure: str) -> list[dict[str, Any]]:
    pools: dict[tuple[int, str], list[Kept]] = {}
    for kept in record.kept:
        value = kept.settings[record.unit.varies] if record.unit.varies else ""
        pools.setdefault((kept.seed, json.dumps(value)), []).append(kept)
    return [_chosen_row(record, measure, seed, pool) for (seed, _), pool in pools.items()]


def _chosen_row(record: Record, measure: str, seed: int, pool: list[Kept]) -> dict[str, Any]:
    unit = record.unit
    validation = figures_of(record, seed, "validation", [k.validation for k in pool], measure)
    chosen = fairest_of_accurate(validation.accuracy, validation.unfairness)
    kept = pool[chosen]
    row: dict[str, Any] = dict(
        zip(KEYS, (unit.dataset, unit.model, unit.method, measure), strict=True)
    )
    row |= {"varies": unit.varies, "value": kept.settings.get(unit.varies or "")}
    row |= {"seed": seed, **figures_of(record, seed, "test", [kept.test], measure).row(0)}
    row |= _expected(record, seed, kept, measure)
    return row | {
        "validation_accuracy": float(validation.accuracy[chosen]),
        "validation_mean_abs_fairness": float(validation.unfairness[chosen]),
        "epoch": kept.epoch,
        "settings": json.dumps(kept.settings, sort_keys=True),
        "grid": _grid(record),
        "epochs": unit.epochs,
        "needs_s_to_predict": record.needs_s_to_predict,
        "seconds": record.seconds,
    }


def _grid(record: Record) -> str:
    if record.unit.combinations is not None:
        return "own"
    return "paper" if record.full_grid else record.unit.grid


def _expected(record: Record, seed: int, kept: Kept, measure: str) -> dict[str, float | None]:
    """What randomised predictions reach on average, where they are randomised."""
    names = ("expected_accuracy", "expected_mean_abs_fairness")
    if kept.expected is None:
        return dict.fromkeys(names)
    found = figures_of(record, seed, "test", [kept.expected], measure).row(0)
    return dict(zip(names, (found["accuracy"], found["mean_abs_fairness"]), strict=True))
