"""Where to look: the subgroups with the largest gaps among all conjunctions of a few columns.

The best of a hundred thousand gaps is large by chance alone, twice over. First, gaps are ranked by
what is left of them after the noise that so many looks bring. Second, one half of the rows is
searched and the other half says how large the gap is: an interval there is as valid as if the
subgroup had been named beforehand. A permutation test would need hundreds of searches and would
say only that some gap exists, not how large it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from fairgrad.audit import words
from fairgrad.audit.comparisons import compare
from fairgrad.audit.counts import CountTable
from fairgrad.audit.verdicts import Finding, VerdictRule
from fairgrad.checks import check_number
from fairgrad.columns import as_columns
from fairgrad.groups import GroupedRows, least_rows
from fairgrad.splitting import hold_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fairgrad.audit.audit import Audit
    from fairgrad.groups import Floats, Ints

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

COLUMNS = [
    "subgroup",
    "conditions",
    "measure",
    "label",
    "rows",
    "searched_gap",
    "rate",
    "overall",
    "gap",
    "low",
    "high",
    "confirmed",
]
ABOUT = (
    "A search, not a verdict: it says where to look. One half of the rows was searched, and gaps "
    "(the subgroup's rate minus the rate over everyone) are those of the other half, with "
    "intervals that hold for all listed at once. Confirmed are those whose interval excludes 0."
)


class Selector(NamedTuple):
    """A column as values that rows can be selected by.

    Attributes:
        name: of the column.
        codes: (N,) the value of each row; -1 where it cannot be selected by.
        values: what the codes stand for, as text.
    """

    name: str
    codes: Ints
    values: list[str]


class Found(NamedTuple):
    """Conjunctions of values, found on the same columns: one row each.

    Attributes:
        quality: (n,) what they are ranked by.
        columns: (n, k) places of their columns, -1 where there are fewer conditions.
        codes: (n, k) the values.
    """

    quality: Floats
    columns: Ints
    codes: Ints

    def best(self, most: int) -> Found:
        """The first ones by quality; of equals the one with fewer conditions first."""
        depth = (self.columns >= 0).sum(axis=1)
        order = np.lexsort((depth, -self.quality))[:most]
        return Found(self.quality[order], self.columns[order], self.codes[order])


def search(
    selectors: Sequence[Ints],
    hit: NDArray[np.bool_],
    *,
    k: int,
    least: int,
    noise: float = 0.0,
    most: int = POOL,
) -> Found:
    """The conjunctions of up to k values, of different columns, with the largest gaps: exactly.

    A conjunction of n rows with h hits has the gap ``g = h / n - p``, p the share of hits among
    all rows, and is ranked by ``|g| - noise / sqrt(n)``; only those of at least `least` rows count.
    Branch and bound: whatever is added to it, at most h rows are left that all are hits (or n - h
    that none is), so no refinement has a quality above

    ``max(q(max(h, least), h), q(n, h))`` with ``q(n, h) = h / n - p - noise / sqrt(n)``,

    and the same for misses; the first is the purest refinement, the second the loss of misses alone
    where noise counts most, and q has no maximum between them. Conjunctions whose bound is below
    the worst of the best found so far are not refined: their rows are dropped, all values of a set
    of columns at once.

    Args:
        selectors: (N,) codes of each column, -1 for none.
        hit: (N,) what the rate counts.
        k: the most conditions.
        least: the fewest rows.
        noise: the rank's penalty.
        most: how many to find.

    Example:
        >>> sex, age = np.array([0, 0, 1, 1, 1, 1]), np.array([0, 1, 0, 0, 1, 1])
        >>> found = search([sex, age], np.array([1, 1, 0, 0, 1, 1]) > 0, k=2, least=2, most=1)
        >>> found.columns.tolist(), found.codes.tolist(), found.quality.round(3).tolist()
        ([[0, 1]], [[1, 0]], [0.667])
    """
    return _BranchAndBound(list(selectors), hit, k, max(least, 1), noise, most).run()


@dataclass(eq=False)
class _BranchAndBound:
    """The state of one search."""

    selectors: list[Ints]
    hit: NDArray[np.bool_]
    k: int
    least: int
    noise: float
    most: int
    threshold: float = -np.inf
    found: list[Found] = field(default_factory=list)
    n_found: int = 0

    def run(self) -> Found:
        """All single values first: what they rule out need not be joined with anything."""
        self.rate = float(self.hit.mean()) if len(self.hit) else 0.0
        self.sizes = [int(codes.max(initial=-1)) + 1 for codes in self.selectors]
        self._keep([np.ones(size, dtype=bool) for size in self.sizes])
        nothing = np.zeros((1, 0), dtype=np.int64)
        singles = [self._count(place, None, None, 1) for place in range(len(self.sizes))]
        for place, (n, h) in enumerate(singles):
            self._offer((place,), nothing, n, h)
        self._keep([self._bound(n, h) > self.threshold for n, h in singles])
        for place, codes in enumerate(self.selectors):
            if self.k > 1 and (codes >= 0).any():
                live = np.bincount(codes + 1, minlength=self.sizes[place] + 1)[1:] > 0
                self._deepen((), nothing, None, None, place, live)
        return self._joined()

    def _keep(self, alive: Sequence[NDArray[np.bool_]]) -> None:
        """Drops values; (N,) codes then stand for value and hit, in a last place without value."""
        self.selectors = [
            np.where(np.append(live, False)[codes], codes, -1)
            for live, codes in zip(alive, self.selectors, strict=True)
        ]
        self.coded = [
            np.where(codes >= 0, codes, size) * 2 + self.hit
            for codes, size in zip(self.selectors, self.sizes, strict=True)
        ]

    def _refine(self, columns: tuple[int, ...], cells: Ints, rows: Ints | None, cell: Ints) -> None:
        """Adds every later column to the conjunctions `cells`, which `rows` are in (None: all)."""
        for place in range(columns[-1] + 1, len(self.sizes)):
            n, h = self._count(place, rows, cell, len(cells))
            own = (*columns, place)
            self._offer(own, cells, n, h)
            if len(own) < self.k and place + 1 < len(self.sizes):
                is_live = self._bound(n, h) > self.threshold
                if is_live.any():
                    self._deepen(columns, cells, rows, cell, place, is_live)

    def _deepen(
        self,
        columns: tuple[int, ...],
        cells: Ints,
        rows: Ints | None,
        cell: Ints | None,
        place: int,
        is_live: NDArray[np.bool_],
    ) -> None:
        """Refines the live conjunctions of some columns, on their rows alone."""
        size = self.sizes[place]
        code = self.selectors[place] if rows is None else self.selectors[place][rows]
        joint = code if cell is None else np.where(code >= 0, cell * size + code, -1)
        number = np.append(np.where(is_live, np.cumsum(is_live) - 1, -1), -1)[joint]
        live = np.flatnonzero(is_live)
        deeper = np.column_stack([cells[live // size], live % size])
        kept = number >= 0
        if not kept.all():
            number = number[kept]
            rows = np.flatnonzero(kept) if rows is None else rows[kept]
        self._refine((*columns, place), deeper, rows, number)

    def _count(
        self, place: int, rows: Ints | None, cell: Ints | None, n_cells: int
    ) -> tuple[Floats, Floats]:
        """Rows and hits of every cell joined with every value of a column."""
        size = self.sizes[place]
        joint = self.coded[place] if rows is None else self.coded[place][rows]
        if cell is not None:
            joint = joint + cell * (2 * size + 2)
        counts = np.bincount(joint, minlength=n_cells * (2 * size + 2))
        counts = counts.reshape(n_cells, size + 1, 2)[:, :size].reshape(-1, 2)
        return counts.sum(axis=1).astype(np.float64), counts[:, 1].astype(np.float64)

    def _bound(self, n: Floats, h: Floats) -> Floats:
        """What no refinement can exceed; -inf where there are too few rows."""
        bound = np.full(len(n), -np.inf)
        enough = n >= self.least
        n, h = n[enough], h[enough]
        best = np.full(len(n), -np.inf)
        for hits, sign in ((h, 1.0), (n - h, -1.0)):
            rate = self.rate if sign > 0 else 1.0 - self.rate
            purest = np.maximum(hits, self.least)
            for rows in (purest, n):
                best = np.maximum(best, hits / rows - rate - self.noise / np.sqrt(rows))
        bound[enough] = best
        return bound

    def _offer(self, columns: tuple[int, ...], cells: Ints, n: Floats, h: Floats) -> None:
        """Keeps the conjunctions that are better than the worst of the best."""
        at = np.flatnonzero(n >= self.least)
        gap = np.abs(h[at] / n[at] - self.rate) - self.noise / np.sqrt(n[at])
        better = gap > self.threshold
        at, gap = at[better], gap[better]
        if not len(at):
            return
        size = self.sizes[columns[-1]]
        codes = np.column_stack([cells[at // size], at % size])
        blank = np.full((len(at), self.k), -1, dtype=np.int64)
        names = blank.copy()
        names[:, : len(columns)], blank[:, : len(columns)] = columns, codes
        self.found.append(Found(gap, names, blank))
        self.n_found += len(at)
        if self.n_found > 4 * self.most:
            best = self._joined()
            self.found, self.n_found = [best], len(best.quality)
            self.threshold = float(best.quality[-1])

    def _joined(self) -> Found:
        if not self.found:
            nothing = np.empty((0, self.k), dtype=np.int64)
            return Found(np.empty(0), nothing, nothing)
        return Found(*(np.concatenate(part) for part in zip(*self.found, strict=True))).best(
            self.most
        )


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
        >>> found = -0.3, 0.5, 0.7, -0.2, -0.4, 0.0
        >>> one = Subgroup((("sex", "F"),), "accuracy_parity", None, 80, *found)
        >>> one.name, one.is_confirmed
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
        >>> found = audit.worst_subgroups({"town": town})
        >>> found.subgroups[0].name, found.subgroups[0].is_confirmed
        ('town=x', True)
    """

    subgroups: tuple[Subgroup, ...]
    columns: tuple[str, ...]
    k: int
    least: int
    n_tried: int
    n_searched: int
    n_confirming: int

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per subgroup."""
        rows = [
            [
                one.name,
                [list(condition) for condition in one.conditions],
                one.measure,
                one.label,
                one.rows,
                one.searched_gap,
                one.rate,
                one.overall,
                one.gap,
                one.low,
                one.high,
                one.is_confirmed,
            ]
            for one in self.subgroups
        ]
        frame = pd.DataFrame(rows, columns=COLUMNS)
        # Labels as they are: pandas would turn integers beside None into floats.
        frame["label"] = pd.Series([one.label for one in self.subgroups], dtype=object)
        return frame

    @property
    def about(self) -> dict[str, Any]:
        """What was searched, as plain values."""
        numbers = ("k", "least", "n_tried", "n_searched", "n_confirming")
        return {
            "columns": list(self.columns),
            **{name: getattr(self, name) for name in numbers},
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """What was searched, and how much of what was found is sure."""
        sure = sum(one.is_confirmed for one in self.subgroups)
        return (
            f"Searched {words.n_of(self.n_tried, 'conjunction')} of up to "
            f"{words.n_of(self.k, 'condition')} on {words.conjoined(list(self.columns))}, on "
            f"{words.n_of(self.n_searched, 'row')}, each subgroup of at least "
            f"{words.n_of(self.least, 'row')}; {sure} of {words.n_of(len(self.subgroups), 'gap')} "
            f"listed confirmed on the other {self.n_confirming:,}."
        )


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
    """Searches for the largest gaps; `Audit.worst_subgroups` says what the arguments are."""
    check_number("k", k, above=0)
    check_number("top", top, above=0)
    if int(k) != k or int(top) != top:
        raise ValueError(f"k, top: expected whole numbers, got {k!r} and {top!r}.")
    wanted = audit.min_group if min_group is None else min_group
    selectors = [*_attributes(audit), *_selectors(columns, audit)]
    searched, confirming = hold_out(
        audit.rows.cell().astype(np.int64), 0.5, random_state, may_be_empty=True
    )
    least = max(least_rows(len(searched), wanted), 2)
    rates = list(_rates(audit, measure))
    codes = [_frequent(selector.codes[searched], least) for selector in selectors]
    n_tried = len(rates) * _conjunctions([len(np.unique(c[c >= 0])) for c in codes], k)
    z = float(-ndtri(audit.alpha / 2 / max(n_tried, 1)))
    pool: list[tuple[float, int, dict[int, int], float]] = []
    for place, rate in enumerate(rates):
        rows = rate.rows[searched]
        hit = rate.hit[searched][rows]
        share = float(hit.mean()) if len(hit) else 0.0
        own = [c[rows] for c in codes]
        found = search(own, hit, k=int(k), least=least, noise=z * np.sqrt(share * (1 - share)))
        for quality, names, values in zip(*(part.tolist() for part in found), strict=True):
            conditions = {c: v for c, v in zip(names, values, strict=True) if c >= 0}
            inside = _inside(own, conditions)
            pool.append((quality, place, conditions, float(hit[inside].mean()) - share))
    kept = _distinct(sorted(pool, key=lambda one: -one[0]), codes, int(top))
    confirm = _Confirmation(audit, confirming, len(kept))
    subgroups = []
    for _, place, conditions, gap in kept:
        rate = rates[place]
        inside = _inside([selector.codes for selector in selectors], conditions)
        named = [(selectors[c].name, selectors[c].values[v]) for c, v in conditions.items()]
        subgroups.append(
            Subgroup(
                tuple(named),
                rate.measure,
                audit.label_value(rate.label),
                int(inside.sum()),
                gap,
                *confirm.figures(rate, inside),
            )
        )
    names = tuple(selector.name for selector in selectors)
    return SubgroupSearch(
        tuple(subgroups), names, int(k), least, n_tried, len(searched), len(confirming)
    )


def _rates(audit: Audit, measure: str | None) -> Iterator[_Rate]:
    """The rates of the measures asked for, each once."""
    label, predicted = audit.rows.label, audit.predicted
    everyone = np.ones(len(label), dtype=bool)
    every = range(len(audit.labels))
    of: Mapping[str, tuple[str, Sequence[int]]] = {
        "demographic_parity": ("selection", audit.desirable_indices or every),
        "four_fifths_rule": ("selection", audit.desirable_indices or every),
        "equalized_odds": ("recall", every),
        "equality_of_opportunity": ("recall", audit.desirable_indices),
        "accuracy_parity": ("accuracy", [-1]),
    }
    asked = [finding.measure for finding in audit.asked] if measure is None else [measure]
    known = [name for name in dict.fromkeys(asked) if name in of]
    if not known:
        raise ValueError(
            f"measure: expected one of {list(of)} to search by, got {words.listed(asked)}."
        )
    seen = set()
    for name in known:
        kind, labels = of[name]
        for index in labels:
            if (kind, index) in seen:
                continue
            seen.add((kind, index))
            if kind == "accuracy":
                yield _Rate(name, -1, everyone, predicted == label)
            else:
                rows = everyone if kind == "selection" else label == index
                yield _Rate(name, index, rows, predicted == index)


def _attributes(audit: Audit) -> Iterator[Selector]:
    """The sensitive attributes."""
    groups = audit.rows.groups
    for place, name in enumerate(groups.attributes):
        values = [str(value) for value in groups.values[place]]
        yield Selector(name, groups.codes[:, place][audit.rows.group], values)


def _selectors(columns: Any, audit: Audit) -> Iterator[Selector]:
    """Further columns; numbers with many values are cut into bins."""
    if columns is None:
        return
    for name, column in as_columns(columns, "columns").items():
        if name in audit.attributes:
            continue
        series = pd.Series(column).reset_index(drop=True)
        if len(series) != len(audit.rows):
            raise ValueError(
                f"columns: expected one value per row ({len(audit.rows)}), got {len(series)} in "
                f"{name!r}."
            )
        yield _selector(name, series)


def _selector(name: str, series: pd.Series) -> Selector:
    is_number = pd.api.types.is_numeric_dtype(series) and series.dtype != bool
    is_number = is_number or pd.api.types.is_datetime64_any_dtype(series)
    if is_number and series.nunique() > MOST_VALUES:
        cut = pd.qcut(series, BINS, duplicates="drop")
        codes = cut.cat.codes.to_numpy(dtype=np.int64)
        parts = [series[codes == code] for code in range(len(cut.cat.categories))]
        values = [f"{_text(part.min())} to {_text(part.max())}" for part in parts]
    else:
        codes, found = pd.factorize(series, sort=False)
        values = [_text(value) for value in found]
    return Selector(name, np.where(codes >= 0, codes, len(values)), [*values, "missing"])


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


def _frequent(codes: Ints, least: int) -> Ints:
    """Codes without the values that have too few rows, or all of them: they select nothing."""
    if not len(codes):
        return codes
    count = np.bincount(codes + 1)[1:]
    keep = (count >= least) & (count < len(codes))
    return np.where(np.append(keep, False)[codes], codes, -1)


def _conjunctions(sizes: Sequence[int], k: int) -> int:
    """How many conjunctions of 1 to k values of different columns there are."""
    ways = [1] + [0] * int(k)
    for size in sizes:
        for depth in range(int(k), 0, -1):
            ways[depth] += ways[depth - 1] * size
    return sum(ways[1:])


def _inside(codes: Sequence[Ints], conditions: Mapping[int, int]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.logical_and.reduce(
        [codes[column] == value for column, value in conditions.items()]
    )
    return inside


def _distinct(
    pool: Sequence[tuple[float, int, dict[int, int], float]], codes: Sequence[Ints], top: int
) -> list[tuple[float, int, dict[int, int], float]]:
    """The best ones that say something new: those that stand out of the noise, at least `FIRST`.

    Left out is what only adds conditions to a better one, what has mostly the same rows, and what
    is mostly all the other rows.
    """
    kept: list[tuple[float, int, dict[int, int], float]] = []
    masks: list[NDArray[np.bool_]] = []
    for one in pool:
        if len(kept) == top or (one[0] <= 0 and len(kept) >= FIRST):
            break
        mask = _inside(codes, one[2])
        if any(
            before[2].items() <= one[2].items()
            or _shared(mask, own) >= OVERLAP
            or _shared(mask, ~own) >= OPPOSITE
            for before, own in zip(kept, masks, strict=True)
        ):
            continue
        kept.append(one)
        masks.append(mask)
    return kept


def _shared(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Jaccard's index of two sets of rows."""
    return float((one & other).sum() / max((one | other).sum(), 1))


@dataclass(frozen=True, eq=False)
class _Confirmation:
    """The rows that were not searched."""

    audit: Audit
    rows: Ints
    listed: int

    def figures(self, rate: _Rate, inside: NDArray[np.bool_]) -> tuple[float, ...]:
        """Rate, rate over everyone, gap and its interval, all NaN or open without rows."""
        audit, own = self.audit, self.rows
        is_in = inside[own].astype(np.int64)
        weight = None if audit.rows.weight is None else audit.rows.weight[own]
        label = audit.rows.label[own].astype(np.int64)
        groups = replace(
            audit.rows.groups,
            attributes=("subgroup",),
            values=(np.array(["other rows", "these"], dtype=object),),
            codes=np.array([[0], [1]]),
            mass=np.zeros((len(audit.labels), 2)),
        )
        rows = GroupedRows(groups, label, is_in, weight).take(np.arange(len(own)))
        predicted = audit.predicted[own].astype(np.int64)
        table = CountTable.from_rows(rows, predicted, has_labels=audit.has_labels)
        name = "demographic_parity" if rate.measure == "four_fifths_rule" else rate.measure
        comparison = compare(name, table, audit.desirable_indices)
        alpha = audit.alpha / max(self.listed, 1)
        finding = Finding(name, "subgroup", table, comparison, VerdictRule("level", 0.0), alpha)
        at = np.flatnonzero((comparison.group == 1) & (comparison.label == rate.label))[0]
        gap = float(finding.levels[at])
        if np.isnan(gap):
            return (np.nan,) * 3 + (-1.0, 1.0)
        value = float(comparison.cells.value[at])
        low, high = (float(end[at]) for end in finding.level_intervals)
        return value, value - gap, gap, low, high


def rate_name(one: Subgroup) -> str:
    """The rate a subgroup was found by."""
    if one.label is None:
        return "accuracy"
    is_selection = one.measure in {"demographic_parity", "four_fifths_rule"}
    return f"{'selected' if is_selection else 'recall of'} {one.label}"
