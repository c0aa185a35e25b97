"""The head of a network: its last linear layer, found, made anew, put in place."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

if TYPE_CHECKING:
    from fairgrad.sklearn import FairGradClassifier


class Head(NamedTuple):
    """The layer that turns features into logits.

    Attributes:
        name: its path in the network; "" if the network is this layer alone.
        layer: the layer itself.
    """

    name: str
    layer: nn.Linear


def find_head(module: nn.Module, head: str | None = None) -> Head:
    """The last linear layer of a network, or of the part of it with that name.

    Args:
        module: the network.
        head: name of the head, as in ``module.named_modules()``. If it names a larger part, such
            as a sequence of dropout and a linear layer, its last linear layer is the head.

    Raises:
        ValueError: if there is no such part, or no linear layer in it.

    Example:
        >>> find_head(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))).name
        '2'
    """
    parts = dict(module.named_modules(remove_duplicate=False))
    if head is not None and head not in parts:
        linear = [name for name, part in parts.items() if isinstance(part, nn.Linear)]
        raise ValueError(
            f"head: expected the name of a part of {type(module).__name__}, got {head!r}; "
            f"its linear layers are {linear[-10:]}."
        )
    start = head or ""
    inside = [
        (name, part)
        for name, part in parts.items()
        if isinstance(part, nn.Linear)
        and (not start or name == start or name.startswith(f"{start}."))
    ]
    if not inside:
        where = type(parts[start]).__name__
        raise ValueError(
            f"head: expected a linear layer (torch.nn.Linear) in {start or 'the module'}, a "
            f"{where}, which has none; name one with head=, or put one behind the network."
        )
    return Head(*inside[-1])


def with_head(module: nn.Module, name: str, layer: nn.Linear) -> nn.Module:
    """A deep copy of a network with another layer in the place of its head."""
    if not name:
        return layer
    changed = copy.deepcopy(module)
    parent, _, last = name.rpartition(".")
    setattr(changed.get_submodule(parent), last, layer)
    return changed


def new_head(head: Head, n_classes: int) -> nn.Linear:
    """A linear layer with fresh weights and one output per class, where the old one is."""
    weight = head.layer.weight
    return nn.Linear(head.layer.in_features, n_classes, device=weight.device, dtype=weight.dtype)


def n_outputs(head: Head, n_classes: int) -> int:
    """Outputs of the new head: one per class, or one for both of two if the old one had one."""
    return 1 if n_classes == 2 and head.layer.out_features == 1 else n_classes


def linear_layer(model: FairGradClassifier, head: Head) -> nn.Linear:
    """A fitted linear classifier as a layer, on the device and in the precision of the old head.

    Two classes share a margin z: as logits it is -z/2 and z/2, whose softmax is the same.
    """
    weight, bias = (torch.from_numpy(part) for part in (model.coef_, model.intercept_))
    n = n_outputs(head, len(model.classes_))
    if n == 2:
        weight, bias = (torch.cat([-part / 2, part / 2]) for part in (weight, bias))
    layer = new_head(head, n)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer
