"""OxonFair's notebook on several groups: Adult by race in five groups, boosted trees.

As the notebook has it: all 48,842 people, ordinal codes, race among the features, 70 % training and
30 % test rows of every (label, group) cell. The gap is the mean difference of the selection rates
over all pairs of groups. Assumed: the seeds 0 to 4 of the split. OxonFair and fairlearn are run
here, too, if they are installed, so that times are of one machine and one thread. OxonFair
tries 31 thresholds for each of the five groups, 28.6 million combinations, which needs more than 18
GB of memory; here it tries `THRESHOLDS` + 1. All times include the base model.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from fairgrad_bench.published.ours import KINDS, fit_estimator, our_methods
from fairgrad_bench.published.source import (
    AWARE,
    BASELINE,
    THEIRS,
    Method,
    Rows,
    Source,
    Split,
    rates,
    read_table,
    with_group,
)

EPSILON = 0.02
THRESHOLDS = 20
"""Of each group, for OxonFair: a seventh of its default's combinations."""


def table() -> Rows:
    """All people; race is left out of the features and given as the group."""
    people = read_table("adult.csv.gz").copy()
    label = (people.pop("income") == ">50K").to_numpy().astype(np.int64)
    group = people.pop("race").astype("category").cat.codes.to_numpy().astype(np.int64)
    codes = people.apply(lambda column: pd.factorize(column, sort=True)[0])
    return Rows(codes.to_numpy(np.float64), label, group)


def split(_: str, seed: int) -> Split:
    """70 % and 30 % of every (label, group) cell."""
    rows, rng = table(), np.random.default_rng(seed)
    is_test = np.zeros(len(rows.y), dtype=bool)
    for cell in np.unique(rows.y + 2 * rows.s):
        members = rng.permutation(np.flatnonzero(rows.y + 2 * rows.s == cell))
        is_test[members[round(0.7 * len(members)) :]] = True
    return Split(rows.take(~is_test), None, rows.take(is_test))


def gaps(test: Rows, predicted: Any) -> dict[str, float]:
    """The mean difference over pairs of groups."""
    shares = rates(predicted, test.s)
    pairs = np.abs(shares[:, None] - shares)
    return {"demographic_parity": float(pairs.sum() / (len(shares) * (len(shares) - 1)))}


def trees(split: Split, _: str, __: int) -> Any:
    """The notebook's unconstrained model."""
    return _fitted(split).predict(with_group(split.test))


def _fitted(split: Split) -> Any:
    from xgboost import XGBClassifier  # noqa: PLC0415 - an extra, slow to import

    return XGBClassifier(n_jobs=1).fit(with_group(split.train), split.train.y)


def run_oxonfair(split: Split, _: str, __: int) -> Any:
    """OxonFair on the fitted trees, as in the notebook but for the number of thresholds."""
    from oxonfair import (  # type: ignore[import-not-found]  # noqa: PLC0415 - not a dependency
        DataDict,
        FairPredictor,
    )
    from oxonfair import group_metrics as metrics  # noqa: PLC0415 - as above
    from oxonfair.learners import (  # type: ignore[import-not-found]  # noqa: PLC0415 - as above
        efficient_compute,
    )

    def data(rows: Rows) -> Any:
        return DataDict(rows.y, pd.DataFrame(with_group(rows)), rows.s)

    model = FairPredictor(_fitted(split), data(split.train))
    search = efficient_compute.grid_search

    def smaller(*args: Any, **options: Any) -> Any:
        return search(*args, **{**options, "steps": THRESHOLDS})

    with patch.object(efficient_compute, "grid_search", smaller):  # it ignores `grid_width`
        model.fit(metrics.accuracy, metrics.demographic_parity, EPSILON)
    return np.asarray(model.predict(data(split.test))).ravel().astype(np.int64)


def run_fairlearn(split: Split, _: str, seed: int) -> Any:
    """Fairlearn's reduction with its defaults, as in the notebook."""
    from fairlearn.reductions import (  # noqa: PLC0415 - slow to import
        DemographicParity,
        ExponentiatedGradient,
    )
    from xgboost import XGBClassifier  # noqa: PLC0415 - as above

    model = ExponentiatedGradient(XGBClassifier(n_jobs=1), DemographicParity())
    model.fit(with_group(split.train), split.train.y, sensitive_features=split.train.s)
    return np.asarray(model.predict(with_group(split.test), random_state=seed))


SOURCE = Source(
    name="oxonfair",
    cells=("Adult, race in 5 groups",),
    measures=("demographic_parity",),
    seeds=5,
    split=split,
    gaps=gaps,
    methods={
        "XGBoost": Method(trees, BASELINE, AWARE, uses_measure=False),
        "OxonFair, fewer thresholds, run here": Method(run_oxonfair, THEIRS, AWARE),
        "fairlearn, run here": Method(run_fairlearn, THEIRS, AWARE),
        **our_methods(AWARE),
        # Without race the trees already differ little.
        f"{KINDS['tree decisions']}, epsilon 0.02, blind": Method(
            partial(fit_estimator, "tree decisions", EPSILON, "blind")
        ),
    },
)
