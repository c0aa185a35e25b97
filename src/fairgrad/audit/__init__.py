"""Checks how fair the predictions of any classifier are, and how sure that is. No PyTorch."""

import importlib
from typing import TYPE_CHECKING, Any

from fairgrad.checks import keeping_random_state

with keeping_random_state():  # rich draws numbers when it is imported
    import rich.console as _console  # noqa: F401 - the modules below import it

from fairgrad.audit.audit import Audit
from fairgrad.audit.certificate import Candidacy, Certificate, certify, likeliest
from fairgrad.audit.changes import Change
from fairgrad.audit.record import audit_schema
from fairgrad.audit.seen_rows import SeenRows
from fairgrad.audit.verdicts import FAIR, FOUR_FIFTHS, UNDECIDED, UNFAIR, Finding
from fairgrad.audit.words import Notice

if TYPE_CHECKING:
    from fairgrad.audit.compare import AuditComparison
    from fairgrad.audit.impact import ImpactTable
    from fairgrad.audit.monitor import Monitor
    from fairgrad.audit.subgroups import Subgroup, SubgroupSearch

_ON_FIRST_USE = {
    "AuditComparison": "compare",
    "ImpactTable": "impact",
    "Monitor": "monitor",
    "Subgroup": "subgroups",
    "SubgroupSearch": "subgroups",
}
"""Names that an audit by itself does not need, and their modules."""

__all__ = [
    "FAIR",
    "FOUR_FIFTHS",
    "UNDECIDED",
    "UNFAIR",
    "Audit",
    "AuditComparison",
    "Candidacy",
    "Certificate",
    "Change",
    "Finding",
    "ImpactTable",
    "Monitor",
    "Notice",
    "SeenRows",
    "Subgroup",
    "SubgroupSearch",
    "audit_schema",
    "certify",
    "likeliest",
]


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Loads a name on first use, so that audits start quickly."""
        if name in _ON_FIRST_USE:
            return getattr(importlib.import_module(f"{__name__}.{_ON_FIRST_USE[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
