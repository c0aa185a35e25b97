"""Checks how fair the predictions of any classifier are, and how sure that is. No PyTorch."""

from fairgrad.checks import keeping_random_state

with keeping_random_state():  # rich draws numbers when it is imported
    import rich.console as _console  # noqa: F401 - the modules below import it

from fairgrad.audit.audit import Audit
from fairgrad.audit.certificate import Candidacy, Certificate, certify, likeliest
from fairgrad.audit.changes import Change
from fairgrad.audit.compare import AuditComparison
from fairgrad.audit.impact import ImpactTable
from fairgrad.audit.monitor import Monitor
from fairgrad.audit.record import audit_schema
from fairgrad.audit.seen_rows import SeenRows
from fairgrad.audit.subgroups import Subgroup, SubgroupSearch
from fairgrad.audit.verdicts import FAIR, FOUR_FIFTHS, UNDECIDED, UNFAIR, Finding
from fairgrad.audit.words import Notice

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
