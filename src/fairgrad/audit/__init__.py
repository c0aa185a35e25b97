"""Checks how fair the predictions of any classifier are, and how sure that is. No PyTorch."""

from fairgrad.audit.audit import Audit
from fairgrad.audit.changes import Change
from fairgrad.audit.compare import AuditComparison
from fairgrad.audit.notices import Notice
from fairgrad.audit.subgroups import Subgroup, SubgroupSearch
from fairgrad.audit.verdicts import FAIR, FOUR_FIFTHS, UNDECIDED, UNFAIR, Finding

__all__ = [
    "FAIR",
    "FOUR_FIFTHS",
    "UNDECIDED",
    "UNFAIR",
    "Audit",
    "AuditComparison",
    "Change",
    "Finding",
    "Notice",
    "Subgroup",
    "SubgroupSearch",
]
