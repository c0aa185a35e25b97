"""Checks how fair the predictions of any classifier are, and how sure that is. No PyTorch."""

from fairgrad.audit.audit import Audit
from fairgrad.audit.notices import Notice
from fairgrad.audit.verdicts import FAIR, FOUR_FIFTHS, UNDECIDED, UNFAIR, Change, Finding

__all__ = ["FAIR", "FOUR_FIFTHS", "UNDECIDED", "UNFAIR", "Audit", "Change", "Finding", "Notice"]
