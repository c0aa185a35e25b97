"""The scores behind predictions: how well they rank and how well they are calibrated, by group.

A score belongs to one label: with two labels to the desirable one; with more, each label has its
own score and is compared with all others. Rows are sorted once; every figure of every group is then
a sum over ranges of sorted rows, so that millions of rows take seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtri

from fairgrad.audit.counts import OVERALL, coarser
from fairgrad.audit.intervals import Interval, Proportion
from fairgrad.columns import as_array
from fairgrad.groups import count_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.groups import Floats, GroupedRows, Ints

CALIBRATION_BINS, ROC_POINTS = 10, 60
METHOD = (
    "The AUC is the probability that a row with the label has a higher score than a row without "
    "it. Its interval covers both DeLong's, on the logit scale, and Newcombe's."
)
CALIBRATION = (
    "The calibration gap is how often the label is true minus the mean score: above 0 the scores "
    "are too low for the group, below 0 too high. Its interval is exact for the scores given "
    "(Clopper-Pearson)."
)


def as_scores(y_score: Any) -> Floats:
    """Scores as float64, of any shape."""
    try:
        score: Floats = as_array(y_score).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y_score: expected numbers; {error}.") from error
    return score


def check_scores(y_score: Any, n_rows: int, n_labels: int) -> Floats:
    """Scores as float64: (N,) of the desirable label (two labels only), or (N, L).

    Raises:
        ValueError: if the shape is wrong, or a score is not finite.
    """
    score = as_scores(y_score)
    shapes = [(n_rows, n_labels)] if n_labels > 2 else [(n_rows,), (n_rows, 2)]
    if score.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(
            f"y_score: expected the shape {allowed} for {n_rows} rows and {n_labels} labels, got "
            f"{score.shape}."
        )
    if not np.isfinite(score).all():
        row = int(np.flatnonzero(~np.isfinite(score.reshape(n_rows, -1)).all(axis=1))[0])
        raise ValueError(f"y_score: expected finite scores; row {row} has {score[row]}.")
    return score


@dataclass(frozen=True, eq=False)
class RankedScores:
    """The scores of one label in one group.

    Attributes:
        score: (n,) ascending.
        is_positive: (n,) whether the label is true.
        weight: (n,) sample weights, or 1 for every row.
    """

    score: Floats
    is_positive: NDArray[np.bool_]
    weight: Floats | float = 1.0

    def _sums(self, starts: Ints, power: int = 1) -> tuple[Floats, Floats]:
        """Sums of powers of the weights of rows of the label, and of others, from each start on."""
        mass = self.weight**power
        return (
            np.add.reduceat(mass * self.is_positive, starts),
            np.add.reduceat(mass * ~self.is_positive, starts),
        )

    @cached_property
    def _starts(self) -> Ints:
        return np.flatnonzero(np.append(True, self.score[1:] != self.score[:-1]))

    @cached_property
    def counts(self) -> tuple[Floats, Floats]:
        """(U,) rows of the label with each distinct score, and of others; their weights."""
        return self._sums(self._starts)

    def _sizes(self) -> list[float]:
        """Kish's effective numbers of rows of the label, and of others."""
        pairs = zip(self.counts, self._sums(np.zeros(1, dtype=np.int64), 2), strict=True)
        return [float(mass.sum() ** 2 / squares[0]) for mass, squares in pairs]

    def auc(self) -> tuple[float, float]:
        """The area under the ROC curve and its variance (DeLong, DeLong and Clarke-Pearson, 1988).

        With m positives X and n negatives Y, ``A = mean of psi(X_i, Y_j)``, psi = 1 if X > Y, 1/2
        if both are equal; ``Var A = S_X / m + S_Y / n``, the variances of the placements
        ``V(X_i) = mean_j psi(X_i, Y_j)`` and ``V(Y_j) = mean_i psi(X_i, Y_j)``. Both are NaN
        without rows of either kind; the variance also with a single one.
        """
        (positive, negative), squares = self.counts, self._sums(self._starts, 2)
        m, n = positive.sum(), negative.sum()
        if m <= 0 or n <= 0:
            return float("nan"), float("nan")
        of_positive = (np.cumsum(negative) - negative / 2) / n
        of_negative = (m - np.cumsum(positive) + positive / 2) / m
        area, variance = float((positive * of_positive).sum() / m), 0.0
        sides = zip(squares, (m, n), (of_positive, of_negative), self._sizes(), strict=True)
        for square, mass, placed, size in sides:
            spread = float((square * (placed - area) ** 2).sum() / mass**2)
            variance += spread * size / (size - 1) if size > 1 else float("nan")
        return area, variance

    def auc_interval(self, alpha: float) -> Interval:
        """The interval of the AUC; [0, 1] where it is not defined.

        ``logit A +- z sqrt(Var A) / (A (1 - A))``, which stays within 0 and 1. DeLong's variance is
        0 where the two kinds do not overlap, and poor with few rows of one kind: the interval is
        joined with Newcombe's (2006, method 5), all t with ``(A - t)^2 <= z^2 V(t)``, V the
        variance of two exponential distributions.
        """
        area, variance = self.auc()
        if np.isnan(area):
            return Interval(np.asarray(0.0), np.asarray(1.0))
        z = float(-ndtri(alpha / 2))
        m, n = self._sizes()
        low, high = _newcombe(area, m, n, z)
        if 0 < area < 1 and variance > 0:
            reach = z * np.sqrt(variance) / (area * (1 - area))
            low = min(low, expit(logit(area) - reach))
            high = max(high, expit(logit(area) + reach))
        return Interval(np.asarray(low), np.asarray(high))

    def roc(self, most: int = ROC_POINTS) -> pd.DataFrame:
        """Thresholds, false and true positive rates: at most so many points, evenly on the curve.

        A threshold predicts the label for scores of at least itself; the first one is above all.
        """
        hit, alarm = (
            np.minimum(np.append(0.0, np.cumsum(counts[::-1])) / max(counts.sum(), 1e-300), 1.0)
            for counts in self.counts
        )
        way = (hit + alarm) / 2
        places = np.arange(len(way))
        if len(way) > most:
            places = np.searchsorted(way, np.linspace(0.0, way[-1], most))
            places = np.unique(np.append(np.minimum(places, len(way) - 1), [0, len(way) - 1]))
        columns = (np.append(np.inf, self.score[self._starts][::-1]), alarm, hit)
        names = TABLES["roc"][-3:]
        return pd.DataFrame({n: c[places] for n, c in zip(names, columns, strict=True)})

    def _rates(self, starts: Ints) -> Proportion:
        """How often the label is true among the rows from each start on."""
        (hits, misses), (squares, more) = (self._sums(starts, power) for power in (1, 2))
        return Proportion(hits, hits + misses, squares + more, squares, squares)

    def gap(self, alpha: float) -> tuple[float, float, float, float, float]:
        """Base rate, mean score, and the calibration gap, rate less mean score, with its interval.

        The scores are taken as given. True labels then are independent with chances of their own,
        whose mean is at least as certain as that of equal ones (Hoeffding, 1956): the exact
        interval of a proportion is valid.
        """
        base = self._rates(np.zeros(1, dtype=np.int64))
        rate, (low, high) = float(base.value[0]), base.exact_interval(alpha)
        weight = np.broadcast_to(self.weight, self.score.shape)
        mean = float(np.average(self.score, weights=weight))
        return rate, mean, rate - mean, float(low[0] - mean), float(high[0] - mean)

    def calibration(self, edges: Floats, alpha: float) -> pd.DataFrame:
        """One row per bin with rows: how often the label is true there, and the mean score."""
        starts = np.append(0, np.searchsorted(self.score, edges[1:-1], side="left"))
        ends = np.append(starts[1:], len(self.score))
        kept = ends > starts
        starts, ends = starts[kept], ends[kept]
        rate = self._rates(starts)
        low, high = rate.exact_interval(alpha)
        total = np.where(rate.total > 0, rate.total, 1.0)
        return pd.DataFrame(
            {
                "from": edges[:-1][kept] if len(edges) > 1 else edges,
                "to": edges[1:][kept] if len(edges) > 1 else edges,
                "rows": ends - starts,
                "mean_score": np.add.reduceat(self.weight * self.score, starts) / total,
                "rate": rate.value,
                "low": low,
                "high": high,
            }
        )


def _newcombe(area: float, m: float, n: float, z: float) -> tuple[float, float]:
    """The interval of an AUC by its variance at each end (Newcombe, 2006, method 5)."""
    from scipy.optimize import brentq  # noqa: PLC0415 - slow to import

    half = (m + n) / 2 - 1

    def beyond(t: float) -> float:
        inner = 1 + half * ((1 - t) / (2 - t) + t / (1 + t))
        return float((area - t) ** 2 - z**2 * t * (1 - t) / (m * n) * inner)

    # At an area of 0 or 1 the area itself is a root, too: start a little inside.
    low = brentq(beyond, 0.0, area * (1 - 1e-9)) if area > 0 else 0.0
    high = brentq(beyond, 1 - (1 - area) * (1 - 1e-9), 1.0) if area < 1 else 1.0
    return float(low), float(high)


def score_frames(audit: Audit) -> dict[str, pd.DataFrame]:
    """The tables named in `TABLES`: what the scores of each label say about every group."""
    rows, frames = audit.rows, {name: list[pd.DataFrame]() for name in TABLES}
    scores: Any = audit.score
    is_usable = scores is not None and audit.has_labels and audit.counts is None
    for label in audit.shown_labels if is_usable else ():
        score = scores if scores.ndim == 1 else scores[:, label]
        order = np.argsort(score, kind="stable")
        places = np.linspace(0, len(order) - 1, CALIBRATION_BINS + 1).astype(np.int64)
        edges = np.unique(score[order][places])
        # Only probabilities can be compared with rates.
        bins = edges if edges[0] >= 0 and edges[-1] <= 1 else None
        for view, table in audit.views.items():
            for name, at in _stretches(rows, order, table.groups.attributes):
                weight = 1.0 if rows.weight is None else rows.weight[at]
                group = RankedScores(score[at], rows.label[at] == label, weight)
                for kind, figures in _of_group(group, bins, audit.alpha).items():
                    named = pd.Series([audit.labels[label]] * len(figures), dtype=object)
                    frames[kind].append(figures.assign(attribute=view, group=name, label=named))
    return {
        kind: pd.concat(tables, ignore_index=True)[TABLES[kind]]
        if tables
        else pd.DataFrame(columns=TABLES[kind])
        for kind, tables in frames.items()
    }


def _stretches(
    rows: GroupedRows, order: Ints, attributes: Sequence[str]
) -> Iterator[tuple[str, Ints]]:
    """Names and rows of the groups that have some, by ascending score; last, all together."""
    groups, place = coarser(rows.groups, attributes)
    # NumPy sorts integers of 16 bits by counting.
    group = place.astype(np.min_scalar_type(-len(place) - 1))[rows.group[order]]
    order, group = order[group >= 0], group[group >= 0]
    by_group = order[np.argsort(group, kind="stable")]
    ends = np.cumsum(count_rows(group, groups.n_groups)).astype(np.int64)
    for name, members in zip(groups.names, np.split(by_group, ends[:-1]), strict=True):
        if len(members):
            yield name, members
    yield OVERALL, order


def _of_group(group: RankedScores, bins: Floats | None, alpha: float) -> dict[str, pd.DataFrame]:
    """The figures of a group, and its curves; no calibration without bins."""
    area, _ = group.auc()
    low, high = group.auc_interval(alpha)
    base, mean, *gap = group.gap(alpha)
    figures = {
        "rows": len(group.score),
        "positives": int(group.is_positive.sum()),
        "mean_score": mean,
        "base_rate": base,
        "auc": area,
        "auc_low": float(low),
        "auc_high": float(high),
        **dict(zip(CALIBRATED, [np.nan] * 3 if bins is None else gap, strict=True)),
    }
    tables = {"scores": pd.DataFrame([figures])}
    if not np.isnan(area):  # without rows of either kind there is no curve
        tables["roc"] = group.roc()
    if bins is not None:
        tables["calibration"] = group.calibration(bins, alpha)
    return tables


CALIBRATED = ["calibration_gap", "calibration_low", "calibration_high"]
KEYS = ["attribute", "group", "label"]
RANKED = ["rows", "positives", "mean_score", "base_rate", "auc", "auc_low", "auc_high"]
TABLES = {
    "scores": [*KEYS, *RANKED, *CALIBRATED],
    "roc": [*KEYS, "threshold", "false_positive_rate", "true_positive_rate"],
    "calibration": [*KEYS, "from", "to", "rows", "mean_score", "rate", "low", "high"],
}
"""The columns of every table of scores."""
