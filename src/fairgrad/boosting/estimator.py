"""What fair boosted classifiers share: their arguments, fitted attributes and files."""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from fairgrad.aware import AwareRouting, SensitiveEncoder, hide_some, with_values
from fairgrad.boosting.docstrings import with_shared_parts
from fairgrad.boosting.evaluation import as_table, column_names, fitted_features
from fairgrad.boosting.objective import FAIRNESS_RATE, PROPORTIONAL_RATE, BoostingObjective
from fairgrad.checks import naming_rows
from fairgrad.columns import as_column, as_pandas, encode, sensitive_columns
from fairgrad.evaluate import cell_rates, levels_of, predicted_index
from fairgrad.files import read_sealed, sealed_json, write_whole
from fairgrad.groups import MIN_GROUP, group_rows
from fairgrad.measures import LargeGroups, desirable_labels
from fairgrad.usefulness import (
    FEWER,
    REACHED,
    FairnessWarning,
    ShownInNotebooks,
    Suggestions,
    constant_figures,
    find_fault,
    model_figures,
    warn_of_small,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fairgrad.groups import Groups

BLIND_VERSION, FORMAT_VERSION = 1, 2
"""Versions of the fairness file, of blind and of aware models. The second grows when older programs
cannot read it."""

FITTED_NOTES = (
    "state",
    "levels",
    "net_multipliers",
    "cells",
    "levels_unknown",
    "set_aside",
)
"""What the fairness file says of the fitted attributes."""

MAX_SEED = 2**31 - 1

MEMORIZED = 0.98
"""Accuracy on the training rows from which trees are said to have memorized them."""


class FairBoostingMixin(ShownInNotebooks, AwareRouting):
    """The fair part of a boosted classifier; the first base, before the library's classifier.

    A subclass writes ``{fairness arguments}`` and ``{fairness attributes}`` in its docstring where
    those of all fair boosted classifiers belong. There is no `get_params` here: the libraries' own
    skip a first base without one and collect the parameters of both bases.
    """

    objective_class: ClassVar[type[BoostingObjective]]
    log_losses: ClassVar[tuple[str | None, ...]]  # the library's names of the log loss
    refused_parameters: ClassVar[Mapping[str, str]]  # without effect here -> what to use instead
    file_format: ClassVar[str]  # named in the fairness file

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__doc__:  # None without docstrings (python -OO), or if it is inherited
            cls.__doc__ = with_shared_parts(cls.__doc__)

    def __init__(
        self,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.05,
        fairness_rate: float = FAIRNESS_RATE,
        proportional_rate: float = PROPORTIONAL_RATE,
        error_memory: float = 0.0,
        use_sensitive: bool = False,
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
        negative_weights: bool = True,
        cost_matrix: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.fairness_rate = fairness_rate
        self.proportional_rate = proportional_rate
        self.error_memory = error_memory
        self.use_sensitive = use_sensitive
        self.y_desirable = y_desirable
        self.min_group = min_group
        self.negative_weights = negative_weights
        self.cost_matrix = cost_matrix

    def _make_objective(
        self,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        start: Any,
    ) -> Any:
        """The objective of a fair fit on these rows.

        Args:
            y: (n,) labels.
            sensitive_features: as given to fit.
            sample_weight: (n,) non-negative weights, or None.
            start: the model or file that training continues from, or None; its multipliers
                continue as well, if there are any.

        Raises:
            ValueError: if sensitive values or classes are missing, a parameter would have no
                effect in a fair fit, or the multipliers are those of another problem.
        """
        params: dict[str, Any] = self.get_params()  # type: ignore[attr-defined]  # of the other base
        if sensitive_features is None:
            self._lack_values(f"fairness_measure is {self.fairness_measure!r}")
        if params.get("objective") not in self.log_losses:
            raise ValueError(
                f"objective: expected one of {self.log_losses} (the log loss), got "
                f"{params['objective']!r}."
            )
        for name, instead in self.refused_parameters.items():
            if params.get(name) not in {None, False, 1.0}:
                raise ValueError(f"{name}: not together with fairness_measure; use {instead}.")
        label = _labels(as_column(y))
        if label.dtype == object:
            encode(label, "y")  # refuses labels of several kinds, which have no order
        check_classification_targets(label)
        classes = np.unique(label)
        if len(classes) < 2:
            raise ValueError(f"y: expected at least two classes, got {classes.tolist()}.")
        objective = self.objective_class(
            label,
            sensitive_columns(sensitive_features, len(label)),
            **{name: getattr(self, name) for name in FAIRNESS_PARAMETERS if name not in OF_FIT},
            sample_weight=sample_weight,
        )
        state = getattr(start, "fairness_state_", None)
        if isinstance(start, (str, os.PathLike)) and fairness_file(start).exists():
            state = _read_fairness_file(start, self.file_format)["state"]
        if state is not None:
            objective.rounds.load_state(state)
        return objective

    def _check_rows(self, X: Any, y: Any) -> None:
        """Refuses features that are no table, have other rows than y, or names that repeat."""
        label, X = _labels(y), as_table(X)
        if X.shape[0] != len(label):
            raise ValueError(
                f"X: expected one row per label of y ({len(label)}), got {X.shape[0]} rows."
            )
        names = [str(name) for name in getattr(X, "columns", ())]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"X: expected columns of different names, got {twice!r} twice.")

    def _refuse_costs(self) -> None:
        """A plain model is trained by the library itself, which knows no costs."""
        if self.cost_matrix is not None:
            raise ValueError(
                "cost_matrix: a model with fairness_measure=None is trained without it; name a "
                "measure with epsilon=float('inf') to train for the costs alone."
            )

    def _lack_values(self, why: str) -> None:
        instead = "fairness_measure=None for a plain model"
        if self.fairness_measure is None:
            instead = "use_sensitive=False"
        raise ValueError(
            f"sensitive_features: required, one value per row, as {why}; pass fit(X, y, "
            f"sensitive_features=...), or {instead}."
        )

    def _encoder(
        self, y: Any, sensitive_features: Any, start: Any
    ) -> tuple[SensitiveEncoder | None, Any]:
        """How an aware model reads sensitive values, and the values as its trees may see them."""
        if not self.use_sensitive:
            return None, None
        if sensitive_features is None:
            self._lack_values("use_sensitive is set")
        label = _labels(y)
        rows = group_rows(label, sensitive_columns(sensitive_features, len(label)))
        shown = hide_some(rows, _seed(self.random_state))  # type: ignore[attr-defined]  # as above
        encoder = getattr(start, "sensitive_encoder_", None)
        if isinstance(start, (str, os.PathLike)) and fairness_file(start).exists():
            known = _read_fairness_file(start, self.file_format).get("sensitive")
            encoder = None if known is None else SensitiveEncoder.from_dict(known)
        if encoder is None:
            encoder = SensitiveEncoder.of(group_rows(label, shown).groups, crossed=False)
        return encoder, shown

    def _features(self, X: Any, sensitive_features: Any) -> Any:
        """Features of rows to predict as the trees know them."""
        X = as_pandas(X)  # LightGBM 4.7 aborts on categories of Arrow
        if not hasattr(self, "sensitive_encoder_"):
            return X  # not fitted, which the library will say
        encoder: SensitiveEncoder | None = self.sensitive_encoder_
        if encoder is None:
            return with_values(None, X, sensitive_features)
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.shape[1] == self.n_features_in_:  # type: ignore[attr-defined]  # they are there
            return X
        return with_values(encoder, X, sensitive_features, column_names(encoder))

    def predict(
        self, X: Any, *arguments: Any, sensitive_features: Any = None, **options: Any
    ) -> Any:
        """(n,) predicted labels.

        Args:
            X: (n, features), as in fit.
            *arguments: of the library's own `predict`.
            sensitive_features: of an aware model (`use_sensitive`), as in fit. Missing values,
                those that fit never saw (with a warning) and -1 are unknown.
            **options: of the library's own `predict`.

        Raises:
            ValueError: if the model is not aware, or the columns do not fit.
        """
        X = self._features(X, sensitive_features)
        return super().predict(X, *arguments, **options)  # type: ignore[misc]  # of the other base

    def predict_proba(
        self, X: Any, *arguments: Any, sensitive_features: Any = None, **options: Any
    ) -> Any:
        """(n, classes) probabilities; arguments as in `predict`."""
        X = self._features(X, sensitive_features)
        return super().predict_proba(X, *arguments, **options)  # type: ignore[misc]  # as above

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """The accuracy; sensitive values as in `predict`."""
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    @property
    def desirable_(self) -> tuple[Any, ...]:
        """The labels taken as desirable, for measures that look at them."""
        labels = self.classes_.tolist()  # type: ignore[attr-defined]  # of the library's class
        return tuple(labels[i] for i in desirable_labels(labels, self.y_desirable))

    def _set_fitted(
        self, objective: BoostingObjective | None, encoder: SensitiveEncoder | None, X: Any
    ) -> None:
        """Sets the fitted attributes about fairness; None for all of them if nothing was fair.

        Args:
            objective: of the fit that has ended.
            encoder: of an aware model.
            X: features of the training rows, without sensitive values.
        """
        self.sensitive_encoder_ = encoder
        notes: dict[str, Any] = dict.fromkeys(FITTED_NOTES)
        if objective is not None:
            rounds = objective.rounds
            cells = rounds.constraints.weight_names(objective.groups)
            unknown = None if encoder is None else self._unknown_levels(objective, encoder, X)
            of_rounds = (rounds.state(), rounds.levels, rounds.net_multipliers)
            measure = objective.measure
            small = measure.set_aside() if isinstance(measure, LargeGroups) else {}
            found = (*of_rounds, cells, unknown, small)
            notes = dict(zip(FITTED_NOTES, found, strict=True))
        self._restore_fitted(notes, None if objective is None else objective.groups)

    def _warn_of_fault(self, objective: BoostingObjective, features: Any) -> None:
        """Warns if the model is of no use, does not keep epsilon, or has memorized its rows.

        Args:
            objective: of the fit that has ended.
            features: of the training rows, as the trees know them; None if the trees alone do not
                make up the scores.
        """
        warn_of_small(self.set_aside_)
        if features is None:
            return
        rows, constraints = objective.rows, objective.rounds.constraints
        predicted = predicted_index(rows, super().predict(features))  # type: ignore[misc]  # of the other base
        own = model_figures(constraints, rows, predicted, self.cost_matrix)
        accuracy = float(np.average(predicted == rows.label, weights=rows.weight))
        if accuracy >= MEMORIZED and np.isfinite([constraints.lower, constraints.upper]).any():
            warnings.warn(
                f"The trees have memorized the training rows (accuracy {accuracy:.4f}). Levels of "
                "fairness there say little about new rows. Use "
                "fairgrad.sklearn.FairDecisionClassifier around a plain model, or smaller trees.",
                FairnessWarning,
                stacklevel=3,
            )
        suggestions = Suggestions(
            asked=None if np.ndim(self.epsilon) else float(self.epsilon),
            aware="" if self.use_sensitive else "use_sensitive=True",
            fewer=FEWER if len(constraints.names) > 4 else "",
            enough=own.worst if own.beyond > REACHED else None,
        )
        labels = objective.groups.labels.tolist()
        constants = constant_figures(constraints, rows, self.cost_matrix)
        fault = find_fault(own, constants, None, labels, suggestions)
        if fault:
            warnings.warn(fault, FairnessWarning, stacklevel=3)

    def _unknown_levels(
        self, objective: BoostingObjective, encoder: SensitiveEncoder, X: Any
    ) -> Any:
        """(J,) the levels on the training rows if no sensitive value were known."""
        constraints, rows = objective.rounds.constraints, objective.rows
        predicted = self.predict(fitted_features(encoder, X, None))
        rates = cell_rates(constraints, rows, predicted_index(rows, predicted))
        return levels_of(constraints, rates).values

    def _restore_fitted(self, notes: Mapping[str, Any], groups: Groups | None = None) -> None:
        """Sets these attributes from what a fairness file holds; it does not hold the groups."""
        found = (notes.get(name) for name in FITTED_NOTES)
        state, levels, multipliers, cells, unknown, small = found
        if "sensitive" in notes:
            self.sensitive_encoder_ = SensitiveEncoder.from_dict(notes["sensitive"])
        self.groups_ = groups
        self.set_aside_ = dict(small or {})
        self.fairness_state_ = state
        self.levels_unknown_ = None if unknown is None else np.asarray(unknown)
        self.levels_ = None if levels is None else np.asarray(levels)
        self.multipliers_ = None if multipliers is None else np.asarray(multipliers)
        self.cell_weights_ = None if state is None else np.asarray(state["weights"])
        self.constraint_names_ = None if state is None else tuple(state["constraints"])
        self.cell_names_ = None if cells is None else tuple(cells)


FAIRNESS_PARAMETERS = tuple(inspect.signature(FairBoostingMixin).parameters)[:-1]
"""Parameters of the estimators that the boosting libraries do not know."""

OF_FIT = ("use_sensitive",)
"""Those that the objective does not take as they are."""


def _labels(y: Any) -> NDArray[Any]:
    """(n,) labels as an array."""
    with naming_rows("y"):
        found: NDArray[Any] = column_or_1d(y)
    return found


def _seed(random_state: Any) -> int:
    """A seed, without using up a generator from which the library draws its own."""
    if isinstance(random_state, np.random.Generator):
        return int(copy.deepcopy(random_state).integers(MAX_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(copy.deepcopy(random_state).randint(MAX_SEED))
    return 0 if random_state is None else int(random_state)


NO_STATE = "expected the fairness state of a saved model, in JSON, as it was written"


def fairness_file(path: str | os.PathLike[str]) -> Path:
    """The file with the fairness state of a saved model: ``model.txt.fairness.json``."""
    return Path(f"{os.fspath(path)}.fairness.json")


def write_model(
    model: Any, path: str | os.PathLike[str], trees: bytes, notes: Mapping[str, Any]
) -> Path:
    """Writes a fitted model: its trees, and beside them all else, in JSON.

    Args:
        model: fitted.
        path: the file of the trees.
        trees: in the format of the library.
        notes: what the library's file does not hold.
    """
    measure = model.fairness_measure
    shared = {
        "format": model.file_format,
        "version": BLIND_VERSION if model.sensitive_encoder_ is None else FORMAT_VERSION,
        "fairness_measure": measure if isinstance(measure, str) else None,
        "epsilon": np.asarray(model.epsilon, dtype=np.float64).tolist(),
        "levels": None if model.levels_ is None else model.levels_.tolist(),
        "net_multipliers": None if model.multipliers_ is None else model.multipliers_.tolist(),
        "cells": None if model.cell_names_ is None else list(model.cell_names_),
        "state": model.fairness_state_,
    }
    if model.set_aside_:
        shared["set_aside"] = model.set_aside_
    if model.sensitive_encoder_ is not None:
        unknown = model.levels_unknown_
        shared["levels_unknown"] = None if unknown is None else unknown.tolist()
        shared["sensitive"] = model.sensitive_encoder_.to_dict()
    shared["trees_sha256"] = hashlib.sha256(trees).hexdigest()
    write_whole(fairness_file(path), sealed_json({**shared, **notes}, indent=1, allow_nan=True))
    write_whole(Path(path), trees)
    return Path(path)


def read_model(path: str | os.PathLike[str], file_format: str) -> tuple[dict[str, Any], bytes]:
    """What `write_model` wrote: all but the trees, and the trees.

    Raises:
        FileNotFoundError: if one of the files is missing.
        ValueError: if they hold something else, have changed, or are of another version.
    """
    notes, trees = _read_fairness_file(path, file_format), Path(path).read_bytes()
    if notes.get("trees_sha256") not in {None, hashlib.sha256(trees).hexdigest()}:
        raise ValueError(
            f"{path}: its checksum is not the one in {fairness_file(path).name}; it has changed "
            "since it was written, or the files are not of one model."
        )
    return notes, trees


def _read_fairness_file(path: str | os.PathLike[str], file_format: str) -> dict[str, Any]:
    """What `write_model` wrote beside the trees.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds something else, or is of another version.
    """
    file = fairness_file(path)
    try:
        notes = read_sealed(file.read_text(encoding="utf-8"))
    except ValueError as wrong:
        raise ValueError(f"{file}: {NO_STATE} ({wrong}).") from wrong
    if notes.get("format") != file_format:
        raise ValueError(f"{file}: {NO_STATE}.")
    if notes.get("version") not in {BLIND_VERSION, FORMAT_VERSION}:
        raise ValueError(
            f"{file}: written in version {notes.get('version')} of the format; this program reads "
            f"versions up to {FORMAT_VERSION}."
        )
    return notes
