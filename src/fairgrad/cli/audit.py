"""``fairgrad audit``, ``impact`` and ``compare``: how fair predictions are, how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import ImpactTable
from fairgrad.cli import output
from fairgrad.cli.folder import load_model, provenance, same_data
from fairgrad.cli.people import model_columns, model_predictions, read_people
from fairgrad.cli.request import AuditRequest, exit_code, measures_on, refuse_idle
from fairgrad.tables.reading import column_names, has_duckdb, is_scanned, table_name
from fairgrad.tables.roles import number_column
from fairgrad.tables.values import cut_names, cut_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.people import AuditedPeople
    from fairgrad.membership import Membership
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


def audit(params: dict[str, Any]) -> int:
    """Audits a model, or a table with predictions."""
    request = AuditRequest.from_options(params)
    people = decided_people(request)
    result = people.audit(request, membership=_membership(people, request))
    output.notes(people.notes)
    if request.search:
        result.worst_subgroups(people.searchable(request.search))
    values, shown, source = {}, {}, None
    if request.outputs or request.as_json:
        source = provenance(request.table)
        values = {**result.to_dict(), "provenance": source}
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
    title = f"Fairness of predicting {people.columns.target}"
    asked = people.asked | {f"Note {i}": note for i, note in enumerate(people.notes, start=1)}
    output.finish(request, result, values, title, asked, source=source, shown=shown)
    if not request.as_json and not request.explain:
        output.say("")
        advice = f"Next: {NEXT[result.verdict]} --explain shows all details."
        output.say_paragraph(advice, style="dim")
    return exit_code(result.verdict, request.fail_on)


def _membership(people: AuditedPeople, request: AuditRequest) -> Membership | None:
    """Probabilities of groups that are unknown for many rows, as `fit` judges its test rows."""
    groups, model = people.columns.groups(people.frame, people.times), people.model
    needs_rows = request.cluster or request.search or people.counts is not None
    if model is None or needs_rows or not groups.isna().any(axis=None):
        return None
    from fairgrad.cli.prepared import group_membership  # noqa: PLC0415 - where groups are unknown

    X, _ = model.encoded(people.frame, request.reading.missing)
    return group_membership(X, people.truth(), groups)


def impact(params: dict[str, Any]) -> int:
    """Shows selection rates and impact ratios."""
    request = AuditRequest.from_options(params)
    source = provenance(request.table)
    table, people = _impact_table(request)
    remarks = [one if isinstance(one, str) else one.message for one in people.remarks]
    output.notes([*people.notes, *remarks])
    values = {
        "schema": IMPACT,
        "schema_version": IMPACT_VERSION,
        **table.to_dict(),
        "verdict": table.verdict,
        "provenance": source,
    }
    output.finish(request, table, values, "Impact ratios", {}, source=source)
    return exit_code(table.verdict, request.fail_on)


def compare(params: dict[str, Any]) -> int:
    """Compares two models, or two columns of predictions, on the same rows."""
    request = AuditRequest.from_options({**params, "table": (params["table"],)})
    sources = (params["first"], params["second"])
    if sources[0] == sources[1]:
        raise ValueError(f"A and B are both {sources[0]!r}; name two different systems")
    columns = column_names(request.table, request.reading)
    models = [load_model(source, columns) if Path(source).is_dir() else None for source in sources]
    known = [model for model in models if model is not None]
    compared = list(zip(("A", "B"), sources, models, strict=True))
    further = {f"prediction of {place}": s for place, s, model in compared if model is None}
    for column in further.values():
        if column not in columns:
            raise ValueError(
                f"{column!r} is neither a folder nor a column of {table_name(request.table)}; give "
                f"the folder of a model, or one of its columns: {', '.join(columns[:12])}"
                f"{', ...' if len(columns) > 12 else ''}"
            )
    if not further:
        refuse_idle(params, ["map"], "between models")
    further |= request.further
    people = read_people(request, _compared_columns(request, known, params), further, known)
    predicted = [
        people.predictions(source, place)
        if model is None
        else model_predictions(model, people, request.reading.missing)[0]
        for place, source, model in compared
    ]
    people.predicted = predicted[0]
    trained_for = dict.fromkeys(name for model in known[::-1] for name in model.measures)
    people.judged = request.measure or tuple(trained_for)
    output.notes(people.notes)
    # Without the way to the folders, where the names tell them apart.
    short = (Path(sources[0]).name, Path(sources[1]).name)
    names = short if len(set(short)) > 1 else sources
    result = people.audit(request).compare(predicted[1], names=names)
    one, two = result.names
    asked = {"Table": people.table, "A": sources[0], "B": sources[1]}
    values = result.to_dict()
    shown = {**values, "left_out": people.left_out, "notes": people.notes}
    output.finish(request, result, values, f"{two} against {one}", asked, shown=shown)
    return 0


def _compared_columns(
    request: AuditRequest, models: Sequence[SavedModel], params: dict[str, Any]
) -> ColumnRoles:
    """The role of each column: what is asked, else as in the last model."""
    if not models:
        for name in ("target", "sensitive"):
            if not params[name]:
                raise ValueError(
                    f"--{name} is missing; to compare two columns: fairgrad compare A B table.csv "
                    "--target COLUMN --sensitive COLUMN"
                )
        return request.columns
    refuse_idle(params, ("desirable", "bins", "target"), "with a model, which brings its own")
    targets = {(model.columns.target, model.settings["desirable"]) for model in models}
    if len(targets) > 1:
        listed = " and ".join(f"{target} (desirable: {value})" for target, value in sorted(targets))
        raise ValueError(f"the two models predict different things: {listed}")
    return model_columns(models[-1], request)


def _impact_table(request: AuditRequest) -> tuple[ImpactTable, AuditedPeople]:
    """Impact ratios of decisions, or of scores, and the rows they are about."""
    if not request.columns.sensitive and request.model is None:
        raise ValueError("--sensitive is missing; name the columns of the categories")
    if request.prediction or not request.score or request.model is not None:
        refuse_idle({"score": request.score}, ["score"], "beside decisions")
        people = decided_people(request)
        return ImpactTable.from_audit(people.audit(request)), people
    refuse_idle({"desirable": request.columns.y_desirable}, ["desirable"], "with scores")
    people = read_people(request, request.columns, request.further)
    score = number_column(people.frame, request.score, "--score")
    groups = people.columns.groups(people.frame)
    options: dict[str, Any] = {
        "min_group": request.min_group,
        "confidence": request.confidence,
        "reference": request.reference_of(people.columns.sensitive),
    }
    if request.threshold is None:
        return ImpactTable.from_scores(score, groups, **options), people
    decided = np.asarray(cut_numbers(score, [request.threshold]))
    selected = cut_names([request.threshold])[1]
    return ImpactTable.from_decisions(decided, groups, y_desirable=selected, **options), people


def decided_people(request: AuditRequest) -> AuditedPeople:
    """Reads the rows of a table, with its predictions or those of a model."""
    people = _of_table(request) if request.model is None else _of_model(request)
    people.judged = request.measure or people.judged
    if request.score and people.counts is None:
        people.further["y_score"] = number_column(people.frame, request.score, "--score")
    return people


def _of_model(request: AuditRequest) -> AuditedPeople:
    """What a model predicts for a table; the measures are those that it was trained for."""
    table, folder = request.table, str(request.model)
    model = load_model(folder, column_names(table, request.reading))
    from fairgrad.cli.counted import predicted_people  # noqa: PLC0415 - a table needs it rarely

    people = predicted_people(model, request)
    if not request.held_out and same_data(table, model.provenance):
        people.notes.append(TRAINED_ON.format(table_name(table)))
    sensitive = people.columns.sensitive
    within = request.within or [n for n in model.settings["within"] if n in sensitive]
    compared = [name for name in sensitive if name not in within]
    separate = bool(model.settings["separate"]) and len(compared) > 1
    people.judged = measures_on(model.measures, sensitive, separate=separate, within=within)
    people.asked = {
        "Table": people.table,
        "Model": Path(folder).name + people.asked.get("Model", ""),
        "Trained for": ", ".join(model.measures),
    }
    people.model = model
    return people


def _of_table(request: AuditRequest) -> AuditedPeople:
    """The predictions in a table, or made from its scores."""
    request.check_columns()
    if request.counts or is_scanned(request.table) or not has_duckdb():
        from fairgrad.cli.counted import audited_people  # noqa: PLC0415 - small tables are read

        people = audited_people(request)
    else:
        people = read_people(request, request.columns, request.further)
    people.asked["Table"] = people.table
    people.has_labels = request.target is not None
    if not people.has_labels:  # the predictions stand in for the target
        people.predicted = people.truth().to_numpy()
    elif request.prediction is not None:
        people.predicted = people.predictions(request.prediction, "--prediction")
    else:
        score = number_column(people.frame, str(request.score), "--score")
        # Counted rows say whether the score reaches the threshold.
        is_counted = people.counts is not None
        people.predicted = people.above(score, 1 if is_counted else float(request.threshold or 0))
    people.further["threshold"] = request.threshold
    return people
