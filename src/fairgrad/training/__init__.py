"""Many small networks trained as one stack: epochs, records, selection."""

from fairgrad.training.member import Member
from fairgrad.training.parts import StackParts
from fairgrad.training.plan import TrainingPlan
from fairgrad.training.records import History
from fairgrad.training.selection import (
    fairest,
    fairest_of_accurate,
    most_accurate,
    most_accurate_within,
)
from fairgrad.training.table import TrainingTable
from fairgrad.training.trainer import train
from fairgrad.training.training import Choice, Training

__all__ = [
    "Choice",
    "History",
    "Member",
    "StackParts",
    "Training",
    "TrainingPlan",
    "TrainingTable",
    "fairest",
    "fairest_of_accurate",
    "most_accurate",
    "most_accurate_within",
    "train",
]
