"""The verdict that counts: on the measures that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.audit.audit import DEFAULT_MEASURES
from fairgrad.audit.verdicts import gravest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.audit import Audit


def measures_for(desirable: str | None, trained_for: Sequence[str] = ()) -> list[str]:
    """The audit's own measures, less the one that says nothing without a desirable label.

    Args:
        desirable: the desirable label, if there is one.
        trained_for: measures that must be among them.
    """
    empty = set() if desirable is not None else {"equality_of_opportunity"}
    usual = [name for name in DEFAULT_MEASURES if name not in empty]
    return [*usual, *(name for name in trained_for if name not in usual)]


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
    return gravest(found or [audit.verdict])
