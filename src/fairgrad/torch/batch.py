"""A batch as it comes from the user -> flat, checked tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


def flat_labels(target: Any, n_examples: int) -> Tensor:
    """(N,) integer labels from what the base loss takes as its target.

    Raises:
        ValueError: if targets are not one label per example.
        TypeError: if they are not numbers of a tensor.
    """
    if type(target) is Tensor and target.dtype == torch.int64 and target.shape == (n_examples,):
        return target  # the usual case first: this is the hot path
    if not isinstance(target, Tensor):
        raise TypeError(f"target: expected a tensor, got {type(target).__name__}.")
    if target.numel() != n_examples or target.ndim not in {1, 2} or len(target) != n_examples:
        raise ValueError(
            f"target: expected one label for each of {n_examples} examples, got shape "
            f"{tuple(target.shape)}; class probabilities and several labels per example are not "
            "supported, because then an example is in no single cell."
        )
    label = target if target.ndim == 1 else target.reshape(-1)
    if label.dtype == torch.int64:
        return label
    whole = label.long()
    if label.is_floating_point() and _can_look(label) and not bool((whole == label).all()):
        raise ValueError(
            "target: expected whole labels, got values such as "
            f"{label[whole != label][0].item():g}; soft labels are not supported, because then an "
            "example is in no single cell."
        )
    return whole


def flat_sensitive(s: Any, n_examples: int, n_columns: int) -> Tensor:
    """(N,) integer sensitive values, or (N, columns) of several attributes.

    Raises:
        ValueError: if they are missing or not one per example.
        TypeError: if they are not integers of a tensor.
    """
    if type(s) is Tensor and s.dtype == torch.int64 and s.shape == (n_examples,) and n_columns == 1:
        return s  # the usual case first: this is the hot path
    if s is None:
        raise ValueError("s: required in training; call criterion(input, target, s).")
    if not isinstance(s, Tensor) or s.dtype not in INTEGERS:
        got = s.dtype if isinstance(s, Tensor) else type(s).__name__
        raise TypeError(
            f"s: expected a tensor of integers, got {got}; criterion.groups.encode gives them."
        )
    columns = s.shape[1] if s.ndim == 2 else 1
    if s.ndim not in {1, 2} or len(s) != n_examples or columns != n_columns:
        expected = f"({n_examples},)" if n_columns == 1 else f"({n_examples}, {n_columns})"
        raise ValueError(f"s: expected shape {expected}, got {tuple(s.shape)}.")
    return (s.reshape(-1) if n_columns == 1 else s).long()


def flat_weights(sample_weight: Any, n_examples: int) -> Tensor | None:
    """(N,) float32 sample weights, or None.

    Raises:
        ValueError: if they are not one non-negative number per example.
        TypeError: if they are not a tensor.
    """
    if sample_weight is None:
        return None
    if not isinstance(sample_weight, Tensor):
        raise TypeError(f"sample_weight: expected a tensor, got {type(sample_weight).__name__}.")
    if sample_weight.shape not in {(n_examples,), (n_examples, 1)}:
        raise ValueError(
            f"sample_weight: expected shape ({n_examples},), got {tuple(sample_weight.shape)}."
        )
    weight = sample_weight.detach().reshape(-1).float()
    if _can_look(weight) and not bool(((weight >= 0) & (weight < torch.inf)).all()):
        raise ValueError("sample_weight: expected finite weights of at least 0.")
    return weight


def flat_losses(losses: Tensor, n_examples: int) -> Tensor:
    """(N,) one loss per example.

    Raises:
        ValueError: if the base loss gave something else.
    """
    if losses.numel() != n_examples:
        raise ValueError(
            f"base_loss: expected one value per example ({n_examples}), "
            f"got shape {tuple(losses.shape)}."
        )
    return losses.reshape(-1)


def _can_look(tensor: Tensor) -> bool:
    """Whether values can be looked at without waiting for an accelerator or breaking a graph."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()
