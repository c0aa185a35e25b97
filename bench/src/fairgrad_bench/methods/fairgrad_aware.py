"""FairGrad as the estimator trains it, the sensitive value being a feature as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad_bench.methods.fairgrad_stable import train_estimator
from fairgrad_bench.methods.interface import Method, nothing_to_set
from fairgrad_bench.methods.support import no_network_or_unfit_measure

if TYPE_CHECKING:
    from fairgrad_bench.methods.interface import Candidate, MethodTask


def _train(task: MethodTask) -> list[Candidate]:
    return train_estimator(task, use_sensitive=True)


METHOD = Method(
    name="fairgrad_aware",
    version=1,
    description="FairGrad's estimator with s as a feature: one model; needs s to predict.",
    unsupported=no_network_or_unfit_measure,
    settings=nothing_to_set,
    train=_train,
    needs_s_to_predict=True,
)
