"""Fair fine-tuning of existing networks: all layers, or the head alone with its whole frontier."""

from fairgrad.finetune.features import compute_features
from fairgrad.finetune.head import HeadFrontier, finetune_head, train_heads
from fairgrad.finetune.rows import predict_logits
from fairgrad.finetune.whole import FineTuned, finetune

__all__ = [
    "FineTuned",
    "HeadFrontier",
    "compute_features",
    "finetune",
    "finetune_head",
    "predict_logits",
    "train_heads",
]
