"""Many small networks trained as one stack: epochs, records, selection.

The second half of the names is for those who replace parts of a stack (`StackParts`).
"""

from fairgrad.training.batch_norm import normalise
from fairgrad.training.dropout import drop
from fairgrad.training.heads import losses, residual
from fairgrad.training.member import Member
from fairgrad.training.network import LinearStack, Network, PerceptronStack, Shape
from fairgrad.training.parts import StackParts
from fairgrad.training.plan import TrainingPlan
from fairgrad.training.records import History
from fairgrad.training.selection import (
    fairest,
    fairest_of_accurate,
    most_accurate,
    most_accurate_within,
)
from fairgrad.training.stack import Stack, build
from fairgrad.training.streams import (
    DROPOUT,
    INITIAL_WEIGHTS,
    SHUFFLING,
    Indices,
    Streams,
    generator,
)
from fairgrad.training.table import TrainingTable
from fairgrad.training.trainer import train
from fairgrad.training.training import Choice, Training

__all__ = [
    "DROPOUT",
    "INITIAL_WEIGHTS",
    "SHUFFLING",
    "Choice",
    "History",
    "Indices",
    "LinearStack",
    "Member",
    "Network",
    "PerceptronStack",
    "Shape",
    "Stack",
    "StackParts",
    "Streams",
    "Training",
    "TrainingPlan",
    "TrainingTable",
    "build",
    "drop",
    "fairest",
    "fairest_of_accurate",
    "generator",
    "losses",
    "most_accurate",
    "most_accurate_within",
    "normalise",
    "residual",
    "train",
]
