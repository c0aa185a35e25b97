"""Experiments that vary one setting: batch size and epsilon, with what the paper says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from fairgrad.bench.paper import UNCONSTRAINED_CELEBA_LINEAR, paper_batch_sizes
from fairgrad.bench.select import KEYS, per_seed
from fairgrad.bench.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.bench.record import Record

BATCH_SIZE, EPSILON = "batch_size", "epsilon"
PAPER_CASE = {"dataset": "celeba", "model": "linear"}


def experiment(records: Sequence[Record], varies: str) -> pd.DataFrame:
    """One row per value of the setting, with means and deviations over seeds; may be empty."""
    own = [record for record in records if record.unit.varies == varies]
    seeds = per_seed(own)
    if seeds.empty:
        return pd.DataFrame()
    found = summarise(seeds, by=(*KEYS, "value")).rename(columns={"value": varies})
    return found.sort_values([*KEYS, varies], kind="stable", ignore_index=True)


def batch_sizes(records: Sequence[Record]) -> pd.DataFrame:
    """Figures over the batch size, the paper's beside ours where it is the paper's case."""
    found = experiment(records, BATCH_SIZE)
    if found.empty:
        return found
    paper = paper_batch_sizes().set_index(BATCH_SIZE).add_prefix("paper_")
    joined = found.join(paper, on=BATCH_SIZE)
    case = {**PAPER_CASE, "measure": "equalized_odds"}
    is_papers = (joined[list(case)] == pd.Series(case)).all(axis=1)
    joined.loc[~is_papers, list(paper.columns)] = float("nan")
    return joined


def epsilons(records: Sequence[Record]) -> pd.DataFrame:
    """Figures over epsilon, with the paper's claims checked on each row.

    The paper claims that mean |F| is at most epsilon, and that accuracy rises to that of the
    unconstrained model once epsilon exceeds its unfairness.
    """
    found = experiment(records, EPSILON)
    if found.empty:
        return found
    found["within_epsilon"] = found["mean_abs_fairness"] <= found[EPSILON]
    is_papers = (found[list(PAPER_CASE)] == pd.Series(PAPER_CASE)).all(axis=1)
    unfairness = found["measure"].map(UNCONSTRAINED_CELEBA_LINEAR)
    found["paper_unconstrained_accuracy"] = UNCONSTRAINED_CELEBA_LINEAR["accuracy"]
    found["paper_unconstrained_mean_abs_fairness"] = unfairness
    columns = ["paper_unconstrained_accuracy", "paper_unconstrained_mean_abs_fairness"]
    found.loc[~is_papers, columns] = float("nan")
    return found
