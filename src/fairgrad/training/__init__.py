"""Many small networks trained as one stack: epochs, records, selection.

Names imported under their own name are for those who replace parts of a stack (`StackParts`), such
as the benchmark's methods; they are not in the reference.
"""

from fairgrad.training.batch_norm import normalise as normalise
from fairgrad.training.dropout import drop as drop
from fairgrad.training.heads import losses as losses
from fairgrad.training.heads import residual as residual
from fairgrad.training.member import Member
from fairgrad.training.network import LinearStack as LinearStack
from fairgrad.training.network import Network as Network
from fairgrad.training.network import PerceptronStack as PerceptronStack
from fairgrad.training.network import Shape as Shape
from fairgrad.training.parts import StackParts
from fairgrad.training.plan import TrainingPlan
from fairgrad.training.records import History
from fairgrad.training.selection import (
    fairest,
    fairest_of_accurate,
    most_accurate,
    most_accurate_within,
)
from fairgrad.training.stack import Stack as Stack
from fairgrad.training.stack import build as build
from fairgrad.training.streams import DROPOUT as DROPOUT
from fairgrad.training.streams import INITIAL_WEIGHTS as INITIAL_WEIGHTS
from fairgrad.training.streams import SHUFFLING as SHUFFLING
from fairgrad.training.streams import Indices as Indices
from fairgrad.training.streams import Streams as Streams
from fairgrad.training.streams import generator as generator
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
