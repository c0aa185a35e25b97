"""Two systems on the same rows: what differs, how sure that is, and who changes sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

import fairgrad
from fairgrad.audit import record, sections, words
from fairgrad.audit.changes import accuracy_change
from fairgrad.text import Section, ShownAndWritten

if TYPE_CHECKING:
    from fairgrad.audit.audit import Audit

SCHEMA, SCHEMA_VERSION = "fairgrad.comparison", 1


@dataclass(frozen=True, eq=False)
class AuditComparison(ShownAndWritten):
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
    def n_changed(self) -> int:
        """How many rows get another prediction."""
        changed = self.first.predicted != self.audit.predicted
        return int(self.audit.times[changed].sum())

    def to_frame(self, kind: str = "changes") -> pd.DataFrame:
        """The figures as a data frame.

        Args:
            kind: "changes" (every group's rates, with paired differences and intervals), "levels"
                (the same for the levels of the measures) or "sides" (who changes sides: rows by
                group, true label, and both predictions).

        Raises:
            ValueError: if there is no such kind.
        """
        known = {"changes": record.changes_frame, "levels": _levels, "sides": record.sides_frame}
        if kind not in known:
            raise ValueError(f"kind: expected one of {list(known)}, got {kind!r}.")
        return known[kind](self.audit)

    @property
    def conclusion(self) -> str:
        """What changes, in a few sentences."""
        moved = f"{self._changed} from {self.names[1]} than from {self.names[0]}."
        sentences = [moved, sections.price(self.audit), self._verdicts()]
        return " ".join(sentence for sentence in sentences if sentence)

    def _verdicts(self) -> str:
        """What becomes of the verdict on each measure, the changes first."""
        by_verdicts: dict[tuple[str, str], list[str]] = {}
        asked = [change for change in self.audit.changes if change.after.is_asked]
        several = len({change.after.attribute for change in self.audit.changes}) > 1
        for change in asked:
            of = f" ({change.after.attribute})" if several else ""
            both = change.before.verdict, change.after.verdict
            name = f"{words.in_the_middle(change.after.measure)}{of}"
            by_verdicts.setdefault(both, []).append(name)
        sentences = []
        for (before, after), names in sorted(
            by_verdicts.items(), key=lambda one: len({*one[0]}) < 2
        ):
            verb = f"stays {after}" if before == after else f"changes from {before} to {after}"
            most = [*names[:4], *([f"{len(names) - 4} more"] if len(names) > 4 else [])]
            sentences.append(f"The verdict by {words.conjoined(most)} {verb}.")
        return " ".join(sentences)

    @property
    def _changed(self) -> str:
        of = words.people_of(self.first.table.n_rows)
        return f"{self.n_changed:,} of {of} get a different decision"

    @property
    def sections(self) -> tuple[Section, ...]:
        """Who gets a different decision, then what the audit of the second system says."""
        title = f"{self._changed} from {self.names[1]} than from {self.names[0]}"
        first = sections.comparison_section(self.audit, title, [self._verdicts()])
        return (first, *sections.further_sections(self.audit))

    @property
    def brief(self) -> Section:
        """What the terminal shows."""
        first = self.sections[0]
        return first._replace(blocks=(*first.blocks, *sections.remarks(self.audit)))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with a schema version."""
        change, low, high = accuracy_change(self.audit)
        values = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "fairgrad_version": fairgrad.__version__,
            "names": list(self.names),
            "rows": self.first.table.n_rows,
            "changed": self.n_changed,
            "desirable": self.audit.desirable,
            "conclusion": self.conclusion,
            "warnings": [notice._asdict() for notice in self.audit.warnings],
            "verdicts": [self.first.verdict, self.audit.verdict],
            "accuracy": {
                "first": self.first.accuracy,
                "second": self.audit.accuracy,
                "change": change,
                "low": low,
                "high": high,
            },
            **{
                kind: self.to_frame(kind).to_dict(orient="records")
                for kind in ("changes", "levels", "sides")
            },
            "first": record.verdicts_frame(self.first).to_dict(orient="records"),
            "second": record.verdicts_frame(self.audit).to_dict(orient="records"),
        }
        plain: dict[str, Any] = record.plain_values(values)
        return plain


def _levels(audit: Audit) -> pd.DataFrame:
    """The levels of every measure before and after, with the interval of their change."""
    frames = []
    for change in audit.changes:
        before, after = change.before, change.after
        columns = {
            "measure": after.measure,
            "attribute": after.attribute,
            "name": list(after.comparison.names),
            "before": before.levels,
            "after": after.levels,
            "change": after.levels - before.levels,
        }
        frames.append(pd.DataFrame({**columns, **change.level_interval._asdict()}))
    return pd.concat(frames, ignore_index=True)
