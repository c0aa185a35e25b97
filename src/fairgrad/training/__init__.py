"""Many small networks trained as one stack: epochs, records, selection.

Beside the names listed there are those that other methods need to put parts of their own into a
stack (`StackParts`). The module of a name is loaded on first use, and PyTorch with most of them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from fairgrad.checks import needing_torch

if TYPE_CHECKING:
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
    from fairgrad.training.networks import build as build
    from fairgrad.training.plan import Member, TrainingPlan
    from fairgrad.training.plan import Shape as Shape
    from fairgrad.training.stack import Stack as Stack
    from fairgrad.training.stack import StackParts as StackParts
    from fairgrad.training.table import DROPOUT as DROPOUT
    from fairgrad.training.table import INITIAL_WEIGHTS as INITIAL_WEIGHTS
    from fairgrad.training.table import SHUFFLING as SHUFFLING
    from fairgrad.training.table import RowBatch as RowBatch
    from fairgrad.training.table import Streams as Streams
    from fairgrad.training.table import TrainingTable
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

_NAMES = {
    "Choice": "fairgrad.training.trainer",
    "DROPOUT": "fairgrad.training.table",
    "EpochBar": "fairgrad.training.trainer",
    "History": "fairgrad.training.evaluation",
    "INITIAL_WEIGHTS": "fairgrad.training.table",
    "LinearStack": "fairgrad.training.networks",
    "Member": "fairgrad.training.plan",
    "Network": "fairgrad.training.networks",
    "PerceptronStack": "fairgrad.training.networks",
    "RowBatch": "fairgrad.training.table",
    "SHUFFLING": "fairgrad.training.table",
    "Shape": "fairgrad.training.plan",
    "Stack": "fairgrad.training.stack",
    "StackParts": "fairgrad.training.stack",
    "Streams": "fairgrad.training.table",
    "Training": "fairgrad.training.trainer",
    "TrainingPlan": "fairgrad.training.plan",
    "TrainingTable": "fairgrad.training.table",
    "build": "fairgrad.training.networks",
    "drop": "fairgrad.training.layers",
    "fairest": "fairgrad.training.evaluation",
    "fairest_of_accurate": "fairgrad.training.evaluation",
    "generator": "fairgrad.training.table",
    "losses": "fairgrad.training.evaluation",
    "most_accurate": "fairgrad.training.evaluation",
    "most_accurate_within": "fairgrad.training.evaluation",
    "normalise": "fairgrad.training.layers",
    "residual": "fairgrad.training.evaluation",
    "train": "fairgrad.training.trainer",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        with needing_torch():
            return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'fairgrad.training' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
