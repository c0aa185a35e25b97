"""Many small networks trained as one stack: epochs, records, selection."""

from fairgrad.training.member import Member
from fairgrad.training.parts import Parts
from fairgrad.training.plan import Plan
from fairgrad.training.records import History
from fairgrad.training.selection import (
    fairest,
    fairest_of_accurate,
    most_accurate,
    most_accurate_within,
)
from fairgrad.training.table import Table
from fairgrad.training.trainer import train
from fairgrad.training.training import Choice, Training

__all__ = [
    "Choice",
    "History",
    "Member",
    "Parts",
    "Plan",
    "Table",
    "Training",
    "fairest",
    "fairest_of_accurate",
    "most_accurate",
    "most_accurate_within",
    "train",
]
