"""Trained models and their audit on rows that took no part in the training."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from fairgrad.audit import Audit, Certificate
from fairgrad.audit.counts import mean_costs
from fairgrad.aware import to_predict
from fairgrad.cli.counted import BASELINE, PREDICTED, counted_people
from fairgrad.cli.folder import SavedModel
from fairgrad.cli.prepared import read_prepared
from fairgrad.cli.provenance import Provenance, same_data
from fairgrad.cli.request import guessed_desirable, usual_measures
from fairgrad.cli.training import audit_as_asked, train
from fairgrad.tables.reading import table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from fairgrad.cli.prepared import PreparedTable
    from fairgrad.cli.request import FitRequest, ModelSettings
    from fairgrad.cli.training import TrainedModels


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Test rows, and what models that were not trained on them predict.

    Attributes:
        rows: (n,) their numbers in the table, from 0.
        y: (n,) their labels.
        s: (n, attributes) their sensitive values.
        predicted: (n,) labels.
        scores: (n, labels) probabilities, labels in the order of their names.
        plain: (n,) predictions of the plain model; None if there is none.
        fold: (n,) the number of the model, in cross-validation from 1; else 0.
        labels: names of the columns of `scores`.
    """

    rows: NDArray[Any]
    y: pd.Series
    s: pd.DataFrame
    predicted: NDArray[Any]
    scores: NDArray[Any]
    plain: NDArray[Any] | None
    fold: NDArray[Any]
    labels: tuple[str, ...]

    @classmethod
    def pooled(cls, parts: Sequence[JudgedRows]) -> JudgedRows:
        """Those of all folds, in the order of the table."""
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)

        def joined(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])[order]

        def stacked(name: str) -> Any:
            whole = pd.concat([getattr(part, name) for part in parts], ignore_index=True)
            return whole.iloc[order].reset_index(drop=True)

        return cls(
            rows[order],
            stacked("y"),
            stacked("s"),
            joined("predicted"),
            joined("scores"),
            None if parts[0].plain is None else joined("plain"),
            joined("fold"),
            parts[0].labels,
        )

    def to_frame(self) -> pd.DataFrame:
        """To be written: the numbers of the rows, counted from 1, and what was predicted."""
        columns: dict[str, Any] = {"row": self.rows + 1}
        columns |= {"fold": self.fold} if self.fold.any() else {}
        columns["prediction"] = self.predicted
        columns |= {} if self.plain is None else {"prediction of the plain model": self.plain}
        # Of one model they can be computed again; those of cross-validation are nowhere else.
        scores = self.scores if self.fold.any() else self.scores.round(6)
        for place, name in enumerate(self.labels):
            columns[f"probability of {name}"] = scores[:, place]
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class AuditedModel:
    """A model with its audit on the test rows.

    Attributes:
        model: the model to save.
        trained: the classifiers.
        audit: of the fair model, compared with the plain one if there is one.
        prepared: what they were trained on.
        settings: what was asked.
        judged: the test rows; None if they were counted.
        source: what the result rests on.
    """

    model: SavedModel
    trained: TrainedModels
    audit: Audit
    prepared: PreparedTable
    settings: ModelSettings
    judged: JudgedRows | None
    source: Provenance

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the table and the training."""
        return (*self.prepared.notes, *self.trained.notes)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the model by the rows of its fit; nothing, if it is of use."""
        return self.trained.faults

    @property
    def points(self) -> pd.DataFrame:
        """Figures of the models of the frontier; only if there is one."""
        assert self.trained.frontier is not None  # noqa: S101 - for type checkers
        points: pd.DataFrame = self.trained.frontier.points_
        return points

    @property
    def verdict(self) -> str:
        """On the measures the model was trained for."""
        return self.audit.verdict

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

    @property
    def certificate(self) -> Certificate | None:
        """Whether the model is certified; None if that was not asked for."""
        candidacy = self.trained.candidacy
        return None if candidacy is None else Certificate(self.audit, candidacy)


def fit_table(request: FitRequest, progress: Callable[[str], object]) -> AuditedModel:
    """Reads the table, trains the models asked for, and audits the chosen one.

    Args:
        request: what was asked.
        progress: called with what is done next.
    """
    progress(f"Reading {table_name(request.table)}")
    with tempfile.TemporaryDirectory(prefix="fairgrad-") as folder:
        return _fit_prepared(read_prepared(request, Path(folder)), request, progress)


def _fit_prepared(
    prepared: PreparedTable, request: FitRequest, progress: Callable[[str], object]
) -> AuditedModel:
    settings, plan = request.settings, request.plan
    source = Provenance.of(request.table, plan.file)
    folds = []
    for number, fold in enumerate(prepared.folds, start=1):
        progress(f"Cross-validation: model {number} of {len(prepared.folds)}")
        folds.append(judge(fold, train(fold, settings, _silent), number))
    if plan.file is not None and same_data(plan.file, source.to_dict()):
        if settings.certify:
            raise ValueError(
                f"--test {table_name(plan.file)} is also the training table; a certificate needs "
                "rows that no model has seen"
            )
        warning = f"{table_name(plan.file)} is also the training table: the audit is of known rows."
        prepared = replace(prepared, notes=(*prepared.notes, warning))
    trained = train(prepared, settings, progress)
    progress("Auditing the model on the test rows")
    if prepared.sample is not None and not prepared.from_file:
        return _audit_counted(prepared, settings, trained, source)
    judged = JudgedRows.pooled(folds) if folds else None
    return audit_models(prepared, settings, trained, judged, source)


def _audit_counted(
    prepared: PreparedTable, settings: ModelSettings, trained: TrainedModels, source: Provenance
) -> AuditedModel:
    """Audits models on the rows held out of a large table, which are counted."""
    assert prepared.sample is not None  # noqa: S101 - for type checkers
    table, columns = prepared.sample.table, prepared.columns
    models = [_saved(prepared, one) for one in trained.models]
    needed = dict.fromkeys([columns.target, *columns.sensitive, *models[0].needed])
    people = counted_people(
        table.held_out(list(needed)), models, columns, {}, table.options, table.name
    )
    frame = people.frame
    audit = _full_audit(
        prepared,
        settings,
        (people.truth(), frame[PREDICTED], columns.groups(frame, people.times)),
        baseline=frame[BASELINE] if len(models) > 1 else None,
        sample_weight=people.counts,
    )
    return audited(prepared, settings, trained, audit, None, source)


def _full_audit(
    prepared: PreparedTable, settings: ModelSettings, rows: tuple[Any, Any, Any], **others: Any
) -> Audit:
    """The audit that is kept with a model: the usual measures beside those that were asked for.

    Args:
        prepared: what is known of the table.
        settings: what was asked.
        rows: labels, predictions and sensitive values.
        **others: of the audit.
    """
    return audit_as_asked(
        prepared,
        settings,
        *rows,
        others=usual_measures(prepared.desirable),
        baseline_name="the plain model",
        remarks=guessed_desirable(prepared.columns, prepared.labels),
        **others,
    )


def _silent(_: str) -> None:
    """Cross-validation says what it does by itself."""


def judge(prepared: PreparedTable, trained: TrainedModels, fold: int = 0) -> JudgedRows:
    """What the models predict for the test rows."""
    test, classes = prepared.test, trained.fair.classes_
    known = to_predict(trained.fair, test.s)
    scores, plain = trained.fair.predict_proba(test.X, **known), trained.plain
    return JudgedRows(
        prepared.test_rows,
        test.y,
        test.s,
        trained.fair.predict(test.X, **known),
        scores[:, np.argsort(classes.astype(str))],  # as the audit sorts its labels
        None if plain is None else plain.predict(test.X, **to_predict(plain, test.s)),
        np.full(len(test), fold),
        tuple(sorted(map(str, classes))),
    )


def audit_models(
    prepared: PreparedTable,
    settings: ModelSettings,
    trained: TrainedModels,
    judged: JudgedRows | None = None,
    source: Provenance | None = None,
) -> AuditedModel:
    """Audits the fair model on the test rows, compared with the plain one.

    Args:
        prepared: the rows.
        settings: what was asked.
        trained: the models.
        judged: predictions of cross-validation; None for those of the models.
        source: what the result rests on.
    """
    judged = judged or judge(prepared, trained)
    audit = _full_audit(
        prepared,
        settings,
        (judged.y, judged.predicted, judged.s),
        baseline=judged.plain,
        y_score=judged.scores,
    )
    return audited(prepared, settings, trained, audit, judged, source)


def audited(
    prepared: PreparedTable,
    settings: ModelSettings,
    trained: TrainedModels,
    audit: Audit,
    judged: JudgedRows | None,
    source: Provenance | None,
) -> AuditedModel:
    """The model to save, with its audit.

    Args:
        prepared: what it was trained on.
        settings: what was asked.
        trained: the models.
        audit: of the fair one.
        judged: the rows of the audit; None if they were counted.
        source: what the result rests on.
    """
    epsilon = float(trained.fair.epsilon)
    same = ("separate", "tolerance", "exact", "max_unfairness", "min_accuracy", "model", "seed")
    known = {
        **{name: getattr(settings, name) for name in same},
        "epsilon": epsilon if np.isfinite(epsilon) else None,
        "layers": list(settings.layers),
        "within": list(settings.within),
        "costs": dict(settings.costs),
        "measures": list(settings.measures),
        "desirable": prepared.desirable,
    }
    if trained.candidacy is not None:
        known["certificate"] = Certificate(audit, trained.candidacy).to_dict()
    source = source or Provenance.of(())
    model = replace(
        _saved(prepared, trained.fair),
        settings=known,
        provenance=source.to_dict(),
        held_out={} if prepared.sample is None else prepared.sample.table.hashes,
    )
    return AuditedModel(model, trained, audit, prepared, settings, judged, source)


def _saved(prepared: PreparedTable, classifier: Any) -> SavedModel:
    """A classifier with the columns it was fitted to."""
    return SavedModel(
        Pipeline([("features", prepared.encoder), ("classifier", classifier)]),
        prepared.columns,
        prepared.labels,
        {},
        prepared.groups,
        prepared.missing,
    )
