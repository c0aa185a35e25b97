"""The verdict that counts: on the measures that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit import Audit


def verdict_on(audit: Audit, measures: Sequence[str], *, separate: bool = False) -> str:
    """The gravest verdict on some measures.

    Args:
        audit: of all measures.
        measures: names of those that count.
        separate: whether attributes count one by one only, not crossed.
    """
    found = [
        finding.verdict
        for finding in audit.findings
        if finding.measure in measures and not (separate and " x " in finding.attribute)
    ]
    return next(word for word in (UNFAIR, UNDECIDED, FAIR) if word in (found or [audit.verdict]))
