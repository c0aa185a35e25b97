"""The scores behind predictions: how well they rank, whether they mean what they say, by group.

A score belongs to one label. Of two labels it is the desirable one's; of more, each label has its
own and is compared with all others. Rows are sorted once; every figure of every group is then a
sum over stretches of sorted rows, so that millions of them take seconds.

`ThresholdSweep` says what other thresholds on the same scores would do. Rows are counted once, by
group, label and the thresholds their score lies between; the count table of every threshold is a
sum of these, and each is judged as the audit itself is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtri

from fairgrad.audit.counts import OVERALL, CountTable
from fairgrad.audit.intervals import Interval, Proportion, clopper_pearson
from fairgrad.audit.verdicts import FAIR
from fairgrad.columns import as_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.verdicts import Finding
    from fairgrad.groups import Floats, GroupedRows, Ints

CALIBRATION_BINS, HISTOGRAM_BINS, ROC_POINTS = 10, 20, 60
METHOD = (
    "The AUC is the chance that a row of the label has a higher score than a row of another one; "
    "intervals are the wider ones of DeLong's on the logit scale and Newcombe's."
)
CALIBRATION = (
    "The calibration gap is how often the label is true minus the mean score: above 0 the scores "
    "are too low for the group, below 0 too high. Its interval is exact for the scores given "
    "(Clopper-Pearson). The calibration error is the mean of |rate - mean score| over ten bins "
    "with as many rows each; noise alone keeps it above 0, so look at its lower end."
)


def as_scores(y_score: Any) -> Floats:
    """Scores as float64, of any shape.

    Raises:
        ValueError: if they are no numbers.
    """
    try:
        score: Floats = as_array(y_score).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y_score: expected numbers; {error}.") from error
    return score


def check_scores(y_score: Any, n_rows: int, n_labels: int) -> Floats:
    """Scores as float64: (N,) of the desirable label (two labels only), or (N, L).

    Raises:
        ValueError: if the shape is another one, or a score is not finite.
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


def switch(score: Floats, is_positive: NDArray[np.bool_]) -> tuple[float, float]:
    """The highest score predicted negative, and the lowest one predicted positive.

    Predictions come from one threshold if the first is not above the second.
    """
    highest_no = float(score[~is_positive].max(initial=-np.inf))
    return highest_no, float(score[is_positive].min(initial=np.inf))


class RankedScores(NamedTuple):
    """The distinct scores of some rows, ascending, and what has them.

    Attributes:
        value: (U,) the scores.
        positive: (U,) rows of the label (or the sum of their weights).
        negative: (U,) rows of another label.
        positive_squares: (U,) sums of squared weights; equal to `positive` without weights.
        negative_squares: (U,) the same of the others.

    Example:
        >>> ranked = RankedScores.of(np.array([0.1, 0.4, 0.4]), np.array([False, True, False]))
        >>> ranked.value.tolist(), ranked.positive.tolist(), ranked.negative.tolist()
        ([0.1, 0.4], [0.0, 1.0], [1.0, 1.0])
    """

    value: Floats
    positive: Floats
    negative: Floats
    positive_squares: Floats
    negative_squares: Floats

    @classmethod
    def of(
        cls, score: Floats, is_positive: NDArray[np.bool_], weight: Floats | None = None
    ) -> RankedScores:
        """Those of rows in ascending order of their scores."""
        starts = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
        one = is_positive.astype(np.float64)

        def sums(of: Floats) -> Floats:
            summed: Floats = np.add.reduceat(of, starts)
            return summed

        if weight is None:
            positive, everyone = sums(one), np.diff(np.append(starts, len(score)))
            negative = everyone - positive
            return cls(score[starts], positive, negative, positive, negative)
        parts = [sums(counts) for w in (weight, weight**2) for counts in (w * one, w * (1.0 - one))]
        return cls(score[starts], *parts)

    def auc(self) -> tuple[float, float]:
        """The area under the ROC curve and its variance (DeLong, DeLong and Clarke-Pearson, 1988).

        With m positives X and n negatives Y, ``A = mean of psi(X_i, Y_j)``, psi = 1 if X > Y, 1/2
        if both are equal; ``Var A = S_X / m + S_Y / n``, the variances of the placements
        ``V(X_i) = mean_j psi(X_i, Y_j)`` and ``V(Y_j) = mean_i psi(X_i, Y_j)``. Placements depend
        on the score alone: sums of counts below and above it. Both are NaN without rows of either
        kind; the variance also with a single one.
        """
        m, n = self.positive.sum(), self.negative.sum()
        if m <= 0 or n <= 0:
            return float("nan"), float("nan")
        of_positive = (np.cumsum(self.negative) - self.negative / 2) / n
        of_negative = (m - np.cumsum(self.positive) + self.positive / 2) / m
        area = float((self.positive * of_positive).sum() / m)
        variance = 0.0
        for squares, mass, placed in (
            (self.positive_squares, m, of_positive),
            (self.negative_squares, n, of_negative),
        ):
            size = mass**2 / squares.sum()  # Kish's; the rows without weights
            spread = float((squares * (placed - area) ** 2).sum() / mass**2)
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
        m, n = (
            float(mass.sum() ** 2 / squares.sum())
            for mass, squares in (
                (self.positive, self.positive_squares),
                (self.negative, self.negative_squares),
            )
        )
        low, high = _newcombe(area, m, n, z)
        if 0 < area < 1 and variance > 0:
            reach = z * np.sqrt(variance) / (area * (1 - area))
            low = min(low, expit(logit(area) - reach))
            high = max(high, expit(logit(area) + reach))
        return Interval(np.asarray(low), np.asarray(high))

    def roc(self, most: int = ROC_POINTS) -> tuple[Floats, Floats, Floats]:
        """Thresholds, false and true positive rates: at most so many points, evenly on the curve.

        A threshold predicts the label for scores of at least itself; the first one is above all.
        """
        m, n = max(self.positive.sum(), 1e-300), max(self.negative.sum(), 1e-300)
        hit = np.append(0.0, np.cumsum(self.positive[::-1])) / m
        alarm = np.append(0.0, np.cumsum(self.negative[::-1])) / n
        threshold = np.append(np.inf, self.value[::-1])
        if len(hit) > most:
            way = (hit + alarm) / 2
            places = np.searchsorted(way, np.linspace(0.0, way[-1], most))
            places = np.unique(np.append(np.minimum(places, len(way) - 1), [0, len(way) - 1]))
            threshold, alarm, hit = threshold[places], alarm[places], hit[places]
        return threshold, np.minimum(alarm, 1.0), np.minimum(hit, 1.0)


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


@dataclass(frozen=True, eq=False)
class GroupScores:
    """The scores of one label in one group.

    Attributes:
        score: (n,) ascending.
        is_positive: (n,) whether the label is the true one.
        weight: (n,) sample weights, or None.
    """

    score: Floats
    is_positive: NDArray[np.bool_]
    weight: Floats | None

    @cached_property
    def ranked(self) -> RankedScores:
        """By distinct scores."""
        return RankedScores.of(self.score, self.is_positive, self.weight)

    @cached_property
    def mass(self) -> Floats:
        """(n,) the weights; 1 without."""
        return np.ones(len(self.score)) if self.weight is None else self.weight

    @property
    def base(self) -> Proportion:
        """How often the label is true."""
        ranked = self.ranked
        squares = ranked.positive_squares.sum()
        return Proportion(
            ranked.positive.sum(),
            ranked.positive.sum() + ranked.negative.sum(),
            squares + ranked.negative_squares.sum(),
            squares,
            squares,
        )

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(np.average(self.score, weights=self.weight))

    def gap_interval(self, alpha: float) -> Interval:
        """The interval of the calibration gap, rate less mean score.

        The scores are taken as given. True labels then are independent with chances of their own,
        whose mean is at least as certain as that of equal ones (Hoeffding, 1956): the exact
        interval of a proportion is valid.
        """
        low, high = clopper_pearson(self.base.value, self.base.trials, alpha)
        return Interval(low - self.mean, high - self.mean)

    def quantiles(self) -> list[float]:
        """The quartiles of the scores."""
        cumulated = np.cumsum(self.mass)
        places = np.searchsorted(cumulated, np.array([0.25, 0.5, 0.75]) * cumulated[-1])
        return [float(self.score[min(place, len(self.score) - 1)]) for place in places]

    def calibration(self, edges: Floats, alpha: float) -> pd.DataFrame:
        """One row per bin with rows: how often the label is true there, and the mean score."""
        starts = np.append(0, np.searchsorted(self.score, edges[1:-1], side="left"))
        ends = np.append(starts[1:], len(self.score))
        kept = ends > starts
        starts, ends = starts[kept], ends[kept]

        def sums(of: Floats) -> Floats:
            summed: Floats = np.add.reduceat(of, starts)
            return summed

        total = sums(self.mass)
        hits = sums(self.mass * self.is_positive)
        squares = sums(self.mass**2 * self.is_positive)
        rate = Proportion(hits, total, sums(self.mass**2), squares, squares)
        low, high = clopper_pearson(rate.value, rate.trials, alpha)
        return pd.DataFrame(
            {
                "from": edges[:-1][kept] if len(edges) > 1 else edges,
                "to": edges[1:][kept] if len(edges) > 1 else edges,
                "rows": ends - starts,
                "mean_score": sums(self.mass * self.score) / np.where(total > 0, total, 1.0),
                "rate": rate.value,
                "low": low,
                "high": high,
                "share": total / total.sum(),
                "trials": rate.trials,
            }
        )

    def calibration_error(self, bins: pd.DataFrame, alpha: float) -> tuple[float, float, float]:
        """The mean of |rate - mean score| over bins, and its ends when all bins hold at once."""
        bins = bins[bins["share"] > 0]
        score, share = bins["mean_score"].to_numpy(), bins["share"].to_numpy()
        low, high = clopper_pearson(
            bins["rate"].to_numpy(), bins["trials"].to_numpy(), alpha / len(bins)
        )
        value = share @ np.abs(bins["rate"].to_numpy() - score)
        least = share @ np.maximum(np.maximum(low - score, score - high), 0.0)
        most = share @ np.maximum(high - score, score - low)
        return float(value), float(least), float(most)

    def histogram(self, edges: Floats) -> pd.DataFrame:
        """The share of the rows between two edges; the last bin holds its upper edge."""
        cumulated = np.append(0.0, np.cumsum(self.mass))
        places = np.append(np.searchsorted(self.score, edges[:-1], side="left"), len(self.score))
        share = np.diff(cumulated[places]) / cumulated[-1]
        return pd.DataFrame({"from": edges[:-1], "to": edges[1:], "share": share})


@dataclass(frozen=True, eq=False)
class ScoreFigures:
    """What the scores of one label say about every group.

    Attributes:
        rows: labels and groups of the rows.
        score: (N,) of the label.
        label: its index.
        views: the attributes of every way of grouping.
        judged: by way of grouping, the names of the groups with enough rows to be judged.
        alpha: 1 - confidence.
    """

    rows: GroupedRows
    score: Floats
    label: int
    views: dict[str, tuple[str, ...]]
    judged: dict[str, frozenset[str]]
    alpha: float

    @cached_property
    def is_probability(self) -> bool:
        """Whether all scores lie between 0 and 1, so that they can be compared with rates."""
        return bool(self.score.min() >= 0 and self.score.max() <= 1)

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The tables named in `TABLES`."""
        order = np.argsort(self.score, kind="stable")
        ordered = self.score[order]
        places = np.linspace(0, len(order) - 1, CALIBRATION_BINS + 1).astype(np.int64)
        bins = np.unique(ordered[places])
        low, high = (0.0, 1.0) if self.is_probability else (ordered[0], ordered[-1])
        steps = np.linspace(low, high, HISTOGRAM_BINS + 1 if low < high else 2)
        parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
        for view, attributes in self.views.items():
            names, stretches = self._stretches(order, attributes)
            summaries, wide = [], []
            for name, at in zip(names, stretches, strict=True):
                weight = None if self.rows.weight is None else self.rows.weight[at]
                group = GroupScores(self.score[at], self.rows.label[at] == self.label, weight)
                key: dict[str, Any] = {"attribute": view, "group": name, "label": self.label}
                figures, tables = self._of_group(group, bins, steps)
                for kind, table in tables.items():
                    parts[kind].append(table.assign(**key))
                summaries.append({**key, **figures})
                alpha = self.alpha / max(len(self.judged[view]), 1)
                wide.append((group.ranked.auc_interval(alpha), group.gap_interval(alpha)))
            parts["scores"].append(pd.DataFrame(summaries))
            parts["score_gaps"].append(self._gaps(view, parts["scores"][-1], wide))
        return {kind: _joined(kind, pieces) for kind, pieces in parts.items()}

    def _stretches(
        self, order: Ints, attributes: Sequence[str]
    ) -> tuple[list[str], Iterator[Ints]]:
        """Names and rows of the groups that have some, by ascending score; last, all together."""
        groups = self.rows.groups
        coarse, parent = groups.marginal(*attributes), groups.parents(*attributes)
        known = coarse.is_known
        place = np.where(known, np.cumsum(known) - 1, -1)[parent]
        # NumPy sorts integers of 16 bits by counting.
        group = place.astype(np.min_scalar_type(-len(place) - 1))[self.rows.group[order]]
        if (place < 0).any():
            order, group = order[group >= 0], group[group >= 0]
        by_group = order[np.argsort(group, kind="stable")]
        ends = np.cumsum(np.bincount(group, minlength=int(known.sum())))
        starts = np.append(0, ends[:-1])
        full = np.flatnonzero(ends > starts)
        names = coarse.known().names

        def pieces() -> Iterator[Ints]:
            yield from (by_group[starts[g] : ends[g]] for g in full)
            yield order

        return [*(names[g] for g in full), OVERALL], pieces()

    def _of_group(
        self, group: GroupScores, bins: Floats, steps: Floats
    ) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
        """The figures of a group, and its curves."""
        area, _ = group.ranked.auc()
        low, high = group.ranked.auc_interval(self.alpha)
        quartiles = dict(
            zip(("lower_quartile", "median", "upper_quartile"), group.quantiles(), strict=True)
        )
        base = float(group.base.value)
        figures = {
            "rows": len(group.score),
            "positives": int(group.is_positive.sum()),
            "mean_score": group.mean,
            **quartiles,
            "base_rate": base,
            "auc": area,
            "auc_low": float(low),
            "auc_high": float(high),
        }
        threshold, alarms, hits = group.ranked.roc()
        columns = {
            "threshold": threshold,
            "false_positive_rate": alarms,
            "true_positive_rate": hits,
        }
        # Without rows of either kind there is no curve.
        tables = {} if np.isnan(area) else {"roc": pd.DataFrame(columns)}
        tables["score_histogram"] = group.histogram(steps)
        gap = [float("nan")] * 6
        if self.is_probability:
            tables["calibration"] = group.calibration(bins, self.alpha)
            least, most = group.gap_interval(self.alpha)
            error = group.calibration_error(tables["calibration"], self.alpha)
            gap = [base - group.mean, float(least), float(most), *error]
        return {**figures, **dict(zip(CALIBRATED, gap, strict=True))}, tables

    def _gaps(
        self, view: str, groups: pd.DataFrame, wide: Sequence[tuple[Interval, Interval]]
    ) -> pd.DataFrame:
        """Largest less smallest AUC and calibration gap of the groups judged, with intervals."""
        gaps = []
        for place, figure in enumerate(("auc", "calibration_gap")):
            values = groups[figure].to_numpy()
            is_judged = groups["group"].isin(self.judged[view]).to_numpy()
            judged = np.flatnonzero(~np.isnan(values) & is_judged).tolist()
            if len(judged) < 2:
                continue
            lows, highs = (
                np.asarray([float(wide[g][place][side]) for g in judged]) for side in (0, 1)
            )
            # The largest gap is at least that of any two groups, at most that of the widest two.
            low = max(lows.max() - highs.min(), 0.0)
            least = np.partition(lows, 1)[:2]
            high = (highs - np.where(lows == least[0], least[1], least[0])).max()
            value = float(np.ptp(values[judged]))
            gaps.append([view, self.label, f"{figure}_difference", value, float(low), float(high)])
        return pd.DataFrame(gaps, columns=TABLES["score_gaps"])


CALIBRATED = (
    "calibration_gap",
    "calibration_low",
    "calibration_high",
    "calibration_error",
    "calibration_error_low",
    "calibration_error_high",
)
KEYS = ["attribute", "group", "label"]
TABLES = {
    "scores": [
        *KEYS,
        "rows",
        "positives",
        "mean_score",
        "lower_quartile",
        "median",
        "upper_quartile",
        "base_rate",
        "auc",
        "auc_low",
        "auc_high",
        *CALIBRATED,
    ],
    "score_gaps": ["attribute", "label", "figure", "value", "low", "high"],
    "roc": [*KEYS, "threshold", "false_positive_rate", "true_positive_rate"],
    "calibration": [*KEYS, "from", "to", "rows", "mean_score", "rate", "low", "high"],
    "score_histogram": [*KEYS, "from", "to", "share"],
}
"""The columns of every table of scores."""


def _joined(kind: str, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    full = [one for one in parts if len(one)]
    if not full:
        return pd.DataFrame(columns=TABLES[kind])
    return pd.concat(full, ignore_index=True)[TABLES[kind]]


MOST_THRESHOLDS = 100
CELLS = 20_000
"""So many groups times thresholds are judged at most: of many groups at fewer thresholds."""

SWEEP_COLUMNS = [
    "measure",
    "attribute",
    "threshold",
    "present",
    "value",
    "low",
    "high",
    "verdict",
    "holds",
    "accuracy",
    "selection_rate",
]
HOLDING = [
    "measure",
    "attribute",
    "from",
    "to",
    "threshold",
    "value",
    "verdict",
    "accuracy",
    "selection_rate",
]
SAME_ROWS = (
    "Thresholds were tried on the rows of this audit, so the best of them looks better here than "
    "it will elsewhere: choose on other rows than those it is judged on."
)


@dataclass(frozen=True, eq=False)
class ThresholdSweep:
    """Every measure asked for, at thresholds along the scores.

    Attributes:
        audit: of the predictions as they are.
        score: (N,) of the desirable label.
        threshold: the one the predictions are said to be made with; None if that is not known.
    """

    audit: Audit
    score: Floats
    threshold: float | None

    @cached_property
    def present(self) -> float | None:
        """Where the predictions switch; None if not at one threshold, or if they never do."""
        (positive,) = self.audit.desirable_indices
        highest_no, lowest_yes = switch(self.score, self.audit.predicted == positive)
        if highest_no > lowest_yes:
            return None
        if self.threshold is not None and highest_no <= self.threshold <= lowest_yes:
            return float(self.threshold)
        if not np.isfinite(highest_no + lowest_yes):
            return None
        return (highest_no + lowest_yes) / 2

    @cached_property
    def grid(self) -> Floats:
        """(T,) the thresholds tried: scores that occur, evenly by rows; the lowest selects all."""
        findings = self.audit.asked
        groups = sum(len(finding.table.size) for finding in findings)
        most = max(min(MOST_THRESHOLDS, CELLS // max(groups, 1)), 12)
        ordered = np.sort(self.score)
        distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])]
        evenly = np.linspace(0, len(ordered) - 1, most).astype(np.int64)
        thresholds: Floats = distinct if len(distinct) <= most else np.unique(ordered[evenly])
        return thresholds

    def tables(self) -> Iterator[CountTable]:
        """The counts at every threshold of the grid."""
        audit, grid = self.audit, self.grid
        (positive,) = audit.desirable_indices
        if audit.cluster is not None:
            for threshold in grid:
                predicted = np.where(self.score >= threshold, positive, 1 - positive)
                yield CountTable.from_rows(audit.rows, predicted, cluster=audit.cluster)
            return
        rows, n_groups = audit.rows, audit.table.groups.n_groups
        # As many thresholds as this select the row: those of at most its score.
        above = np.searchsorted(grid, self.score, side="right")
        n_bins = len(grid) + 1
        cell = (rows.group.astype(np.int64) * 2 + rows.label) * n_bins + above

        def selected(weight: Floats | None) -> tuple[Floats, Floats]:
            counts = np.bincount(cell, weight, minlength=n_groups * 2 * n_bins)
            binned = counts.reshape(n_groups, 2, n_bins).astype(np.float64)
            total = binned.sum(axis=2, keepdims=True)
            return total - np.cumsum(binned, axis=2)[:, :, :-1], total

        weights = [None] if rows.weight is None else [None, rows.weight, rows.weight**2]
        counted = [selected(weight) for weight in weights]
        for t in range(len(grid)):
            parts = []
            for chosen, total in counted:
                table = np.empty((n_groups, 2, 2))
                table[:, :, positive] = chosen[:, :, t]
                table[:, :, 1 - positive] = total[:, :, 0] - chosen[:, :, t]
                parts.append(table)
            number, mass, squares = parts if len(parts) == 3 else parts * 3
            yield CountTable(audit.table.groups, number, mass, squares)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per measure asked for, way of grouping and threshold, ascending."""
        audit = self.audit
        rows = []
        for threshold, table in zip(self.grid.tolist(), self.tables(), strict=True):
            shares = _shares(table, *audit.desirable_indices)
            for place, finding in enumerate(audit.findings_of(table)):
                rows.append([place, *_row(finding, threshold, *shares)])
        if self.present is not None:
            shares = _shares(audit.table, *audit.desirable_indices)
            for place, finding in enumerate(audit.asked):
                rows.append([place, *_row(finding, self.present, *shares, is_present=True)])
        frame = pd.DataFrame(rows, columns=["place", *SWEEP_COLUMNS])
        frame = frame.sort_values(["place", "threshold", "present"], kind="stable")
        return frame[SWEEP_COLUMNS].reset_index(drop=True)

    @cached_property
    def holding(self) -> pd.DataFrame:
        """Stretches of thresholds at which a measure holds, each with its most accurate threshold.

        A measure holds where the figure of its verdict lies within the tolerance; the verdict says
        whether that is sure. Thresholds that select everybody or nobody are left out.
        """
        ranges = []
        for (measure, attribute), one in self.frame.groupby(["measure", "attribute"], sort=False):
            tried = one[(one["selection_rate"] > 0) & (one["selection_rate"] < 1)]
            run = (tried["holds"] != tried["holds"].shift()).cumsum()
            for _, run_rows in tried[tried["holds"]].groupby(run):
                rows = run_rows.to_dict(orient="records")
                best = max(rows, key=lambda row: row["accuracy"])
                ends = [rows[0]["threshold"], rows[-1]["threshold"]]
                ranges.append([measure, attribute, *ends, *(best[name] for name in HOLDING[4:])])
        return pd.DataFrame(ranges, columns=HOLDING)

    def _holding(self, finding: Finding) -> list[dict[Any, Any]]:
        return [
            row
            for row in self.holding.to_dict(orient="records")
            if (row["measure"], row["attribute"]) == (finding.measure, finding.attribute)
        ]

    def best_holding(self, finding: Finding) -> dict[Any, Any] | None:
        """The most accurate threshold at which a measure holds; None if it holds at none."""
        return max(self._holding(finding), key=lambda row: row["accuracy"], default=None)

    def sentence(self, finding: Finding) -> str:
        """Where a measure holds, and what that costs."""
        from fairgrad.audit import words  # noqa: PLC0415 - it imports this module

        ranges, best = self._holding(finding), self.best_holding(finding)
        if best is None:
            return "Holds at no threshold tried."
        parts = [
            f"{row['from']:.3g}"
            if row["from"] == row["to"]
            else f"{row['from']:.3g} to {row['to']:.3g}"
            for row in ranges
        ]
        sure = "" if best["verdict"] == FAIR else f" ({best['verdict']})"
        return (
            f"Holds at thresholds of {words.listed(parts)}; most accurate at "
            f"{best['threshold']:.3g}, where {100 * best['selection_rate']:.1f} % are selected and "
            f"{100 * best['accuracy']:.1f} % of the predictions are right{sure}."
        )


def _shares(table: CountTable, positive: int) -> tuple[float, float]:
    """Accuracy and selection rate over all rows."""
    mass = table.mass.sum(axis=0)
    return float(mass.trace() / mass.sum()), float(mass[:, positive].sum() / mass.sum())


def _row(
    finding: Finding,
    threshold: float,
    accuracy: float,
    selected: float,
    *,
    is_present: bool = False,
) -> list[Any]:
    value, low, high, verdict = finding.judgement
    holds = not np.isnan(value) and finding.tolerance.settle(value, value) == FAIR
    return [
        finding.measure,
        finding.attribute,
        threshold,
        is_present,
        value,
        low,
        high,
        verdict,
        holds,
        accuracy,
        selected,
    ]
