"""MLflow integration: ``from fairgrad.mlflow import log_audit, log_fairness``.

Both write to the active run, as MLflow's functions do. `mlflow-skinny` is enough.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlflow
import numpy as np
from sklearn.utils.validation import check_is_fitted

from fairgrad.audit import Audit
from fairgrad.groups import numbered
from fairgrad.report import Report
from fairgrad.torch import FairLoss
from fairgrad.torch.monitor import numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["log_audit", "log_fairness"]

PARAMETERS = ("fairness_measure", "epsilon", "fairness_rate")
CURVES = ("accuracy", "loss", "unfairness")


def log_fairness(
    model: Any, step: int | None = None, *, prefix: str = "fairness"
) -> dict[str, float]:
    """Logs the current state of a fair loss, or the training of a fair estimator.

    For a loss, it logs "fairness/level/...", "fairness/multiplier/..." and "fairness/weight/...",
    one for each constraint or cell, and "fairness/negative_share", as metrics of this step. For a
    fitted estimator, it logs the same at the end of training, the fairness arguments as parameters
    of the run and, if the estimator has a history, accuracy, loss, unfairness, levels and
    multipliers of every epoch. MLflow allows no "=" and no comma in names: "y=1, sex=F" becomes
    "y-1 sex-F".

    Args:
        model: a loss of `fairgrad.torch`, or a fitted estimator of this library.
        step: the number of the step, for losses.
        prefix: the start of the metrics' names.

    Returns:
        The metrics at the end of training.

    Raises:
        TypeError: if the model is neither a loss nor an estimator of this library.
        ValueError: if it is a plain model, which has no fairness levels.
        sklearn.exceptions.NotFittedError: if the estimator is not fitted.

    Example:
        >>> import mlflow, torch
        >>> from fairgrad.torch import CrossEntropyLoss
        >>> y, s = torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
        >>> criterion = CrossEntropyLoss(y, s, "accuracy_parity")
        >>> with mlflow.start_run():
        ...     loss = criterion(torch.zeros(4, 2), y, s)
        ...     log_fairness(criterion, step=0)["fairness/level/s-0"]
        0.0
    """
    if isinstance(model, FairLoss):
        metrics = _named(numbers_of(model), prefix)
        mlflow.log_metrics(metrics, step=step)
        return metrics
    if not hasattr(model, "fairness_measure"):
        raise TypeError(
            "model: expected a loss of fairgrad.torch or a fitted estimator of fairgrad, got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model)
    if not model.constraint_names_:
        raise ValueError("model: a plain model (fairness_measure=None) has no levels to log.")
    params = {name: getattr(model, name) for name in PARAMETERS if hasattr(model, name)}
    mlflow.log_params(
        {name: value if isinstance(value, str) else repr(value) for name, value in params.items()}
    )
    history = getattr(model, "history_", {})  # boosted trees have none
    for epoch in range(len(history.get("accuracy", ()))):
        numbers = {name: float(history[name][epoch]) for name in CURVES}
        for kind in ("level", "multiplier"):
            numbers |= _paired(kind, model.constraint_names_, history[f"{kind}s"][epoch])
        mlflow.log_metrics(_named(numbers, prefix), step=epoch)
    at_the_end = {
        **_paired("level", model.constraint_names_, model.levels_),
        **_paired("multiplier", model.constraint_names_, model.multipliers_),
        **_paired("weight", model.cell_names_, model.cell_weights_),
    }
    metrics = _named(at_the_end, prefix)
    mlflow.log_metrics(metrics, step=step)
    return metrics


def log_audit(audit: Audit, *, folder: str = "fairness", **report: Any) -> None:
    """Logs an audit: its verdict, how unfair the model is by each measure, and the report.

    The verdict is the tag "fairness.verdict". Metrics are the accuracy, if true labels are known,
    and the mean ``|F|`` of every finding, such as "unfairness/equalized_odds/sex". The artifacts
    are ``audit.json`` and ``report.html``, a page that needs no server.

    Args:
        audit: of any model's predictions.
        folder: of the artifacts.
        **report: further arguments of `fairgrad.report.Report`, such as title, frontier or history.

    Raises:
        TypeError: if it is not an audit.

    Example:
        >>> import mlflow
        >>> from fairgrad.audit import Audit
        >>> audit = Audit([0, 1] * 400, [0, 1] * 400, ["a", "a", "b", "b"] * 200)
        >>> with mlflow.start_run() as run:
        ...     log_audit(audit, title="Loans")
        >>> mlflow.get_run(run.info.run_id).data.metrics["accuracy"]
        1.0
    """
    if not isinstance(audit, Audit):
        raise TypeError(f"audit: expected a fairgrad.audit.Audit, got {type(audit).__name__}.")
    with tempfile.TemporaryDirectory() as place:
        audit.to_json(Path(place) / "audit.json")
        Report(audit, **report).save(Path(place) / "report.html")
        mlflow.log_artifacts(place, folder)
    levels = {
        f"unfairness/{finding.measure}/{finding.attribute}": finding.unfairness
        for finding in audit.findings
    }
    mlflow.log_metrics(_named({"accuracy": audit.accuracy, **levels}))
    mlflow.set_tag("fairness.verdict", audit.verdict)


def _paired(kind: str, names: Iterable[str], values: Iterable[Any]) -> dict[str, float]:
    """Numbers by name; repeated names are numbered."""
    pairs = zip(numbered(names), values, strict=True)
    return {f"{kind}/{name}": float(value) for name, value in pairs}


def _named(numbers: Mapping[str, float], prefix: str = "") -> dict[str, float]:
    """Finite numbers by unique names that MLflow accepts."""
    clean = [re.sub(r"[^\w.\- /]", "", name.replace("=", "-")) for name in numbers]
    names = [f"{prefix}/{name}" if prefix else name for name in clean]
    # `numbered` adds numbers in brackets to repeated names; MLflow accepts no brackets.
    names = [re.sub(r"[()]", "", name) for name in numbered(names)]
    pairs = zip(names, numbers.values(), strict=True)
    return {name: float(number) for name, number in pairs if np.isfinite(number)}
