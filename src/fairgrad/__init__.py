"""FairGrad: fairness-aware gradient descent."""

import importlib
from typing import Any

_NAMES = {
    "AtLeast": "fairgrad.measures",
    "AtMost": "fairgrad.measures",
    "Audit": "fairgrad.audit",
    "Constraints": "fairgrad.constraints",
    "FairGradClassifier": "fairgrad.sklearn",
    "FairnessWarning": "fairgrad.usefulness",
    "Frontier": "fairgrad.frontier",
    "Groups": "fairgrad.groups",
    "Levels": "fairgrad.evaluate",
    "On": "fairgrad.measures",
    "Report": "fairgrad.report",
    "fairness_levels": "fairgrad.evaluate",
}
__all__ = [
    "AtLeast",
    "AtMost",
    "Audit",
    "Constraints",
    "FairGradClassifier",
    "FairnessWarning",
    "Frontier",
    "Groups",
    "Levels",
    "On",
    "Report",
    "fairness_levels",
]


def __getattr__(name: str) -> Any:
    """Loads a public name on first use, so that importing a part does not load the whole."""
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("fairgrad")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'fairgrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
