"""One unit of work: what is trained in one go, and the name its record is kept under."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from fairgrad.datasets import PAPER_SEEDS

MEASURES = (
    "accuracy_parity",
    "equalized_odds",
    "equality_of_opportunity",
    "demographic_parity",
)


@dataclass(frozen=True)
class Unit:
    """A data set, a model and a method: all seeds and combinations are trained together.

    Attributes:
        dataset: the name of a data set, with options after a colon: "gaussian:rows=2000".
        model: "linear", "nonlinear" or "lightgbm".
        method: the name of a method, or "module:NAME" for one that lies elsewhere.
        measure: what the method is asked to be fair by; None if it does not use it.
        grid: "paper" or "quick", which of the method's combinations.
        seeds: of the splits.
        epochs: passes over the training rows.
        combinations: trains these instead of the grid's.
        varies: the setting whose values are compared with each other; models are then chosen
            for every value by itself.

    Example:
        >>> unit = Unit("german", "linear", "fairgrad", "equalized_odds")
        >>> unit.name("0123abcd")
        'german-linear-fairgrad-equalized_odds-...'
    """

    dataset: str
    model: str
    method: str
    measure: str | None = None
    grid: str = "paper"
    seeds: tuple[int, ...] = PAPER_SEEDS
    epochs: int = 50
    combinations: tuple[dict[str, Any], ...] | None = None
    varies: str | None = None

    def inputs(self) -> dict[str, Any]:
        """Everything that makes the unit, as plain values."""
        return asdict(self)

    @classmethod
    def from_inputs(cls, inputs: dict[str, Any]) -> Unit:
        """The unit again, from what `inputs` gave and JSON kept."""
        given = inputs["combinations"]
        combinations = None if given is None else tuple(dict(settings) for settings in given)
        return cls(**{**inputs, "seeds": tuple(inputs["seeds"]), "combinations": combinations})

    def name(self, code: str) -> str:
        """Readable, and different for other inputs or another version of the code."""
        text = json.dumps({"code": code, **self.inputs()}, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return "-".join([re.sub(r"[^\w-]+", "_", part) for part in self._parts()] + [digest])

    def __str__(self) -> str:
        """The parts that people tell units apart by."""
        return " ".join(self._parts())

    def _parts(self) -> list[str]:
        parts = (self.dataset, self.model, self.method, self.measure, self.varies)
        return [part for part in parts if part]
