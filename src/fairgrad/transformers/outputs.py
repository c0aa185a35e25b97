"""What a model returned -> its logits."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def logits_of(outputs: Any) -> Tensor:
    """The logits among the outputs of a model that was called without labels.

    They are what a dictionary (every `ModelOutput` is one) has as "logits", the first of a tuple,
    or the output itself.

    Raises:
        ValueError: if a dictionary has no logits.
        TypeError: if the outputs are something else.

    Example:
        >>> import torch
        >>> logits_of((torch.ones(1, 2), "hidden states"))
        tensor([[1., 1.]])
    """
    if isinstance(outputs, dict):
        if "logits" not in outputs:
            raise ValueError(
                f"model: expected an output named 'logits', got a dictionary of {list(outputs)}."
            )
        logits = outputs["logits"]
    else:
        logits = outputs[0] if isinstance(outputs, tuple) and outputs else outputs
    if not isinstance(logits, Tensor):
        raise TypeError(
            "model: expected a tensor of logits, a tuple that starts with them or a dictionary "
            f"with 'logits'; got {type(logits).__name__}."
        )
    return logits
