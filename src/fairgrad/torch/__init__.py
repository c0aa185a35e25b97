"""Fair losses for PyTorch: ``from fairgrad.torch import CrossEntropyLoss``."""

from fairgrad import NO_TORCH
from fairgrad.checks import needing

with needing("torch", message=f"fairgrad.torch {NO_TORCH}"):
    import torch as torch  # raises the error that names what to install

from fairgrad.compiled import is_compiled as is_compiled  # whether a step is compiled
from fairgrad.torch.decision import FairDecision
from fairgrad.torch.fairness_loss import FairLoss, FairnessLoss
from fairgrad.torch.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    MultiMarginLoss,
    NLLLoss,
    SoftMarginLoss,
)
from fairgrad.torch.processes import join_processes

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "FairDecision",
    "FairLoss",
    "FairnessLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "SoftMarginLoss",
    "join_processes",
]
