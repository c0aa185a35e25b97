"""Where to look: the subgroups with the largest gaps among all conjunctions of a few columns.

The largest of a hundred thousand gaps is large by chance alone. Therefore gaps are ranked by what
is left of them after the noise of so many comparisons. And one half of the rows is searched, while
the other half measures the gap: an interval there is as valid as if the subgroup had been named
beforehand. A permutation test would need hundreds of searches, and would show only that some gap
exists, not how large it is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from fairgrad.audit import words
from fairgrad.audit.comparisons import compare
from fairgrad.audit.counts import CountTable
from fairgrad.audit.record import SUBGROUP_COLUMNS
from fairgrad.audit.verdicts import Finding, VerdictRule
from fairgrad.checks import check_number
from fairgrad.columns import as_columns, counted
from fairgrad.groups import GroupedRows, count_rows, least_rows
from fairgrad.splitting import hold_out
from fairgrad.text import Block

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.groups import Ints

BINS, MOST_VALUES = 5, 10
"""Numbers with more different values are cut into so many bins with as many rows each."""
POOL = 400
"""So many of the best subgroups are found before those that say the same are left out."""
OVERLAP = 0.5
"""Of two subgroups that share this much of their rows (Jaccard), one says enough."""
OPPOSITE = 0.9
"""So does one of two that share this much with all rows outside the other."""
FIRST = 3
"""So many are listed even if none stands out of the noise."""

ABOUT = (
    "This is a search, not a verdict: it shows where to look. Subgroups were searched in one half "
    "of the rows. Their gaps (the subgroup's rate minus the overall rate) were measured in the "
    "other half, with intervals that hold for all listed subgroups together. A gap is confirmed if "
    "its interval excludes 0."
)


class Conjunction(NamedTuple):
    """A conjunction of values: what it is ranked by, and the value of each column by number."""

    quality: float
    conditions: dict[int, int]


def search(
    selectors: Sequence[Ints],
    hit: NDArray[np.bool_],
    *,
    k: int,
    least: int,
    noise: float = 0.0,
    most: int = POOL,
) -> list[Conjunction]:
    """The conjunctions of up to k values, of different columns, with the largest gaps.

    A conjunction of n rows with h hits has the gap ``g = h / n - p``, p the share of hits among
    all rows, and is ranked by ``|g| - noise / sqrt(n)``; only those of at least `least` rows count.
    All of them are counted, one set of columns after the other.

    Args:
        selectors: (N,) codes of each column, -1 for none.
        hit: (N,) what the rate counts.
        k: the most conditions.
        least: the fewest rows.
        noise: the rank's penalty.
        most: how many to find.
    """
    best: list[Conjunction] = []
    overall = float(hit.mean()) if len(hit) else 0.0
    sizes = [int(codes.max(initial=-1)) + 1 for codes in selectors]
    # Value and hit of every row as one number; rows without value come last.
    coded = [
        np.where(codes >= 0, codes, size) * 2 + hit
        for codes, size in zip(selectors, sizes, strict=True)
    ]

    def extend(columns: tuple[int, ...], values: Ints, cell: Ints) -> None:
        """Adds each later column to the conjunctions `values`; rows of none are in a last cell."""
        for place in range(columns[-1] + 1 if columns else 0, len(selectors)):
            shape = (len(values) + 1, sizes[place] + 1, 2)
            joint = cell * (2 * shape[1]) + coded[place]
            counts = count_rows(joint, int(np.prod(shape))).reshape(shape)
            n, h = counts.sum(axis=2)[:-1, :-1], counts[:-1, :-1, 1]
            live = n >= max(least, 1)  # no refinement has more rows
            if not live.any():
                continue
            row, code = np.nonzero(live)
            deeper = np.column_stack([values[row], code])
            quality = np.abs(h[live] / n[live] - overall) - noise / np.sqrt(n[live])
            bound = best[-1].quality if len(best) == most else -np.inf
            better = np.flatnonzero(quality > bound)
            for i in better[np.argsort(-quality[better], kind="stable")][:most].tolist():
                conditions = dict(zip((*columns, place), deeper[i].tolist(), strict=True))
                best.append(Conjunction(float(quality[i]), conditions))
            best.sort(key=lambda subgroup: (-subgroup.quality, len(subgroup.conditions)))
            del best[most:]
            if len(columns) + 1 < k:
                number = np.full(shape[:2], len(deeper))
                number[:-1, :-1][live] = np.arange(len(deeper))
                extend((*columns, place), deeper, number.ravel()[joint >> 1])

    extend((), np.zeros((1, 0), dtype=np.int64), np.zeros(len(hit), dtype=np.int64))
    return best


@dataclass(frozen=True)
class Subgroup:
    """A subgroup to look at.

    Attributes:
        conditions: columns and values that its rows have.
        measure: the measure it was found by.
        label: the label whose rate it is; None for the accuracy.
        rows: how many rows it has, in both halves.
        searched_gap: its gap in the half that was searched: too large, as it was chosen for that.
        rate: its rate in the other half.
        overall: the rate over everyone there.
        gap: what lies between the two; above 0 it is better off than everyone.
        low: lower end of the gap's interval, for all subgroups listed at once.
        high: upper end.

    Example:
        >>> figures = -0.3, 0.5, 0.7, -0.2, -0.4, 0.0
        >>> subgroup = Subgroup((("sex", "F"),), "accuracy_parity", None, 80, *figures)
        >>> subgroup.name, subgroup.is_confirmed
        ('sex=F', False)
    """

    conditions: tuple[tuple[str, str], ...]
    measure: str
    label: Any
    rows: int
    searched_gap: float
    rate: float
    overall: float
    gap: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """Its conditions in one line."""
        return " and ".join(f"{column}={value}" for column, value in self.conditions)

    @property
    def rate_name(self) -> str:
        """The rate it was found by."""
        if self.label is None:
            return "accuracy"
        is_selection = self.measure in {"demographic_parity", "four_fifths_rule"}
        return f"{'selected' if is_selection else 'recall of'} {self.label}"

    @property
    def is_confirmed(self) -> bool:
        """Whether the interval of the gap excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class SubgroupSearch:
    """What a search for the worst subgroups found; from `Audit.worst_subgroups`.

    Attributes:
        subgroups: ranked by what is left of their gaps after the noise that so many looks bring.
        columns: what conditions were made of.
        k: the most conditions of a subgroup.
        least: the fewest rows of a subgroup in the half that was searched.
        n_tried: how many conjunctions there are, over all rates.
        n_searched: rows of the half that was searched.
        n_confirming: rows of the other half.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s, town = [0, 1] * 400, ["a", "a", "b", "b"] * 200, ["x"] * 200 + ["y"] * 600
        >>> audit = Audit(y, [1] * 200 + y[200:], s, measures="accuracy_parity")
        >>> search = audit.worst_subgroups({"town": town})
        >>> search.subgroups[0].name, search.subgroups[0].is_confirmed
        ('town=x', True)
    """

    subgroups: tuple[Subgroup, ...]
    columns: tuple[str, ...]
    k: int
    least: int
    n_tried: int
    n_searched: int
    n_confirming: int

    @property
    def frame(self) -> pd.DataFrame:
        """One row per subgroup."""
        rows = [
            asdict(subgroup) | {"subgroup": subgroup.name, "confirmed": subgroup.is_confirmed}
            for subgroup in self.subgroups
        ]
        # As objects: pandas would turn integers beside None into floats.
        return pd.DataFrame(rows, columns=SUBGROUP_COLUMNS, dtype=object).infer_objects()

    @property
    def about(self) -> dict[str, Any]:
        """What was searched, as plain values."""
        values = {name: value for name, value in vars(self).items() if name != "subgroups"}
        return {**values, "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """What was searched, and how much of what was found is sure."""
        sure = sum(subgroup.is_confirmed for subgroup in self.subgroups)
        return (
            f"Searched {counted(self.n_tried, 'conjunction')} of up to "
            f"{counted(self.k, 'condition')} on {words.conjoined(list(self.columns))}, in "
            f"{counted(self.n_searched, 'row')}; subgroups have at least "
            f"{counted(self.least, 'row')}. {sure} of {counted(len(self.subgroups), 'gap')} "
            f"listed were confirmed on the other {self.n_confirming:,}."
        )

    @property
    def block(self) -> Block:
        """The subgroups as a table, and how they were found."""
        rows = [
            [
                subgroup.name,
                subgroup.rate_name,
                f"{subgroup.rows:,}",
                words.percent(subgroup.rate),
                words.percent(subgroup.overall),
                f"{subgroup.gap:+.3f}",
                f"{subgroup.low:+.2f} to {subgroup.high:+.2f}",
                "yes" if subgroup.is_confirmed else "no",
            ]
            for subgroup in self.subgroups
        ] or [["none with enough rows", *"-------"]]
        columns = ("subgroup", "rate", "rows", "there", "overall", "gap", "interval", "confirmed")
        title, notes = "Subgroups with large gaps", (self.sentence, ABOUT)
        return Block(title, columns, rows, notes, texts=2)


class _Rate(NamedTuple):
    """A rate that is searched: of which measure and label, over which rows, and what it counts."""

    measure: str
    label: int
    rows: NDArray[np.bool_]
    hit: NDArray[np.bool_]


def worst_subgroups(
    audit: Audit,
    columns: Any = None,
    *,
    measure: str | None = None,
    k: int = 3,
    top: int = 10,
    min_group: float | None = None,
    random_state: Any = 0,
) -> SubgroupSearch:
    """Searches for the largest gaps; `Audit.worst_subgroups` documents the arguments."""
    check_number("k", k, above=0)
    check_number("top", top, above=0)
    if int(k) != k or int(top) != top:
        raise ValueError(f"k, top: expected whole numbers, got {k!r} and {top!r}.")
    wanted = audit.min_group if min_group is None else min_group
    selectors = _selectors(audit, columns)
    searched, confirming = hold_out(
        audit.rows.cell().astype(np.int64), 0.5, random_state, may_be_empty=True
    )
    least = max(least_rows(len(searched), wanted), 2)
    rates, every = list(_rates(audit, measure)), [codes for codes, _ in selectors.values()]
    codes = [_frequent(column[searched], least) for column in every]
    n_tried = len(rates) * _conjunctions([len(np.unique(c[c >= 0])) for c in codes], int(k))
    z = float(-ndtri(audit.alpha / 2 / max(n_tried, 1)))
    pool: list[tuple[Conjunction, _Rate, float]] = []
    for rate in rates:
        rows = rate.rows[searched]
        hit, values = rate.hit[searched][rows], [c[rows] for c in codes]
        share = float(hit.mean()) if len(hit) else 0.0
        noise = z * np.sqrt(share * (1 - share))
        pool += [
            (group, rate, float(hit[_inside(values, group.conditions)].mean()) - share)
            for group in search(values, hit, k=int(k), least=least, noise=noise)
        ]
    pool.sort(key=lambda candidate: -candidate[0].quality)
    kept, subgroups = _distinct(pool, codes, int(top)), []
    named = [(name, values) for name, (_, values) in selectors.items()]
    for group, rate, gap in kept:
        inside = _inside(every, group.conditions)
        conditions = tuple((named[c][0], named[c][1][v]) for c, v in group.conditions.items())
        confirmed = _confirmed(audit, confirming, rate, inside, audit.alpha / len(kept))
        label, n_rows = audit.label_values[rate.label], int(inside.sum())
        subgroups.append(Subgroup(conditions, rate.measure, label, n_rows, gap, *confirmed))
    sizes = len(searched), len(confirming)
    return SubgroupSearch(tuple(subgroups), tuple(selectors), int(k), least, n_tried, *sizes)


def _rates(audit: Audit, measure: str | None) -> Iterator[_Rate]:
    """The rates of the measures asked for, each once."""
    label, predicted = audit.rows.label, audit.predicted
    everyone, every = np.ones(len(label), dtype=bool), range(len(audit.labels))
    of: Mapping[str, tuple[str, Sequence[int]]] = {
        "demographic_parity": ("selection", audit.desirable_indices or every),
        "four_fifths_rule": ("selection", audit.desirable_indices or every),
        "equalized_odds": ("recall", every),
        "equality_of_opportunity": ("recall", audit.desirable_indices),
        "accuracy_parity": ("accuracy", [-1]),
    }
    asked = [finding.measure for finding in audit.asked] if measure is None else [measure]
    wanted: dict[tuple[str, int], str] = {}
    for name in asked:
        kind, labels = of.get(name, ("", ()))
        for index in labels:
            wanted.setdefault((kind, index), name)
    if not wanted:
        raise ValueError(
            f"measure: expected one of {list(of)} to search by, got {words.listed(asked)}."
        )
    for (kind, index), name in wanted.items():
        hit = predicted == (label if kind == "accuracy" else index)
        yield _Rate(name, index, label == index if kind == "recall" else everyone, hit)


def _selectors(audit: Audit, columns: Any) -> dict[str, tuple[Ints, list[str]]]:
    """The values of each sensitive attribute as codes, and what the codes stand for.

    The same of further columns; numbers with many values are cut into bins.
    """
    groups = audit.rows.groups
    selectors = {
        name: (groups.codes[:, place][audit.rows.group], [*map(str, groups.values[place])])
        for place, name in enumerate(groups.attributes)
    }
    for name, column in {} if columns is None else as_columns(columns, "columns").items():
        series = pd.Series(column).reset_index(drop=True)
        if len(series) != len(audit.rows):
            raise ValueError(
                f"columns: expected one value per row ({len(audit.rows)}), got {len(series)} in "
                f"{name!r}."
            )
        is_number = pd.api.types.is_numeric_dtype(series) and series.dtype != bool
        is_number = is_number or pd.api.types.is_datetime64_any_dtype(series)
        if is_number and series.nunique() > MOST_VALUES:
            cut = pd.qcut(series, BINS, duplicates="drop")
            codes = cut.cat.codes.to_numpy(dtype=np.int64)
            spans = [series[codes == code] for code in range(len(cut.cat.categories))]
            values = [f"{_text(span.min())} to {_text(span.max())}" for span in spans]
        else:
            codes, distinct = pd.factorize(series, sort=False)
            values = [_text(value) for value in distinct]
        if name not in audit.attributes:
            selectors[name] = np.where(codes >= 0, codes, len(values)), [*values, "missing"]
    return selectors


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _frequent(codes: Ints, least: int) -> Ints:
    """Codes without the values that have too few rows, or all of them: they select nothing."""
    if not len(codes):
        return codes
    count = count_rows(codes + 1, int(codes.max()) + 2)[1:]
    keep = (count >= least) & (count < len(codes))
    return np.where(np.append(keep, False)[codes], codes, -1)


def _conjunctions(sizes: Sequence[int], k: int) -> int:
    """How many conjunctions of 1 to k values of different columns there are."""
    ways = [1] + [0] * k
    for size in sizes:
        for depth in range(k, 0, -1):
            ways[depth] += ways[depth - 1] * size
    return sum(ways[1:])


def _inside(codes: Sequence[Ints], conditions: Mapping[int, int]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.logical_and.reduce(
        [codes[column] == value for column, value in conditions.items()]
    )
    return inside


def _distinct(
    pool: Sequence[tuple[Conjunction, _Rate, float]], codes: Sequence[Ints], top: int
) -> list[tuple[Conjunction, _Rate, float]]:
    """The best ones that say something new: those that stand out of the noise, at least `FIRST`.

    Left out is what only adds conditions to a better one, what has mostly the same rows, and what
    is mostly all the other rows.
    """
    kept: list[tuple[Conjunction, _Rate, float]] = []
    masks: list[NDArray[np.bool_]] = []
    for candidate in pool:
        quality, conditions = candidate[0]
        if len(kept) == top or (quality <= 0 and len(kept) >= FIRST):
            break
        mask = _inside(codes, conditions)
        if any(
            before.conditions.items() <= conditions.items()
            or _shared(mask, taken) >= OVERLAP
            or _shared(mask, ~taken) >= OPPOSITE
            for (before, *_), taken in zip(kept, masks, strict=True)
        ):
            continue
        kept.append(candidate)
        masks.append(mask)
    return kept


def _shared(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Jaccard's index of two sets of rows."""
    return float((first & second).sum() / max((first | second).sum(), 1))


def _confirmed(
    audit: Audit, half: Ints, rate: _Rate, inside: NDArray[np.bool_], alpha: float
) -> tuple[float, ...]:
    """Rate, rate over everyone, gap and its interval on other rows; NaN or open without rows."""
    weight = None if audit.rows.weight is None else audit.rows.weight[half]
    groups = replace(
        audit.rows.groups,
        attributes=("subgroup",),
        values=(np.array(["other rows", "these"], dtype=object),),
        codes=np.array([[0], [1]]),
        mass=np.zeros((len(audit.labels), 2)),
    )
    label, is_in = (column[half].astype(np.int64) for column in (audit.rows.label, inside))
    rows = GroupedRows(groups, label, is_in, weight).take(np.arange(len(half)))
    table = CountTable.from_rows(
        rows, audit.predicted[half].astype(np.int64), has_labels=audit.has_labels
    )
    name = "demographic_parity" if rate.measure == "four_fifths_rule" else rate.measure
    comparison = compare(name, table, audit.desirable_indices)
    finding = Finding(name, "subgroup", table, comparison, VerdictRule("level", 0.0), alpha)
    at = np.flatnonzero((comparison.group == 1) & (comparison.label == rate.label))[0]
    gap, value = float(finding.levels[at]), float(comparison.cells.value[at])
    if np.isnan(gap):
        return (np.nan,) * 3 + (-1.0, 1.0)
    low, high = (float(end[at]) for end in finding.level_intervals)
    return value, value - gap, gap, low, high
