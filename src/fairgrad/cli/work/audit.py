"""What ``fairgrad audit`` does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.audit import Audit
from fairgrad.cli import show
from fairgrad.cli.folder import load_model
from fairgrad.cli.output import check_file
from fairgrad.cli.verdicts import measures_for, verdict_on
from fairgrad.cli.work.request import columns_of, exit_code, tolerance_of
from fairgrad.files import whole_file
from fairgrad.tables.encoding import Oddities
from fairgrad.tables.reading import column_names, pieces, read_table
from fairgrad.tables.roles import ColumnRoles, check_named, number_column
from fairgrad.tables.values import as_categories

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_command", 1


@dataclass(frozen=True, eq=False)
class Subject:
    """What is to be audited.

    Attributes:
        table: the file.
        columns: which column plays which part.
        predicted: (n,) predictions as texts.
        score: probabilities of the desirable label, or of every label; None if not known.
        labels: all labels that are known without the table.
        judged: names of the measures that --fail-on looks at; none for all that are asked.
        separate: whether only single attributes count there.
        asked: for the report.
    """

    table: str
    columns: ColumnRoles
    predicted: Any
    score: Any
    labels: list[str] | None
    judged: list[str]
    separate: bool
    asked: dict[str, str]


def run(given: Mapping[str, Any]) -> int:
    """Audits, shows, writes."""
    targets = {
        name: check_file(given[name], force=given["force"])
        for name in ("out", "report")
        if given[name] is not None
    }
    subject = _of_model(given) if _is_model(given) else _of_table(given)
    audit = _audit(subject, given)
    judged = list(given["measure"]) or subject.judged
    verdict = verdict_on(audit, judged, separate=subject.separate) if judged else audit.verdict
    _write(audit, subject, targets)
    if given["as_json"]:
        found = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "verdict": verdict}
        show.show_json({**found, "judged_by": judged or "all", "audit": audit.to_dict()})
    else:
        show.screen().print(audit)
        if judged:
            named = ", ".join(name.replace("_", " ") for name in judged)
            show.screen().print(f"Verdict on {named}: {verdict}.", markup=False, style="bold")
        for path in targets.values():
            show.tell(f"Written: {path}")
    return exit_code(verdict, given["fail_on"])


def _is_model(given: Mapping[str, Any]) -> bool:
    if given["table"] is None:
        if Path(given["subject"]).is_dir():
            raise ValueError(
                f"{given['subject']} is a folder; name the table to audit this model on: "
                f"fairgrad audit {given['subject']} table.csv"
            )
        return False
    unfit = [n for n in ("prediction", "positive", "bins", "target") if given[n]]
    if unfit:
        raise ValueError(f"--{unfit[0]} is for tables with predictions, not for models")
    return True


def _of_model(given: Mapping[str, Any]) -> Subject:
    table = given["table"]
    names = column_names(table)
    model = load_model(given["subject"], names)
    own = model.columns
    sensitive = tuple(given["sensitive"]) or own.sensitive
    bins = {name: edges for name, edges in own.bins.items() if name in sensitive}
    columns = ColumnRoles(own.target, sensitive, bins=bins, prefix="--")
    columns.check(names)
    scores, odd = [], Oddities()
    for piece in pieces(table):
        known = piece[piece[own.target].notna()]
        found, strange = model.scores(known)
        scores.append(found)
        odd.add(strange)
    show.notes(odd.sentences())
    score = np.concatenate(scores)
    predicted = np.asarray(model.labels, dtype=object)[score.argmax(axis=1)]
    order = np.argsort(np.asarray(model.labels, dtype=str))
    return Subject(
        table=table,
        columns=replace(columns, positive=model.settings["desirable"]),
        predicted=predicted,
        score=score[:, order],
        labels=list(model.labels),
        judged=[model.measure],
        separate=bool(model.settings["separate"]),
        asked={"Model": Path(given["subject"]).name, "Trained for": model.measure},
    )


def _of_table(given: Mapping[str, Any]) -> Subject:
    for name in ("target", "prediction", "sensitive"):
        if not given[name]:
            raise ValueError(
                f"--{name} is missing; a table with predictions is audited as: fairgrad audit "
                "table.csv --target COLUMN --prediction COLUMN --sensitive COLUMN"
            )
    table = given["subject"]
    columns = columns_of(given)
    names = column_names(table)
    columns.check(names)
    for option in ("prediction", "baseline", "score", "weight"):
        check_named([given[option]] if given[option] else [], names, f"--{option}")
    return Subject(table, columns, None, None, None, [], separate=False, asked={})


def _audit(subject: Subject, given: Mapping[str, Any]) -> Audit:
    columns = subject.columns
    named = [given[name] for name in ("prediction", "baseline", "score", "weight") if given[name]]
    frame = read_table(subject.table, [columns.target, *columns.sensitive, *named])
    frame = frame[frame[columns.target].notna()].reset_index(drop=True)
    if not len(frame):
        raise ValueError(f"no row of {subject.table} has a {columns.target}")
    truth = _texts(frame[columns.target])
    predicted, labels = subject.predicted, subject.labels
    if predicted is None:
        predicted = _texts(frame[given["prediction"]])
        labels = columns.all_labels(frame, given["prediction"])
    positive = columns.positive
    if positive is None and labels is not None and len(labels) == 2:
        positive = labels[-1]
    return Audit(
        pd.Series(truth, name=columns.target, dtype=object),
        predicted,
        columns.groups(frame),
        measures=list(given["measure"]) or measures_for(positive, subject.judged),
        tolerance=tolerance_of(given),
        confidence=given["confidence"],
        baseline=_texts(frame[given["baseline"]]) if given["baseline"] else None,
        y_score=number_column(frame, given["score"], "--score")
        if given["score"]
        else subject.score,
        sample_weight=number_column(frame, given["weight"], "--weight")
        if given["weight"]
        else None,
        y_desirable=positive,
        labels=labels,
    )


def _texts(column: pd.Series) -> Any:
    """Values by their names, so that 1, 1.0 and "1" are the same label."""
    return np.asarray(as_categories(column), dtype=object)


def _write(audit: Audit, subject: Subject, targets: Mapping[str, Path]) -> None:
    if "out" in targets:
        audit.to_json(targets["out"])
    if "report" in targets:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        asked = {"Table": Path(subject.table).name, **subject.asked}
        report = Report(
            audit, asked=asked, title=f"Fairness of predicting {subject.columns.target}"
        )
        with whole_file(targets["report"]) as beside:
            report.save(beside)
