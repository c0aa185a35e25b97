"""``fairgrad audit``, ``impact`` and ``compare``: how fair predictions are, how sure that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairgrad.audit import Audit, ImpactTable
    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.people import AuditedPeople
    from fairgrad.cli.request import AuditRequest
    from fairgrad.tables.roles import ColumnRoles

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_command", 1
IMPACT, IMPACT_VERSION = "fairgrad.impact", 1
TRAINED_ON = (
    "{} is the table that this model was trained on: it knows most of these rows, and the figures "
    "are better than for new people. Use --held-out to audit it on the rows held out."
)
NEXT = {
    "unfair": "`fairgrad fit` trains a fair model; add --report FILE to see who is affected.",
    "undecided": "Audit more people to settle the verdict.",
    "fair within tolerance": "Audit again when the model or the people change.",
}
"""What to do after an audit, by verdict."""

JUDGED = ("weight", "judged", "within", "tolerance", "min_group", "confidence", "report")
PREDICTIONS = ("prediction", "score", "threshold")


class DecidedPeople(NamedTuple):
    """Rows with their predictions, and what an audit of them needs.

    Attributes:
        people: the rows.
        predicted: (n,) the predictions.
        further: arguments of the audit.
        asked: what was asked, for people.
        judged: the measures of the verdict; empty for the usual ones.
        model: what predicts; None if the predictions are a column.
    """

    people: AuditedPeople
    predicted: Any
    further: dict[str, Any]
    asked: dict[str, str]
    judged: list[Any]
    model: SavedModel | None = None


class AuditedSubject(NamedTuple):
    """What was audited, and the result.

    Attributes:
        audit: of all rows.
        people: the rows.
        asked: what was asked, for people.
    """

    audit: Audit
    people: AuditedPeople
    asked: dict[str, str]


@click.command(cls=options.Command, short_help="Audit a model, or predictions of any system.")
@click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
@click.argument("table", nargs=-1, metavar="[TABLE]...", type=click.Path())
@options.takes(
    "target", "sensitive", "desirable", *PREDICTIONS, "baseline", "held_out", "cluster", "search",
    *JUDGED, "reference", "out", "force", "fail_on", "json", "explain",
    reading=("bins", "map", "ignore_case", "counts"), out="JSON file to write the audit to.",
)  # fmt: skip
def audit(**params: Any) -> int:
    """Audit a model on a table, or a table that contains the predictions of any system.

    \b
      fairgrad audit model/ new.csv
      fairgrad audit scored.csv --target y --prediction h --sensitive sex
      fairgrad audit scored.csv --target y --score p --threshold 0.5
          --sensitive sex
      fairgrad audit decided.csv --prediction decision --sensitive sex
      fairgrad audit folder/ --target y --prediction h --sensitive sex
      fairgrad audit people.duckdb::loans --target y --prediction h
          --sensitive sex

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, a pattern such as
    "2024-*.csv", a table of a duckdb database (FILE::TABLE), or - for the standard input. duckdb
    counts Parquet files, databases and large text files of any size without loading their rows.

    Without --target the audit compares who is selected: demographic parity and the four-fifths
    rule. All other measures need the true values.

    A model brings its target and its sensitive columns; --sensitive names others. The verdict and
    --fail-on are about the measures it was trained for, unless --measure names others. The other
    measures are shown as well.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import AuditRequest, exit_code  # noqa: PLC0415 - as above

    request = AuditRequest.from_options(params)
    subject = audit_subject(request)
    result, people, _ = subject
    output.notes(people.notes)
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
        output.show_json(shown)
    else:
        output.show_audit(result, explain=request.explain)
        _say_written(request)
        if not request.explain:
            output.say("")
            advice = f"Next: {NEXT[result.verdict]} --explain shows all details."
            output.say_paragraph(advice, style="dim")
    return exit_code(result.verdict, request.fail_on)


@click.command(
    cls=options.Command, short_help="Selection rates and impact ratios (Local Law 144, 80 % rule)."
)
@click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
@click.argument("table", nargs=-1, metavar="[TABLE]...", type=click.Path())
@options.takes(
    "sensitive", "desirable", *PREDICTIONS, "min_group", "reference", "confidence", "out", "report",
    "force", "fail_on", "json",
    reading=("bins", "map", "ignore_case"),
    sensitive="Column that defines the categories to compare (repeatable).",
    desirable="Decision that means being selected [default: of two values, the second in sorted "
    "order].",
    min_group={
        "help": "Categories with a smaller share of the rows get no impact ratio; from 1 on a "
        "number of rows.",
        "default": 0.02,
    },
    out="File to write the table to: CSV if it ends in .csv, else JSON.",
    fail_on="Exit with code 1 if an impact ratio is below 0.8 with the given confidence; with "
    "undecided, also if its interval contains 0.8.",
)  # fmt: skip
def impact(**params: Any) -> int:
    """Show who is selected how often: the table that New York's Local Law 144 requires.

    \b
      fairgrad impact decisions.csv --prediction hired
          --sensitive sex --sensitive race
      fairgrad impact scores.csv --score score --sensitive sex -o summary.csv
      fairgrad impact model/ new.csv

    The impact ratio of a category is its selection rate divided by that of the most selected
    category. The four-fifths rule asks for at least 0.8. With --score, and neither --prediction nor
    --threshold, the table shows scoring rates: the share of scores above the median.
    """  # noqa: D301 - as above
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import Provenance  # noqa: PLC0415 - as above
    from fairgrad.cli.request import AuditRequest, exit_code  # noqa: PLC0415 - as above
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above

    request = AuditRequest.from_options(params)
    source = Provenance.of(request.table)
    table, people = _impact_table(request)
    remarks = [one if isinstance(one, str) else one.message for one in people.remarks]
    output.notes([*people.notes, *remarks])
    values = {
        "schema": IMPACT,
        "schema_version": IMPACT_VERSION,
        **table.to_dict(),
        "verdict": table.verdict,
        "provenance": source.to_dict(),
    }
    for kind, path in request.outputs.items():
        if kind == "report":
            from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

            Report(table, title="Impact ratios", asked=source.in_words()).save(path)
        elif path.suffix == ".csv":
            table.to_csv(path)
        else:
            write_whole(path, _as_json(values))
    if request.as_json:
        output.show_json(values)
    else:
        output.screen().print(table)
        _say_written(request)
    return exit_code(table.verdict, request.fail_on)


@click.command(cls=options.Command, short_help="Compare two models, or two columns of predictions.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.argument("table", metavar="TABLE", type=click.Path())
@options.takes(
    "target", "sensitive", "desirable", *JUDGED, "out", "force", "json",
    reading=("bins", "map", "ignore_case"), out="JSON file to write the comparison to.",
)  # fmt: skip
def compare(first: str, second: str, table: str, **params: Any) -> int:
    """Compare B with A on the rows of TABLE: what changes, how sure that is, who changes sides.

    A and B are folders of models, or columns of TABLE that hold predictions.

    \b
      fairgrad compare old/ new/ people.csv
      fairgrad compare decision_2023 decision_2024 people.csv
          --target y --sensitive sex

    The rows are the same for both, so differences are paired: their intervals rest on the people
    whose prediction changes. With models, the target and the sensitive columns are those of B (or
    of A, if only A is a model), unless --sensitive names others.
    """  # noqa: D301 - as above
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.people import model_predictions, read_people  # noqa: PLC0415 - as above
    from fairgrad.cli.request import AuditRequest, refuse_idle  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import column_names  # noqa: PLC0415 - as above

    request, sources = AuditRequest.from_options(params, table=(table,)), (first, second)
    if first == second:
        raise ValueError(f"A and B are both {first!r}; name two different systems")
    names = column_names(table, request.reading)
    models = [load_model(source, names) if Path(source).is_dir() else None for source in sources]
    known = [model for model in models if model is not None]
    compared = list(zip(("A", "B"), sources, models, strict=True))
    further = {f"prediction of {place}": s for place, s, model in compared if model is None}
    for column in further.values():
        if column not in names:
            raise ValueError(
                f"{column!r} is neither a folder nor a column of {Path(table).name}; give the "
                f"folder of a model, or one of its columns: {', '.join(names[:12])}"
                f"{', ...' if len(names) > 12 else ''}"
            )
    if not further:
        refuse_idle(params, ["map"], "between models")
    further |= {"weight": request.weight} if request.weight else {}
    people = read_people(request, _compared_columns(request, known), further, known)
    predicted = [
        people.predictions(source, place)
        if model is None
        else model_predictions(model, people, request.reading.missing)[0]
        for place, source, model in compared
    ]
    judged = request.measure or tuple(
        dict.fromkeys(name for model in known[::-1] for name in model.measures)
    )
    weight = people.numbers(request.weight, "--weight") if request.weight else None
    output.notes(people.notes)
    # Without the way to the folders, where the names tell them apart.
    short = (Path(first).name, Path(second).name)
    audit = people.audit(predicted[0], request, judged, sample_weight=weight)
    result = audit.compare(predicted[1], names=short if len(set(short)) > 1 else sources)
    if "out" in request.outputs:
        result.to_json(request.outputs["out"])
    if "report" in request.outputs:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        one, two = result.names
        asked = {"Table": people.table, "A": first, "B": second}
        Report(result, asked=asked, title=f"{two} against {one}").save(request.outputs["report"])
    if request.as_json:
        shown = {"left_out": people.left_out, "notes": people.notes}
        output.show_json({**result.to_dict(), **shown})
        return 0
    output.screen().print(result)
    _say_written(request)
    return 0


def _compared_columns(request: AuditRequest, models: Sequence[SavedModel]) -> ColumnRoles:
    """The role of each column: what is asked, else as in the last model."""
    from fairgrad.cli.people import model_columns  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import refuse_idle  # noqa: PLC0415 - as above

    if not models:
        for name in ("target", "sensitive"):
            if not getattr(request, name):
                raise ValueError(
                    f"--{name} is missing; to compare two columns: fairgrad compare A B table.csv "
                    "--target COLUMN --sensitive COLUMN"
                )
        return request.columns
    refuse_idle(
        vars(request), ("desirable", "bins", "target"), "with a model, which brings its own"
    )
    targets = {(model.columns.target, model.settings["desirable"]) for model in models}
    if len(targets) > 1:
        listed = " and ".join(f"{target} (desirable: {value})" for target, value in sorted(targets))
        raise ValueError(f"the two models predict different things: {listed}")
    return model_columns(models[-1], request.sensitive, ignore_case=request.ignore_case)


def _impact_table(request: AuditRequest) -> tuple[ImpactTable, AuditedPeople]:
    """Impact ratios of decisions, or of scores, and the rows they are about."""
    from fairgrad.audit import ImpactTable  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.people import read_people  # noqa: PLC0415 - as above
    from fairgrad.cli.request import refuse_idle  # noqa: PLC0415 - as above

    if not request.sensitive and request.model is None:
        raise ValueError("--sensitive is missing; name the columns of the categories")
    by_score = request.score and not request.prediction and request.threshold is None
    if not by_score or request.model is not None:
        refused = {"score": request.score if request.threshold is None else None}
        refuse_idle(refused, ["score"], "beside decisions")
        subject = audit_subject(request)
        table = ImpactTable.from_audit(subject.audit)
        return table, subject.people
    refuse_idle({"desirable": request.desirable}, ["desirable"], "with scores")
    people = read_people(request, request.columns, {})
    score = people.numbers(str(request.score), "--score")
    how = {
        "min_group": request.min_group,
        "confidence": request.confidence,
        "reference": request.reference_of(people.columns.sensitive),
    }
    groups = people.columns.groups(people.frame)
    return ImpactTable.from_scores(score, groups, **how), people


def audit_subject(request: AuditRequest) -> AuditedSubject:
    """Audits a model, or a table with predictions."""
    people, predicted, further, asked, judged, _ = decided_people(request)
    result = people.audit(predicted, request, judged, **further)
    return AuditedSubject(result, people, asked)


def decided_people(request: AuditRequest) -> DecidedPeople:
    """Reads the rows of a table, with its predictions or those of a model."""
    judged, model = list[Any](request.measure), None
    if request.model is None:
        people, predicted, further = _table_predictions(request)
        asked = {"Table": people.table}
    else:
        people, predicted, further, asked, trained_for, model = _model_predictions(request)
        judged = judged or trained_for
    if request.baseline:
        further["baseline"] = people.predictions(request.baseline, "--baseline")
        further["baseline_name"] = request.baseline
    if request.score and people.counts is None:
        further["y_score"] = people.numbers(request.score, "--score")
    if request.weight and people.counts is None:
        further["sample_weight"] = people.numbers(request.weight, "--weight")
    if request.cluster:
        further["cluster"] = people.frame[request.cluster].to_numpy(dtype=object)
    return DecidedPeople(people, predicted, further, asked, judged, model)


def _model_predictions(request: AuditRequest) -> DecidedPeople:
    """What a model predicts for a table; the measures are those that it was trained for."""
    from fairgrad.cli.counted import predicted_people  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import load_model, same_data  # noqa: PLC0415 - as above
    from fairgrad.cli.request import measures_on  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import column_names, table_name  # noqa: PLC0415 - as above

    table, folder = request.table, str(request.model)
    model = load_model(folder, column_names(table, request.reading))
    people, predicted, scores, is_stored = predicted_people(model, request)
    if not request.held_out and same_data(table, model.provenance):
        people.notes.append(TRAINED_ON.format(table_name(table)))
    sensitive = people.columns.sensitive
    within = request.within or [n for n in model.settings["within"] if n in sensitive]
    compared = [name for name in sensitive if name not in within]
    separate = bool(model.settings["separate"]) and len(compared) > 1
    judged = measures_on(model.measures, sensitive, separate=separate, within=within)
    asked = {
        "Table": people.table,
        "Model": Path(folder).name + (", cross-validated" if is_stored else ""),
        "Trained for": ", ".join(model.measures),
    }
    further = {} if scores is None else {"y_score": scores}
    return DecidedPeople(people, predicted, further, asked, judged, model)


def _table_predictions(request: AuditRequest) -> tuple[AuditedPeople, Any, dict[str, Any]]:
    """The predictions in a table, or made from its scores, and arguments of the audit."""
    from fairgrad.cli.counted import audited_people  # noqa: PLC0415 - keeps --help quick

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
    return (
        people,
        predicted,
        {
            "threshold": request.threshold,
            "has_labels": request.target is not None,
        },
    )


def _as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _say_written(request: AuditRequest) -> None:
    from fairgrad.cli import output  # noqa: PLC0415 - keeps --help quick

    for path in request.outputs.values():
        output.inform(f"Written: {path}")


def _written(subject: AuditedSubject, request: AuditRequest) -> dict[str, Any]:
    """Writes the files that were asked for, and gives the audit as plain values."""
    from fairgrad.cli.folder import Provenance, audit_values  # noqa: PLC0415 - keeps --help quick
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above

    result, people, asked = subject
    source, outputs = Provenance.of(request.table), request.outputs
    values = audit_values(result, source)
    if "out" in outputs:
        write_whole(outputs["out"], _as_json(values))
    if "report" in outputs:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        title = f"Fairness of predicting {people.columns.target}"
        notes = {f"Note {i}": note for i, note in enumerate(people.notes, start=1)}
        asked = {**asked, **notes, **source.in_words()}
        Report(result, asked=asked, title=title).save(outputs["report"])
    return values
