"""What a fair trainer can and cannot be given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.torch import FairLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from transformers import Trainer


def check_criterion(criterion: Any) -> None:
    """Refuses what is not a fair loss that gives the mean over a batch."""
    if not isinstance(criterion, FairLoss):
        raise TypeError(
            f"criterion: expected a loss of fairgrad.torch, got {type(criterion).__name__}."
        )
    if criterion.reduction != "mean":
        raise ValueError(
            f"criterion: expected reduction='mean', got {criterion.reduction!r}; the trainer "
            "scales the means of micro-batches."
        )


def check_trainer(trainer: Trainer) -> None:
    """Refuses settings of Trainer that would be passed over in silence."""
    if trainer.compute_loss_func is not None:
        raise ValueError("compute_loss_func: expected None, as the loss is the criterion's.")
    args = trainer.args
    if args.label_smoothing_factor:
        raise ValueError(
            f"label_smoothing_factor: expected 0, got {args.label_smoothing_factor}; give "
            "label_smoothing to the criterion."
        )
    if args.batch_eval_metrics:
        raise ValueError(
            "batch_eval_metrics: expected False, as fairness is measured on all rows together."
        )
    if not args.eval_do_concat_batches:
        raise ValueError(
            "eval_do_concat_batches: expected True, as fairness is measured on all rows together."
        )


def label_name_of(label_names: Sequence[str]) -> str:
    """The one name of the labels; "labels" for a model that does not say.

    Raises:
        ValueError: if there are several.
    """
    if len(label_names) > 1:
        raise ValueError(
            f"label_names: expected one label per example, got {list(label_names)}; name the one "
            "that counts with label_names=[...] of TrainingArguments."
        )
    return label_names[0] if label_names else "labels"
