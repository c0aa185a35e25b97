"""What fair boosted classifiers share: arguments, fitted attributes, eval sets and files."""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import re
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from fairgrad.aware import AwareRouting, SensitiveEncoder, beside, hide_some, with_values
from fairgrad.checks import naming_rows
from fairgrad.columns import as_column, as_pandas, encode, sensitive_columns
from fairgrad.evaluate import cell_rates, levels_of, unfairness
from fairgrad.files import read_sealed, sealed_json, write_whole
from fairgrad.groups import MIN_GROUP, group_rows
from fairgrad.measures import LargeGroups, constraints_of, desirable_labels
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
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from fairgrad.boosting.objective import BoostingObjective
    from fairgrad.constraints import Constraints
    from fairgrad.groups import GroupedRows, Groups, Ints

BLIND_VERSION, FORMAT_VERSION = 1, 2
"""Versions of the fairness file, of blind and of aware models. The second grows when older programs
cannot read it."""

FITTED_NOTES = ("state", "levels", "net_multipliers", "cells", "set_aside")
"""What the fairness file says of the fitted attributes."""

MAX_SEED = 2**31 - 1

MEMORIZED = 0.98
"""Accuracy on the training rows from which trees are said to have memorized them."""

FAIRNESS_METRICS = ("unfairness", "fair_error")
"""Metrics of eval sets with sensitive values: the mean of ``|F|`` (for a measure with one bound
only, of its violations), and the error rate plus the mean violation of the bounds."""

ARGUMENTS = """\
fairness_measure: "equalized_odds", "equality_of_opportunity", "demographic_parity",
    "accuracy_parity", "four_fifths_rule", one of your own (see `fairgrad.torch.FairLoss`),
    or None for a plain model.
epsilon: slack of the constraints; 0 asks for exact fairness.
fairness_rate: step size of the multipliers in a round. "auto" suits 50 rounds and more; a number is
    a constant rate, of which the rounds times the rate should come to 15 or more.
use_sensitive: whether the trees may look at the sensitive values, in fit and to predict: they
    become features (see `fairgrad.aware.SensitiveEncoder`). The law may forbid it. One value in
    twenty is hidden from the trees, so that "unknown" is learnt, too, and never fails.
y_desirable: the desirable labels, for measures that look at them; by default the second of
    two labels in sorted order.
min_group: groups with fewer rows are in no constraint, and are not judged; below 1 a share of all
    rows. A warning says how many people are in them. 0 is for all groups.
cost_matrix: what it costs to predict each class (columns) where each is true (rows), in sorted
    order; None for 1 for every mistake.
"""

ATTRIBUTES = """\
levels_: (J,) levels of fairness on the training rows, before the last round. New rows may have
    larger ones; where the bounds must hold on new rows, use
    `fairgrad.sklearn.FairDecisionClassifier`.
sensitive_encoder_: of an aware model, how it reads sensitive values; None for others.
multipliers_: (J,) their multipliers.
cell_weights_: (K,) weights of the cells in the last round.
constraint_names_: (J,) names of the levels and multipliers.
desirable_: the labels taken as desirable, for measures that look at them.
cell_names_: (K,) names of the cells.
groups_: groups and frequencies of the training rows.
set_aside_: the groups that are in no constraint because of `min_group`, and their rows.
fairness_state_: what training continues from, as plain lists and numbers.
"""


def _with_shared_parts(doc: str) -> str:
    """A docstring in which ``{fairness arguments}`` and ``{fairness attributes}`` are filled in."""
    words = inspect.cleandoc(doc)
    for section, text in (("arguments", ARGUMENTS), ("attributes", ATTRIBUTES)):
        words = words.replace(f"    {{fairness {section}}}\n", textwrap.indent(text, "    "))
    return words


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
            cls.__doc__ = _with_shared_parts(cls.__doc__)

    def __init__(
        self,
        fairness_measure: Any = "equalized_odds",
        *,
        epsilon: Any = 0.05,
        fairness_rate: float | str = "auto",
        use_sensitive: bool = False,
        y_desirable: Any = None,
        min_group: float = MIN_GROUP,
        cost_matrix: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fairness_measure = fairness_measure
        self.epsilon = epsilon
        self.fairness_rate = fairness_rate
        self.use_sensitive = use_sensitive
        self.y_desirable = y_desirable
        self.min_group = min_group
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
            objective.load_state(state)
        return objective

    def _prepare(
        self,
        X: Any,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        start: Any,
        pairs: list[tuple[Any, Any]],
        eval_sensitive_features: Any,
    ) -> FitParts:
        """What a fit of either library needs.

        Args:
            X: (n, features).
            y: (n,) labels.
            sensitive_features: as given to fit.
            sample_weight: (n,) non-negative weights, or None.
            start: the model or file that training continues from, or None.
            pairs: features and labels of the eval sets.
            eval_sensitive_features: of the eval sets, or None.

        Raises:
            ValueError: if an argument is missing or not allowed.
        """
        encoder, shown = self._encoder(y, sensitive_features, start)
        features = _fitted_features(encoder, X, shown)
        labels = [label for _, label in pairs]
        eval_features = [as_pandas(one) for one, _ in pairs]
        if encoder is not None:
            is_list = isinstance(eval_sensitive_features, (list, tuple))
            values = list(eval_sensitive_features) if is_list else [eval_sensitive_features]
            values += [None] * (len(pairs) - len(values))  # too few are refused elsewhere
            columns = zip(eval_features, values, strict=False)
            eval_features = [_fitted_features(encoder, one, s) for one, s in columns]
        if self.fairness_measure is None:
            if self.cost_matrix is not None:
                raise ValueError(
                    "cost_matrix: a model with fairness_measure=None is trained without it; name a "
                    "measure with epsilon=float('inf') to train for the costs alone."
                )
            return FitParts(encoder, features, eval_features, labels)
        self._check_rows(X, y)
        objective = self._make_objective(y, sensitive_features, sample_weight, start)
        sets = EvalSets(self, objective, labels, eval_sensitive_features)
        return FitParts(encoder, features, eval_features, labels, objective, sets)

    def _check_rows(self, X: Any, y: Any) -> None:
        """Refuses features that are no table, have other rows than y, or names that repeat."""
        label, X = _labels(y), _as_table(X)
        if X.shape[0] != len(label):
            raise ValueError(
                f"X: expected one row per label of y ({len(label)}), got {X.shape[0]} rows."
            )
        names = [str(name) for name in getattr(X, "columns", ())]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"X: expected columns of different names, got {twice!r} twice.")

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
        return with_values(encoder, X, sensitive_features, _column_names(encoder))

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
        self, objective: BoostingObjective | None, encoder: SensitiveEncoder | None
    ) -> None:
        """Sets the fitted attributes about fairness; None for all of them if nothing was fair.

        Args:
            objective: of the fit that has ended.
            encoder: of an aware model.
        """
        self.sensitive_encoder_ = encoder
        notes: dict[str, Any] = dict.fromkeys(FITTED_NOTES)
        if objective is not None:
            measure = objective.measure
            notes = {
                "state": objective.state(),
                "levels": objective.levels,
                "net_multipliers": objective.net_multipliers,
                "cells": objective.constraints.weight_names(objective.groups),
                "set_aside": measure.set_aside() if isinstance(measure, LargeGroups) else {},
            }
        self._restore_fitted(notes, None if objective is None else objective.groups)

    def _warn_of_fault(self, objective: BoostingObjective) -> None:
        """Warns if the model is of no use, does not keep epsilon, or has memorized its rows.

        It is judged as it was before the last round.
        """
        warn_of_small(self.set_aside_)
        rows, constraints, predicted = objective.rows, objective.constraints, objective.predicted
        if rows is None or predicted is None:
            return
        figures = model_figures(constraints, rows, predicted, self.cost_matrix)
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
            enough=figures.worst if figures.beyond > REACHED else None,
        )
        labels = objective.groups.labels.tolist()
        constants = constant_figures(constraints, rows, self.cost_matrix)
        fault = find_fault(figures, constants, None, labels, suggestions)
        if fault:
            warnings.warn(fault, FairnessWarning, stacklevel=3)

    def _restore_fitted(self, notes: Mapping[str, Any], groups: Groups | None = None) -> None:
        """Sets these attributes from what a fairness file holds; it does not hold the groups."""
        state, levels, multipliers, cells, small = (notes.get(name) for name in FITTED_NOTES)
        if "sensitive" in notes:
            self.sensitive_encoder_ = SensitiveEncoder.from_dict(notes["sensitive"])
        self.groups_ = groups
        self.set_aside_ = dict(small or {})
        self.fairness_state_ = state
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
        labels: NDArray[Any] = column_or_1d(y)
    return labels


def _seed(random_state: Any) -> int:
    """A seed, without using up a generator from which the library draws its own."""
    if isinstance(random_state, np.random.Generator):
        return int(copy.deepcopy(random_state).integers(MAX_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(copy.deepcopy(random_state).randint(MAX_SEED))
    return 0 if random_state is None else int(random_state)


class FitParts(NamedTuple):
    """What a fit of either library needs; without a measure there is no objective."""

    encoder: SensitiveEncoder | None
    features: Any
    eval_features: list[Any]
    eval_labels: list[Any]
    objective: Any = None
    sets: Any = None


class EvalSets:
    """All eval sets of a fair fit. Those with sensitive values are found by their labels.

    Labels are all that the boosting libraries tell a metric about the set it is called for.

    Args:
        model: the classifier: its epsilon and desirable labels.
        objective: of the fit: its groups and its measure.
        labels: (n,) labels of each eval set.
        sensitive_features: of each eval set, or None; a list unless there is one set only.

    Attributes:
        label: (n,) of each eval set, as indices of the training rows' labels.

    Raises:
        ValueError: if a label is unknown, the sensitive values do not fit, or two sets with
            sensitive values have the same labels.
    """

    def __init__(
        self,
        model: Any,
        objective: BoostingObjective,
        labels: Iterable[Any],
        sensitive_features: Any,
    ) -> None:
        labels, groups = list(labels), objective.groups
        try:
            self.label: list[Ints] = [groups.label_index(y) for y in labels]
        except ValueError as error:
            raise ValueError(f"eval_set: {error}") from None
        self._model, self._measure = model, objective.measure
        self._rows: dict[bytes, GroupedRows] = {}
        self._judged: dict[bytes, tuple[GroupedRows, Constraints]] = {}
        if sensitive_features is None:
            return
        is_list = isinstance(sensitive_features, (list, tuple))
        columns = sensitive_features if is_list else [sensitive_features]
        if len(columns) != len(labels):
            raise ValueError(
                "eval_sensitive_features: expected a list with one entry per eval set "
                f"({len(labels)}), got {len(columns)}."
            )
        for y, label, s in zip(labels, self.label, columns, strict=True):
            if s is None:
                continue
            if _key(label) in self._rows:
                raise ValueError(
                    "eval_set: two sets have the same labels in the same order; a metric is told "
                    "nothing else, so their sensitive values cannot be told apart."
                )
            named = sensitive_columns(s, len(label), "eval_sensitive_features", "its eval set")
            self._rows[_key(label)] = group_rows(y, named, labels=groups.labels)

    def __bool__(self) -> bool:
        """Whether any set has sensitive values."""
        return bool(self._rows)

    def fairness(self, label: Ints, predicted: Ints, weight: Any) -> dict[str, float]:
        """`FAIRNESS_METRICS` of the set with these labels; none if its groups are unknown.

        Args:
            label: (n,) indices of the labels.
            predicted: (n,) indices of the predicted labels.
            weight: (n,) weights of the rows, the same in every round, or None.
        """
        key = _key(label)
        if key not in self._rows:
            return {}
        if key not in self._judged:
            self._judged[key] = self._weigh(self._rows[key], weight)
        rows, constraints = self._judged[key]
        levels = levels_of(constraints, cell_rates(constraints, rows, predicted))
        beyond = np.maximum(levels.values - constraints.upper, constraints.lower - levels.values)
        error = float(np.average(predicted != label, weights=rows.weight))
        fair_error = error + float(unfairness(np.maximum(beyond, 0.0)))
        return dict(zip(FAIRNESS_METRICS, (levels.unfairness, fair_error), strict=True))

    def _weigh(self, rows: GroupedRows, weight: Any) -> tuple[GroupedRows, Constraints]:
        """The rows with their weights, and the constraints with the frequencies these give."""
        if weight is not None:
            weighted = replace(rows, weight=np.asarray(weight, dtype=np.float64))
            rows = weighted.take(slice(None))
        model = self._model
        constraints = constraints_of(
            self._measure,
            rows.groups,
            epsilon=model.epsilon,
            y_desirable=model.y_desirable,
        )
        return rows, constraints

    def require(self, metrics: Iterable[str]) -> None:
        """Refuses metrics that need sensitive values if no set has any."""
        lacking = [name for name in metrics if name in FAIRNESS_METRICS]
        if lacking and not self:
            raise ValueError(f"eval_metric: {lacking[0]} needs eval_sensitive_features.")


def _column_names(encoder: SensitiveEncoder) -> list[str]:
    """Names of the encoded values in a data frame, without signs that the libraries refuse."""
    names = [re.sub(r"[^\w=?. -]", "_", name) for name in encoder.names]
    return [name if names.count(name) == 1 else f"{name} {i}" for i, name in enumerate(names)]


def _as_table(X: Any) -> Any:
    """Features that have a shape; lists become an array.

    Raises:
        ValueError: if they are no table.
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    if len(X.shape) != 2 or X.shape[1] == 0:
        raise ValueError(f"X: expected a table with a column or more, got shape {tuple(X.shape)}.")
    return X


def _fitted_features(encoder: SensitiveEncoder | None, X: Any, values: Any) -> Any:
    """Features as the trees get them: with the encoded values, None for unknown, if aware."""
    if encoder is None:
        return X
    X = _as_table(X)
    return beside(X, encoder.encode(values, X.shape[0]), _column_names(encoder))


def list_metrics(metric: Any) -> list[Any]:
    """No metric, one or several, as a list."""
    if metric is None:
        return []
    return list(metric) if isinstance(metric, (list, tuple, set)) else [metric]


def _key(label: Any) -> bytes:
    return np.asarray(label, dtype=np.float32).tobytes()


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
