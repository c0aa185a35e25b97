"""Fair losses for PyTorch: ``from fairgrad.torch import CrossEntropyLoss``."""

from fairgrad.torch.fair_loss import FairLoss, FairnessLoss
from fairgrad.torch.losses import CrossEntropyLoss

__all__ = ["CrossEntropyLoss", "FairLoss", "FairnessLoss"]
