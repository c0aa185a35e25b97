"""Fair losses for PyTorch: ``from fairgrad.torch import CrossEntropyLoss``."""

from fairgrad.torch.fair_loss import FairLoss, FairnessLoss
from fairgrad.torch.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    MultiMarginLoss,
    NLLLoss,
    SoftMarginLoss,
)
from fairgrad.torch.multipliers import is_compiled

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "FairLoss",
    "FairnessLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "SoftMarginLoss",
    "is_compiled",
]
