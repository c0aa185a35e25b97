"""Saved models: LightGBM's own text format, and the fairness state beside it as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lightgbm import Booster
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.validation import check_is_fitted

from fairgrad.boosting.fitted import beside, notes_of, read_notes, restore
from fairgrad.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.lightgbm.classifier import FairGradLGBMClassifier

FORMAT = "fairgrad.lightgbm"
"""What stands in the file beside."""


def save(model: FairGradLGBMClassifier, path: str | os.PathLike[str]) -> Path:
    """Writes a fitted model: the trees as LightGBM's text, classes and multipliers beside.

    Any program that reads LightGBM's files gets the probabilities from the first file alone.

    Args:
        model: a fitted `FairGradLGBMClassifier`.
        path: the file of the trees; the other one is called the same with
            ``.fairness.json`` after it.

    Raises:
        TypeError: if the classes are neither strings nor numbers.
        sklearn.exceptions.NotFittedError: if the model is not fitted.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> X, y, s = np.arange(200.0)[:, None] % 2, np.arange(200) % 2, np.arange(200) // 100
        >>> from fairgrad.lightgbm import FairGradLGBMClassifier
        >>> model = FairGradLGBMClassifier("accuracy_parity", n_estimators=2, n_jobs=1, verbose=-1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(model.fit(X, y, sensitive_features=s), f"{folder}/model").exists()
        True
    """
    check_is_fitted(model)
    text = model.booster_.model_to_string(num_iteration=-1)
    notes = json.dumps(_notes(model), indent=1)
    write_whole(beside(path), notes.encode())
    write_whole(Path(path), text.encode())
    return Path(path)


def load(path: str | os.PathLike[str]) -> FairGradLGBMClassifier:
    """A model that `save` wrote: it predicts, and training goes on from it (``init_model=``).

    Parameters of the training, such as the number of leaves, are not restored: give them to the
    estimator that goes on.

    Raises:
        FileNotFoundError: if one of the two files is missing.
        ValueError: if they are not what `save` wrote.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> X, y, s = np.arange(200.0)[:, None] % 2, np.arange(200) % 2, np.arange(200) // 100
        >>> from fairgrad.lightgbm import FairGradLGBMClassifier
        >>> model = FairGradLGBMClassifier("accuracy_parity", n_estimators=2, n_jobs=1, verbose=-1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = save(model.fit(X, y, sensitive_features=s), f"{folder}/model")
        ...     bool((load(path).predict(X) == model.predict(X)).all())
        True
    """
    from fairgrad.lightgbm.classifier import FairGradLGBMClassifier  # noqa: PLC0415 - it uses us

    notes = read_notes(beside(path), FORMAT)
    booster = Booster(model_file=os.fspath(path))
    classes = np.asarray(notes["classes"], dtype=notes["dtype"])
    n_outputs = booster.num_model_per_iteration()
    if n_outputs != (1 if len(classes) == 2 else len(classes)):
        raise ValueError(
            f"{path}: the trees have {n_outputs} outputs, which does not fit the classes "
            f"{classes.tolist()} in {beside(path).name}; the files are not of one model."
        )
    booster.best_iteration = notes["best_iteration"]
    measure = notes["fairness_measure"]
    model = FairGradLGBMClassifier(measure, epsilon=notes["epsilon"])
    _restore(model, booster, classes)
    restore(model, notes)
    return model


def _notes(model: FairGradLGBMClassifier) -> dict[str, Any]:
    classes = model.classes_
    if classes.dtype.kind not in "biufUO" or not all(
        isinstance(value, (str, int, float)) for value in classes.tolist()
    ):
        raise TypeError(f"classes: expected strings or numbers, got {classes.tolist()}.")
    own: Mapping[str, Any] = {
        "classes": classes.tolist(),
        "dtype": classes.dtype.str if classes.dtype.kind != "O" else "object",
        "best_iteration": model.booster_.best_iteration,
    }
    return {**notes_of(model, FORMAT), **own}


def _restore(model: FairGradLGBMClassifier, booster: Booster, classes: Any) -> None:
    """Sets what LightGBM's fit would have set."""
    model._Booster = booster  # noqa: SLF001 - LightGBM has no public way to give a model its trees
    model._classes, model._n_classes = classes, len(classes)  # noqa: SLF001 - as above
    model._le = LabelEncoder().fit(classes)  # noqa: SLF001 - as above
    model._class_map = {label: i for i, label in enumerate(classes.tolist())}  # noqa: SLF001 - as above
    model._objective = "binary" if len(classes) == 2 else "multiclass"  # noqa: SLF001 - as above
    model._n_features = model.n_features_in_ = booster.num_feature()  # noqa: SLF001 - as above
    model._best_iteration = booster.best_iteration  # noqa: SLF001 - as above
    model.fitted_ = True
