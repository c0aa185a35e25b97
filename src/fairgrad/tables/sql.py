"""Queries for tables in databases: one counts the rows of an audit, one draws rows to train on.

The answer of the first has one row per combination of sensitive values, label and prediction, and
how many rows have it. Numbers are cut into groups, scores compared with a threshold, and dates cut
into periods inside the query, so that the answer is small however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairgrad.tables.column import cut_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

N_ROWS, SQUARES, LEAST = "n_rows", "squared_weight", "least_weight"
"""Columns of the answer: how many rows, the sum of squared weights, and the smallest weight."""

SAMPLE_WEIGHT = "fairgrad_weight"
"""The column of a drawn sample that holds the weight of each row."""

HASH_DIGITS = 8
"""Hexadecimal digits of a row's hash that are compared."""

INFINITE = "infinite"
"""The group of numbers that are infinite, which are refused."""

PERIODS = ("day", "week", "month")
_LARGEST = "1.7976931348623157e308"


@dataclass(frozen=True)
class SqlDialect:
    """What differs between databases.

    Attributes:
        is_nan: whether a number is not a number; empty if there are none.
        period: the first day of the day, week or month of a date.
        total: the sum of numbers.
    """

    is_nan: str = ""
    period: Mapping[str, str] = field(
        default_factory=lambda: {
            name: f"CAST(DATE_TRUNC('{name}', {{}}) AS DATE)" for name in PERIODS
        }
    )
    total: str = "SUM({})"


DIALECTS: dict[str, SqlDialect] = {
    # fsum: with many threads a plain sum of fractions would differ from run to run.
    "duckdb": SqlDialect(is_nan="isnan(CAST({} AS DOUBLE))", total="fsum({})"),
    "postgres": SqlDialect(is_nan="CAST({} AS DOUBLE PRECISION) = 'NaN'"),
    "sqlite": SqlDialect(
        period={
            "day": "date({})",
            "week": "date({}, '-6 days', 'weekday 1')",
            "month": "date({}, 'start of month')",
        }
    ),
}
"""By name."""


@dataclass(frozen=True)
class CountQuery:
    """What to count, and by what.

    Attributes:
        keys: columns whose values are used unchanged.
        bins: columns of numbers, and the edges to cut them at.
        score: a column of scores and the threshold, if predictions come from them: the answer has
            1 where the score reaches it, else 0.
        weight: the column of sample weights.
        over: a column of dates, and the period to cut them into.
        written: what to put instead of a column, where it is not simply its name.
        more: further keys of the query, by their names in the answer.
    """

    keys: tuple[str, ...]
    bins: Mapping[str, Sequence[float]] = field(default_factory=dict)
    score: tuple[str, float] | None = None
    weight: str | None = None
    over: tuple[str, str] | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = [name for name in (N_ROWS, SQUARES, LEAST) if name in self.columns]
        if taken:
            raise ValueError(
                f"the table has a column {taken[0]!r}, a name that the query needs for "
                "its counts; rename it first"
            )

    @property
    def numeric(self) -> dict[str, str]:
        """The columns that must hold numbers, and the option that names each."""
        named = dict.fromkeys(self.bins, "--bins")
        named |= {self.score[0]: "--score"} if self.score else {}
        return named | ({self.weight: "--weight"} if self.weight else {})

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return list(dict.fromkeys([*self.keys, *self.numeric, *(self.over or ())[:1]]))

    def sql(self, table: str, dialect: str = "duckdb") -> str:
        """The query as text."""
        words = DIALECTS[dialect]
        inner = self.key_values(words)
        if self.score is not None:
            inner[self.score[0]] = self._above(*self.score, words)
        if self.over is not None:
            inner[self.over[0]] = words.period[self.over[1]].format(self._value(self.over[0]))
        inner |= dict(self.more)
        keys = list(inner)
        outer = [*(quoted_name(name) for name in keys), f"COUNT(*) AS {N_ROWS}"]
        by = [quoted_name(name) for name in keys]
        if self.weight is not None:
            inner |= {
                "row_weight": self._known(self.weight, f"ELSE {self._value(self.weight)}", words),
                "has_weight": self._known(self.weight, "ELSE 1", words, missing="0"),
            }
            by.append("has_weight")
            outer += [
                f"{words.total.format('row_weight')} AS {quoted_name(self.weight)}",
                f"{words.total.format('row_weight * row_weight')} AS {SQUARES}",
                f"MIN(row_weight) AS {LEAST}",
            ]
        inside = ",\n".join(f"    {_as(value, quoted_name(name))}" for name, value in inner.items())
        chosen, grouped = ",\n".join(f"  {one}" for one in outer), ", ".join(by)
        return (
            f"SELECT\n{chosen}\nFROM (\n  SELECT\n{inside}\n  FROM {table}\n) AS people\n"
            f"GROUP BY {grouped}\n"
        )

    def key_values(self, dialect: SqlDialect) -> dict[str, str]:
        """The values to count by, in SQL."""
        values = {name: self._value(name) for name in self.keys if name not in self.bins}
        return values | {name: self._cut(name, edges, dialect) for name, edges in self.bins.items()}

    def _value(self, name: str) -> str:
        return self.written.get(name) or quoted_name(name)

    def _known(self, name: str, cases: str, dialect: SqlDialect, missing: str = "NULL") -> str:
        """One of the cases for a number, and `missing` where there is none."""
        value = self._value(name)
        or_nan = f" OR {dialect.is_nan.format(value)}" if dialect.is_nan else ""
        return f"CASE WHEN {value} IS NULL{or_nan} THEN {missing} {cases} END"

    def _cut(self, name: str, edges: Sequence[float], dialect: SqlDialect) -> str:
        """The names of groups; a number that is an edge belongs to the group above it."""
        value, names = self._value(name), cut_names(edges)
        cases = [
            f"WHEN {value} < {edge!r} THEN {quoted_text(group)}"
            for edge, group in zip(edges, names, strict=False)
        ]
        infinite = f"WHEN ABS({value}) > {_LARGEST} THEN {quoted_text(INFINITE)}"
        other = f"ELSE {quoted_text(names[-1])}"
        return self._known(name, " ".join([infinite, *cases, other]), dialect)

    def _above(self, name: str, threshold: float, dialect: SqlDialect) -> str:
        value = self._value(name)
        infinite = f"WHEN ABS({value}) > {_LARGEST} THEN 2"
        return self._known(name, f"{infinite} WHEN {value} >= {threshold!r} THEN 1 ELSE 0", dialect)


@dataclass(frozen=True)
class SampleQuery:
    """Which rows of a table to draw: all rows of rare cells, and a share of the others.

    A row is drawn if the hash of its key is below the limit of its cell, so that everyone who asks
    gets the same rows. The hash is the start of the MD5 digest of the seed and the key, a text of
    hexadecimal digits that sorts as the number it stands for.

    Attributes:
        cell: the columns of label and sensitive values, cut into groups where they are numbers.
        key: columns that together identify a row.
        seed: of the hashes.
        test: share of the rows that are held out; none of them is drawn.
        rates: cells by the share of their other rows that is drawn.
        base: the share of all other cells.
        place: what to hash in SQL, if not the columns of `key`.
    """

    cell: CountQuery
    key: tuple[str, ...]
    seed: int
    test: float
    rates: Mapping[float, Sequence[str]] = field(default_factory=dict)
    base: float = 1.0
    place: str = ""

    def is_held_out(self) -> str:
        """Whether a row is held out, in SQL."""
        return f"{self.hashed()} < {_limit(self.test)}"

    def hashed(self) -> str:
        """The hash of a row in SQL."""
        texts = [f"COALESCE(CAST({quoted_name(name)} AS VARCHAR), '')" for name in self.key]
        text = self.place or " || '/' || ".join(texts)
        return f"SUBSTR(MD5('{self.seed}/' || {text}), 1, {HASH_DIGITS})"

    def cell_name(self, dialect: str = "duckdb") -> str:
        """The name of a row's cell in SQL: its values, with | between them."""
        words = DIALECTS[dialect]
        values = self.cell.key_values(words)
        texts = [f"COALESCE(CAST({value} AS VARCHAR), '')" for value in values.values()]
        return " || '|' || ".join(texts)

    def sql(self, table: str, dialect: str = "duckdb") -> str:
        """The query as text."""
        weight = self._by_cell(lambda rate: repr(1 / rate) if rate else "0", dialect)
        return (
            f"SELECT\n  people.*,\n  {weight} AS {SAMPLE_WEIGHT}\n"
            f"FROM {table} AS people\nWHERE {self.is_drawn(dialect)}\n"
        )

    def is_drawn(self, dialect: str = "duckdb") -> str:
        """Whether a row is drawn, in SQL."""
        limit = self._by_cell(lambda rate: _limit(self.test + (1 - self.test) * rate), dialect)
        return f"{self.hashed()} >= {_limit(self.test)}\n  AND {self.hashed()} < {limit}"

    def is_judged(self, share: float) -> str:
        """Whether a row is among this share of the rows held out, in duckdb's SQL."""
        limit = self._by_cell(lambda rate: _limit(share * self.test if rate else 0), "duckdb")
        return f"{self.hashed()} < {limit}"

    def _by_cell(self, value: Callable[[float], str], dialect: str) -> str:
        """What depends on the share of a row's cell that is drawn, in SQL."""
        name = self.cell_name(dialect)
        cases = [
            f"WHEN {name} IN ({', '.join(quoted_text(cell) for cell in cells)}) THEN {value(rate)}"
            for rate, cells in self.rates.items()
        ]
        other = value(self.base)
        return f"CASE {' '.join(cases)} ELSE {other} END" if cases else other


def _limit(share: float) -> str:
    """Hashes below it are this share of all, in SQL; "g" is above every hash."""
    return quoted_text("g" if share >= 1 else f"{round(share * 16**HASH_DIGITS):0{HASH_DIGITS}x}")


def _as(value: str, name: str) -> str:
    return value if value == name else f"{value} AS {name}"


def quoted_name(column: str) -> str:
    """The name of a column in SQL."""
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


def quoted_text(value: str) -> str:
    """A text in SQL."""
    doubled = value.replace("'", "''")
    return f"'{doubled}'"
