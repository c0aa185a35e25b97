"""What fair boosted classifiers share: their arguments, fitted attributes and files."""

from __future__ import annotations

import copy
import functools
import inspect
import json
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from fairgrad.boosting.objective import FAIRNESS_RATE, PROPORTIONAL_RATE, BoostingObjective
from fairgrad.columns import as_column, as_pandas, sensitive_columns
from fairgrad.files import write_whole
from fairgrad.measures import desirable_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fairgrad.groups import Groups

FORMAT_VERSION = 1
"""Version of the fairness file. It grows when older programs cannot read it."""

FITTED_NOTES = ("state", "levels", "net_multipliers", "cells")
"""What the fairness file says of the fitted attributes."""

MAX_SEED = 2**31 - 1

ARGUMENTS = """\
fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
    "accuracy_parity", "four_fifths_rule", one of your own (see `fairgrad.torch.FairLoss`),
    or None for a plain model.
epsilon: slack of the constraints; 0 is exact fairness.
fairness_rate: step size of the multipliers. They need time: rounds times rate should come
    to 15 or more. From there on, rates up to five times larger gave the same.
proportional_rate: how strongly the weights react to the violations of the current round; it
    keeps the levels from swinging.
error_memory: share of earlier rounds kept in the error estimates.
validation_fraction: share of the training rows, stratified by label and group, that is held
    out for the multipliers. Trees fit the rows they learn from better than new ones; levels
    measured on rows held out are those of new ones, but noisy where cells are small, and
    there are fewer rows to learn from. With LightGBM on Adult a fifth brought demographic
    parity from .0057 to .0048 and equalized odds from .0123 to .0229.
y_desirable: the desirable labels, for measures that look at them; by default the second of
    two labels in sorted order.
negative_weights: whether weights may be negative; if not they are clipped at 0.
"""

ATTRIBUTES = """\
levels_: (J,) levels of fairness before the last round, on the rows held out if there are
    any, else on the training rows.
multipliers_: (J,) their multipliers.
cell_weights_: (K,) weights of the cells in the last round.
constraint_names_: (J,) names of the levels and multipliers.
desirable_: the labels taken as desirable, for measures that look at them.
cell_names_: (K,) names of the cells.
groups_: groups and frequencies of the training rows.
fairness_state_: what training continues from, as plain lists and numbers.
"""

PREDICTIONS = {
    "predict": "(n,) predicted labels; X as in `fit`, and the library's own options.",
    "predict_proba": "(n, classes) probabilities; X as in `fit`, and the library's own options.",
}
"""Methods that take features, and their words."""


class FairBoostingMixin:
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
        for name, words in PREDICTIONS.items():
            setattr(cls, name, _takes_any_frame(getattr(cls, name), words))
        if cls.__doc__:  # None without docstrings (python -OO), or if it is inherited
            words = inspect.cleandoc(cls.__doc__)
            for part, text in (("arguments", ARGUMENTS), ("attributes", ATTRIBUTES)):
                words = words.replace(f"    {{fairness {part}}}\n", textwrap.indent(text, "    "))
            cls.__doc__ = words

    def __init__(
        self,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.0,
        fairness_rate: float = FAIRNESS_RATE,
        proportional_rate: float = PROPORTIONAL_RATE,
        error_memory: float = 0.0,
        validation_fraction: float = 0.0,
        y_desirable: Any = None,
        negative_weights: bool = True,
        **kwargs: Any,
    ) -> None:
        if "held_out" in kwargs:  # the library would take it for a parameter of its own
            raise TypeError("held_out is now called validation_fraction; rename the argument.")
        super().__init__(**kwargs)
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.fairness_rate = fairness_rate
        self.proportional_rate = proportional_rate
        self.error_memory = error_memory
        self.validation_fraction = validation_fraction
        self.y_desirable = y_desirable
        self.negative_weights = negative_weights

    def _make_objective(
        self, y: Any, sensitive_features: Any, sample_weight: Any, start: Any
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
            raise ValueError(
                "sensitive_features: required, one value per row, as fairness_measure is "
                f"{self.fairness_measure!r}; pass fit(X, y, sensitive_features=...), or "
                "fairness_measure=None for a plain model."
            )
        if params.get("objective") not in self.log_losses:
            raise ValueError(
                f"objective: expected one of {self.log_losses} (the log loss), got "
                f"{params['objective']!r}."
            )
        for name, instead in self.refused_parameters.items():
            if params.get(name) not in {None, False, 1.0}:
                raise ValueError(f"{name}: not together with fairness_measure; use {instead}.")
        label = column_or_1d(as_column(y))
        check_classification_targets(label)
        classes = np.unique(label)
        if len(classes) < 2:
            raise ValueError(f"y: expected at least two classes, got {classes.tolist()}.")
        objective = self.objective_class(
            label,
            sensitive_columns(sensitive_features, len(label)),
            **{name: getattr(self, name) for name in FAIRNESS_PARAMETERS},
            sample_weight=sample_weight,
            random_state=_seed(self.random_state),  # type: ignore[attr-defined]  # as above
        )
        state = getattr(start, "fairness_state_", None)
        if isinstance(start, (str, os.PathLike)) and fairness_file(start).exists():
            state = read_fairness_file(start, self.file_format)["state"]
        if state is not None:
            objective.rounds.load_state(state)
        return objective

    @property
    def desirable_(self) -> tuple[Any, ...]:
        """The labels taken as desirable, for measures that look at them."""
        labels = self.classes_.tolist()  # type: ignore[attr-defined]  # of the library's class
        return tuple(labels[i] for i in desirable_labels(labels, self.y_desirable))

    def _set_fitted(self, objective: BoostingObjective | None) -> None:
        """Sets the fitted attributes about fairness; None for all of them if nothing was fair."""
        notes: dict[str, Any] = dict.fromkeys(FITTED_NOTES)
        if objective is not None:
            rounds = objective.rounds
            cells = objective.groups.cell_names(rounds.constraints.by_label)
            found = (rounds.state(), rounds.levels, rounds.net_multipliers, cells)
            notes = dict(zip(FITTED_NOTES, found, strict=True))
        self._restore_fitted(notes, None if objective is None else objective.groups)

    def _restore_fitted(self, notes: Mapping[str, Any], groups: Groups | None = None) -> None:
        """Sets these attributes from what a fairness file holds; it does not hold the groups."""
        state, levels, multipliers, cells = (notes[name] for name in FITTED_NOTES)
        self.groups_ = groups
        self.fairness_state_ = state
        self.levels_ = None if levels is None else np.asarray(levels)
        self.multipliers_ = None if multipliers is None else np.asarray(multipliers)
        self.cell_weights_ = None if state is None else np.asarray(state["weights"])
        self.constraint_names_ = None if state is None else tuple(state["constraints"])
        self.cell_names_ = None if cells is None else tuple(cells)


FAIRNESS_PARAMETERS = tuple(inspect.signature(FairBoostingMixin).parameters)[:-1]
"""Parameters of the estimators that the boosting libraries do not know."""


def _takes_any_frame(method: Callable[..., Any], words: str) -> Callable[..., Any]:
    """The method with tables of any library: LightGBM 4.7 aborts on categories of Arrow."""

    @functools.wraps(method)  # its options stay those of the library
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, as_pandas(X), *args, **kwargs)

    wrapped.__doc__ = words
    return wrapped


def _seed(random_state: Any) -> int:
    """A seed, without using up a generator from which the library draws its own."""
    if isinstance(random_state, np.random.Generator):
        return int(copy.deepcopy(random_state).integers(MAX_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(copy.deepcopy(random_state).randint(MAX_SEED))
    return 0 if random_state is None else int(random_state)


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
        "version": FORMAT_VERSION,
        "fairness_measure": measure if isinstance(measure, str) else None,
        "epsilon": np.asarray(model.epsilon, dtype=np.float64).tolist(),
        "levels": None if model.levels_ is None else model.levels_.tolist(),
        "net_multipliers": None if model.multipliers_ is None else model.multipliers_.tolist(),
        "cells": None if model.cell_names_ is None else list(model.cell_names_),
        "state": model.fairness_state_,
    }
    write_whole(fairness_file(path), json.dumps({**shared, **notes}, indent=1).encode())
    write_whole(Path(path), trees)
    return Path(path)


def read_fairness_file(path: str | os.PathLike[str], file_format: str) -> dict[str, Any]:
    """What `write_model` wrote beside the trees.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds something else, or is of another version.
    """
    file = fairness_file(path)
    try:
        notes = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        notes = None
    if not isinstance(notes, dict) or notes.get("format") != file_format:
        raise ValueError(f"{file}: expected the fairness state of a saved model, in JSON.")
    if notes.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{file}: written in version {notes.get('version')} of the format; this program reads "
            f"version {FORMAT_VERSION}."
        )
    return notes
