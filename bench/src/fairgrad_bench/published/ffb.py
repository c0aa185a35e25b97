"""FFB, the Fair Fairness Benchmark (Han et al., ICLR 2024), table 4: networks on seven tables.

As the authors' code has it: 40 % training, 30 % test and 30 % validation rows, stratified by the
label; the sensitive column is not a feature; numbers are standardized; three hidden layers with
dropout 0.5; 150 steps of Adam with batches of 1,024 rows. Figures are in per cent. Differences and
assumptions: ACS-I has 40 % of California's rows; German credit has 400 training rows, fewer than a
batch, so every batch is all of them; the seeds are ours. The authors' penalties DiffDP, DiffEOdd
and DiffEOpp are computed here, from their definitions, in the same loop.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

from fairgrad.torch import BCEWithLogitsLoss
from fairgrad_bench.published.ours import our_methods
from fairgrad_bench.published.source import (
    BASELINE,
    THEIRS,
    Method,
    Rows,
    Source,
    Split,
    largest_gap,
    read_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STEPS = 150
MEASURES = ("demographic_parity", "equalized_odds", "equality_of_opportunity")
COMPAS_COLUMNS = [
    *("sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count"),
    *("priors_count", "c_charge_degree", "c_charge_desc", "two_year_recid"),
]
ACS_CATEGORIES = ["COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP"]


def adult(attribute: str) -> tuple[pd.DataFrame, Any, Any]:
    """Features, labels and groups; by race white and black people only."""
    people = read_table("adult.csv.gz", na_values="?").dropna().drop(columns="fnlwgt")
    if attribute == "race":
        people = people[people["race"].isin(["White", "Black"])]
    group = people[attribute].isin(["White", "Male"])
    return people.drop(columns=["income", attribute]), people["income"] == ">50K", group


def compas(attribute: str) -> tuple[pd.DataFrame, Any, Any]:
    """AIF360's columns of ProPublica's rows."""
    people = read_table("compas-scores-two-years.csv.gz", index_col=0)
    people = people[
        people["days_b_screening_arrest"].between(-30, 30)
        & (people["is_recid"] != -1)
        & (people["c_charge_degree"] != "O")
        & (people["score_text"] != "N/A")
    ][COMPAS_COLUMNS]
    group = people[attribute].isin(["Male", "Caucasian"])
    return people.drop(columns=["two_year_recid", attribute]), people["two_year_recid"] == 1, group


def german(_: str) -> tuple[pd.DataFrame, Any, Any]:
    """Age in two parts; men and women from the personal status."""
    people = read_table("german_credit.csv.gz").copy()
    group = people.pop("personal_status").isin(["A91", "A93", "A94"])
    people["age"] = np.where(people["age"] > 25, "old", "young")
    return people.drop(columns="credit"), people["credit"] == 1, group


def acs(attribute: str) -> tuple[pd.DataFrame, Any, Any]:
    """California; all columns but age are categories."""
    people = read_table("acs_income_ca_2018_subset.csv.gz").drop(columns="ca_row")
    column, value, other = {"sex": ("SEX", 2, "RAC1P"), "race": ("RAC1P", 1, "SEX")}[attribute]
    features = people.drop(columns=["PINCP_gt_50000", column])
    categories = [*ACS_CATEGORIES, other]
    features[categories] = features[categories].astype(str)
    return features, people["PINCP_gt_50000"] == 1, people[column] == value


TABLES = {"Adult": adult, "COMPAS": compas, "German": german, "ACS-I": acs}


@lru_cache(maxsize=1)
def table(cell: str) -> tuple[Rows, Any]:
    """The rows of a cell, and which columns of the features are numbers."""
    name, attribute = cell.split(", ")
    features, label, group = TABLES[name](attribute)
    is_number = [kind.kind in "iuf" for kind in features.dtypes]
    numbers = features.loc[:, is_number].to_numpy(np.float32)
    categories = pd.get_dummies(features.drop(columns=features.columns[is_number]).astype(str))
    X = np.column_stack([numbers, categories.to_numpy(np.float32)])
    y, s = (column.to_numpy().astype(np.int64) for column in (label, group))
    return Rows(X, y, s), np.arange(X.shape[1]) < numbers.shape[1]


def split(cell: str, seed: int) -> Split:
    """40 % to learn from, 30 % for validation, 30 % for the test."""
    rows, is_number = table(cell)
    train, rest = train_test_split(
        np.arange(len(rows.y)), test_size=0.6, stratify=rows.y, random_state=seed
    )
    test, validation = train_test_split(
        rest, test_size=0.5, stratify=rows.y[rest], random_state=seed
    )
    scaler = StandardScaler().fit(rows.X[train][:, is_number])
    parts = []
    for places in (train, validation, test):
        X = rows.X[places]
        X[:, is_number] = scaler.transform(X[:, is_number])
        parts.append(Rows(X, rows.y[places], rows.s[places]))
    return Split(parts[0], parts[1], parts[2])


def gaps(test: Rows, predicted: Any) -> dict[str, float]:
    """The benchmark's dp, eodd and eopp, as shares."""
    of_label = [largest_gap(predicted[test.y == y], test.s[test.y == y]) for y in (0, 1)]
    found = (largest_gap(predicted, test.s), sum(of_label), of_label[1])
    return dict(zip(MEASURES, found, strict=True))


def network(inputs: int) -> nn.Module:
    """The benchmark's network, without its last sigmoid."""
    layers: list[nn.Module] = []
    for width in (512, 256, 64):
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(0.5)]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, 1))


def difference(score: Any, s: Any, rows: Any) -> Any:
    """The penalties' part: how far the mean scores of two groups are apart, among some rows."""
    both = [score[rows & (s == group)] for group in (0, 1)]
    if any(len(part) == 0 for part in both):
        return score.sum() * 0
    return (both[0].mean() - both[1].mean()).abs()


def penalty(measure: str, score: Any, y: Any, s: Any) -> Any:
    """DiffDP, DiffEOdd or DiffEOpp."""
    if measure == "demographic_parity":
        return difference(score, s, torch.ones_like(s, dtype=torch.bool))
    found = difference(score, s, y == 1)
    return found + difference(score, s, y == 0) if measure == "equalized_odds" else found


class Loop(NamedTuple):
    """How the benchmark trains: a network for some number of features, and its steps."""

    network: Callable[[int], nn.Module]
    rate: float
    batch: int


TABULAR = Loop(network, rate=0.01, batch=1024)


def train_network(
    loop: Loop, kind: str, weight: float, split: Split, measure: str, seed: int
) -> Any:
    """The benchmark's loop with the plain loss, our loss in its place, or a penalty beside it."""
    torch.manual_seed(seed)
    X, y, s = (torch.as_tensor(part) for part in split.train)
    model, batch = loop.network(X.shape[1]), min(loop.batch, len(y))
    optimizer = torch.optim.Adam(model.parameters(), lr=loop.rate)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=50, gamma=0.1)
    plain = nn.BCEWithLogitsLoss()
    fair = BCEWithLogitsLoss(y, s, measure) if kind == "ours" else None
    for rows in islice(batches(len(y), batch), STEPS):
        optimizer.zero_grad()
        score = model(X[rows]).squeeze(1)
        if fair is not None:
            loss = fair(score, y[rows].float(), s[rows])
        else:
            loss = plain(score, y[rows].float())
            if kind == "penalty":
                loss = loss + weight * penalty(measure, score.sigmoid(), y[rows], s[rows])
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    with torch.no_grad():
        rows = np.array_split(split.test.X, 1 + len(split.test.X) // 4096)
        found = torch.cat([model(torch.as_tensor(part)).squeeze(1) > 0 for part in rows])
    return found.numpy().astype(np.int64)


def batches(rows: int, size: int) -> Iterator[Any]:
    """Whole batches of shuffled rows, without end."""
    while True:
        yield from torch.randperm(rows)[: rows // size * size].view(-1, size)


def loops(loop: Loop) -> dict[str, Method]:
    """The rows of the benchmark's loop."""
    return {
        "network": Method(partial(train_network, loop, "plain", 0), BASELINE, uses_measure=False),
        "network, our loss": Method(partial(train_network, loop, "ours", 0), is_default=True),
        "Diff penalty, weight 0.5, run here": Method(
            partial(train_network, loop, "penalty", 0.5), THEIRS
        ),
        "Diff penalty, weight 1, run here": Method(
            partial(train_network, loop, "penalty", 1.0), THEIRS
        ),
    }


SOURCE = Source(
    name="ffb",
    title="FFB, table 4",
    cells=tuple(
        f"{name}, {attribute}"
        for name in TABLES
        for attribute in (("sex",) if name == "German" else ("sex", "race"))
    ),
    measures=MEASURES,
    seeds=5,
    split=split,
    gaps=gaps,
    methods={**loops(TABULAR), **our_methods(epsilons=(None, 0.0))},
    scale=100,
)
