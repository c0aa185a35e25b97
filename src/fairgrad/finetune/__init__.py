"""Fair fine-tuning of existing networks: all layers, or the head alone with its whole frontier."""

from fairgrad.finetune.head import HeadFrontier, finetune_head
from fairgrad.finetune.network import compute_features, predict_logits
from fairgrad.finetune.whole import FineTuned, finetune

__all__ = [
    "FineTuned",
    "HeadFrontier",
    "compute_features",
    "finetune",
    "finetune_head",
    "predict_logits",
]
