"""``fairgrad audit`` and ``fairgrad impact``: how fair predictions are, and how certain that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from fairgrad.audit import Audit, AuditOverTime, ImpactTable
    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.request import AuditRequest
    from fairgrad.cli.subject import AuditedPeople
    from fairgrad.tables.roles import ColumnRoles

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_command", 1
IMPACT, IMPACT_VERSION = "fairgrad.impact", 1
TRAINED_ON = (
    "{} is the table that this model was trained on: it knows most of these rows, and the figures "
    "are better than for new people. Use --held-out to audit it on the rows held out."
)
STORED = " of the cross-validation"


class AuditedSubject(NamedTuple):
    """What was audited, and the result.

    Attributes:
        audit: of all rows.
        over: of every period; None without --time.
        people: the rows.
        asked: what was asked, for people.
    """

    audit: Audit
    over: AuditOverTime | None
    people: AuditedPeople
    asked: dict[str, str]


@click.command(cls=options.Command, short_help="Audit a model, or predictions of any system.")
@click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
@click.argument("table", nargs=-1, metavar="[TABLE]...", type=click.Path())
@options.people_options(required=False)
@options.prediction_options
@options.column_option("--baseline", "Column of another system's predictions to compare with.")
@click.option(
    "--held-out",
    is_flag=True,
    help="Audit the model on the rows of TABLE that were held out when it was trained.",
)
@options.column_option(
    "--cluster",
    "Column whose value is the same in rows that are not independent, such as a person's number.",
)
@options.column_option(
    "--search",
    "Column to search for the worst subgroups with, beside the sensitive ones (repeatable).",
    multiple=True,
)
@options.audited_options
@options.time_options
@options.out_option("FILE", "JSON file to write the audit to.")
@options.force_option
@options.fail_on_option
@options.json_option
@click.option("--explain", is_flag=True, help="Show all measures, intervals, scores and methods.")
@options.reading_options("bins", "map", "counts")
def audit(**params: Any) -> int:
    """Audit a model on a table, or a table that contains the predictions of any system.

    \b
      fairgrad audit model/ new.csv
      fairgrad audit scored.csv --target y --prediction y_hat --sensitive sex
      fairgrad audit scored.csv --target y --score p --threshold 0.5 --sensitive sex
      fairgrad audit model/ new.csv --search age --search region
      fairgrad audit decided.csv --prediction decision --sensitive sex
      fairgrad audit parquet_folder/ --target y --prediction y_hat --sensitive sex
      fairgrad audit people.duckdb::loans --target y --prediction y_hat --sensitive sex

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, a pattern such as
    "2024-*.csv", a table of a duckdb database (FILE::TABLE), or - for the standard input. duckdb
    counts Parquet files, databases and large text files of any size without loading their rows.

    Without --target the audit compares who is selected: demographic parity and the four-fifths
    rule. All other measures need the true values.

    A model brings its target and its sensitive columns; --sensitive names others. The verdict and
    --fail-on are about the measures it was trained for, unless --measure names others. The other
    measures are shown as well.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import AuditRequest, exit_code  # noqa: PLC0415 - as above

    request = AuditRequest.of_subject(params)
    subject = audit_subject(request)
    result, over, people, _ = subject
    terminal.notes(people.notes)
    if request.search:
        result.worst_subgroups(people.searchable(request.search))
    values = _written(subject, request) if request.outputs or request.as_json else {}
    if request.as_json:
        shown = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "verdict": result.verdict,
            "conclusion": result.conclusion,
            "judged_by": list(dict.fromkeys(finding.measure for finding in result.asked)),
            "desirable": result.desirable,
            "left_out": people.left_out,
            "notes": people.notes,
            "audit": values,
        }
        terminal.show_json(shown)
    else:
        show = terminal.explain_audit if params["explain"] else terminal.show_audit
        show(result)
        if over is not None:
            terminal.screen().print(over)
        for path in request.outputs.values():
            terminal.inform(f"Written: {path}")
        if not params["explain"]:
            terminal.say("")
            terminal.say_paragraph(_next_step(result.verdict), style="dim")
    return exit_code((over or result).verdict, request.fail_on)


def _next_step(verdict: str) -> str:
    """What to do after an audit."""
    steps = {
        "unfair": "`fairgrad fit` trains a fair model; add --report FILE to see who is affected.",
        "undecided": "Audit more people, or a longer period, to settle the verdict.",
    }
    step = steps.get(verdict, "Audit again when the model or the people change.")
    return f"Next: {step} --explain shows all measures, intervals and methods."


@click.command(
    cls=options.Command, short_help="Selection rates and impact ratios (Local Law 144, 80 % rule)."
)
@click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
@click.argument("table", nargs=-1, metavar="[TABLE]...", type=click.Path())
@options.column_option(
    "--sensitive", "Column that defines the categories to compare (repeatable).", multiple=True
)
@options.desirable_option("Decision that means being selected")
@options.prediction_options
@options.number_option(
    "--min-group",
    "Categories with a smaller share of the rows get no impact ratio; from 1 on a number of rows.",
    click.FloatRange(0),
    default=0.02,
    show_default=True,
)
@options.confidence_option
@options.out_option("FILE", "File to write the table to: CSV if it ends in .csv, else JSON.")
@options.force_option
@click.option(
    "--fail-on",
    type=click.Choice(["unfair", "undecided"]),
    help="Exit with code 1 if an impact ratio is below 0.8 with the given confidence; with "
    "undecided, also if its interval contains 0.8.",
)
@options.json_option
@options.reading_options("bins")
def impact(**params: Any) -> int:
    """Show who is selected how often: the table that New York's Local Law 144 requires.

    \b
      fairgrad impact decisions.csv --prediction hired --sensitive sex --sensitive race
      fairgrad impact scores.csv --score score --sensitive sex -o summary.csv
      fairgrad impact model/ new.csv

    The impact ratio of a category is its selection rate divided by that of the most selected
    category. The four-fifths rule asks for at least 0.8. With --score, and neither --prediction nor
    --threshold, the table shows scoring rates: the share of scores above the median.
    """  # noqa: D301 - as above
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.provenance import Provenance  # noqa: PLC0415 - as above
    from fairgrad.cli.request import AuditRequest, exit_code  # noqa: PLC0415 - as above
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above

    request = AuditRequest.of_subject(params)
    source = Provenance.of(request.table)
    table, people = _impact_table(request)
    remarks = [one if isinstance(one, str) else one.message for one in people.remarks]
    terminal.notes([*people.notes, *remarks])
    values = {
        "schema": IMPACT,
        "schema_version": IMPACT_VERSION,
        **table.to_dict(),
        "verdict": table.verdict,
        "provenance": source.to_dict(),
    }
    for path in request.outputs.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            table.to_csv(path)
        else:
            write_whole(path, _as_json(values))
    if request.as_json:
        terminal.show_json(values)
    else:
        terminal.screen().print(table)
        for path in request.outputs.values():
            terminal.inform(f"Written: {path}")
    return exit_code(table.verdict, request.fail_on)


def _impact_table(request: AuditRequest) -> tuple[ImpactTable, AuditedPeople]:
    """Impact ratios of decisions, or of scores, and the rows they are about."""
    from fairgrad.audit import ImpactTable  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import refuse_idle  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import read_people  # noqa: PLC0415 - as above

    by_score = request.score and not request.prediction and request.threshold is None
    if not by_score or request.model is not None:
        refused = {"score": request.score if request.threshold is None else None}
        refuse_idle(refused, ["score"], "beside decisions")
        subject = audit_subject(request)
        table = ImpactTable.from_audit(subject.audit)
        return table, subject.people
    if not request.sensitive:
        raise ValueError("--sensitive is missing; name the columns of the categories")
    refuse_idle({"desirable": request.desirable}, ["desirable"], "with scores")
    people = read_people(request.table, request.columns, {}, labels=[], reading=request.reading)
    score = people.numbers(str(request.score), "--score")
    how = {"min_group": request.min_group, "confidence": request.confidence}
    groups = people.columns.groups(people.frame)
    return ImpactTable.from_scores(score, groups, **how), people


def audit_subject(request: AuditRequest) -> AuditedSubject:
    """Audits a model, or a table with predictions."""
    return _audit_table(request) if request.model is None else _audit_model(request.model, request)


def _audit_model(folder: str, request: AuditRequest) -> AuditedSubject:
    """A model and a table that it predicts."""
    from fairgrad.cli.counted import (  # noqa: PLC0415 - keeps --help quick
        counts_predictions,
        predicted_people,
    )
    from fairgrad.cli.folder import load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.provenance import same_data  # noqa: PLC0415 - as above
    from fairgrad.cli.request import measures_on  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import audited_over_time, model_columns  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import column_names, table_name  # noqa: PLC0415 - as above

    table = request.table
    model = load_model(folder, column_names(table, request.reading))
    columns = model_columns(model, request.sensitive)
    scores, is_stored = None, False
    if counts_predictions(request, model):
        people, predicted = predicted_people(model, columns, request)
    else:
        people, predicted, scores, is_stored = _predicted_rows(model, columns, request)
    if not request.held_out and same_data(table, model.provenance):
        people.notes.append(TRAINED_ON.format(table_name(table)))
    judged: list[Any] = list(request.measure)
    if not judged:
        within = request.within or [
            name for name in model.settings["within"] if name in columns.sensitive
        ]
        compared = [name for name in columns.sensitive if name not in within]
        separate = bool(model.settings["separate"]) and len(compared) > 1
        judged = measures_on(model.measures, columns.sensitive, separate=separate, within=within)
    further = _per_row(people, request)
    if scores is not None:
        further.setdefault("y_score", scores)
    result = people.audit(predicted, request, judged, **further)
    over = audited_over_time(people, predicted, request, judged, further)
    asked = {
        "Table": people.table,
        "Model": Path(folder).name + (", cross-validated" if is_stored else ""),
        "Trained for": ", ".join(model.measures),
    }
    return AuditedSubject(result, over, people, asked)


def _predicted_rows(
    model: SavedModel, columns: ColumnRoles, request: AuditRequest
) -> tuple[AuditedPeople, Any, Any, bool]:
    """Rows, predictions, scores, and whether these were kept from a cross-validation."""
    import numpy as np  # noqa: PLC0415 - keeps --help quick

    from fairgrad.cli.folder import held_out_rows  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import (  # noqa: PLC0415 - as above
        model_predictions,
        read_people,
    )

    table, in_order = request.table, np.sort(model.labels)
    kept = [f"probability of {label}" for label in in_order]  # as the audit sorts labels

    def held_out(frame: pd.DataFrame) -> pd.DataFrame:
        """The rows held out; of a cross-validation with the predictions that were kept."""
        rows, stored = held_out_rows(frame, str(request.model), table, model)
        own = None if stored is None else stored[["prediction", *kept]].add_suffix(STORED)
        return rows if own is None else rows.assign(**{str(n): own[n].to_numpy() for n in own})

    people = read_people(
        table,
        columns,
        request.further,
        models=[model],
        more=request.search,
        labels=sorted(model.labels, key=lambda label: label == model.labels[-1]),
        value_map=request.value_map,
        reading=request.reading,
        select=held_out if request.held_out else None,
    )
    if f"prediction{STORED}" in people.frame:  # by models that were not kept
        predicted = people.frame[f"prediction{STORED}"].to_numpy(dtype=object)
        scores = people.frame[[f"{name}{STORED}" for name in kept]].to_numpy(dtype=np.float64)
        return people, predicted, scores, True
    predicted, found = model_predictions(model, people, request.reading.missing)
    scores = found[:, np.argsort(np.asarray(model.labels, dtype=str))]
    return people, predicted, scores, False


def _audit_table(request: AuditRequest) -> AuditedSubject:
    """A table that has predictions, or scores to make them from."""
    from fairgrad.cli.counted import audited_people  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.subject import audited_over_time  # noqa: PLC0415 - as above

    request.check_columns()
    people = audited_people(request)
    predicted: Any
    if request.target is None:  # the predictions stand in for the target
        predicted = people.truth().to_numpy()
    elif request.prediction is not None:
        predicted = people.predictions(request.prediction, "--prediction")
    else:
        score = people.numbers(str(request.score), "--score")
        # Counted rows say whether the score reaches the threshold.
        is_counted = people.counts is not None
        predicted = people.above(score, 1 if is_counted else float(request.threshold or 0))
    # What another system was trained for is not known, so no threshold is expected of it.
    further = {
        **_per_row(people, request),
        "threshold": request.threshold,
        "has_labels": request.target is not None,
    }
    result = people.audit(predicted, request, request.measure, **further)
    over = audited_over_time(people, predicted, request, request.measure, further)
    return AuditedSubject(result, over, people, {"Table": people.table})


def _per_row(people: AuditedPeople, request: AuditRequest) -> dict[str, Any]:
    """Arguments of the audit that have one value per row."""
    further: dict[str, Any] = {}
    if request.baseline:
        further["baseline"] = people.predictions(request.baseline, "--baseline")
        further["baseline_name"] = request.baseline
    if request.score and people.counts is None:
        further["y_score"] = people.numbers(request.score, "--score")
    if request.weight and people.counts is None:
        further["sample_weight"] = people.numbers(request.weight, "--weight")
    if request.cluster:
        further["cluster"] = people.frame[request.cluster].to_numpy(dtype=object)
    return further


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _written(subject: AuditedSubject, request: AuditRequest) -> dict[str, Any]:
    """Writes the files that were asked for, and gives the audit as plain values."""
    from fairgrad.cli.provenance import Provenance, audit_values  # noqa: PLC0415 - keeps --help quick
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above

    result, over, people, asked = subject
    source, outputs = Provenance.of(request.table), request.outputs
    values = audit_values(result, source)
    values |= {} if over is None else {"over": over.to_dict()}
    for path in outputs.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    if "out" in outputs:
        write_whole(outputs["out"], _as_json(values))
    if "report" in outputs:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        title = f"Fairness of predicting {people.columns.target}"
        notes = {f"Note {i}": note for i, note in enumerate(people.notes, start=1)}
        asked = {**asked, **notes, **source.in_words()}
        Report(result, over=over, asked=asked, title=title).save(outputs["report"])
    return values
