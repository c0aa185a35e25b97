"""A leaf for Hugging Face's Transformers: ``from fairgrad.transformers import FairTrainer``."""

from fairgrad.transformers.trainer import FairTrainer

__all__ = ["FairTrainer"]
