"""``fairgrad audit``: how fair predictions are, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from fairgrad.audit import Audit
    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.provenance import Provenance
    from fairgrad.tables.roles import ColumnRoles

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_command", 1
TRAINED_ON = (
    "{} is the table that this model was trained on: it knows most of these rows, and the figures "
    "are better than for new people. Use --held-out to audit it on the rows held out."
)
FURTHER_COLUMNS = ("prediction", "baseline", "score", "weight")


@click.command(short_help="Audit a model, or predictions of any system.")
@click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
@click.argument("table", nargs=-1, metavar="[TABLE]...", type=click.Path())
@options.people_options(required=False)
@options.reading_options()
@click.option(
    "--held-out",
    is_flag=True,
    help="Audit the model on the rows of TABLE that were held out when it was trained.",
)
@options.column_option("--prediction", "Column of predictions, if TABLE has one.")
@options.column_option("--baseline", "Column of another system's predictions to compare with.")
@options.column_option(
    "--score", "Column of probabilities of the desirable value, to check the threshold."
)
@options.column_option("--weight", "Column of sample weights.")
@click.option(
    "--measure",
    type=click.Choice(options.MEASURES),
    metavar="MEASURE",
    multiple=True,
    help=f"Fairness measure: {', '.join(options.MEASURES)} (repeatable) [default: all but the "
    "last].",
)
@options.tolerance_option
@options.number_option(
    "--confidence",
    "Confidence level of the intervals and verdicts.",
    click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
)
@click.option("--report", metavar="FILE", help="HTML file to write the report to.")
@click.option("-o", "--out", metavar="FILE", help="JSON file to write the audit to.")
@options.force_option
@options.fail_on_option
@options.json_option
def audit(**given: Any) -> int:
    """Audit a model on a table, or a table that contains the predictions of any system.

    \b
      fairgrad audit model/ new.csv
      fairgrad audit scored.csv --target y --prediction y_hat --sensitive sex

    For a model, the target and the sensitive columns are those it was fitted with, unless
    --sensitive names others; --fail-on looks at the measure it was trained for, unless --measure
    names others.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import check_file  # noqa: PLC0415 - as above
    from fairgrad.cli.provenance import audit_values  # noqa: PLC0415 - as above
    from fairgrad.cli.request import exit_code, verdict_on  # noqa: PLC0415 - as above

    targets = {
        name: check_file(given[name], force=given["force"])
        for name in ("out", "report")
        if given[name] is not None
    }
    subject = _model_subject(given) if _is_model(given) else _table_subject(given)
    found = _audit(subject, given)
    judged = list(given["measure"]) or subject.judged
    verdict = verdict_on(found, judged, separate=subject.separate) if judged else found.verdict
    terminal.notes(subject.notes)
    source = _source(given)
    _write(found, subject, targets, source)
    if given["as_json"]:
        shown = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "verdict": verdict}
        shown |= {"judged_by": judged or "all", "desirable": found.desirable}
        shown |= {"notes": list(subject.notes)}
        terminal.show_json({**shown, "audit": audit_values(found, source)})
    else:
        terminal.screen().print(found)
        if judged:
            named = ", ".join(name.replace("_", " ") for name in judged)
            terminal.say_paragraph(f"Verdict on {named}: {verdict}.", style="bold")
        for path in targets.values():
            terminal.progress(f"Written: {path}")
    return exit_code(verdict, given["fail_on"])


@dataclass(frozen=True, eq=False)
class AuditSubject:
    """What is to be audited.

    Attributes:
        frame: the rows that have a value of the target, with the columns that are needed.
        columns: the role of each column.
        asked: for the report.
        predicted: (n,) predictions as texts; None if they are a column of the table.
        score: probabilities of every label; None if not known.
        labels: all labels, if they are known without the table.
        judged: names of the measures that --fail-on looks at; none for all.
        separate: whether only single attributes count there.
        notes: what the reader should know about the table.
    """

    frame: pd.DataFrame
    columns: ColumnRoles
    asked: dict[str, str]
    predicted: Any = None
    score: Any = None
    labels: list[str] | None = None
    judged: tuple[str, ...] = ()
    separate: bool = False
    notes: tuple[str, ...] = ()


def _is_model(given: Mapping[str, Any]) -> bool:
    subject = Path(given["subject"])
    if not given["table"] or subject.is_file() or given["subject"] == "-":
        if (subject / "fairgrad.json").is_file():
            raise ValueError(
                f"{given['subject']} is a folder; add the table to audit this model on: "
                f"fairgrad audit {given['subject']} table.csv"
            )
        if given["held_out"]:
            raise ValueError("--held-out is for models, not for tables with predictions")
        return False
    unfit = [name for name in ("prediction", "desirable", "bins", "target") if given[name]]
    if unfit:
        raise ValueError(f"--{unfit[0]} is for tables with predictions, not for models")
    return True


def _model_subject(given: Mapping[str, Any]) -> AuditSubject:
    """A model and a table that it predicts."""
    import numpy as np  # noqa: PLC0415 - keeps --help quick

    from fairgrad.cli.folder import held_out_rows, load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.provenance import same_data  # noqa: PLC0415 - as above
    from fairgrad.cli.request import read_options  # noqa: PLC0415 - as above
    from fairgrad.tables.encoding import Oddities  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import (  # noqa: PLC0415 - as above
        PIECE,
        column_names,
        table_name,
    )
    from fairgrad.tables.roles import ColumnRoles  # noqa: PLC0415 - as above

    table = given["table"]
    names = column_names(table, read_options(given))
    model = load_model(given["subject"], names)
    own, labels = model.columns, np.asarray(model.labels, dtype=object)
    sensitive = tuple(given["sensitive"]) or own.sensitive
    bins = {name: edges for name, edges in own.bins.items() if name in sensitive}
    desirable = model.settings["desirable"]
    columns = ColumnRoles(own.target, sensitive, bins=bins, y_desirable=desirable, prefix="--")
    frame, notes = _read(table, names, columns, given, model)
    if given["held_out"]:
        frame, stored = held_out_rows(frame, given["subject"], table, model)
        if stored is not None:  # cross-validation: by models that are not kept
            return _cross_validated(frame, stored, columns, model, given)
    elif same_data(table, model.provenance):
        notes += (TRAINED_ON.format(table_name(table)),)
    frame = _with_target(frame, columns, table)
    scores, odd = [], Oddities()
    for start in range(0, len(frame), PIECE):  # copies on the way stay small
        found, strange = model.scores(frame.iloc[start : start + PIECE], given["missing"])
        scores.append(found)
        odd.update(strange)
    notes += tuple(odd.sentences())
    score = np.concatenate(scores)
    return AuditSubject(
        frame,
        columns,
        asked={
            "Table": table_name(table),
            "Model": Path(given["subject"]).name,
            "Trained for": model.measure,
        },
        predicted=labels[score.argmax(axis=1)],
        score=score[:, np.argsort(labels.astype(str))],  # as the audit sorts its labels
        labels=list(model.labels),
        judged=(model.measure,),
        separate=bool(model.settings["separate"]),
        notes=notes,
    )


def _cross_validated(
    frame: pd.DataFrame,
    stored: pd.DataFrame,
    columns: ColumnRoles,
    model: SavedModel,
    given: Mapping[str, Any],
) -> AuditSubject:
    """The rows of a cross-validation with the predictions that were kept of it."""
    import numpy as np  # noqa: PLC0415 - keeps --help quick

    from fairgrad.tables.reading import table_name  # noqa: PLC0415 - as above

    names = [f"probability of {label}" for label in sorted(map(str, model.labels))]
    return AuditSubject(
        frame,
        columns,
        asked={
            "Table": table_name(given["table"]),
            "Model": f"{Path(given['subject']).name}, cross-validated",
            "Trained for": model.measure,
        },
        predicted=stored["prediction"].to_numpy(dtype=object),
        score=stored[names].to_numpy(dtype=np.float64),
        labels=list(model.labels),
        judged=(model.measure,),
        separate=bool(model.settings["separate"]),
    )


def _table_subject(given: Mapping[str, Any]) -> AuditSubject:
    """A table that has predictions."""
    from fairgrad.cli.request import read_columns, read_options  # noqa: PLC0415 - keeps --help quick
    from fairgrad.tables.reading import column_names, table_name  # noqa: PLC0415 - as above

    for name in ("target", "prediction", "sensitive"):
        if not given[name]:
            raise ValueError(
                f"--{name} is missing; to audit a table with predictions: fairgrad audit "
                "table.csv --target COLUMN --prediction COLUMN --sensitive COLUMN"
            )
    table, columns = (given["subject"], *given["table"]), read_columns(given)
    frame, notes = _read(table, column_names(table, read_options(given)), columns, given)
    frame = _with_target(frame, columns, table)
    return AuditSubject(frame, columns, asked={"Table": table_name(table)}, notes=notes)


def _read(
    table: Sequence[str],
    names: list[str],
    columns: ColumnRoles,
    given: Mapping[str, Any],
    model: SavedModel | None = None,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Columns of the audit, and a model's features; and how they were read."""
    from fairgrad.cli.request import read_options  # noqa: PLC0415 - keeps --help quick
    from fairgrad.tables.reading import ReadingReport, read_table  # noqa: PLC0415 - as above
    from fairgrad.tables.roles import check_named  # noqa: PLC0415 - as above

    columns.check(names)
    further = [option for option in FURTHER_COLUMNS if given[option]]
    for option in further:
        check_named([given[option]], names, f"--{option}")
    wanted = [columns.target, *columns.sensitive, *(given[option] for option in further)]
    features = [] if model is None else model.features
    dates = [feature.column for feature in features if feature.date is not None]
    needed = [*wanted, *([] if model is None else model.needed)]
    options = read_options(given)
    if model is not None:
        options = replace(options, missing=(*options.missing, *model.missing))
    frame = read_table(table, needed, options=options, texts=dates)
    return frame, tuple(ReadingReport.of(frame).sentences(wanted, "--", gaps=True))


def _with_target(frame: pd.DataFrame, columns: ColumnRoles, table: Sequence[str]) -> pd.DataFrame:
    """The rows with a value of the target."""
    from fairgrad.tables.reading import table_name  # noqa: PLC0415 - keeps --help quick

    found = frame[frame[columns.target].notna()].reset_index(drop=True)
    if not len(found):
        raise ValueError(f"{table_name(table)} has no row with a value of {columns.target}")
    return found


def _audit(subject: AuditSubject, given: Mapping[str, Any]) -> Audit:
    import numpy as np  # noqa: PLC0415 - keeps --help quick
    import pandas as pd  # noqa: PLC0415 - as above

    from fairgrad.audit import Audit  # noqa: PLC0415 - as above
    from fairgrad.cli.request import audited_measures, read_tolerance  # noqa: PLC0415 - as above
    from fairgrad.tables.roles import number_column  # noqa: PLC0415 - as above
    from fairgrad.tables.values import as_categories  # noqa: PLC0415 - as above

    frame, columns = subject.frame, subject.columns
    further = {name: given[name] for name in FURTHER_COLUMNS if given[name]}

    def texts(name: str) -> Any:
        """Values by their names, so that 1, 1.0 and "1" are the same label."""
        return np.asarray(as_categories(frame[name]), dtype=object)

    def numbers(option: str) -> Any:
        return number_column(frame, further[option], f"--{option}") if option in further else None

    predicted, labels = subject.predicted, subject.labels
    if labels is None:
        predicted = texts(further["prediction"])
        labels = columns.all_labels(frame, further["prediction"])
    desirable = columns.desirable(labels)
    return Audit(
        pd.Series(texts(columns.target), name=columns.target, dtype=object),
        predicted,
        columns.groups(frame),
        measures=list(given["measure"]) or audited_measures(desirable, subject.judged),
        tolerance=read_tolerance(given),
        confidence=given["confidence"],
        baseline=texts(further["baseline"]) if "baseline" in further else None,
        y_score=numbers("score") if "score" in further else subject.score,
        sample_weight=numbers("weight"),
        y_desirable=desirable,
        labels=labels,
    )


def _source(given: Mapping[str, Any]) -> Provenance:
    from fairgrad.cli.provenance import Provenance  # noqa: PLC0415 - keeps --help quick

    return Provenance.of(
        given["table"] if _is_model(given) else (given["subject"], *given["table"])
    )


def _write(
    found: Audit, subject: AuditSubject, targets: Mapping[str, Path], source: Provenance
) -> None:
    from fairgrad.cli.provenance import audit_json  # noqa: PLC0415 - keeps --help quick
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above

    for path in targets.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    if "out" in targets:
        write_whole(targets["out"], audit_json(found, source))
    if "report" in targets:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        title = f"Fairness of predicting {subject.columns.target}"
        notes = {f"Note {i}": note for i, note in enumerate(subject.notes, start=1)}
        asked = {**subject.asked, **notes, **source.in_words()}
        Report(found, asked=asked, title=title).save(targets["report"])
