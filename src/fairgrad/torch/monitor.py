"""Where training stands: named numbers for loggers, and warnings of training that goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from fairgrad.checks import warn
from fairgrad.groups import count_rows, numbered
from fairgrad.torch.cells import CellLookup
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from fairgrad.groups import Floats, Groups, Ints
    from fairgrad.torch.fairness_loss import FairLoss
    from fairgrad.torch.multipliers import Multipliers

EVERY, SETTLED = 64, 32
"""Steps between two looks at a batch. After so many looks there are four times as many, so that a
look costs a long training next to nothing."""

CALMER = "Try a smaller learning rate, or gradient clipping."

LOOKS, WINDOW = 8, 1_024
"""Least number of batches, and of rows in them, before there is a verdict."""

LEAST_WEIGHT = -10.0
"""Weights below it are too far from 1 for any model to follow."""


def numbers_of(criterion: FairLoss, levels: Tensor | None = None) -> dict[str, float]:
    """Levels, multipliers, weights of the cells and the share of negative weights.

    The share is that of the training rows in cells whose weight is below 0. Everything is read at
    once: on an accelerator the host waits for the device one time. A logger may pass levels of its
    own, such as their mean over an epoch.
    """
    weights = criterion.cell_weights
    tensors = (criterion.levels if levels is None else levels, criterion.multipliers, weights)
    numbers = torch.cat([tensor.detach().float() for tensor in tensors]).tolist()
    share = criterion.cell_shares
    constraints = numbered(criterion.constraint_names)
    names = [f"{kind}/{name}" for kind in ("level", "multiplier") for name in constraints]
    names += [f"weight/{name}" for name in criterion.cell_names]
    is_negative: Any = np.array(numbers[len(numbers) - len(weights) :]) < 0
    is_negative = is_negative.reshape(-1, len(share)).any(0) if len(share) else is_negative
    negative = float(share[is_negative].sum() / max(share.sum(), 1e-30))
    return {**dict(zip(names, numbers, strict=True)), "negative_share": negative}


ADVICE = "Try a smaller learning rate, a smaller fairness_rate, or gradient clipping."


def divergence(loss: Any, criterion: FairLoss) -> str | None:
    """What is infinite or not a number, in a sentence; None if nothing is."""
    value = float(loss)
    if not np.isfinite(value):
        return f"the loss is {value}."
    multipliers = criterion.multipliers
    if not bool(torch.isfinite(multipliers).all()):
        return f"the multipliers are {multipliers.tolist()}."
    return None


class Watch:
    """Looks at some batches, and warns, of each problem once, of training that goes wrong.

    On an accelerator such a look waits for the device. Compiled calls are not watched.
    """

    def __init__(
        self, groups: Sequence[Groups], *, is_auto: bool, ignore_index: int | None
    ) -> None:
        self._is_auto = is_auto
        self._lookup = CellLookup(
            groups[0], by_label=True, ignore_index=ignore_index, n_outputs=len(groups)
        )
        mass = np.concatenate([group.mass.ravel() for group in groups])
        self._share = mass / mass.sum()
        self._names = groups[0].cell_names(by_label=True) * len(groups)
        self._n_steps = self._since = 0  # steps so far, and at the last verdict
        self._first_level: float | None = None
        self._warned: set[str] = set()
        self._looks: list[tuple[Any, ...]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_looks": []}  # training data is not pickled

    def take_over(self, other: Watch) -> None:
        """Continues where the watch of fewer groups stands."""
        self._n_steps, self._since = other._n_steps, other._n_steps
        self._warned = other._warned
        self._first_level = other._first_level

    def is_due(self) -> bool:
        """Counts a step; whether its batch is to be looked at."""
        self._n_steps += 1
        every = EVERY if self._n_steps <= SETTLED * EVERY else 4 * EVERY
        return self._n_steps % every == 0

    def look(
        self,
        state: Multipliers,
        label: Tensor,
        s: Tensor,
        sample_weight: Tensor | None,
        scores: Tensor,
    ) -> None:
        """Takes a batch into account, and warns if enough of them show a problem."""
        weight = torch.ones_like(label) if sample_weight is None else sample_weight
        if bool(scores.isnan().any()):
            self._warn(
                "numbers", f"The input of the loss is NaN in step {self._n_steps:,}.", CALMER
            )
        predicted = state.reading.predict(scores.detach()).reshape(-1)
        rows = (tensor[:WINDOW] for tensor in (label, s, weight, predicted))
        self._looks.append(tuple(tensor.cpu().numpy().copy() for tensor in (*rows, state.errors)))
        n_rows = sum(len(look[0]) for look in self._looks)
        if n_rows >= WINDOW and len(self._looks) >= LOOKS:
            looks, self._looks = self._looks, []
            self._judge(state, *zip(*looks, strict=True))

    def _judge(self, state: Multipliers, *looks: Any) -> None:
        label, s, weight, predicted = (np.concatenate(arrays) for arrays in looks[:-1])
        first = self._since
        self._since = self._n_steps
        least = float(state.cell_weights.min())
        if least < LEAST_WEIGHT:
            self._warn(
                "weights",
                f"The smallest weight of a cell is {least:.1f} after {self._n_steps:,} steps: the "
                "multipliers have grown too far for the model.",
            )
        if (predicted == predicted[0]).all() and first > 0 and self._lookup.n_outputs == 1:
            self._warn(
                "label",
                f"All {len(predicted):,} predictions checked since step {first:,} were the label "
                f"{int(predicted[0])}: the model has become a constant.",
                "Train with the plain loss to compare: if it does the same, try class weights. If "
                "not, try a smaller learning rate, or a larger epsilon.",
            )
        levels = state.levels_of(torch.from_numpy(np.mean(looks[-1], axis=0)))
        level = float(levels.abs().max()) if len(levels) else 0.0
        if self._first_level is None:
            self._first_level = level
        elif level > 0.1 + 1.5 * self._first_level:
            self._warn(
                "levels",
                f"The largest level of fairness has grown from {self._first_level:.2f} to "
                f"{level:.2f} by step {self._n_steps:,}: training becomes less fair.",
            )
        if not self._is_auto:
            self._compare_shares(label, s, weight)

    def _compare_shares(self, label: Ints, s: Ints, weight: Floats) -> None:
        cell = self._lookup(torch.from_numpy(label), torch.from_numpy(s)).numpy()
        keep = cell < len(self._share)
        counts = count_rows(cell[keep], len(self._share), weight[keep])
        share = counts / max(counts.sum(), 1e-30)
        noise = 4 * np.sqrt(self._share * (1 - self._share) / len(cell))
        beyond = np.abs(share - self._share) - noise
        worst = int(beyond.argmax())
        if beyond[worst] > 0.05:
            self._warn(
                "shares",
                f"{self._names[worst]} has {share[worst]:.0%} of the rows in the batches, and "
                f"{self._share[worst]:.0%} in the training set, so that the levels are wrong.",
                "Use fairness_rate='auto', which corrects for samplers, or shuffle without one.",
            )

    def _warn(self, kind: str, problem: str, remedy: str | None = None) -> None:
        if kind in self._warned:
            return
        self._warned.add(kind)
        if remedy is None:
            rate = "" if self._is_auto else "fairness_rate='auto', "
            remedy = f"Try {rate}a smaller learning rate, or a larger epsilon."
        warn(f"{problem} {remedy}", FairnessWarning)
