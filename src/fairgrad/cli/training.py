"""From a prepared table to trained models: several, of which one is chosen."""

from __future__ import annotations

import gc
import re
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import parallel_config

from fairgrad.audit import Audit, Candidacy, likeliest
from fairgrad.audit.certificate import LIKELY
from fairgrad.cli import terminal
from fairgrad.frontier import Frontier
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.usefulness import FairnessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairgrad.cli.prepared import PreparedTable
    from fairgrad.cli.request import ModelSettings
    from fairgrad.tables.roles import ColumnRoles

FAULT_OPTIONS = {
    "min_group=0": "--min-group 0",
    "min_group": "--min-group",
    "epsilon=": "--tolerance ",
    "epsilon": "--tolerance",
    "use_sensitive=True": "--use-sensitive",
    "max_unfairness": "--max-unfairness",
    "larger tolerance": "larger --tolerance",
}
"""What the library's arguments are called by the program, in sentences about a fit."""

TREES = 300
MAX_LEAF_ROWS, MIN_LEAF_ROWS, LEAVES_PER_TABLE = 100, 20, 200

STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Epsilons that `fit` trains with, in parts of the tolerance."""

FOUR_FIFTHS_EPSILON = 0.1
"""The largest epsilon for the four-fifths rule, a ratio, which no epsilon is equal to."""

MANY_ROWS = 100_000
"""Beyond which memory is worth the time of looking for it."""


@dataclass(frozen=True, eq=False)
class TrainedModels:
    """The classifiers.

    Attributes:
        fair: the one chosen.
        plain: the one trained for accuracy alone; None if there is none.
        frontier: all models, if they are to be shown.
        chosen: the position of the chosen one among them.
        notes: warnings raised by the training.
        faults: what is wrong with the chosen model, as `fairgrad.usefulness` says it.
        candidacy: how it was chosen to be certified, if that was asked for.
    """

    fair: Any
    plain: Any = None
    frontier: Frontier | None = None
    chosen: int | None = None
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    candidacy: Candidacy | None = None

    @property
    def models(self) -> list[Any]:
        """The chosen model, and the one trained for accuracy alone if there is one."""
        return [self.fair] if self.plain is None else [self.fair, self.plain]


def train(
    prepared: PreparedTable, settings: ModelSettings, progress: Callable[[str], object]
) -> TrainedModels:
    """Trains models from exactly fair to unconstrained, and chooses one on the validation rows.

    Args:
        prepared: the rows.
        settings: what was asked.
        progress: called with what is done next.
    """
    if prepared.n_training > MANY_ROWS:
        gc.collect()  # the table is gone by now: its memory is for the training
    epsilons = _epsilons(settings)
    n_models = epsilons if isinstance(epsilons, int) else len(epsilons)
    progress(f"Training {n_models} models, from exactly fair to unconstrained")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        frontier = _fit_frontier(prepared, settings, epsilons)
        trained = _choose(frontier, prepared, settings)
    # Exactly this class: subclasses are libraries' hints to programmers.
    notes = [str(one.message) for one in caught if one.category is UserWarning]
    notes += _about_awareness(trained.fair, prepared.columns)
    faults = [str(one.message) for one in caught if one.category is FairnessWarning]
    return replace(
        trained,
        notes=tuple(dict.fromkeys(notes)),
        faults=tuple(dict.fromkeys(by_options(fault) for fault in faults)),
    )


def _epsilons(settings: ModelSettings) -> int | list[float]:
    """The epsilons to train with, or how many of them."""
    if settings.points is not None:
        return settings.points
    if settings.exact:
        epsilons = [0.0]
    else:
        epsilons = sorted({step * _largest_epsilon(settings) for step in STEPS})
    return [*epsilons, float("inf")] if settings.baseline else epsilons


def _largest_epsilon(settings: ModelSettings) -> float:
    """The tolerance as an epsilon."""
    tolerance = settings.tolerance
    return FOUR_FIFTHS_EPSILON if isinstance(tolerance, str) else tolerance


def _fit_frontier(
    prepared: PreparedTable, settings: ModelSettings, epsilons: int | list[float]
) -> Frontier:
    """Models for all epsilons: networks in one pass, decisions on the same boosted trees."""
    make = _decisions if settings.grows_trees else network
    frontier = Frontier(
        make(prepared, settings), epsilons=epsilons, random_state=settings.seed, n_jobs=-1
    )
    rows = prepared.training
    with parallel_config(backend="threading"):  # boosting mostly runs outside of Python's lock
        return frontier.fit(
            rows.X,
            rows.y,
            **rows.groups,
            validation=prepared.validation.parts,
            # Only frontiers that are shown have figures of the test rows. Those for a certificate
            # are looked at once, for the one model that was chosen.
            test=prepared.test.parts
            if settings.points and not settings.certify and not prepared.folds
            else None,
        )


def _choose(frontier: Frontier, prepared: PreparedTable, settings: ModelSettings) -> TrainedModels:
    """The model that was asked for, and the one trained for accuracy alone.

    Raises:
        ValueError: if no model is within the bound that was asked for.
    """
    candidacy = None
    if settings.max_unfairness is not None or settings.min_accuracy is not None:
        chosen = frontier.choose(
            max_unfairness=settings.max_unfairness, min_accuracy=settings.min_accuracy
        )
    elif settings.exact:
        chosen = 0
        frontier.warn_of_fault(chosen, "epsilon")
    elif settings.certify:
        audits = _validation_audits(frontier, prepared, settings)
        costs = settings.cost_matrix(audits[0].labels)
        candidacy = likeliest(audits, prepared.totals.test, costs)
        chosen = candidacy.position
        frontier.warn_of_fault(chosen, "tolerance")
    else:
        chosen = _likely_fair(frontier, prepared, settings)
        frontier.warn_of_fault(chosen, "tolerance")
    models, epsilons = frontier.estimators_, frontier.points_["epsilon"].to_numpy()
    plain = models[int(epsilons.argmax())] if np.isinf(epsilons.max()) else None
    return TrainedModels(
        models[chosen],
        plain if settings.baseline else None,
        frontier if settings.points is not None else None,
        chosen,
        candidacy=candidacy,
    )


def _likely_fair(frontier: Frontier, prepared: PreparedTable, settings: ModelSettings) -> int:
    """The position of the most accurate model that is likely to be judged fair on the test rows.

    If too few validation rows make any model likely, their noise should not choose: half of the
    tolerance is then the epsilon. On 12 splits of four tables half of the tolerance was more
    accurate than the model with the best chance to pass (.766 against .758 by demographic parity)
    and was judged fair about as often (6 against 7 times).
    """
    audits = _validation_audits(frontier, prepared, settings)
    try:
        candidacy = likeliest(audits, prepared.totals.test, settings.cost_matrix(audits[0].labels))
        if candidacy.chance >= LIKELY:
            return candidacy.position
    except ValueError:  # nothing is more accurate than one label for everybody
        pass
    margin = _largest_epsilon(settings) / 2
    return int(np.abs(frontier.points_["epsilon"].to_numpy() - margin).argmin())


def _validation_audits(
    frontier: Frontier, prepared: PreparedTable, settings: ModelSettings
) -> Sequence[Audit]:
    """The audit of each model on the validation rows, by the tolerance that was asked for."""
    rows = prepared.validation
    return [
        audit_as_asked(
            prepared,
            settings,
            rows.y,
            np.asarray(one.labels)[one.predicted],
            rows.s,
            sample_weight=rows.weight,
        )
        for one in frontier.audits_["validation"]
    ]


def audit_as_asked(
    prepared: PreparedTable, settings: ModelSettings, y: Any, predicted: Any, s: Any, **others: Any
) -> Audit:
    """An audit by the measures and the tolerance that were asked for."""
    return Audit(
        y,
        predicted,
        s,
        measures=settings.measure_on(prepared.columns.sensitive),
        tolerance=settings.audit_tolerance,
        min_group=settings.min_group,
        y_desirable=prepared.desirable,
        labels=list(prepared.labels),
        **others,
    )


def by_options(sentence: str) -> str:
    """What the library says of its arguments, in the words of the program."""
    # At once: "epsilon=" must not become "--tolerance ", and that "----tolerance ".
    return re.sub("|".join(FAULT_OPTIONS), lambda found: FAULT_OPTIONS[found[0]], sentence)


def _about_awareness(model: Any, columns: ColumnRoles) -> list[str]:
    """What the reader should know of a model that uses sensitive columns to predict."""
    if not columns.use_sensitive:
        return []
    names = " and ".join(columns.sensitive)
    note = f"The model uses {names} to predict; check that the law allows it."
    if isinstance(model, FairGradClassifier) and model.levels_unknown_ is not None:
        known, unknown = (np.nanmean(np.abs(f)) for f in (model.levels_, model.levels_unknown_))
        note += (
            " If nobody's value were known, its unfairness in training would be "
            f"{unknown:.3f} instead of {known:.3f}."
        )
    return [note]


def _shared(prepared: PreparedTable, settings: ModelSettings) -> dict[str, Any]:
    """Parameters that all fair classifiers have."""
    return {
        "fairness_measure": settings.measure_on(prepared.columns.sensitive),
        "y_desirable": prepared.desirable,
        "min_group": settings.min_group,
        "use_sensitive": prepared.columns.use_sensitive,
        "cost_matrix": settings.cost_matrix(sorted(prepared.labels)),
        "random_state": settings.seed,
    }


def network(prepared: PreparedTable, settings: ModelSettings) -> FairGradClassifier:
    """An unfitted linear model or network."""
    further: dict[str, Any] = {} if settings.epochs is None else {"max_iter": settings.epochs}
    if settings.layers:  # the paper's: without these, deep ones swing too much to be made fair
        further |= {"hidden_layer_sizes": settings.layers, "dropout": 0.2}
    further["verbose"] = "auto" if terminal.shows_progress() else False
    return FairGradClassifier(**_shared(prepared, settings), **further)


def _decisions(prepared: PreparedTable, settings: ModelSettings) -> FairDecisionClassifier:
    """Unfitted fair decisions on boosted trees."""
    trees = boosted_trees(settings, prepared.n_training)
    return FairDecisionClassifier(trees, **_shared(prepared, settings))


def boosted_trees(settings: ModelSettings, n_rows: int) -> Any:
    """An unfitted classifier whose trees fit little of the noise, so that fairness carries over.

    Leaves hold at least 100 rows; in small tables a two-hundredth of the rows, but at least 20.

    Args:
        settings: what was asked.
        n_rows: how many rows it will be trained on.
    """
    leaf_rows = min(MAX_LEAF_ROWS, max(MIN_LEAF_ROWS, n_rows // LEAVES_PER_TABLE))
    shared = {"n_estimators": settings.epochs or TREES, "random_state": settings.seed}
    library = import_module(f"fairgrad.{settings.model}")  # optional
    if settings.model == "xgboost":
        return library.FairGradXGBClassifier(
            None,
            **shared,
            max_leaves=15,
            max_depth=0,
            grow_policy="lossguide",
            # A row's hessian is at most a quarter.
            min_child_weight=leaf_rows / 4,
            learning_rate=0.1,
            colsample_bytree=0.3,
            n_jobs=1,
            verbosity=0,
        )
    return library.FairGradLGBMClassifier(
        None,
        **shared,
        num_leaves=15,
        min_child_samples=leaf_rows,
        colsample_bytree=0.3,
        deterministic=True,
        force_row_wise=True,
        n_jobs=0,  # as many threads as OpenMP is told to use
        verbose=-1,
    )
