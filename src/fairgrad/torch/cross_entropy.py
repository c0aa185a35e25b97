"""Where `CrossEntropyLoss` was in fairgrad 0.2.0; now it is in `fairgrad.torch`."""

from fairgrad.torch.losses import CrossEntropyLoss

__all__ = ["CrossEntropyLoss"]
