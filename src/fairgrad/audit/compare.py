"""Two systems on the same rows: what differs, how sure that is, and who changes sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairgrad.audit import record, sections, words
from fairgrad.audit.changes import accuracy_change
from fairgrad.text import Section, ShownAndWritten

if TYPE_CHECKING:
    from fairgrad.audit.audit import Audit

SCHEMA, SCHEMA_VERSION = "fairgrad.comparison", 2


@dataclass(frozen=True, eq=False)
class AuditComparison(ShownAndWritten):
    """What changes from one system to another that decides the same rows; from `Audit.compare`.

    Attributes:
        audit: of the second system, with the first one as its baseline; its frames "changes" and
            "sides" have every rate before and after, and who changes sides.
        names: what the two systems are called.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1] * 200, ["a"] * 200 + ["b"] * 200
        >>> first = Audit(y, [1 - y[0], *y[1:]], s, measures="accuracy_parity")
        >>> comparison = first.compare(y, names=("old", "new"))
        >>> comparison.audit.to_frame("sides")[["from", "to", "rows"]].values.tolist()
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

    @property
    def conclusion(self) -> str:
        """What changes, in a few sentences."""
        sentences = [f"{self.title}.", *self._useless(), sections.price(self.audit)]
        sentences.append(self._verdicts())
        return " ".join(sentence for sentence in sentences if sentence)

    def _useless(self) -> list[str]:
        """Which of the systems is no better than one label for everybody."""
        pairs = zip(self.names, map(sections.useless, (self.first, self.audit)), strict=True)
        return [f"Warning about {name}. {sentence}" for name, sentence in pairs if sentence]

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
            by_verdicts.items(), key=lambda item: len({*item[0]}) < 2
        ):
            verb = f"stays {after}" if before == after else f"changes from {before} to {after}"
            most = [*names[:4], *([f"{len(names) - 4} more"] if len(names) > 4 else [])]
            sentences.append(f"The verdict by {words.conjoined(most)} {verb}.")
        return " ".join(sentences)

    @property
    def title(self) -> str:
        """How many people get a different decision."""
        of, (first, second) = words.people_of(self.first.table.n_rows), self.names
        return (
            f"{self.n_changed:,} of {of} get a different decision from {second} than from {first}"
        )

    @property
    def sections(self) -> tuple[Section, ...]:
        """Who gets a different decision, then what the audit of the second system says."""
        audit = self.audit
        rates = [sections.rate_block(audit, view)._replace(chart="") for view in audit.views]
        verdicts = sections.verdict_block("Verdicts", audit, audit.findings)
        blocks = (sections.sides(audit), *sections.gains(audit), verdicts, *rates)
        first = Section(sections.SUMMARY, self.title, [*self._useless(), self._verdicts()], blocks)
        return (first, *sections.further_sections(audit))

    @property
    def brief(self) -> Section:
        """What the terminal shows."""
        first = self.sections[0]
        return first._replace(blocks=(*first.blocks, *sections.remarks(self.audit)))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, with a schema version."""
        values = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "names": list(self.names),
            "changed": self.n_changed,
            "conclusion": self.conclusion,
            "verdicts": [self.first.verdict, self.audit.verdict],
            "accuracy_change": accuracy_change(self.audit)[:3],
        }
        plain: dict[str, Any] = record.plain_values(values)
        return {**plain, "audit": self.audit.to_dict()}
