"""The loss a whole network is fine-tuned with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from fairgrad.torch import BCEWithLogitsLoss, CrossEntropyLoss

if TYPE_CHECKING:
    from torch import Tensor

    from fairgrad.finetune.rows import Labelled
    from fairgrad.torch import FairLoss


class Criterion(nn.Module):
    """Cross-entropy of a batch's logits, fair if a measure is given, else plain.

    A network with one output has the logit of the second of two classes.

    Args:
        rows: the training rows.
        measure: as in `fairgrad.torch.FairLoss`; None is the plain loss.
        single: whether the network has one output.
        settings: further arguments of the loss.
    """

    def __init__(self, rows: Labelled, measure: Any, *, single: bool, **settings: Any) -> None:
        super().__init__()
        self.single = single
        self.plain = nn.BCEWithLogitsLoss() if single else nn.CrossEntropyLoss()
        self.fair: FairLoss | None = None
        codes = rows.sensitive_codes
        if measure is not None and codes is not None:
            kind = BCEWithLogitsLoss if single else CrossEntropyLoss
            self.fair = kind(rows.label, codes, measure, **settings)
            self.s = torch.from_numpy(np.stack(list(codes.values()), axis=1))

    def forward(self, logits: Tensor, label: Tensor, rows: Tensor) -> Tensor:
        """The loss of the training rows with these numbers."""
        label = label.to(logits.device)
        if self.single:
            logits, target = logits[:, 0], label.to(logits.dtype)
        else:
            target = label
        if self.fair is None:
            loss: Tensor = self.plain(logits, target)
            return loss
        s = self.s[rows].to(logits.device)
        fair: Tensor = self.fair(logits, target, s[:, 0] if s.shape[1] == 1 else s)
        return fair
