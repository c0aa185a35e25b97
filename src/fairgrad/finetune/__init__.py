"""Fair fine-tuning of existing networks: all layers, or the head alone with its whole frontier."""

from fairgrad.finetune.features import compute_features
from fairgrad.finetune.head import HeadFrontier, finetune_head, train_heads
from fairgrad.finetune.loop import FineTuned
from fairgrad.finetune.outputs import predict_logits
from fairgrad.finetune.whole import finetune

__all__ = [
    "FineTuned",
    "HeadFrontier",
    "compute_features",
    "finetune",
    "finetune_head",
    "predict_logits",
    "train_heads",
]
