"""Many small networks trained as one stack: steps, epochs, records."""

from fairgrad import NO_TORCH
from fairgrad.checks import needing

with needing("torch", message=f"Training {NO_TORCH}"):
    from fairgrad.training.plan import DROPOUT as DROPOUT
    from fairgrad.training.plan import INITIAL_WEIGHTS as INITIAL_WEIGHTS
    from fairgrad.training.plan import SHUFFLING as SHUFFLING
    from fairgrad.training.plan import Batches as Batches
    from fairgrad.training.plan import Member, TrainingPlan, TrainingTable
    from fairgrad.training.plan import generator as generator
    from fairgrad.training.stack import History
    from fairgrad.training.stack import Network as Network
    from fairgrad.training.stack import Perceptrons as Perceptrons
    from fairgrad.training.stack import Stack as Stack
    from fairgrad.training.stack import StackParts as StackParts
    from fairgrad.training.stack import drop as drop
    from fairgrad.training.stack import losses as losses
    from fairgrad.training.stack import residual as residual
    from fairgrad.training.trainer import Training, train

__all__ = ["History", "Member", "Training", "TrainingPlan", "TrainingTable", "train"]
