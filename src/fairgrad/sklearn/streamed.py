"""Fits classifiers to rows that come bit by bit, as `fit_variants` does to rows that are held."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.groups import GroupedRows
from fairgrad.measures import among_counted, check_several_groups, constraints_of
from fairgrad.sklearn.choosing import figures_of
from fairgrad.sklearn.fitting import StackRun
from fairgrad.sklearn.rows import Scaling
from fairgrad.training.streamed import train_streamed
from fairgrad.training.trainer import best_choice
from fairgrad.usefulness import (
    FEWER,
    REACHED,
    FairnessWarning,
    ModelFigures,
    Suggestions,
    constant_figures,
    find_fault,
    warn_of_small,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairgrad.groups import Groups, Ints
    from fairgrad.sklearn.classifier import FairGradClassifier
    from fairgrad.torch.processes import Processes
    from fairgrad.training import Choice
    from fairgrad.training.streamed import Checkpoint, RowSource


@dataclass(frozen=True, eq=False)
class _RowsToCome:
    """What a classifier asks of the rows it is fitted to, before there are any.

    Attributes:
        source: where they come from.
        measure: the model's measure among the groups of enough rows; None for a plain model.
    """

    source: RowSource
    measure: Any
    encoder: None = None

    @classmethod
    def of(cls, model: FairGradClassifier, source: RowSource) -> _RowsToCome:
        measure, groups = model.fairness_measure, source.groups
        if measure is not None:
            check_several_groups(measure, groups, "sensitive_features")
            measure = among_counted(measure, groups, groups.mass.sum(axis=0), model.min_group)
        return cls(source, measure)

    @property
    def is_plain(self) -> bool:
        return self.measure is None

    @property
    def X(self) -> NDArray[np.float32]:  # noqa: N802 - as scikit-learn names features
        return np.empty((0, self.source.n_features), dtype=np.float32)

    @property
    def classes(self) -> NDArray[Any]:
        return np.asarray(self.source.groups.labels)

    @property
    def scaling(self) -> Scaling:
        return Scaling(*self.source.scaling)

    def __len__(self) -> int:
        return int(self.source.groups.mass.sum())

    def groups(self, rows: Ints | None = None) -> Groups | None:  # noqa: ARG002 - they are all
        return None if self.is_plain else self.source.groups

    def split(self, fraction: float, seed: int) -> tuple[None, None]:  # noqa: ARG002 - done before
        return None, None


def fit_streamed(
    models: Sequence[FairGradClassifier],
    source: RowSource,
    *,
    processes: Processes | None = None,
    checkpoint: Checkpoint | None = None,
) -> list[FairGradClassifier]:
    """Fits variants of one classifier to the training rows of a source, in the same passes.

    Each chooses among its last epochs by its own rule and the validation rows, by which it is also
    said what is wrong with it, if anything is (`FairnessWarning`). Settings of "auto"
    are those of one model that reaches exact fairness: `FairGradClassifier.fit` trains several
    beside each other then, and moves the last layer of the best, for which it needs all rows.

    Args:
        models: not fitted; networks of one shape that are not aware of sensitive values.
        source: the rows.
        processes: those that train together; all call this function.
        checkpoint: keeps the state of the training.

    Returns:
        The models, fitted.
    """
    rows: list[Any] = [_RowsToCome.of(model, source) for model in models]
    for model, own in zip(models, rows, strict=True):
        model.n_features_in_ = source.n_features
        model._set_up(own)  # noqa: SLF001 - the classifier's other half, here and below
    first = models[0]
    members = [
        model._member(own, None)  # noqa: SLF001
        for model, own in zip(models, rows, strict=True)
    ]
    training = train_streamed(
        source,
        members,
        first._plan(len(rows[0])),  # noqa: SLF001
        processes=processes,
        checkpoint=checkpoint,
        progress=None if first.verbose == "auto" else bool(first.verbose),
    )
    runs = [StackRun(model, members[place], training, place) for place, model in enumerate(models)]
    found = [_chosen(run) for run in runs]
    plain = next((c for c, own in zip(found, rows, strict=True) if own.is_plain), None)
    for run, choice, own in zip(runs, found, rows, strict=True):
        run.model._finish(run, choice, own)  # noqa: SLF001
        warn_of_small(run.model.set_aside_)
        if not own.is_plain and run.model.compare_plain:
            _warn_of_fault(run, choice, own, plain)
    return list(models)


def _chosen(run: StackRun) -> Choice:
    """The epoch that a model's own rule chooses among those that were kept."""
    choices = run.training.candidates(run.place)
    rule = run.model.selection
    is_auto = isinstance(rule, str) and rule == "auto"
    return choices[best_choice("fairest_of_accurate" if is_auto else rule, choices)]


def _warn_of_fault(run: StackRun, choice: Choice, rows: _RowsToCome, plain: Choice | None) -> None:
    """Says what is wrong with a model by what was counted of the validation rows.

    It is compared with one label for everybody, and with the accuracy of the plain model that was
    trained beside it, if one was.
    """
    model, groups = run.model, rows.source.judged
    constraints = constraints_of(
        rows.measure, groups, epsilon=model.epsilon_, y_desirable=model.y_desirable
    )
    label, group = (index.ravel() for index in np.indices(groups.mass.shape))
    people = GroupedRows(groups, label, group, groups.mass.ravel())
    fair = figures_of(run, choice, constraints)
    suggestions = Suggestions(
        asked=None if np.ndim(model.epsilon_) else float(model.epsilon_),
        aware="",  # not in passes
        fewer=FEWER if len(constraints.names) > 4 else "",
        enough=fair.worst if fair.beyond > REACHED else None,
    )
    fault = find_fault(
        fair,
        constant_figures(constraints, people, model.cost_matrix),
        None if plain is None else ModelFigures(plain.accuracy, np.inf, np.inf),
        groups.labels.tolist(),
        suggestions,
        "validation",
    )
    if fault:
        warnings.warn(fault, FairnessWarning, stacklevel=3)
