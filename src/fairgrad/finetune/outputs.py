"""Logits from whatever a network returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fairgrad.finetune.inputs import as_inputs, run
from fairgrad.training import EpochBar

if TYPE_CHECKING:
    from torch import nn

Reading = Callable[[Any], Tensor]
"""From what a network returns to its logits."""


def logits_of(returned: Any, output: Reading | None = None) -> Tensor:
    """(n, outputs) the logits of a batch.

    A tensor is taken as it is, and so is the entry or attribute ``logits`` of what else may come,
    as in the models of Hugging Face. Anything else needs `output`.

    Args:
        returned: what the network returned.
        output: how to read logits off it.

    Raises:
        TypeError: if no logits can be read off it.

    Example:
        >>> logits_of({"logits": torch.zeros(2, 3), "hidden": None}).shape
        torch.Size([2, 3])
    """
    found: Any = None
    if output is not None:
        found = output(returned)
    elif isinstance(returned, Mapping):
        found = returned.get("logits")
    else:
        found = returned if isinstance(returned, Tensor) else getattr(returned, "logits", None)
    if not isinstance(found, Tensor):
        what = type(returned).__name__
        if isinstance(returned, Mapping):
            what = f"{what} with {sorted(map(str, returned))}"
        elif isinstance(returned, (tuple, list)):
            what = f"{what} of {len(returned)}"
        raise TypeError(
            "module: expected it to return a tensor of logits, or something with an entry or "
            f"attribute 'logits', got {what}; give output=, a function from what it returns to "
            "its logits."
        )
    logits: Tensor = found[:, None] if found.ndim == 1 else found
    return logits


def predict_logits(
    module: nn.Module,
    X: Any,
    *,
    transform: Callable[[Any], Any] | None = None,
    output: Reading | None = None,
    batch_size: int = 256,
    progress: bool | None = None,
) -> Tensor:
    """(n, outputs) the logits of many rows, in evaluation mode and without a gradient.

    Args:
        module: the network, which is left as it is.
        X: rows, as in `finetune`.
        transform: applied to every batch.
        output: how to read logits off what the network returns.
        batch_size: rows at a time.
        progress: True shows a bar, None only when it takes long and on a terminal.

    Example:
        >>> predict_logits(torch.nn.Linear(3, 2), torch.zeros(5, 3)).shape
        torch.Size([5, 2])
    """
    inputs = as_inputs(X, transform)
    bar = EpochBar(-(-len(inputs) // batch_size), enabled=progress, unit="batches")
    with evaluating(module), torch.no_grad():
        found = [
            logits_of(run(module, batch), output).float().cpu()
            for _, (_, batch) in zip(bar, inputs.pieces(batch_size), strict=True)
        ]
    return torch.cat(found)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Inside, all layers are in evaluation mode; after it each is in its own again."""
    before = [(layer, layer.training) for layer in module.modules()]
    module.train(mode=False)
    try:
        yield
    finally:
        for layer, training in before:
            layer.training = training
