"""How often a monitor errs in a year of daily looks, how wide its limits are, how fast it is.

Streams of decisions about two or four groups, a batch a day, with known rates. Limits are computed
for all streams at once; the first streams are also given to `Monitor`, which has to say the same.
Minutes on one core:

    python benchmarks/monitor.py --out results
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from fairgrad.audit import FAIR, UNFAIR, Monitor
from fairgrad.audit.intervals import Proportion
from fairgrad.audit.monitor import CHANGE_ALARMS, LEAST_ERROR, TIGHTEST, lifelong_error
from fairgrad.audit.verdicts import FAIR_SHARE

TOLERANCE, ALPHA, LOOKS, LEAST_ROWS = 0.05, 0.05, 365, 30


class Case(NamedTuple):
    """Selection rates of groups, their shares, and the rows of a day."""

    name: str
    rates: tuple[float, ...]
    shares: tuple[float, ...]
    per_day: int


CASES = (
    Case("at the tolerance, equal groups", (0.45, 0.55), (0.5, 0.5), 50),
    Case("at the tolerance, equal groups", (0.45, 0.55), (0.5, 0.5), 1000),
    Case("at the tolerance, small group", (0.1625, 0.1), (0.2, 0.8), 200),
    Case("at the tolerance, four groups", (0.45, 0.55, 0.45, 0.55), (0.25,) * 4, 400),
    Case("level 0.08", (0.42, 0.58), (0.5, 0.5), 200),
    Case("level 0.10", (0.4, 0.6), (0.5, 0.5), 200),
    Case("level 0.02", (0.48, 0.52), (0.5, 0.5), 200),
)


def limits(hits: Any, rows: Any, error: float) -> tuple[Any, Any]:
    """(S, G) limits of each group's level, as an audit of demographic parity has them."""
    x, share = hits / np.maximum(rows, 1), rows / rows.sum(axis=1, keepdims=True)
    mean = (share * x).sum(axis=1, keepdims=True)
    low, high = Proportion(hits, rows, rows, hits, hits).ends_in_sums(error)
    around = (share * (x - mean) ** 2).sum(axis=1, keepdims=True)
    more = ndtri(error) ** 2 * around / rows.sum(axis=1, keepdims=True)

    def reach(own: Any, others: Any) -> Any:
        squares = (share * others) ** 2
        rest = squares.sum(axis=1, keepdims=True) - squares
        return np.sqrt(((1 - share) * own) ** 2 + np.maximum(rest, 0) + more)

    return x - mean - reach(x - low, high - x), x - mean + reach(high - x, x - low)


def simulate(case: Case, n_streams: int, seed: int) -> dict[str, Any]:
    """Many streams of one case."""
    rng, n_groups = np.random.default_rng(seed), len(case.rates)
    n_tested = 1 if n_groups == 2 else n_groups
    hits = np.zeros((n_streams, n_groups))
    rows = np.zeros((n_streams, n_groups))
    monitors = [Monitor("demographic_parity") for _ in range(2)]
    called = {UNFAIR: np.full(n_streams, np.inf), FAIR: np.full(n_streams, np.inf)}
    every_day, widest = np.zeros(n_streams, bool), 0.0
    for day in range(1, LOOKS + 1):
        new = rng.multinomial(case.per_day, case.shares, size=n_streams)
        chosen = rng.binomial(new, case.rates)
        hits, rows = hits + chosen, rows + new
        n = case.per_day * day
        each = lifelong_error(ALPHA / (2 * n_tested), n, TIGHTEST * case.per_day)
        alpha = 2 * n_tested * each
        judged = (rows >= LEAST_ROWS).all(axis=1)
        low, high = limits(hits, rows, FAIR_SHARE * alpha)
        is_fair = judged & ((low >= -TOLERANCE) & (high <= TOLERANCE)).all(axis=1)
        low, high = limits(hits, rows, FAIR_SHARE * alpha / n_tested)
        is_unfair = judged & ((low > TOLERANCE) | (high < -TOLERANCE)).any(axis=1)
        for verdict, now in ((UNFAIR, is_unfair), (FAIR, is_fair)):
            called[verdict] = np.where(now & np.isinf(called[verdict]), day, called[verdict])
        low, high = limits(hits, rows, FAIR_SHARE * ALPHA / n_tested)
        every_day |= judged & ((low > TOLERANCE) | (high < -TOLERANCE)).any(axis=1)
        if day >= 10:
            ratio = -ndtri(alpha / 2) / -ndtri(ALPHA / 2)
            widest = max(widest, float(ratio))
        if day <= 12:
            check(monitors, day, new, chosen, is_fair, is_unfair)
    found = {
        v: int(np.median(when)) if np.isfinite(np.median(when)) else None
        for v, when in called.items()
    }
    return {
        "case": case.name,
        "rows_per_day": case.per_day,
        "streams": n_streams,
        "called_unfair": np.isfinite(called[UNFAIR]).mean(),
        "called_fair": np.isfinite(called[FAIR]).mean(),
        "unfair_by_daily_audits": every_day.mean(),
        "widest_from_day_10": round(widest, 3),
        "median_days_unfair": found[UNFAIR],
        "median_days_fair": found[FAIR],
    }


def add_day(monitor: Monitor, day: int, rows: Any, hits: Any) -> None:
    """Adds the rows of each group, and how many of them are selected."""
    groups = np.arange(len(rows)).tolist()
    monitor.update(
        y_pred=[1] * len(groups) + [0] * len(groups),
        sensitive_features={"s": groups * 2},
        count=[*hits, *(rows - hits)],
        batch=str(day),
    )


def check(monitors: list[Monitor], day: int, new: Any, hits: Any, fair: Any, unfair: Any) -> None:
    """The verdicts of these streams are those of `Monitor`."""
    for place, monitor in enumerate(monitors):
        add_day(monitor, day, new[place], hits[place])
        expected = FAIR if fair[place] else UNFAIR if unfair[place] else "undecided"
        if monitor.verdict != expected:
            raise AssertionError(f"day {day}: {monitor.verdict}, expected {expected}")


class Stream(NamedTuple):
    """Selection rates of groups of one size, before and after a change, and the rows of a day."""

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    per_day: int
    changed: int = LOOKS


STREAMS = (
    Stream("never changes", (0.45, 0.55), (0.45, 0.55), 50),
    Stream("never changes", (0.45, 0.55), (0.45, 0.55), 1000),
    Stream("never changes, rates near 0", (0.02, 0.04), (0.02, 0.04), 200),
    Stream("never changes, four groups", (0.45, 0.55, 0.45, 0.55), (0.45, 0.55) * 2, 400),
    Stream("level 0 to 0.05 on day 100", (0.5, 0.5), (0.45, 0.55), 200, 100),
    Stream("level 0 to 0.10 on day 100", (0.5, 0.5), (0.4, 0.6), 200, 100),
)


def first_alarms(stream: Stream, n_streams: int, rng: np.random.Generator) -> Any:
    """(S,) the day of the first change that is reported; infinity for none.

    The first stream is also given to `Monitor` for some days around the change.
    """
    n_groups = len(stream.before)
    new = rng.multinomial(stream.per_day, [1 / n_groups] * n_groups, size=(LOOKS, n_streams))
    rates = np.array([stream.before] * stream.changed + [stream.after] * (LOOKS - stream.changed))
    chosen = rng.binomial(new, rates[:, None])
    rows, hits = (
        np.concatenate([np.zeros((1, n_streams, n_groups)), np.cumsum(count, axis=0)])
        for count in (new, chosen)
    )
    found = np.full(n_streams, np.inf)
    for day in range(2, LOOKS + 1):
        splits = [day - 2**k for k in range(day.bit_length()) if 2**k < day]
        error = CHANGE_ALARMS * 6 / np.pi**2 / day**2 / len(splits) / (2 * n_groups)
        error = max(error, LEAST_ERROR)
        for split in splits:
            parts = (hits[split], rows[split]), (hits[day] - hits[split], rows[day] - rows[split])
            # Most streams are far from an alarm, which normal approximations tell.
            level, spread = zip(*(_rough(*part) for part in parts), strict=True)
            is_near = np.abs(level[1] - level[0]) > -0.6 * ndtri(error) * np.hypot(*spread)
            near = np.flatnonzero(is_near.any(axis=1) & np.isinf(found))
            if not len(near):
                continue
            (low0, high0), (low1, high1) = (limits(h[near], n[near], error) for h, n in parts)
            x, y = level[0][near], level[1][near]
            reach = np.where(y > x, np.hypot(high0 - x, y - low1), np.hypot(x - low0, high1 - y))
            found[near[(np.abs(y - x) > reach).any(axis=1)]] = day
    if stream.changed < LOOKS:
        _check_change(new[:, 0], chosen[:, 0], found[0])
    return found


def _rough(hits: Any, rows: Any) -> tuple[Any, Any]:
    """(S, G) levels, and their standard errors but for shares of groups."""
    n = np.maximum(rows, 1)
    x = hits / n
    level = x - hits.sum(axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
    return level, np.sqrt(x * (1 - x) / n) * (1 - n / n.sum(axis=1, keepdims=True))


def _check_change(new: Any, chosen: Any, alarm: float) -> None:
    """`Monitor` reports the change of this stream on the same day."""
    monitor = Monitor("demographic_parity")
    for day, (rows, hits) in enumerate(zip(new, chosen, strict=True), start=1):
        add_day(monitor, day, rows, hits)
        if monitor.batches[-1].changes or day > alarm:
            break
    if day != alarm:
        raise AssertionError(f"the change was reported on day {day}, expected {alarm}")


def changes(n_streams: int) -> pd.DataFrame:
    """How often a change is reported, and how soon."""
    lines = []
    for seed, stream in enumerate(STREAMS):
        alarm = first_alarms(stream, n_streams, np.random.default_rng(100 + seed))
        after = alarm[np.isfinite(alarm) & (alarm > stream.changed)]
        lines.append(
            {
                "stream": stream.name,
                "rows_per_day": stream.per_day,
                "streams": n_streams,
                "false_report": (alarm <= stream.changed).mean(),
                "reported": len(after) / n_streams if stream.changed < LOOKS else None,
                "median_days": np.median(after) - stream.changed if len(after) else None,
            }
        )
        print(lines[-1], flush=True)
    return pd.DataFrame(lines)


def main() -> None:
    """Runs all cases and writes their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--streams", type=int, default=10_000)
    options = parser.parse_args()
    reports = changes(options.streams // 2)
    reports.round(4).to_csv(options.out / "monitor_changes.csv", index=False)
    table = pd.DataFrame([simulate(case, options.streams, 0) for case in CASES])
    print(table.to_string())
    table.round(4).to_csv(options.out / "monitor.csv", index=False)


if __name__ == "__main__":
    main()
