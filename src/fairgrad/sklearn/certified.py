"""A fit that ends with a classifier that is certified to be fair, or with none."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

from sklearn.utils import check_random_state

from fairgrad.audit import Audit, Certificate, likeliest
from fairgrad.aware import to_predict
from fairgrad.checks import check_number, is_number
from fairgrad.columns import as_column, as_pandas, sensitive_columns
from fairgrad.measures import on_groups
from fairgrad.sklearn.rows import read_rows, split_columns, take_rows
from fairgrad.splitting import three_parts
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from fairgrad.sklearn.classifier import FairGradClassifier

PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Parts of the tolerance that candidates are trained for: new people are less alike than rows."""

EPSILONS = (0.0, 0.01, 0.02, 0.05, 0.1)
"""What they are trained for where the tolerance is not one number."""


def fit_certified(
    model: FairGradClassifier, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> tuple[FairGradClassifier, Certificate]:
    """Trains candidates, takes the one that is likely to pass, and judges it on fresh rows, once.

    Of every label of every group, 60 % of the rows are for training, 20 % to compare candidates,
    and 20 % are the fresh ones.

    Args:
        model: not changed; its `certify` is the confidence.
        X: this and what follows as in `FairGradClassifier.fit`.
        y: labels.
        sensitive_features: sensitive values.
        sample_weight: weights.

    Returns:
        The model that is certified, fitted, and its certificate.

    Raises:
        ValueError: if no model is certified; it says what that would take. Or if a setting, or what
            is given, is not allowed.
    """
    confidence = check_number("certify", model.certify, above=0, below=1)
    if model.fairness_measure is None or model.warm_start:
        setting = "fairness_measure=None" if model.fairness_measure is None else "warm_start=True"
        raise ValueError(f"certify: expected a fair model that is fitted anew, got {setting}.")
    trial = copy.copy(model).set_params(certify=None)
    X, y = as_pandas(X), as_column(y)
    rows = read_rows(trial, X, y, sensitive_features, sample_weight)  # refused before any training
    values = sensitive_features
    if values is None:
        values = split_columns(X, model.sensitive_columns)[1]
    columns = sensitive_columns(values, len(rows))
    seed = int(check_random_state(model.random_state).randint(2**31 - 1))

    training, compared, fresh = (
        take_rows(X, y, columns, sample_weight, index)
        for index in three_parts(rows.everyone.cell(), seed)
    )
    own_columns = sensitive_features is None

    def audit(own: FairGradClassifier, judged: tuple[Any, Any, dict[str, Any], Any]) -> Audit:
        X, y, s, weight = judged
        known = {} if own_columns else to_predict(own, s)
        return Audit(
            y,
            own.predict(X, **known),
            s,
            on_groups(own.fairness_measure, tuple(s)),
            model.tolerance,
            confidence,
            sample_weight=weight,
            y_desirable=own.desirable_ or None,
            labels=own.classes_,
            min_group=model.min_group,
        )

    is_one = is_number(model.tolerance)
    asked = [share * model.tolerance for share in PARTS] if is_one else EPSILONS
    X_train, y_train, s_train, weights = training
    given: dict[str, Any] = {"sample_weight": weights}
    if not own_columns:
        given["sensitive_features"] = s_train
    models, faults = [], []  # what is wrong with a model is said only if it is chosen
    for epsilon in asked:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FairnessWarning)
            own = copy.copy(trial).set_params(epsilon=epsilon).fit(X_train, y_train, **given)
        models.append(own)
        faults.append([one for one in caught if issubclass(one.category, FairnessWarning)])
        for other in caught:
            if not issubclass(other.category, FairnessWarning):
                warnings.warn(other.message, other.category, stacklevel=3)
    audits = [audit(one, compared) for one in models]
    candidacy = likeliest(audits, len(fresh[1]), model.cost_matrix)
    chosen = models[candidacy.position]
    found = Certificate(audit(chosen, fresh), candidacy, chosen)
    if not found.is_certified:
        raise ValueError(found.sentence)
    for fault in faults[candidacy.position]:
        warnings.warn(fault.message, fault.category, stacklevel=3)
    return chosen, found
