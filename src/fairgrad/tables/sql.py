"""The query that counts the rows of an audit where they lie: one GROUP BY, in plain SQL.

Its answer has one row per combination of sensitive values, label and prediction, and how many rows
have it. Numbers are cut into groups, scores compared with a threshold, and dates cut into periods
inside the query, so that the answer is small however many rows there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairgrad.tables.roles import cut_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

N_ROWS, SQUARES, LEAST = "n_rows", "squared_weight", "least_weight"
"""Columns of the answer: how many rows, the sum of squared weights, and the smallest weight."""


INFINITE = "infinite"
"""The group of numbers that are infinite, which are refused."""

PERIODS = ("day", "week", "month")
_LARGEST = "1.7976931348623157e308"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_WORDS = """
all and any array as asc at between both by case cast check class collate column constraint
count create cross current current_date current_time current_user date default delete desc
distinct drop else end except exists extract false fetch first for foreign from full function
grant group grouping having hour if in inner insert int integer intersect interval into is join
key language last lateral leading left level like limit local minute month natural new no not
null numeric of offset on only option or order outer over partition percent position precision
primary qualify range rank references right row rows sample second select set some start system
table then time timestamp to trailing true union unique update user using value values view when
where window with within without year zone
"""
_RESERVED = frozenset(_WORDS.split())
"""Words that are names of columns only in quotes, in one dialect or another."""


@dataclass(frozen=True)
class SqlDialect:
    """What differs between databases.

    Attributes:
        quote: the sign around names.
        is_nan: whether a number is not a number; empty if there are none.
        period: the first day of the day, week or month of a date.
        total: the sum of numbers.
        folds_up: whether names without quotes are in capitals.
    """

    quote: str = '"'
    is_nan: str = ""
    period: Mapping[str, str] = field(
        default_factory=lambda: {
            name: f"CAST(DATE_TRUNC('{name}', {{}}) AS DATE)" for name in PERIODS
        }
    )
    total: str = "SUM({})"
    folds_up: bool = False

    def name(self, column: str) -> str:
        """The name of a column, in quotes where it needs them."""
        known = column.lower() if self.folds_up and column.isupper() else column
        if _PLAIN.fullmatch(known) and known not in _RESERVED:
            return column
        return f"{self.quote}{column.replace(self.quote, 2 * self.quote)}{self.quote}"


DIALECTS: dict[str, SqlDialect] = {
    # fsum: with many threads a plain sum of fractions would differ from run to run.
    "duckdb": SqlDialect(is_nan="isnan(CAST({} AS DOUBLE))", total="fsum({})"),
    "postgres": SqlDialect(is_nan="CAST({} AS DOUBLE PRECISION) = 'NaN'"),
    "redshift": SqlDialect(is_nan="CAST({} AS DOUBLE PRECISION) = 'NaN'"),
    "snowflake": SqlDialect(is_nan="CAST({} AS FLOAT) = 'NaN'", folds_up=True),
    "bigquery": SqlDialect(
        quote="`",
        is_nan="IS_NAN(CAST({} AS FLOAT64))",
        period={
            "day": "CAST({} AS DATE)",
            "week": "DATE_TRUNC(CAST({} AS DATE), ISOWEEK)",
            "month": "DATE_TRUNC(CAST({} AS DATE), MONTH)",
        },
    ),
    "spark": SqlDialect(quote="`", is_nan="isnan(CAST({} AS DOUBLE))"),
    "sqlite": SqlDialect(
        period={
            "day": "date({})",
            "week": "date({}, '-6 days', 'weekday 1')",
            "month": "date({}, 'start of month')",
        }
    ),
}
"""By name; Databricks reads Spark's, Trino and Athena read Postgres's."""


@dataclass(frozen=True)
class CountQuery:
    """What to count, and by what.

    Attributes:
        keys: columns whose values are taken as they are.
        bins: columns of numbers, and the edges to cut them at.
        score: a column of scores and the threshold, if predictions come from them: the answer has
            1 where the score reaches it, else 0.
        weight: the column of sample weights.
        over: a column of dates, and the period to cut them into.
        written: what to put in place of a column, where it is not simply its name.
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
                f"the table has a column {taken[0]!r}, which is what the query calls its own "
                "counts; rename it first"
            )

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        further = [
            *self.bins,
            *([self.score[0]] if self.score else ()),
            *([self.weight] if self.weight else ()),
            *([self.over[0]] if self.over else ()),
        ]
        return list(dict.fromkeys([*self.keys, *further]))

    def sql(self, table: str, dialect: str = "duckdb") -> str:
        """The query as text.

        Args:
            table: what stands behind FROM.
            dialect: one of `DIALECTS`.
        """
        own = DIALECTS[dialect]
        inner = {name: self._value(name, own) for name in self.keys if name not in self.bins}
        inner |= {name: self._cut(name, edges, own) for name, edges in self.bins.items()}
        if self.score is not None:
            inner[self.score[0]] = self._above(*self.score, own)
        if self.over is not None:
            inner[self.over[0]] = own.period[self.over[1]].format(self._value(self.over[0], own))
        inner |= dict(self.more)
        keys = list(inner)
        outer = [*(own.name(name) for name in keys), f"COUNT(*) AS {N_ROWS}"]
        by = [own.name(name) for name in keys]
        if self.weight is not None:
            inner |= {
                "row_weight": self._number(self.weight, own, "NULL"),
                "has_weight": self._number(self.weight, own, "0", "1"),
            }
            by.append("has_weight")
            outer += [
                f"{own.total.format('row_weight')} AS {own.name(self.weight)}",
                f"{own.total.format('row_weight * row_weight')} AS {SQUARES}",
                f"MIN(row_weight) AS {LEAST}",
            ]
        inside = ",\n".join(f"    {_as(value, own.name(name))}" for name, value in inner.items())
        chosen, grouped = ",\n".join(f"  {one}" for one in outer), ", ".join(by)
        return (
            f"SELECT\n{chosen}\nFROM (\n  SELECT\n{inside}\n  FROM {table}\n) AS people\n"
            f"GROUP BY {grouped}\n"
        )

    def _value(self, name: str, own: SqlDialect) -> str:
        return self.written.get(name) or own.name(name)

    def _number(self, name: str, own: SqlDialect, lacking: str, known: str = "") -> str:
        value = self._value(name, own)
        return f"CASE WHEN {self._lacks(name, own)} THEN {lacking} ELSE {known or value} END"

    def _lacks(self, name: str, own: SqlDialect) -> str:
        value = self._value(name, own)
        or_nan = f" OR {own.is_nan.format(value)}" if own.is_nan else ""
        return f"{value} IS NULL{or_nan}"

    def _cut(self, name: str, edges: Sequence[float], own: SqlDialect) -> str:
        """The names of groups; a number that is an edge belongs to the group above it."""
        value, names = self._value(name, own), cut_names(edges)
        cases = [
            f"WHEN {value} < {edge!r} THEN {quoted_text(group)}"
            for edge, group in zip(edges, names, strict=False)
        ]
        return (
            f"CASE WHEN {self._lacks(name, own)} THEN NULL WHEN ABS({value}) > {_LARGEST} "
            f"THEN {quoted_text(INFINITE)} {' '.join(cases)} ELSE {quoted_text(names[-1])} END"
        )

    def _above(self, name: str, threshold: float, own: SqlDialect) -> str:
        value = self._value(name, own)
        return (
            f"CASE WHEN {self._lacks(name, own)} THEN NULL WHEN ABS({value}) > {_LARGEST} "
            f"THEN 2 WHEN {value} >= {threshold!r} THEN 1 ELSE 0 END"
        )


def _as(value: str, name: str) -> str:
    return value if value == name else f"{value} AS {name}"


def quoted_text(value: str) -> str:
    """A text in SQL."""
    doubled = value.replace("'", "''")
    return f"'{doubled}'"
