"""Rows until a monitor calls a system unfair, compared with the methods of confseq.

Needs confseq (https://github.com/gostevehoward/confseq), which has to be compiled with the headers
of Boost. Minutes on one core:

    python benchmarks/monitor_confseq.py --out results
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from confseq import betting, boundaries, predmix
from monitor import ALPHA, TOLERANCE, limits
from scipy.special import lambertw, ndtri

from fairgrad.audit.monitor import TIGHTEST, lifelong_error
from fairgrad.audit.verdicts import FAIR_SHARE

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS, DAYS = 100, 60
"""People of each group a day, and how long streams are."""
ERROR = ALPHA / 2
"""Of each side of a level, over the whole life."""
DAYS_SEEN = np.arange(1, DAYS + 1)
LOOKS = DAYS_SEEN * PAIRS
EDGE = 0.5 + TOLERANCE
"""The mean of a pair's score at the tolerance."""


def hoeffding(x: Any, t_opt: float) -> Any:
    """Normal mixture with the variance of any score within 0 and 1."""
    reach = boundaries.normal_mixture_bound(LOOKS / 4, ERROR, t_opt / 4, ERROR, is_one_sided=True)
    return np.cumsum(x)[LOOKS - 1] - reach > EDGE * LOOKS


def bernstein(x: Any, t_opt: float) -> Any:
    """Gamma-exponential mixture with the observed variance."""
    before = np.append(0.5, np.cumsum(x)[:-1] / np.arange(1, len(x)))
    spread = np.cumsum((x - before) ** 2)[LOOKS - 1]
    reach = boundaries.gamma_exponential_mixture_bound(spread, ERROR, t_opt / 8, 1.0, ERROR)
    return np.cumsum(x)[LOOKS - 1] - reach > EDGE * LOOKS


def plug_in(x: Any) -> Any:
    """Predictable plug-in empirical Bernstein."""
    return predmix.predmix_empbern_lower_cs(x, alpha=ERROR)[LOOKS - 1] > EDGE


def bets(x: Any) -> Any:
    """Betting against a mean of at most the edge."""
    wealth = betting.betting_mart(x, EDGE, alpha=ERROR, theta=1)
    return np.maximum.accumulate(wealth)[LOOKS - 1] >= 1 / ERROR


METHODS: dict[str, Callable[[Any], Any]] = {
    "normal mixture, Hoeffding, tightest at 4,000 pairs": lambda x: hoeffding(x, 4000),
    "normal mixture, Hoeffding, tightest at 1,000 pairs": lambda x: hoeffding(x, 1000),
    "gamma-exponential mixture, empirical Bernstein, 4,000 pairs": lambda x: bernstein(x, 4000),
    "gamma-exponential mixture, empirical Bernstein, 1,000 pairs": lambda x: bernstein(x, 1000),
    "predictable plug-in, empirical Bernstein": plug_in,
    "betting": bets,
}


def monitored(hits: Any) -> Any:
    """(S, days) whether `Monitor` calls streams unfair; hits are (S, rows, 2 groups)."""
    exceeded = []
    for n in LOOKS:
        error = 2 * lifelong_error(ERROR, 2 * n, TIGHTEST * 2 * PAIRS)
        low, high = limits(
            hits[:, :n].sum(axis=1), np.full(hits[:, 0].shape, n), FAIR_SHARE * error
        )
        exceeded.append(((low > TOLERANCE) | (high < -TOLERANCE)).any(axis=1))
    return np.array(exceeded).T


def median_rows(called: Any) -> float:
    """The median of the rows until the first call."""
    first = np.where(called.any(axis=1), called.argmax(axis=1) + 1, np.inf)
    return float(2 * PAIRS * np.median(first))


def agreement() -> float:
    """The largest relative difference between our limits and confseq's normal mixture."""
    n, tightest = np.geomspace(200, 2e6, 100), 8000.0
    own = [-ndtri(lifelong_error(ERROR, one, tightest)) for one in n]
    rho = tightest / (-float(lambertw(-(ERROR**2) / np.e, -1).real) - 1)
    # The time at which confseq's approximate rule for rho gives the same rho.
    log = -2 * np.log(2 * ERROR)
    exact = boundaries.normal_mixture_bound(n, ERROR, rho * (log + np.log1p(log)), ERROR)
    return float(np.abs(np.array(own) / (exact / np.sqrt(n)) - 1).max())


def main() -> None:
    """Compares all methods on the same streams."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    print(f"The limits of the normal mixture differ by at most {agreement():.2%}.")
    lines = []
    for level in (0.08, 0.1):
        rng = np.random.default_rng(7)
        hits = rng.random((options.streams, LOOKS[-1], 2)) < [0.5 - level, 0.5 + level]
        pairs = (1.0 + hits[..., 1] - hits[..., 0]) / 2
        rows = {
            name: median_rows(np.array([method(x) for x in pairs]))
            for name, method in METHODS.items()
        }
        best = min(rows.values())
        rows["Monitor"] = median_rows(monitored(hits))
        lines += [
            {"level": level, "method": name, "median_rows": n, "by_best_of_confseq": n / best}
            for name, n in rows.items()
        ]
    table = pd.DataFrame(lines).round(3)
    print(table.to_string())
    table.to_csv(options.out / "monitor_confseq.csv", index=False)


if __name__ == "__main__":
    main()
