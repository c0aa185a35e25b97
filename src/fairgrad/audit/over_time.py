"""Audits of consecutive periods: how levels move from month to month, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit import words
from fairgrad.audit.record import plain_values
from fairgrad.audit.verdicts import UNDECIDED
from fairgrad.text import Block, Section, ShownAndWritten

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.audit.audit import Audit

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_over_time", 1
EACH = (
    "Intervals and verdicts hold for each period by itself: of many periods some will leave their "
    "interval by chance."
)


def period_starts(dates: Any, by: str) -> pd.Series:
    """The first day of the day, week (from Monday) or month of each date.

    Args:
        dates: a column of dates.
        by: "day", "week" or "month".

    Raises:
        ValueError: if there is no such period.

    Example:
        >>> period_starts(pd.to_datetime(["2024-03-31", "2024-04-01"]), "week").astype(str).tolist()
        ['2024-03-25', '2024-04-01']
    """
    days = pd.Series(pd.DatetimeIndex(dates)).dt.normalize()
    if by == "day":
        return days
    if by == "week":
        return days - pd.to_timedelta(days.dt.day_of_week, unit="D")
    if by == "month":
        return days - pd.to_timedelta(days.dt.day - 1, unit="D")
    raise ValueError(f"by: expected 'day', 'week' or 'month', got {by!r}.")


class AuditOverTime(ShownAndWritten):
    """The audits of consecutive periods.

    Args:
        audits: one per period, by the period's name, such as its first day ("2024-03-01"); they
            have the same attributes and measures. A period that cannot be audited, as it has one
            group only, is a sentence that says so.

    Attributes:
        audits: those there are, in the order of their names.
        left_out: the periods that cannot be audited, and why.

    Raises:
        ValueError: if no period can be audited, or measures or attributes differ.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1, 0, 1] * 200, ["F", "F", "M", "M"] * 200
        >>> measure = {"measures": "accuracy_parity"}
        >>> over = AuditOverTime({
        ...     "2024-02": Audit(y, [0, 1, 1, 1] * 200, s, **measure),
        ...     "2024-01": Audit(y, y, s, **measure)})
        >>> over.verdict
        'unfair'
        >>> over.to_frame("verdicts")[["period", "verdict"]].values.tolist()
        [['2024-01', 'fair within tolerance'], ['2024-02', 'unfair']]
    """

    def __init__(self, audits: Mapping[str, Audit | str]) -> None:
        in_order = sorted(audits)
        self.left_out = {name: one for name in in_order if isinstance(one := audits[name], str)}
        self.audits: dict[str, Audit] = {
            name: one for name in in_order if not isinstance(one := audits[name], str)
        }
        self.periods: tuple[str, ...] = tuple(in_order)
        if not self.audits:
            why = f": {next(iter(self.left_out.values()))}" if self.left_out else "."
            raise ValueError(f"audits: expected a period that can be audited, got none{why}")
        kinds = {
            tuple((finding.measure, finding.attribute) for finding in one.findings)
            for one in self.audits.values()
        }
        if len(kinds) > 1:
            raise ValueError("audits: expected the same measures and attributes in all periods.")

    @property
    def last(self) -> Audit | None:
        """The audit of the last period; None if it cannot be audited."""
        return self.audits.get(self.periods[-1])

    @property
    def verdict(self) -> str:
        """That of the last period; undecided if it cannot be audited."""
        return UNDECIDED if self.last is None else self.last.verdict

    @property
    def conclusion(self) -> str:
        """The verdict on the last period, in one sentence."""
        name, n = self.periods[-1], len(self.periods)
        said = self.left_out[name] if self.last is None else self.last.conclusion
        which = f", the last of {n:,} periods" if n > 1 else ""
        return f"{name}{which}: {said}"

    def to_frame(self, kind: str = "levels") -> pd.DataFrame:
        """The figures of all periods, as `Audit.to_frame` gives them, with a column "period".

        Args:
            kind: as in `Audit.to_frame`.

        Raises:
            ValueError: if there is no such kind.
        """
        frames = []
        for name, audit in self.audits.items():
            frame = audit.to_frame(kind)
            frame.insert(0, "period", name)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; NaN becomes None."""
        periods: list[dict[str, Any]] = []
        for name in self.periods:
            audit = self.audits.get(name)
            if audit is None:
                periods.append({"period": name, "left_out": self.left_out[name]})
                continue
            found: dict[str, Any] = {
                "period": name,
                "rows": audit.table.n_rows,
                "accuracy": audit.accuracy,
                "verdict": audit.verdict,
                "conclusion": audit.conclusion,
            }
            for kind in ("verdicts", "levels"):
                found[kind] = audit.to_frame(kind).to_dict(orient="records")
            periods.append(found)
        plain: dict[str, Any] = plain_values(
            {
                "schema": SCHEMA,
                "schema_version": SCHEMA_VERSION,
                "verdict": self.verdict,
                "conclusion": self.conclusion,
                "note": EACH,
                "periods": periods,
            }
        )
        return plain

    def blocks(self) -> list[Block]:
        """One table per measure of the verdict, the last period first."""
        first = next(iter(self.audits.values()))
        found = []
        for place, finding in enumerate(first.asked):
            rows = tuple(self._line(name, place) for name in reversed(self.periods))
            columns = ("period", "rows", words.judged([finding]), "interval", "verdict")
            title = f"{words.heading(finding)}, over time"
            found.append(Block(title, columns, rows, is_brief=True))
        left_out = [f"{name} is left out: {why}" for name, why in self.left_out.items()]
        found[-1] = found[-1]._replace(sentences=(*left_out, EACH))
        return found

    @property
    def sections(self) -> tuple[Section, ...]:
        """The verdict on the last period, and the figures of all."""
        title = f"{words.SIGNS[self.verdict]} {words.capitalized(self.verdict)}"
        return (Section("summary", title, (self.conclusion,), self.blocks()),)

    def _line(self, name: str, place: int) -> tuple[str, ...]:
        audit = self.audits.get(name)
        if audit is None:
            return (name, "-", "-", "-", "-")
        value, low, high, verdict = audit.asked[place].judgement
        interval = "-" if np.isnan(low) else f"{low:.3f}-{high:.3f}"
        return (
            name,
            f"{audit.table.n_rows:,}",
            words.number(value),
            interval,
            words.short(verdict),
        )

    def __repr__(self) -> str:
        return f"<AuditOverTime of {len(self.periods)} periods: {self.verdict} in the last>"
