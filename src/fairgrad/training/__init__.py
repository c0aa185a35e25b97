"""Many small networks trained as one stack: epochs, records, selection.

Beside the names listed there are those that other methods need to put parts of their own into a
stack (`StackParts`).
"""

from fairgrad.training.evaluation import (
    History,
    fairest,
    fairest_of_accurate,
    most_accurate,
    most_accurate_within,
)
from fairgrad.training.evaluation import losses as losses
from fairgrad.training.evaluation import residual as residual
from fairgrad.training.layers import drop as drop
from fairgrad.training.layers import normalise as normalise
from fairgrad.training.networks import LinearStack as LinearStack
from fairgrad.training.networks import Network as Network
from fairgrad.training.networks import PerceptronStack as PerceptronStack
from fairgrad.training.networks import Shape as Shape
from fairgrad.training.networks import build as build
from fairgrad.training.stack import Stack as Stack
from fairgrad.training.stack import StackParts as StackParts
from fairgrad.training.table import DROPOUT as DROPOUT
from fairgrad.training.table import INITIAL_WEIGHTS as INITIAL_WEIGHTS
from fairgrad.training.table import SHUFFLING as SHUFFLING
from fairgrad.training.table import Member, TrainingPlan, TrainingTable
from fairgrad.training.table import RowBatch as RowBatch
from fairgrad.training.table import Streams as Streams
from fairgrad.training.table import generator as generator
from fairgrad.training.trainer import Choice, Training, train
from fairgrad.training.trainer import EpochBar as EpochBar

__all__ = [
    "Choice",
    "History",
    "Member",
    "Training",
    "TrainingPlan",
    "TrainingTable",
    "fairest",
    "fairest_of_accurate",
    "most_accurate",
    "most_accurate_within",
    "train",
]
