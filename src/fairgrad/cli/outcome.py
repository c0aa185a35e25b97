"""From a table and what was asked of it to a trained, audited model."""

from __future__ import annotations

import gc
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from fairgrad.audit import Audit
from fairgrad.cli.folder import Model
from fairgrad.cli.training import Rows, train
from fairgrad.cli.verdicts import measures_for, verdict_on
from fairgrad.tables.encoding import describe_features, encode_rows, fitted_encoder

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import NDArray

    from fairgrad.cli.settings import Settings
    from fairgrad.cli.training import Trained
    from fairgrad.tables.encoding import TrainedFeature
    from fairgrad.tables.roles import ColumnRoles, LabelledTable


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table split, encoded and described; the table itself is not needed any more.

    Attributes:
        rest: training rows, then validation rows.
        test: held-out rows.
        test_rows: their numbers in the table.
        pipeline_start: the fitted encoder.
        features: what is known of each feature.
        labels: values of the target, the desirable one last.
        columns: which column played which part.
        notes: what the reader should know about the table.
    """

    rest: Rows
    test: Rows
    test_rows: NDArray[Any]
    pipeline_start: Any
    features: list[TrainedFeature]
    labels: list[str]
    columns: ColumnRoles
    notes: tuple[str, ...]

    @property
    def desirable(self) -> str | None:
        """The desirable label: of two labels there always is one, of more if it was named."""
        named = self.columns.positive is not None
        return self.labels[-1] if named or len(self.labels) == 2 else None


@dataclass(frozen=True, eq=False)
class Outcome:
    """A model with its audit on held-out rows.

    Attributes:
        model: to be saved.
        trained: the classifiers.
        audit: of the fair model, against the plain one if there is one.
        prepared: what they were trained on.
        settings: what was asked.
        notes: what the reader should know.
    """

    model: Model
    trained: Trained
    audit: Audit
    prepared: Prepared
    settings: Settings
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """On the measure the model was trained for."""
        return verdict_on(self.audit, [self.settings.measure], separate=self.settings.separate)


def prepare(frame: pd.DataFrame, columns: ColumnRoles, settings: Settings) -> Prepared:
    """Splits and encodes a table.

    Raises:
        ValueError: if a column cannot be used.
    """
    people = columns.apply(frame)
    _check_desirable(people, columns, settings)
    train_rows, validation_rows, test_rows = people.split(settings.seed)
    rest_rows = np.concatenate([train_rows, validation_rows])
    features = describe_features(people.features, frame, rest_rows)
    encoder = fitted_encoder(features)

    def encoded(rows: NDArray[Any]) -> Rows:
        matrix = encode_rows(encoder, people.features, rows)
        return Rows(matrix, people.labels(rows), people.groups(rows))

    return Prepared(
        rest=encoded(rest_rows),
        test=encoded(test_rows),
        test_rows=test_rows,
        pipeline_start=encoder,
        features=features,
        labels=people.values,
        columns=columns,
        notes=people.all_notes,
    )


def fit(
    prepared: Prepared,
    settings: Settings,
    *,
    tolerance: Any,
    with_plain: bool = True,
    show: Callable[[str], object] = lambda _: None,
) -> Outcome:
    """Trains what was asked and audits it on the test rows."""
    gc.collect()  # the table is gone by now: its memory is for the training
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        trained = train(
            prepared.rest,
            prepared.test,
            settings,
            prepared.desirable,
            with_plain=with_plain,
            show=show,
        )
    said = tuple(dict.fromkeys(str(one.message) for one in caught if _is_ours(one)))
    show("Auditing it on the rows held out")
    return outcome_of(prepared, settings, trained, tolerance, said)


def outcome_of(
    prepared: Prepared,
    settings: Settings,
    trained: Trained,
    tolerance: Any,
    said: tuple[str, ...] = (),
) -> Outcome:
    """Audits what was trained on the test rows."""
    audit = audit_of(trained, prepared, settings, tolerance)
    pipeline = Pipeline([("features", prepared.pipeline_start), ("classifier", trained.fair)])
    model = Model(
        pipeline,
        prepared.columns,
        prepared.features,
        prepared.labels,
        _plain_settings(settings, prepared, trained),
    )
    return Outcome(model, trained, audit, prepared, settings, (*prepared.notes, *said))


def audit_of(trained: Trained, prepared: Prepared, settings: Settings, tolerance: Any) -> Audit:
    """The fair model on the test rows, against the plain one."""
    test = prepared.test
    scores = trained.fair.predict_proba(test.X)
    classes = trained.fair.classes_
    order = np.argsort(classes.astype(str))  # as the audit sorts its labels
    return Audit(
        test.y,
        classes[scores.argmax(axis=1)],
        test.s,
        measures=measures_for(prepared.desirable, [settings.measure]),
        tolerance=tolerance,
        baseline=None if trained.plain is None else trained.plain.predict(test.X),
        y_score=scores[:, order],
        y_desirable=prepared.desirable,
        labels=list(prepared.labels),
    )


def _check_desirable(people: LabelledTable, columns: ColumnRoles, settings: Settings) -> None:
    """Refuses what could only fail after training."""
    n = len(people.values)
    if n > 2 and settings.measure in {"demographic_parity", "four_fifths_rule"}:
        raise ValueError(
            f"--measure {settings.measure} needs a target of two values; {columns.target!r} has {n}"
        )
    if n > 2 and settings.measure == "equality_of_opportunity" and columns.positive is None:
        raise ValueError(
            f"--measure {settings.measure} speaks of the desirable value of {columns.target!r}; "
            f"name it with --positive, one of {', '.join(people.values)}"
        )


def _plain_settings(settings: Settings, prepared: Prepared, trained: Trained) -> dict[str, Any]:
    epsilon = float(trained.fair.epsilon)
    return {
        "measure": settings.measure,
        "separate": settings.separate,
        "epsilon": epsilon if np.isfinite(epsilon) else None,
        "max_unfairness": settings.max_unfairness,
        "min_accuracy": settings.min_accuracy,
        "model": settings.model,
        "hidden": list(settings.hidden),
        "seed": settings.seed,
        "desirable": prepared.desirable,
    }


def _is_ours(warning: Any) -> bool:
    """Whether a warning is about the training, and not a library's hint to programmers."""
    return warning.category is UserWarning
