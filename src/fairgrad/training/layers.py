"""Hidden layers of a stack of networks: linear, batch norm, ReLU, dropout.

`HiddenLayer` has its gradient written out and keeps the memory it writes into: on small networks
autograd and fresh memory take longer than the matrix products. `normalise` and `drop` are the same
operations for networks that autograd differentiates. Activations are (M, units, B).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Sequence

MOMENTUM, EPS = 0.1, 1e-5
"""Of batch normalisation, as PyTorch has them."""


class BatchNorm(NamedTuple):
    """Batch norm of M members, each (M, units): its parameters and its running statistics."""

    scale: Tensor
    shift: Tensor
    mean: Tensor
    variance: Tensor


class HiddenLayer:
    """One hidden layer of M members: ``h = mask * relu(v) / kept``, where v is ``W x + b``.

    With batch norm ``v = scale * c / sqrt(variance + eps) + shift``, where c is ``W x`` less its
    mean over the rows; b falls out. As ``relu(v) / kept = relu(v / kept)``, dropout costs no more
    than a mask of zeros and ones; and as h is 0 where the mask or the ReLU is, the way back needs
    neither.

    Args:
        weight: (M, units, inputs); like all of these a view that follows the stack's parameters.
        bias: (M, units).
        norm: of batch norm, or None without it.
        dropout: share of units dropped.
        scratch: memory that other layers use as well.
    """

    def __init__(
        self, weight: Tensor, bias: Tensor, norm: BatchNorm | None, dropout: float, scratch: Memory
    ) -> None:
        self.weight, self.bias = weight, bias.unsqueeze(-1)
        self.norm = None if norm is None else BatchNorm(*(part.unsqueeze(-1) for part in norm))
        # Tensors, because an operation with a Python number takes twice as long.
        self._scaled = weight.new_tensor(1 / (1 - dropout)) if dropout else None
        self._eps = weight.new_tensor(EPS)
        self._memory, self._scratch = Memory(weight), scratch

    def evaluate(self, x: Tensor) -> Tensor:
        """Activations (M, units, B) of inputs (M, inputs, B), as in evaluation."""
        weight, bias = self.weight, self.bias
        if self.norm is not None:
            scale, shift, mean, variance = self.norm
            slope = scale * (variance + self._eps).rsqrt_()
            weight, bias = weight * slope, (bias - mean).mul_(slope).add_(shift)
        out = self._memory.take("evaluated", (*weight.shape[:2], x.shape[2]))
        return torch.bmm(weight, x, out=out).add_(bias).relu_()

    def forward(self, x: Tensor, valid: Tensor | None, masks: Tensor | None) -> Tensor:
        """Activations in training; the next call overwrites them.

        Args:
            x: (M, inputs, B).
            valid: (M, 1, B) 1 where an entry is a row, else 0; None if all are.
            masks: (S, units, B) 1 where a unit is kept, else 0; None without dropout.
        """
        shape = (*self.weight.shape[:2], x.shape[2])
        self._x, self._valid = x, valid
        self._h = h = self._memory.take("activations", shape)
        if self.norm is None:
            torch.bmm(self.weight, x, out=h).add_(self.bias)
            if self._scaled is not None:
                h.mul_(self._scaled)
        else:
            self._centred = torch.bmm(self.weight, x, out=self._memory.take("centred", shape))
            self._normalise(self.norm)
        h.relu_()
        if masks is not None:
            h.view(len(masks), -1, *shape[1:]).mul_(masks[:, None])
        return h

    def _normalise(self, norm: BatchNorm) -> None:
        """From ``W x``, which is centred in place, to v / kept; keeps the running statistics."""
        c, valid = self._centred, self._valid
        if valid is None:
            n, others = _row_counts(c.shape[2], c.dtype)
            mean = c.sum(-1, keepdim=True).div_(n)
            c.sub_(mean)
        else:
            n = valid.sum(-1, keepdim=True)
            n, others = n.clamp(min=1), (n - 1).clamp(min=1)
            mean = c.mul_(valid).sum(-1, keepdim=True).div_(n)
            c.sub_(mean).mul_(valid)
        squares = torch.linalg.vector_norm(c, dim=-1, keepdim=True).square_()
        norm.mean.lerp_(mean.add_(self.bias), MOMENTUM)
        norm.variance.lerp_(squares / others, MOMENTUM)
        self._n, self._inverse = n, torch.addcdiv(self._eps, squares, n).rsqrt_()
        self._slope, shift = self._inverse * norm.scale, norm.shift
        if self._scaled is not None:
            shift = shift * self._scaled
            self._slope.mul_(self._scaled)
        torch.mul(c, self._slope, out=self._h).add_(shift)

    def backward(self, weight: Tensor, gradient: Tensor) -> tuple[list[Tensor], Tensor]:
        """From the gradient by ``W x`` of the next layer to those of this layer.

        Uses the activations up.

        Args:
            weight: (M, units of the next layer, units), that layer's W.
            gradient: (M, units of the next layer, B).

        Returns:
            the gradients by weight, bias, scale and shift, each (M, ...), and that by ``W x``,
            which the next call for a layer of this width overwrites.
        """
        h = self._h
        g = self._scratch.take(f"gradient{h.shape[1]}", h.shape)
        torch.bmm(weight.transpose(1, 2), gradient, out=g)
        torch.ops.aten.threshold_backward.grad_input(g, h, 0, grad_input=g)
        if self.norm is None:
            if self._scaled is not None:
                g.mul_(self._scaled)
            return [torch.bmm(g, self._x.transpose(1, 2)), g.sum(-1)], g
        # slope * (g - mean(g) - u mean(g u)), where u = c / sqrt(variance + eps)
        c, inverse, n = self._centred, self._inverse, self._n
        by_shift = g.sum(-1, keepdim=True)
        by_scale = torch.mul(g, c, out=h).sum(-1, keepdim=True).mul_(inverse)
        g.sub_(torch.mul(c, (by_scale * inverse).div_(n), out=h))
        g.sub_(by_shift / n).mul_(self._slope)
        if self._valid is not None:
            g.mul_(self._valid)
        if self._scaled is not None:
            by_scale.mul_(self._scaled)
            by_shift.mul_(self._scaled)
        by_weight = torch.bmm(g, self._x.transpose(1, 2))
        return [by_weight, torch.zeros_like(self.bias), by_scale, by_shift], g


@lru_cache
def _row_counts(n: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """N and n - 1 (but at least 1) as tensors."""
    return torch.tensor(n, dtype=dtype), torch.tensor(max(n - 1, 1), dtype=dtype)


class Memory:
    """Tensors that are written anew in every step: room is made once, for the largest."""

    def __init__(self, like: Tensor) -> None:
        self._like = like
        self._rooms: dict[str, Tensor] = {}
        self._views: dict[str, Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor of this name, with whatever it holds."""
        view = self._views.get(name)
        if view is None or view.shape != shape:
            size = prod(shape)
            room = self._rooms.get(name)
            if room is None or len(room) < size:
                room = self._rooms[name] = self._like.new_empty(size)
            view = self._views[name] = room[:size].view(shape)
        return view


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
    has variance 0 (PyTorch refuses it). Activations are (M, units, B), scale and shift (M, units),
    as are the running statistics of each layer; valid, (M, B), says which entries are rows.
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


def drop(a: Tensor, share: float, sources: Sequence[torch.Generator]) -> Tensor:
    """Sets a share of the activations to 0 and scales the others, as `torch.nn.Dropout` does.

    Activations are (M, units, B); for the masks see `draw_masks`.
    """
    (masks,) = draw_masks(a.shape[1:2], a.shape[2], share, sources, a.dtype)
    masks = masks / (1 - share)
    return (a.view(len(sources), -1, *a.shape[1:]) * masks[:, None]).view(a.shape)


def draw_masks(
    units: Sequence[int],
    rows: int,
    share: float,
    sources: Sequence[torch.Generator],
    dtype: torch.dtype,
) -> list[Tensor]:
    """A mask (S, units, rows) for each layer: 0 for a share of the activations, else 1.

    A mask is drawn once per stream: members that see the same rows drop the same units. Sixteen
    random bits decide on an activation, so the share is met up to 2^-16, in less than half the
    time of `Tensor.bernoulli_`. There is a source of random bits per stream.
    """
    sizes = [-(-own * rows // 4) for own in units]
    bits = torch.empty(len(sources), sum(sizes), dtype=torch.int64)
    for own, source in zip(bits, sources, strict=True):
        own.random_(-(2**63), None, generator=source)
    numbers = bits.view(torch.int16)
    at_most = max(1, round((1 - share) * 2**16)) - 2**15 - 1  # in range also for shares 0 and 1
    masks = torch.le(numbers, at_most, out=torch.empty(numbers.shape, dtype=dtype))
    parts = torch.split(masks, [4 * size for size in sizes], dim=1)
    return [
        part[:, : own * rows].view(-1, own, rows) for part, own in zip(parts, units, strict=True)
    ]
