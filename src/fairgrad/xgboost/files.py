"""Saved models: XGBoost's own format, and the fairness state beside it as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.utils.validation import check_is_fitted

from fairgrad.boosting.fitted import beside, notes_of, read_notes, restore
from fairgrad.files import write_whole

if TYPE_CHECKING:
    import os

    from fairgrad.xgboost.classifier import FairGradXGBClassifier

FORMAT = "fairgrad.xgboost"
"""What stands in the file beside."""


def save(model: FairGradXGBClassifier, path: str | os.PathLike[str]) -> Path:
    """Writes a fitted model: the trees in XGBoost's format, the multipliers beside.

    Any program that reads XGBoost's files gets the probabilities from the first file alone.

    Args:
        model: a fitted `FairGradXGBClassifier`.
        path: the file of the trees, as text if it ends in ``.json``, else in XGBoost's binary
            format (by convention ``.ubj``); the other one is called the same with
            ``.fairness.json`` after it.

    Raises:
        sklearn.exceptions.NotFittedError: if the model is not fitted.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> X, y, s = np.arange(200.0)[:, None] % 2, np.arange(200) % 2, np.arange(200) // 100
        >>> from fairgrad.xgboost import FairGradXGBClassifier
        >>> model = FairGradXGBClassifier("accuracy_parity", n_estimators=2, n_jobs=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(model.fit(X, y, sensitive_features=s), f"{folder}/model.ubj").exists()
        True
    """
    check_is_fitted(model)
    raw = model.get_booster().save_raw("json" if Path(path).suffix == ".json" else "ubj")
    notes = {**notes_of(model, FORMAT), "n_classes": int(model.n_classes_)}
    write_whole(beside(path), json.dumps(notes, indent=1).encode())
    write_whole(Path(path), bytes(raw))
    return Path(path)


def load(path: str | os.PathLike[str]) -> FairGradXGBClassifier:
    """A model that `save` wrote: it predicts, and training goes on from it (``xgb_model=``).

    Parameters of the training, such as the depth of trees, are not restored: give them to the
    estimator that goes on.

    Raises:
        FileNotFoundError: if one of the two files is missing.
        ValueError: if they are not what `save` wrote.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> X, y, s = np.arange(200.0)[:, None] % 2, np.arange(200) % 2, np.arange(200) // 100
        >>> from fairgrad.xgboost import FairGradXGBClassifier
        >>> model = FairGradXGBClassifier("accuracy_parity", n_estimators=2, n_jobs=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save(model.fit(X, y, sensitive_features=s), f"{folder}/model.ubj")
        ...     bool((load(path).predict(X) == model.predict(X)).all())
        True
    """
    from fairgrad.xgboost.classifier import FairGradXGBClassifier  # noqa: PLC0415 - it uses us

    notes = read_notes(beside(path), FORMAT)
    model = FairGradXGBClassifier(notes["fairness_measure"], epsilon=notes["epsilon"])
    model.load_model(bytearray(Path(path).read_bytes()))
    if model.n_classes_ != notes["n_classes"]:
        raise ValueError(
            f"{path}: the trees know {model.n_classes_} classes, {beside(path).name} "
            f"{notes['n_classes']}; the files are not of one model."
        )
    restore(model, notes)
    return model
