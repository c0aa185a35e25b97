"""Batch normalisation of a whole stack, one channel per member and unit."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

MOMENTUM = 0.1
EPS = 1e-5


def normalise(
    a: Tensor,
    scale: Tensor,
    shift: Tensor,
    buffers: dict[str, Tensor],
    layer: int,
    valid: Tensor | None,
    *,
    training: bool,
) -> Tensor:
    """Normalises activations over the rows and keeps the running statistics.

    ``scale * (a - mean) / sqrt(variance + eps) + shift``, with the batch's mean and variance in
    training and the running ones in evaluation, as `torch.nn.BatchNorm1d` does. A batch of one row
    has variance 0 (PyTorch refuses it).

    Args:
        a: (M, units, B) activations.
        scale: (M, units).
        shift: (M, units).
        buffers: holds the running ``mean`` and ``variance`` of each layer, (M, units).
        layer: which layer this is.
        valid: (M, B) which entries are rows; None if all are.
        training: whether to use and record the batch's own statistics.
    """
    mean, variance = buffers[f"mean{layer}"], buffers[f"variance{layer}"]
    if training and (valid is not None or a.shape[-1] == 1):
        return _over_valid(a, scale, shift, mean, variance, valid)
    members, units, rows = a.shape
    normalised = functional.batch_norm(
        a.reshape(1, members * units, rows),
        mean.view(-1),
        variance.view(-1),
        scale.reshape(-1),
        shift.reshape(-1),
        training=training,
        momentum=MOMENTUM,
        eps=EPS,
    )
    return normalised.view(a.shape)


def _over_valid(
    a: Tensor,
    scale: Tensor,
    shift: Tensor,
    running_mean: Tensor,
    running_variance: Tensor,
    valid: Tensor | None,
) -> Tensor:
    """The same with statistics over the valid entries alone."""
    mask = torch.ones_like(a[:, :1]) if valid is None else valid[:, None].to(a.dtype)
    n = mask.sum(-1, keepdim=True).clamp(min=1)
    mean = (a * mask).sum(-1, keepdim=True) / n
    variance = ((a - mean) ** 2 * mask).sum(-1, keepdim=True) / n
    with torch.no_grad():
        unbiased = variance * n / (n - 1).clamp(min=1)
        running_mean.lerp_(mean.squeeze(-1), MOMENTUM)
        running_variance.lerp_(unbiased.squeeze(-1), MOMENTUM)
    return (a - mean) * (scale[..., None] * (variance + EPS).rsqrt()) + shift[..., None]
