"""From a prepared table to a model: several are trained, one is chosen and audited."""

from __future__ import annotations

import gc
import re
import tempfile
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from joblib import parallel_config
from sklearn.pipeline import Pipeline

from fairgrad.audit import Audit, SeenRows, likeliest
from fairgrad.audit.certificate import LIKELY
from fairgrad.audit.counts import mean_costs
from fairgrad.audit.verdicts import tolerated_ratio
from fairgrad.aware import to_predict
from fairgrad.cli import output
from fairgrad.cli.folder import BASELINE, PREDICTED, SavedModel, provenance, same_data
from fairgrad.cli.prepared import group_membership, read_prepared
from fairgrad.cli.request import audit_tolerance, guessed_desirable, usual_measures
from fairgrad.frontier import Frontier, epsilon_grid
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.tables.reading import table_name
from fairgrad.usefulness import SAME_DECISIONS, FairnessWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairgrad.cli.people import AuditedPeople
    from fairgrad.cli.prepared import PreparedTable
    from fairgrad.cli.request import FitRequest
    from fairgrad.tables.roles import ColumnRoles

TERMS = {
    "min_group=0": ("--min-group 0", "a minimum size of 0"),
    "min_group": ("--min-group", "the minimum size of groups"),
    "No epsilon": ("No --tolerance", "No tolerance"),
    "larger epsilon": ("larger --tolerance", "larger tolerance"),
    "larger tolerance": ("larger --tolerance", "larger tolerance"),
    "epsilon=": ("--tolerance ", "The tolerance of "),
    "epsilon": ("--tolerance", "tolerance"),
    "use_sensitive=True": ("--use-sensitive", "sensitive values as inputs"),
    "max_unfairness": ("--max-unfairness", "bound on unfairness"),
    "max |F|": ("max |F|", "largest gap"),
}
"""Words in the library's sentences about a fit, and those of the program and of its pages.

Readers of report and model card may not use the program.
"""

TREES = 300

STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Epsilons that `fit` trains with, in parts of the largest."""

MANY_ROWS = 100_000
"""Beyond which memory is worth the time of looking for it."""


@dataclass(frozen=True, eq=False)
class TrainedModels:
    """The classifiers.

    Attributes:
        fair: the one chosen.
        plain: the one trained for accuracy alone; None if the measure allows none.
        frontier: all models, if they are to be shown.
        chosen: the position of the chosen one among them.
        notes: warnings raised by the training.
        warned: what is wrong with the chosen model, as `fairgrad.usefulness` says it.
    """

    fair: Any
    plain: Any
    frontier: Frontier | None
    chosen: int
    notes: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()

    @property
    def faults(self) -> list[str]:
        """What is wrong with the chosen model, with the names of options."""
        return [in_terms(fault) for fault in self.warned]

    @property
    def plain_faults(self) -> list[str]:
        """The same for report and model card."""
        return [in_terms(fault, on_pages=True) for fault in self.warned]


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A model with its audit on the test rows.

    Attributes:
        model: the model to save.
        trained: the classifiers.
        audit: of the fair model, compared with the plain one if there is one.
        prepared: what they were trained on.
        settings: what was asked.
        judged: predictions for the test rows; None if they were counted.
        source: what the result rests on.
    """

    model: SavedModel
    trained: TrainedModels
    audit: Audit
    prepared: PreparedTable
    settings: FitRequest
    judged: pd.DataFrame | None
    source: dict[str, Any]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the table and the training."""
        return (*self.prepared.notes, *self.trained.notes)

    @property
    def mean_costs(self) -> dict[str, float]:
        """What a prediction costs on the test rows, of both models; empty without costs."""
        costs = self.settings.cost_matrix(self.audit.labels)
        if costs is None:
            return {}
        audits = {"fair": self.audit, "plain": self.audit.baseline}
        return {
            name: float(mean_costs(one.table.mass.sum(axis=0), np.array(costs)))
            for name, one in audits.items()
            if one is not None
        }


def fit_table(request: FitRequest) -> AuditedModel:
    """Reads the table, trains the models asked for, and audits the chosen one."""
    output.progress(f"Reading {table_name(request.table)}")
    with tempfile.TemporaryDirectory(prefix="fairgrad-") as folder:
        return fit_prepared(read_prepared(request, Path(folder)), request)


def fit_prepared(prepared: PreparedTable, request: FitRequest) -> AuditedModel:
    """Trains the models asked for, and audits the chosen one on the test rows."""
    source = provenance(request.table, request.test)
    if request.test is not None and same_data(request.test, source):
        name = table_name(request.test)
        warning = f"{name} is also the training table: the audit is of known rows."
        prepared = replace(prepared, notes=(*prepared.notes, warning))
    folds = []
    for number, fold in enumerate(prepared.folds, start=1):
        output.progress(f"Cross-validation: model {number} of {len(prepared.folds)}")
        folds.append(judge(fold, train(fold, request), number))
    n_models = request.points or len(_epsilons(prepared, request))
    output.progress(f"Training {n_models} models, from exactly fair to unconstrained")
    trained = train(prepared, request)
    output.progress("Auditing the model on the test rows")
    test, judged = prepared.test, None
    further: dict[str, Any]
    held_out: dict[str, Any] = {}
    if prepared.sample is not None and request.test is None:
        people, held_out = _held_out(prepared, request, trained), prepared.sample.table.hashes
        frame = people.frame
        rows = (people.truth(), frame[PREDICTED], people.columns.groups(frame, people.times))
        further = {"sample_weight": people.counts}
    else:
        frame = judged = (
            pd.concat(folds).sort_values("row", ignore_index=True)
            if folds
            else judge(prepared, trained)
        )
        rows = (test.y, frame["prediction"], test.s)
        scores = frame[[f"probability of {name}" for name in sorted(prepared.labels)]].to_numpy()
        membership = group_membership(test.X, test.y, test.s)
        further = {"sample_weight": test.weight, "y_score": scores, "membership": membership}
    audit = audit_as_asked(
        prepared,
        request,
        *rows,
        baseline=frame.get(BASELINE),
        others=usual_measures(prepared.desirable),
        baseline_name="the plain model",
        remarks=guessed_desirable(prepared.columns, prepared.labels),
        **further,
    )
    model = _saved(
        prepared,
        request,
        trained.fair,
        settings=_settings(prepared, request, trained),
        provenance=source,
        held_out=held_out,
        seen=SeenRows.of(prepared.rest.X),
    )
    return AuditedModel(model, trained, audit, prepared, request, judged, source)


def _held_out(
    prepared: PreparedTable, request: FitRequest, trained: TrainedModels
) -> AuditedPeople:
    """The rows held out of a large table, counted by what the models predict for them."""
    from fairgrad.cli.counted import counted_people  # noqa: PLC0415 - for large tables only

    assert prepared.sample is not None  # noqa: S101 - for type checkers
    table, columns = prepared.sample.table, prepared.columns
    classifiers = [one for one in (trained.fair, trained.plain) if one is not None]
    models = [_saved(prepared, request, one) for one in classifiers]
    needed = dict.fromkeys([columns.target, *columns.sensitive, *models[0].needed])
    rows = table.held_out(list(needed))
    return counted_people(rows, models, table.source.name, request.reading, columns)


def judge(prepared: PreparedTable, trained: TrainedModels, fold: int = 0) -> pd.DataFrame:
    """What the models predict for the test rows; rows and folds are counted from 1."""
    test, fair, plain = prepared.test, trained.fair, trained.plain
    known = to_predict(fair, test.s)
    columns: dict[str, Any] = {"row": prepared.test_rows + 1}
    columns |= {"fold": fold} if fold else {}
    columns["prediction"] = fair.predict(test.X, **known)
    if plain is not None:
        columns[BASELINE] = plain.predict(test.X, **to_predict(plain, test.s))
    scores = dict(zip(map(str, fair.classes_), fair.predict_proba(test.X, **known).T, strict=True))
    columns |= {f"probability of {name}": scores[name] for name in sorted(scores)}
    return pd.DataFrame(columns)


def _saved(
    prepared: PreparedTable, request: FitRequest, classifier: Any, **known: Any
) -> SavedModel:
    """A classifier with the columns it was fitted to, and what else is known of it."""
    steps = [("features", prepared.encoder), ("classifier", classifier)]
    return SavedModel(
        pipeline=Pipeline(steps),
        columns=prepared.columns,
        labels=prepared.labels,
        groups=prepared.groups,
        missing=request.reading.missing,
        **known,
    )


def _settings(
    prepared: PreparedTable, request: FitRequest, trained: TrainedModels
) -> dict[str, Any]:
    """What a model was trained for, as plain values."""
    epsilon = float(trained.fair.epsilon)
    same = ("separate", "tolerance", "exact", "max_unfairness", "min_accuracy", "model", "seed")
    return {
        **{name: getattr(request, name) for name in (*same, "weight")},
        **{name: list(getattr(request, name)) for name in ("layers", "within", "measures")},
        "epsilon": epsilon if np.isfinite(epsilon) else None,
        "costs": dict(request.costs),
        "desirable": prepared.desirable,
    }


def train(prepared: PreparedTable, request: FitRequest) -> TrainedModels:
    """Trains models from exactly fair to unconstrained, and chooses one on the validation rows.

    Networks are trained in one pass, and decisions use the same boosted trees.
    """
    if prepared.n_training > MANY_ROWS:
        gc.collect()  # the table is gone by now: its memory is for the training
    epsilons = _epsilons(prepared, request)
    if request.points is not None:
        further = request.points - len(epsilons) + 2  # the grid has the least and the largest, too
        epsilons = np.union1d(epsilons, epsilon_grid(further, with_plain=True))
    estimator, rows = _estimator(prepared, request), prepared.training
    frontier = Frontier(estimator, epsilons=epsilons, random_state=request.seed, n_jobs=-1)
    # Only frontiers that are shown have figures of the test rows.
    shows_test = request.points and not prepared.folds
    with (
        warnings.catch_warnings(record=True) as caught,
        parallel_config(backend="threading"),  # boosting mostly runs outside of Python's lock
    ):
        warnings.simplefilter("always", UserWarning)
        frontier.fit(
            rows.X,
            rows.y,
            sensitive_features=rows.s,
            sample_weight=rows.weight,
            membership=group_membership(rows.X, rows.y, rows.s),
            validation=prepared.validation,
            test=prepared.test if shows_test else None,
        )
        chosen = _choose(frontier, prepared, request)
    models, is_plain = frontier.estimators_, np.isinf(frontier.points_["epsilon"].to_numpy())
    plain = int(is_plain.argmax()) if is_plain.any() else None
    # Exactly this class: subclasses are libraries' hints to programmers.
    notes = [str(one.message) for one in caught if one.category is UserWarning]
    notes += _about_awareness(models[chosen], prepared.columns)
    judged = frontier.audits_["validation"]
    if plain is not None and (judged[chosen].predicted == judged[plain].predicted).all():
        notes.append(f"{SAME_DECISIONS} on all validation rows: fairness changes nothing here.")
    faults = [str(one.message) for one in caught if one.category is FairnessWarning]
    return TrainedModels(
        models[chosen],
        None if plain is None else models[plain],
        frontier if request.points is not None else None,
        chosen,
        notes=tuple(map(in_terms, dict.fromkeys(notes))),
        warned=tuple(dict.fromkeys(faults)),
    )


def in_terms(sentence: str, *, on_pages: bool = False) -> str:
    """A sentence with the `TERMS` of the program, all replaced at once: none is replaced again."""
    pattern = "|".join(map(re.escape, TERMS))
    return re.sub(pattern, lambda match: TERMS[match[0]][on_pages], sentence)


def _largest_epsilon(prepared: PreparedTable, request: FitRequest) -> float:
    """The tolerance as an epsilon.

    If all rates are at least a ratio of the highest, none is further from the overall rate m than
    ``(1 - ratio) m / ratio``. Rates of a fair model are about those of the labels.
    """
    ratio = tolerated_ratio(request.tolerance)
    if ratio is None:
        return float(request.tolerance)
    rate = float((prepared.training.y == prepared.desirable).mean())
    return (1 - ratio) * rate / max(ratio, 0.5)


def _epsilons(prepared: PreparedTable, request: FitRequest) -> NDArray[np.float64]:
    """The epsilons that `fit` trains with, and `frontier` among others; infinity is plain."""
    steps = STEPS[:1] if request.exact else STEPS
    return np.unique([*(_largest_epsilon(prepared, request) * np.array(steps)), np.inf])


def _choose(frontier: Frontier, prepared: PreparedTable, request: FitRequest) -> int:
    """The position of the model that was asked for; warns if something is wrong with it."""
    if request.max_unfairness is not None or request.min_accuracy is not None:
        return frontier.choose(  # which warns
            max_unfairness=request.max_unfairness, min_accuracy=request.min_accuracy
        )
    if request.exact:
        frontier.warn_of_fault(0, "epsilon")
        return 0
    chosen = _likely_fair(frontier, prepared, request)
    tolerated = request.tolerance if isinstance(request.tolerance, float) else None
    frontier.warn_of_fault(chosen, "tolerance", tolerated)
    return chosen


def _likely_fair(frontier: Frontier, prepared: PreparedTable, request: FitRequest) -> int:
    """The position of the most accurate model that is likely to be judged fair on the test rows.

    `frontier` trains further models, which are only shown: it chooses the one that `fit` does.

    If too few validation rows make any model likely, their noise should not choose: half of the
    tolerance is then the epsilon. On 12 splits of four tables half of the tolerance was more
    accurate than the model with the best chance to pass (.766 against .758 by demographic parity)
    and was judged fair about as often (6 against 7 times).
    """
    offered = np.flatnonzero(np.isin(frontier.points_["epsilon"], _epsilons(prepared, request)))
    rows, judged = prepared.validation, frontier.audits_["validation"]
    audits = [
        audit_as_asked(
            prepared,
            request,
            rows.y,
            np.asarray(one.labels)[one.predicted],
            rows.s,
            sample_weight=rows.weight,
        )
        for one in (judged[int(position)] for position in offered)
    ]
    try:
        costs = request.cost_matrix(audits[0].labels)
        candidacy = likeliest(audits, prepared.n_test, costs)
        # A ratio of rates says too little about epsilons to fall back on half of it.
        if candidacy.chance >= LIKELY or isinstance(request.tolerance, str):
            return int(offered[candidacy.position])
    except ValueError:  # nothing is more accurate than one label for everybody
        pass
    margin = _largest_epsilon(prepared, request) / 2
    return int(offered[np.abs(frontier.points_["epsilon"].to_numpy()[offered] - margin).argmin()])


def audit_as_asked(
    prepared: PreparedTable, request: FitRequest, y: Any, predicted: Any, s: Any, **others: Any
) -> Audit:
    """An audit by the measures and the tolerance that were asked for."""
    return Audit(
        y,
        predicted,
        s,
        measures=request.measure_on(prepared.columns.sensitive),
        tolerance=audit_tolerance(request.tolerance, request.measures),
        min_group=request.min_group,
        y_desirable=prepared.desirable,
        labels=list(prepared.labels),
        **others,
    )


def _about_awareness(model: Any, columns: ColumnRoles) -> list[str]:
    """What the reader should know of a model that uses sensitive columns to predict."""
    if not columns.use_sensitive:
        return []
    names = " and ".join(columns.sensitive)
    note = f"The model uses {names} to predict; check that the law allows it."
    if isinstance(model, FairGradClassifier) and model.levels_unknown_ is not None:
        known, unknown = (np.nanmean(np.abs(f)) for f in (model.levels_, model.levels_unknown_))
        note += (
            " If no value were known, its unfairness in training would be "
            f"{unknown:.3f} instead of {known:.3f}."
        )
    return [note]


def _estimator(prepared: PreparedTable, request: FitRequest) -> Any:
    """An unfitted linear model or network, or unfitted fair decisions on boosted trees."""
    shared = {
        "fairness_measure": request.measure_on(prepared.columns.sensitive),
        "y_desirable": prepared.desirable,
        "min_group": request.min_group,
        "use_sensitive": prepared.columns.use_sensitive,
        "cost_matrix": request.cost_matrix(sorted(prepared.labels)),
        "random_state": request.seed,
        "verbose": "auto" if output.shows_progress() else False,
    }
    if request.grows_trees:
        return FairDecisionClassifier(boosted_trees(request, prepared.n_training), **shared)
    further: dict[str, Any] = {} if request.epochs is None else {"max_iter": request.epochs}
    if request.layers:  # the paper's: without these, deep ones swing too much to be made fair
        further |= {"hidden_layer_sizes": request.layers, "dropout": 0.2}
    return FairGradClassifier(**shared, **further)


def boosted_trees(request: FitRequest, n_rows: int) -> Any:
    """An unfitted classifier whose trees fit little of the noise, so that fairness carries over.

    Leaves hold at least 100 rows; in small tables a two-hundredth of the rows, but at least 20.
    """
    leaf_rows = min(100, max(20, n_rows // 200))
    shared = {"n_estimators": request.epochs or TREES, "random_state": request.seed}
    library = import_module(f"fairgrad.{request.model}")  # optional
    if request.model == "xgboost":
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
