"""Where `FairnessLoss` was in fairgrad 0.2.0; now it is `fairgrad.torch.FairLoss`."""

from fairgrad.torch.fair_loss import FairnessLoss

__all__ = ["FairnessLoss"]
