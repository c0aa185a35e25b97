"""From the estimator's parameters and the user's rows to a trained stack and back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from fairgrad.groups import GroupedRows
from fairgrad.measures import check_several_groups, constraints_of
from fairgrad.sklearn.defaults import (
    SMALL_TABLE,
    TOLERATED_LOSS,
    candidate_rates,
    desirable_labels,
    resolve_clip,
    resolve_epochs,
)
from fairgrad.sklearn.rows import Rows, check_weight, encode_labels, label_name
from fairgrad.sklearn.scaling import Scaling, fit_scaling, no_scaling
from fairgrad.sklearn.sensitive import (
    add_rows,
    check_rows,
    choose,
    group_rows,
    one_group,
    split_columns,
    without_rows,
)
from fairgrad.sklearn.starting import parameters_of
from fairgrad.training import Member, Shape, TrainingPlan, TrainingTable, train
from fairgrad.training.trainer import trained_module as loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Groups, Ints
    from fairgrad.sklearn.classifier import FairGradClassifier
    from fairgrad.training import Choice, Training


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be trained, besides the rows.

    Attributes:
        groups: of the rows; None for a plain model.
        group: (n,) the group of each row.
        start: state to start from, a stack of one; None for new weights.
        frequencies: groups whose frequencies count, if not those of the rows.
        is_new: whether training starts afresh, so that several candidates can be trained.
    """

    groups: Groups | None
    group: Ints
    start: Mapping[str, Any] | None
    frequencies: Groups | None
    is_new: bool


def read(
    model: FairGradClassifier,
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    fitted: bool,
    classes: Any = None,
) -> Rows:
    """Checks what the user gives before anything of the model changes."""
    n_features = model.n_features_in_ if fitted else None
    X, from_columns = split_columns(X, model.sensitive_columns, n_features)
    s = choose(sensitive_features, from_columns, model.fairness_measure)
    name = label_name(y)
    X, y = validate_data(
        model, X, y, reset=not fitted, accept_sparse="csr", dtype=[np.float64, np.float32]
    )
    label, known = encode_labels(y, model.classes_ if fitted else classes)
    weight = check_weight(sample_weight, X)
    s = None if s is None else check_rows(s, len(label))
    return Rows(X, label, known, s, weight, name)


def new_task(model: FairGradClassifier, rows: Rows) -> Task:
    """Training from the beginning."""
    groups, group = _new_groups(rows)
    _set_up(model, rows)
    return Task(groups, group, _initial_state(model), frequencies=None, is_new=True)


def warm_task(model: FairGradClassifier, rows: Rows) -> Task:
    """Training that goes on from a fitted model, on other rows of the same groups."""
    groups, group = _new_groups(rows)
    if rows.s is not None and model.groups_ is not None:
        groups, group = add_rows(without_rows(model.groups_), rows.label, rows.s, rows.weight)
    start = model.state_
    if model.measure_ != _measure_key(model):  # then its multipliers are of no use
        start = {name: v for name, v in start.items() if not name.startswith("fairness.")}
    return Task(groups, group, start, frequencies=None, is_new=False)


def first_task(model: FairGradClassifier, rows: Rows) -> Task:
    """The first of many small trainings."""
    task = new_task(model, rows)
    return replace(task, frequencies=task.groups, is_new=False)


def next_task(model: FairGradClassifier, rows: Rows) -> Task:
    """Another small training: all rows so far count for the frequencies.

    Raises:
        ValueError: if the measure has changed to one that was not prepared.
    """
    groups, group = _new_groups(rows)
    if rows.s is not None:
        if model.groups_ is None or model.measure_ != _measure_key(model):
            raise ValueError(
                "fairness_measure: changed since the first partial_fit; to make a fitted model "
                "fair use warm_start=True and fit."
            )
        groups, group = add_rows(model.groups_, rows.label, rows.s, rows.weight)
    return Task(groups, group, model.state_, frequencies=groups, is_new=False)


def plan_of(model: FairGradClassifier, n_rows: int, **changed: Any) -> TrainingPlan:
    """What the members have in common, with some settings changed."""
    settings = {
        "hidden": _hidden(model),
        "batch_norm": model.batch_norm,
        "dropout": model.dropout,
        "epochs": resolve_epochs(model.max_iter, n_rows, model.batch_size),
        "batch_size": model.batch_size,
        "solver": model.solver,
        "schedule": model.learning_rate,
        "average_last": model.average_last,
    }
    return TrainingPlan(**{**settings, **changed})


def fit_task(model: FairGradClassifier, rows: Rows, task: Task, plan: TrainingPlan) -> None:
    """Trains, chooses, and sets the fitted attributes."""
    constraints = constraints_for(model, task.groups)
    members = members_of(model, rows, task)
    compares = len(members) > 1 or (task.is_new and _compares(model, rows, task.groups))
    candidates = list(range(len(members)))
    if compares:
        members.append(replace(members[0], fairness_rate=0.0, proportional_rate=0.0))
    if len(candidates) > 1:  # the plain one is a candidate among others
        candidates.append(len(candidates))
    start = task.start
    if start is not None:
        start = {name: np.repeat(v, len(members), axis=0) for name, v in start.items()}
    training = train(
        table_of(model, rows, task),
        members,
        plan,
        module=model.module,
        start=start,
        progress=None if model.verbose == "auto" else bool(model.verbose),
    )
    judged = model.validation_fraction > 0 or training.interrupted
    epochs = None if judged else [training.last_epoch]
    choice = training.select(model.selection, candidates, epochs)
    model.groups_ = task.groups
    model.fairness_rate_ = float(members[choice.member].fairness_rate) if task.groups else 0.0
    model.plain_accuracy_ = float(training.history.accuracy[choice.epoch, -1]) if compares else None
    keep(model, training, choice, constraints)
    _warn(model, training, choice)


def _new_groups(rows: Rows) -> tuple[Groups | None, Ints]:
    if rows.s is None:
        return None, np.zeros(len(rows), dtype=np.int64)
    groups = group_rows(rows.label, rows.classes, rows.s, rows.weight, rows.label_name)
    return groups, groups.group_index(rows.s)


def _set_up(model: FairGradClassifier, rows: Rows) -> None:
    """Everything that is decided once, by the first rows."""
    hidden = _hidden(model)
    model.classes_ = rows.classes
    model.seed_ = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    model.calls_ = 0
    n_features = rows.X.shape[1]
    model.offset_, model.scale_ = no_scaling(n_features)
    model.shape_ = None
    if model.module is not None:
        return
    if model.standardize:
        model.offset_, model.scale_ = fit_scaling(rows.X, rows.weight)
    model.shape_ = Shape(
        n_features=n_features,
        hidden=hidden,
        n_outputs=1 if len(rows.classes) == 2 else len(rows.classes),
        batch_norm=model.batch_norm,
        dropout=model.dropout,
    )


def _initial_state(model: FairGradClassifier) -> Mapping[str, Any] | None:
    if model.init is None:
        return None
    if model.shape_ is None:
        raise ValueError("init: not together with module, which has its own weights.")
    scaling = Scaling(model.offset_, model.scale_)
    return {"network.parameters": parameters_of(model.init, model.shape_, scaling)}


def members_of(model: FairGradClassifier, rows: Rows, task: Task) -> list[Member]:
    """What to train for a model: one member, or several rates to choose from."""
    training, validation = _held_out(model, len(rows))
    plain = Member(
        rows=training,
        validation=validation,
        seed=(model.seed_ + model.calls_) % 2**31,
        learning_rate=model.learning_rate_init,
        weight_decay=model.weight_decay,
        clip_norm=resolve_clip(model.clip_norm, _hidden(model), model.fairness_measure, len(rows)),
    )
    if task.groups is None:
        return [plain]
    pairs = candidate_rates(
        model.fairness_rate, model.proportional_rate, len(rows), one=not task.is_new
    )
    return [
        replace(
            plain,
            fairness_measure=model.fairness_measure,
            epsilon=model.epsilon,
            y_desirable=desirable_labels(model.y_desirable, model.classes_),
            fairness_rate=rate,
            proportional_rate=proportional,
            error_memory=model.error_memory,
            frequencies=task.frequencies,
        )
        for rate, proportional in pairs
    ]


def _held_out(model: FairGradClassifier, n: int) -> tuple[Ints | None, Ints | None]:
    if not 0 <= model.validation_fraction < 1:
        raise ValueError(
            "validation_fraction: expected a share of at least 0 and below 1, got "
            f"{model.validation_fraction!r}."
        )
    n_held = round(model.validation_fraction * n)
    if not n_held:
        return None, None
    order = np.random.default_rng(model.seed_).permutation(n)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def table_of(model: FairGradClassifier, rows: Rows, task: Task) -> TrainingTable:
    """The rows as networks see them."""
    groups = task.groups
    if groups is None:
        groups = one_group(rows.label, rows.classes, rows.weight)
    if model.module is None:
        X = Scaling(model.offset_, model.scale_).apply(rows.X)
        dtype = torch.from_numpy(np.empty(0, dtype=X.dtype)).dtype
    else:
        X, dtype = rows.X, next(model.module.parameters()).dtype
    return TrainingTable.from_rows(
        X, GroupedRows(groups, rows.label, task.group, rows.weight), dtype=dtype
    )


def constraints_for(model: FairGradClassifier, groups: Groups | None) -> Constraints | None:
    """What the model's measure asks; None for a plain model."""
    if groups is None:
        return None
    check_several_groups(model.fairness_measure, groups, "sensitive_features")
    y_desirable = desirable_labels(model.y_desirable, model.classes_)
    return constraints_of(
        model.fairness_measure, groups, epsilon=model.epsilon, y_desirable=y_desirable
    )


def _hidden(model: FairGradClassifier) -> tuple[int, ...]:
    return tuple(np.atleast_1d(np.asarray(model.hidden_layer_sizes, dtype=int)).tolist())


def _compares(model: FairGradClassifier, rows: Rows, groups: Groups | None) -> bool:
    if groups is None:
        return False
    if model.compare_plain == "auto":
        return len(rows) < SMALL_TABLE
    return bool(model.compare_plain)


def keep(
    model: FairGradClassifier,
    training: Training,
    choice: Choice,
    constraints: Constraints | None,
) -> None:
    """Sets the fitted attributes; arrays only, so that they can be saved safely."""
    model.state_ = {name: tensor.numpy() for name, tensor in training.state(choice).items()}
    history, own = training.history, choice.member
    n = 0 if constraints is None else len(constraints.names)
    model.history_ = {
        "accuracy": history.accuracy[:, own],
        "loss": history.loss[:, own],
        "unfairness": history.unfairness[:, own],
        "levels": history.levels[:, own, :n],
        "multipliers": history.multipliers[:, own, :n],
    }
    model.levels_ = model.history_["levels"][choice.epoch]
    model.multipliers_ = model.history_["multipliers"][choice.epoch]
    model.constraint_names_ = () if constraints is None else constraints.names
    model.cell_weights_, model.cell_names_ = np.ones(0), ()
    if constraints is not None and model.groups_ is not None:
        model.cell_weights_ = model.state_["fairness.weights"][0].astype(np.float64)
        model.cell_names_ = model.groups_.cell_names(constraints.by_label)
    model.n_iter_ = len(history)
    model.measure_ = _measure_key(model)
    model.calls_ += 1
    if model.module is not None:
        model.module_ = loaded(model.module, model.state_)


def _warn(model: FairGradClassifier, training: Training, choice: Choice) -> None:
    if training.interrupted:
        warnings.warn(
            f"Training was interrupted; the model is that of epoch {choice.epoch}.", stacklevel=4
        )
    if model.plain_accuracy_ is None or model.plain_accuracy_ - choice.accuracy <= TOLERATED_LOSS:
        return
    warnings.warn(
        f"Fairness costs {100 * (model.plain_accuracy_ - choice.accuracy):.1f} points of accuracy "
        f"here: {choice.accuracy:.4f}, against {model.plain_accuracy_:.4f} of the plain model. "
        "Allow some unfairness with epsilon, or lower fairness_rate, to keep more of it.",
        stacklevel=4,
    )


def _measure_key(model: FairGradClassifier) -> str:
    return repr((model.fairness_measure, np.asarray(model.epsilon).tolist()))
