"""FairGrad: fairness-aware gradient descent."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairgrad.audit import Audit as Audit
    from fairgrad.audit import certify as certify
    from fairgrad.constraints import Constraints as Constraints
    from fairgrad.evaluate import Levels as Levels
    from fairgrad.evaluate import fairness_levels as fairness_levels
    from fairgrad.frontier import Frontier as Frontier
    from fairgrad.groups import Groups as Groups
    from fairgrad.measures import AtLeast as AtLeast
    from fairgrad.measures import AtMost as AtMost
    from fairgrad.measures import On as On
    from fairgrad.report import Report as Report
    from fairgrad.sklearn import FairGradClassifier as FairGradClassifier
    from fairgrad.tables.encoder import TableEncoder as TableEncoder
    from fairgrad.usefulness import FairnessWarning as FairnessWarning

    __version__: str

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
    "TableEncoder": "fairgrad.tables.encoder",
    "certify": "fairgrad.audit",
    "fairness_levels": "fairgrad.evaluate",
}
__all__ = list(_NAMES)


NO_TORCH = (
    "needs PyTorch, which is not installed here. Audits work without it. To train, run "
    "`pip install 'fairgrad[torch]'`."
)


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Loads a public name on first use, so that importing a part does not load the whole."""
        if name == "__version__":
            return importlib.import_module("importlib.metadata").version("fairgrad")
        if name in _NAMES:
            return getattr(importlib.import_module(_NAMES[name]), name)
        raise AttributeError(f"module 'fairgrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
