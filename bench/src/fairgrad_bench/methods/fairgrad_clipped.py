"""FairGrad whose weights may not be negative, which Lemma 1 of the paper says they must be."""

from __future__ import annotations

from fairgrad_bench.methods.interface import Candidate, Method, MethodTask, batch_and_decay
from fairgrad_bench.methods.models import train_fair
from fairgrad_bench.methods.support import measure_of_predictions, no_network_or_unfit_measure


def _train(task: MethodTask) -> list[Candidate]:
    return train_fair(task, METHOD.combinations(task), negative_weights=False)


def _unsupported(task: MethodTask) -> str | None:
    return no_network_or_unfit_measure(task) or measure_of_predictions(task)


METHOD = Method(
    name="fairgrad_clipped",
    version=1,
    description="FairGrad with the cells' weights clipped at 0: what negative weights are worth.",
    unsupported=_unsupported,
    settings=batch_and_decay,
    train=_train,
)
