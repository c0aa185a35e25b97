"""Two systems on the same rows: what differs, how sure that is, and who changes sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Group
from rich.text import Text

import fairgrad
from fairgrad.audit import tables, text, words
from fairgrad.audit.changes import change_interval
from fairgrad.audit.counted import how_many
from fairgrad.audit.layout import FittedTable, Paragraph

if TYPE_CHECKING:
    from fairgrad.audit.audit import Audit
    from fairgrad.audit.layout import Cell

SCHEMA, SCHEMA_VERSION = "fairgrad.comparison", 1
RATES = {
    "accuracy": "accuracy",
    "selection_rate": "selected",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
}
PAIRED = (
    "Changes are paired differences on the same rows, in percentage points, with their intervals "
    "at {level} each (MOVER of two exact intervals). A star marks those that surely differ from 0."
)


@dataclass(frozen=True, eq=False)
class AuditComparison(text.ShownAndWritten):
    """What changes from one system to another that decides the same rows; from `Audit.compare`.

    Attributes:
        audit: of the second system, with the first one as its baseline.
        names: what the two systems are called.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1] * 200, ["a"] * 200 + ["b"] * 200
        >>> first = Audit(y, [1 - y[0], *y[1:]], s, measures="accuracy_parity")
        >>> comparison = first.compare(y, names=("old", "new"))
        >>> comparison.to_frame("sides")[["from", "to", "rows"]].values.tolist()
        [[1, 0, 1]]
    """

    audit: Audit
    names: tuple[str, str]

    @property
    def first(self) -> Audit:
        """The audit of the first system."""
        assert self.audit.baseline is not None  # noqa: S101 - `Audit.compare` sets it
        return self.audit.baseline

    @property
    def second(self) -> Audit:
        """The audit of the second system."""
        return self.audit

    @property
    def n_changed(self) -> int:
        """How many rows get another prediction."""
        return int(how_many(self.audit.rows, self.first.predicted != self.second.predicted).sum())

    def to_frame(self, kind: str = "changes") -> pd.DataFrame:
        """The figures as a data frame.

        Args:
            kind: "changes" (every group's rates, with paired differences and intervals), "levels"
                (the same for the levels of the measures) or "sides" (who changes sides: rows by
                group, true label, and both predictions).

        Raises:
            ValueError: if there is no such kind.
        """
        frames = {"changes": tables.changes_frame, "levels": _levels, "sides": tables.sides_frame}
        if kind not in frames:
            raise ValueError(f"kind: expected one of {list(frames)}, got {kind!r}.")
        return frames[kind](self.audit)

    @property
    def conclusion(self) -> str:
        """What changes, in one sentence."""
        (one, two), (first, second) = self.names, (self.first, self.second)
        change, low, high = self._accuracy()
        verdicts = [
            f"{words.heading(c.after)}: {words.before_and_after(c)}, {c.before.verdict} and "
            f"{c.after.verdict}"
            for c in self.audit.changes
            if c.after.is_asked
        ]
        accuracy = (
            f"accuracy {100 * second.accuracy:.1f} % against {100 * first.accuracy:.1f} % "
            f"({change:+.1f} points, {low:+.1f} to {high:+.1f}); "
            if first.has_labels
            else ""
        )
        shown = verdicts[:4]
        if len(verdicts) > 4:
            shown.append(f"{len(verdicts) - 4} more below")
        return (
            f"{two} against {one} on {words.n_of(first.table.n_rows, 'row')}: "
            f"{words.people_of(self.n_changed)} get another prediction; {accuracy}"
            f"{'; '.join(shown)}; {words.desirable_value(second)}."
        )

    def _accuracy(self) -> tuple[float, float, float]:
        assert self.audit.moves is not None  # noqa: S101 - there is a baseline
        if not self.audit.has_labels:
            return float("nan"), float("nan"), float("nan")
        everyone = self.audit.table.together().rates["accuracy"]
        moved = self.audit.moves.together().of_rate("accuracy")
        ends = change_interval(moved, everyone, self.audit.alpha)
        change = 100 * (self.second.accuracy - self.first.accuracy)
        return change, float(100 * ends.low[0]), float(100 * ends.high[0])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with a schema version."""
        change, low, high = (part / 100 for part in self._accuracy())
        found = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "fairgrad_version": fairgrad.__version__,
            "names": list(self.names),
            "rows": self.first.table.n_rows,
            "changed": self.n_changed,
            "desirable": self.second.desirable,
            "conclusion": self.conclusion,
            "warnings": [notice._asdict() for notice in self.audit.warnings],
            "verdicts": [self.first.verdict, self.second.verdict],
            "accuracy": {
                "first": self.first.accuracy,
                "second": self.second.accuracy,
                "change": change,
                "low": low,
                "high": high,
            },
            **{
                kind: self.to_frame(kind).to_dict(orient="records")
                for kind in ("changes", "levels", "sides")
            },
            "first": tables.verdicts_frame(self.first).to_dict(orient="records"),
            "second": tables.verdicts_frame(self.second).to_dict(orient="records"),
        }
        plain: dict[str, Any] = tables.plain_values(found)
        return plain

    def __rich__(self) -> Any:
        parts: list[Any] = [Paragraph("Comparison", "bold"), Paragraph(self.conclusion, "bold")]
        parts.append(_verdicts(self))
        frame = self.to_frame()
        parts += [_changes(self, frame, view) for view in self.audit.views]
        parts.append(_sides_table(self))
        said = words.impact(self.audit)
        level = f"{100 * self.audit.confidence:.4g} % confidence"
        parts += [Text(""), Paragraph(said)] if said else [Text("")]
        parts += [Paragraph(f"! {notice.message}", "yellow") for notice in self.audit.warnings]
        return Group(*parts, Paragraph(PAIRED.format(level=level), "dim"))


def _verdicts(comparison: AuditComparison) -> FittedTable:
    one, two = comparison.names
    rows: list[list[Cell]] = [
        [
            words.title(change.after.measure),
            change.after.attribute,
            f"{words.figure(change.before)[1]:.3f}",
            text.short_verdict(change.before.verdict),
            f"{words.figure(change.after)[1]:.3f}",
            text.short_verdict(change.after.verdict),
        ]
        for change in comparison.audit.changes
    ]
    names = {words.figure(change.after)[0] for change in comparison.audit.changes}
    title = f"Verdicts, with the {words.conjoined(sorted(names))}"
    return FittedTable(title, ["Measure", "Groups by", one, "", two, ""], rows, texts=2)


def _changes(comparison: AuditComparison, frame: pd.DataFrame, view: str) -> FittedTable:
    """Changes of the rates of every group, in points."""
    audit = comparison.audit
    records = frame[frame["attribute"] == view].to_dict(orient="records")
    cells = {(row["group"], row["rate"], row["label"]): _points(row) for row in records}
    several = len(audit.labels) > 2
    columns: list[tuple[str, Any, str]] = [
        (rate, None if rate == "accuracy" else audit.label_value(index), short)
        for index in ([-1] if several else audit.shown_labels)
        for rate, short in RATES.items()
        if not several or rate == "accuracy"
    ]
    columns = [column for column in columns if column[0] in audit.table.rates]
    if several and audit.has_labels:
        labels = audit.labels[: text.MOST_LABELS]
        columns += [("true_positive_rate", label, f"recall {label}") for label in labels]

    def line(shown: str, group: str, size: float) -> list[Cell]:
        return [shown, f"{int(size):,}", *(cells[group, rate, label] for rate, label, _ in columns)]

    return text.group_table(
        f"Changes by {view}, in points",
        ["Group", "rows", *(short for _, _, short in columns)],
        audit,
        view,
        [line(*group) for group in text.shown_groups(audit, view)],
        line(words.OVERALL, words.OVERALL, audit.views[view].n_rows),
        text.more_labels(audit, text.MOST_LABELS) if several else "",
    )


def _points(row: dict[Any, Any]) -> str:
    change, low, high = (100 * row[name] for name in ("change", "low", "high"))
    if np.isnan(change):
        return "-"
    half = max(high - change, change - low)
    return f"{change:+.1f}±{half:.1f}{'*' if low > 0 or high < 0 else ' '}"


def _sides_table(comparison: AuditComparison) -> FittedTable:
    audit = comparison.audit
    sides = comparison.to_frame("sides")
    shown = sides.head(text.MOST_GROUPS).to_dict(orient="records")
    rows: list[list[Cell]] = [
        [
            str(row["group"]),
            f"{row['from']} → {row['to']}",
            tables.side(row),
            f"{row['rows']:,}",
        ]
        for row in shown
    ]
    more = len(sides) - len(shown)
    rest = f"... {words.n_of(more, 'more row')}; the JSON has all." if more > 0 else ""
    title = f"Who changes sides: predicted {audit.target}, people"
    heads = ["Group", "prediction", "which is", "people"]
    if not rows:
        return FittedTable(title, heads, [["nobody", "-", "-", "0"]], texts=3)
    return FittedTable(title, heads, rows, texts=3, rest=rest)


def _levels(audit: Audit) -> pd.DataFrame:
    """The levels of every measure before and after, with the interval of their change."""
    frames = []
    for change in audit.changes:
        low, high = change.level_interval
        before, after = change.before, change.after
        frames.append(
            pd.DataFrame(
                {
                    "measure": after.measure,
                    "attribute": after.attribute,
                    "name": list(after.comparison.names),
                    "before": before.levels,
                    "after": after.levels,
                    "change": after.levels - before.levels,
                    "low": low,
                    "high": high,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)
