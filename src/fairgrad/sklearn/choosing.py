"""Which of the models trained side by side a fit ends with, and what is to be said of it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairgrad.decisions import JudgedCells, JudgedDecisions
from fairgrad.dual import check_costs
from fairgrad.measures import constraints_of
from fairgrad.sklearn.last_layer import LayerInputs, keep_bounds
from fairgrad.usefulness import (
    FEWER,
    LEAST_GAIN,
    REACHED,
    TOLERATED_LOSS,
    FairnessWarning,
    ModelFigures,
    Suggestions,
    constant_figures,
    find_fault,
    model_figures,
    worst_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.constraints import Constraints
    from fairgrad.groups import Floats, GroupedRows, Ints
    from fairgrad.sklearn.classifier import FairGradClassifier
    from fairgrad.sklearn.fitting import StackRun
    from fairgrad.sklearn.rows import FittingRows
    from fairgrad.training import Choice, Member

LEAST_ROOM, MOST_ROOM = 0.001, 0.004
"""How far from 0 a level may be if exact fairness is asked for: rows are whole, so it is one row of
the smallest cell, within these limits. The larger is less than what bounds are said to be kept by,
so that rounding of predictions does not matter."""

PENALTY = 1e3
"""Of unfairness, to choose an epoch."""


class JudgedPeople(NamedTuple):
    """Rows that models are judged on.

    Attributes:
        X: their features, as the network was trained on them.
        rows: who they are.
        constraints: what is asked for, on their cells.
        kind: which of the rows of the fit they are.
    """

    X: Any
    rows: GroupedRows
    constraints: Constraints
    kind: str

    @classmethod
    def of(cls, model: FairGradClassifier, rows: FittingRows, member: Member) -> JudgedPeople:
        """Those that a model is to keep epsilon on: the training rows, or those to judge on.

        A linear model knows its training rows hardly better than others, so for it, if there are
        rows to judge on, it is both: the more rows, the less is left to chance.
        """
        if member.validation is None:
            return cls._of(model, rows, member.rows, "training")
        if model.shape_ is None or model.shape_.hidden:
            return cls._of(model, rows, member.validation, "validation")
        assert member.rows is not None  # noqa: S101 - for type checkers
        both = np.concatenate([member.rows, member.validation])
        return cls._of(model, rows, both, "training and validation")

    @classmethod
    def held_out(cls, model: FairGradClassifier, rows: FittingRows, member: Member) -> JudgedPeople:
        """Those that history and levels are of: rows to judge on if there are any."""
        if member.validation is None:
            return cls._of(model, rows, member.rows, "training")
        return cls._of(model, rows, member.validation, "validation")

    @classmethod
    def _of(
        cls, model: FairGradClassifier, rows: FittingRows, index: Ints | None, kind: str
    ) -> JudgedPeople:
        X, people = rows.features(index), rows.people(index)
        constraints = constraints_of(
            rows.measure, people.groups, epsilon=model.epsilon_, y_desirable=model.y_desirable
        )
        return cls(X, people, constraints, kind)


class ChosenModel(NamedTuple):
    """The model a fit ends with: as which member of which stack, after which epoch.

    Attributes:
        run: the model trained.
        choice: its epoch.
        layer: (outputs, d + 1) its last layer, moved; None if it is as it was trained.
        of_plain: (n,) what the last of the models, a plain one, predicts; None if not known.
    """

    run: StackRun
    choice: Choice
    layer: Floats | None = None
    of_plain: Ints | None = None


def choose(
    model: FairGradClassifier, runs: Sequence[StackRun], people: JudgedPeople
) -> ChosenModel:
    """The most accurate of what was trained that keeps epsilon, after the last step.

    Of modules, whose last layer is not known, one is chosen as it is.
    """
    options = [(run, _epoch(run, people.constraints)) for run in runs]
    if model.shape_ is None:
        run, choice = min(options, key=lambda own: _rank(own[0], own[1], people))
        return ChosenModel(run, choice)
    states = [run.training.state(choice) for run, choice in options]
    layers = [_last_layer(model, state) for state in states]
    if model.shape_.hidden:
        from fairgrad.training.trainer import last_inputs  # noqa: PLC0415 - needs PyTorch

        X = model._scaled(people.X)  # noqa: SLF001 - the classifier's other half
        inputs = [LayerInputs(last_inputs(model.shape_, state, X)) for state in states]
    else:
        encoder = model.sensitive_encoder_
        n_shifts = 0 if encoder is None else len(encoder.names)
        inputs = [LayerInputs(people.X, model.offset_, model.scale_, n_shifts)] * len(layers)
    defined = people.constraints.select(people.constraints.is_defined)
    rows, costs = people.rows, model.cost_matrix
    problem = JudgedDecisions(
        rows.label,
        rows.weight,
        [JudgedCells(defined, rows, _room(defined, rows))],
        None if costs is None else check_costs(costs, len(rows.groups.labels)),
    )
    found, given = keep_bounds(problem, inputs, layers)
    is_moved = found is not given[found.start]
    of_plain = given[-1].decided if len(runs) > 1 else None
    return ChosenModel(*options[found.start], found.layer if is_moved else None, of_plain)


def _room(constraints: Constraints, rows: GroupedRows) -> float:
    """How far from 0 levels may be if exact fairness is asked for."""
    cells = np.unique(constraints.coefficients.cell % constraints.n_cells)
    counts = np.bincount(rows.cell(constraints.by_label), minlength=constraints.n_cells)[cells]
    fewest = counts[counts > 0].min(initial=len(rows))
    return float(np.clip(1.0 / fewest, LEAST_ROOM, MOST_ROOM))


def _epoch(run: StackRun, constraints: Constraints) -> Choice:
    """The best epoch of one model: the last, unless there are rows to choose by."""
    judged = run.member.validation is not None or run.training.interrupted
    choices = run.training.candidates(run.place, None if judged else [run.training.last_epoch])

    def value(choice: Choice) -> float:
        return 1 - choice.merit + PENALTY * figures_of(run, choice, constraints).beyond ** 2

    return min(reversed(choices), key=value)


def figures_of(run: StackRun, choice: Choice, constraints: Constraints) -> ModelFigures:
    """How good a model was after an epoch, by its history."""
    levels = run.training.history.levels[choice.epoch, run.place, : len(constraints.c0)]
    by_costs = run.member.cost_matrix is not None
    return ModelFigures(choice.merit, *worst_of(constraints, levels), by_costs=by_costs)


def _rank(run: StackRun, choice: Choice, people: JudgedPeople) -> tuple[bool, float, float]:
    own = figures_of(run, choice, people.constraints)
    constants = constant_figures(people.constraints, people.rows, run.member.cost_matrix)
    useful = all(own.accuracy > c.accuracy for c in constants if c.beyond <= 0)
    return not useful, max(own.beyond, REACHED), -own.accuracy


def _last_layer(model: FairGradClassifier, state: Any) -> Floats:
    """(outputs, d + 1) weights and biases of the last layer."""
    assert model.shape_ is not None  # noqa: S101 - modules were chosen before
    pieces = model.shape_.views(state["network.parameters"])
    last = len(model.shape_.hidden)
    weight, bias = (pieces[f"{name}{last}"][0].numpy() for name in ("weight", "bias"))
    return np.column_stack([weight, bias]).astype(np.float64)


def with_layer(parameters: Floats, layer: Floats) -> Floats:
    """(1, P) parameters whose last layer is this one: its weights and biases come last."""
    flat = np.concatenate([layer[:, :-1].ravel(), layer[:, -1]])
    moved = parameters.copy()
    moved[0, -len(flat) :] = flat
    return moved


def warn_of_fault(
    model: FairGradClassifier,
    people: JudgedPeople,
    predicted: Ints,
    runs: Sequence[StackRun],
    plain: ModelFigures | None,
) -> None:
    """Compares a fitted model with one label for everybody and with the plain model."""
    constraints, rows = people.constraints, people.rows
    fair = model_figures(constraints, rows, predicted, model.cost_matrix)
    constants = constant_figures(constraints, rows, model.cost_matrix)
    asked, is_auto = model.epsilon_, model.fairness_rate == "auto"
    suggestions = Suggestions(
        asked=None if np.ndim(asked) else float(asked),
        search="" if is_auto else 'fairness_rate="auto"',
        aware="" if model.use_sensitive else "use_sensitive=True",
        fewer=FEWER if len(constraints.names) > 4 else "",
        enough=_enough(fair, constants, plain, runs, constraints),
    )
    fault = find_fault(fair, constants, plain, model.classes_.tolist(), suggestions, people.kind)
    if fault:
        warnings.warn(fault, FairnessWarning, stacklevel=4)


def _enough(
    fair: ModelFigures,
    constants: Sequence[ModelFigures],
    plain: ModelFigures | None,
    runs: Sequence[StackRun],
    constraints: Constraints,
) -> float | None:
    """The least max |F| of a model that is of use and costs little, among those trained."""
    if fair.beyond > REACHED:
        return fair.worst
    if plain is None:
        return None
    least = max([plain.accuracy - TOLERATED_LOSS, *(c.accuracy + LEAST_GAIN for c in constants)])
    trained = [
        figures_of(run, choice, constraints)
        for run in runs
        for choice in run.training.candidates(run.place, [run.training.last_epoch])
    ]
    return min((own.worst for own in trained if own.accuracy >= least), default=None)
