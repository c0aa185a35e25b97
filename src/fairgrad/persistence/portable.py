"""A fitted estimator as plain values, and back.

Two things in an estimator are no plain values: requests for metadata, which point back to the
estimator that makes them, and modules of PyTorch, which are code.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sklearn import config_context
from sklearn.base import BaseEstimator

from fairgrad.sklearn import FairGradClassifier

if TYPE_CHECKING:
    from torch import nn

METHODS = (
    "fit",
    "partial_fit",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score",
    "split",
    "transform",
    "inverse_transform",
)
"""Those for which scikit-learn's estimators ask for metadata."""

REQUESTS, HAS_MODULE = "fairgrad_saved_requests", "fairgrad_saved_module"
"""Attributes that stand for what is no plain value, in files only."""


@dataclass
class Packing:
    """Copies an estimator without its requests and modules.

    Attributes:
        modules: the trained modules that were taken out.
        copies: what was copied already, so that what is shared stays shared.
    """

    modules: list[nn.Module] = field(default_factory=list)
    copies: dict[int, Any] = field(default_factory=dict)

    def pack(self, value: Any) -> Any:
        """The copy of an estimator, or of a container that may hold some; others as they are."""
        if id(value) not in self.copies:
            self.copies[id(value)] = self._packed(value)
        return self.copies[id(value)]

    def _packed(self, value: Any) -> Any:
        if isinstance(value, BaseEstimator):
            return self._estimator(value)
        if type(value) is dict:
            return {key: self.pack(part) for key, part in value.items()}
        if type(value) in {list, tuple}:
            return type(value)(self.pack(part) for part in value)
        return value

    def _estimator(self, estimator: BaseEstimator) -> BaseEstimator:
        state = dict(vars(estimator))
        requests = _requests_of(state.pop("_metadata_request", None))
        if isinstance(estimator, FairGradClassifier) and estimator.module is not None:
            self.modules.append(state.pop("module_"))
            state |= {"module": None, HAS_MODULE: True}
        packed = object.__new__(type(estimator))
        vars(packed).update({name: self.pack(part) for name, part in state.items()})
        if requests:
            setattr(packed, REQUESTS, requests)
        return packed


def unpack(value: Any, module: nn.Module | None, trained: nn.Module | None) -> None:
    """Puts requests and the module back, in place.

    Args:
        value: what was loaded.
        module: the user's module.
        trained: a copy of it with the saved weights.
    """
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, BaseEstimator):
            _restore(part, module, trained)
            waiting += vars(part).values()
        elif isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, (list, tuple)):
            waiting += part


def _restore(estimator: BaseEstimator, module: nn.Module | None, trained: nn.Module | None) -> None:
    state = vars(estimator)
    if state.pop(HAS_MODULE, False):
        estimator.module, estimator.module_ = module, trained
    requests = state.pop(REQUESTS, {})
    with config_context(enable_metadata_routing=True):
        for method in METHODS:
            if requests.get(method):
                getattr(estimator, f"set_{method}_request")(**requests[method])


def _requests_of(request: Any) -> dict[str, dict[str, Any]]:
    """Requests by method as plain values."""
    if request is None:
        return {}
    found = {method: getattr(request, method, None) for method in METHODS}
    return {
        method: copy.deepcopy(own.requests)
        for method, own in found.items()
        if own is not None and own.requests
    }
