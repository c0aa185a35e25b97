"""Tries an installed wheel: the step is compiled, a loss steps, a fit becomes fair.

Run it outside of the checkout, with the Python of an environment that has ``fairgrad[torch]``.
"""  # noqa: INP001 - a script, not a package

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch

import fairgrad
from fairgrad import FairGradClassifier, fairness_levels
from fairgrad.torch import CrossEntropyLoss, is_compiled


def main() -> str | None:
    """The first thing that is wrong, or None."""
    source = Path(__file__).parents[1] / "src"
    if Path(fairgrad.__file__).is_relative_to(source):
        return f"fairgrad was imported from {source}, not from the wheel"
    if not is_compiled:
        return "the C file was not compiled"
    rng = np.random.default_rng(0)
    s = rng.integers(2, size=2000)
    X = rng.normal(size=(2000, 3)) + s[:, None]
    y = (X[:, 0] + rng.normal(size=2000) > 0.5).astype(int)
    criterion = CrossEntropyLoss(y, s, "demographic_parity")
    network = torch.nn.Linear(3, 2)
    inputs, labels = torch.from_numpy(X).float(), torch.from_numpy(y)
    criterion(network(inputs), labels, torch.from_numpy(s)).backward()
    if network.weight.grad is None or not torch.isfinite(network.weight.grad).all():
        return "a loss has no finite gradients"
    model = FairGradClassifier("demographic_parity", epsilon=0.05, random_state=0)
    model.fit(X, y, sensitive_features=s)
    fair, labelled = (
        fairness_levels(y, h, s, "demographic_parity").unfairness for h in (model.predict(X), y)
    )
    if not fair < labelled / 2:
        return f"the fit is not fair: mean |F| {fair:.3f}, of the labels {labelled:.3f}"
    print(f"fairgrad {fairgrad.__version__}: compiled, fits (mean |F| {fair:.3f})")  # noqa: T201 - a script
    return None


if __name__ == "__main__":
    sys.exit(main())
