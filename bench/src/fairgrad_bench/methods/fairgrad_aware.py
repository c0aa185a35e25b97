"""FairGrad as the estimators train it, the sensitive value being a feature as well."""

from __future__ import annotations

from functools import partial

from fairgrad_bench.methods.fairgrad_stable import train_estimators
from fairgrad_bench.methods.interface import Method, nothing_to_set
from fairgrad_bench.methods.support import unfit_measure

METHOD = Method(
    name="fairgrad_aware",
    version=2,
    description="FairGrad's estimator with s as a feature: one model; needs s to predict.",
    unsupported=unfit_measure,
    settings=nothing_to_set,
    train=partial(train_estimators, use_sensitive=True),
    needs_s_to_predict=True,
)
