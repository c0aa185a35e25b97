"""``fairgrad audit``, ``impact``, ``compare``, ``certify``, ``monitor``: how fair predictions are.

`certify` records each look at a model in its folder, and all looks share one error. Rows of the
training table are recognized by their digests, and refused. `monitor` judges a running system.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import Candidacy, Certificate, SeenRows
from fairgrad.audit.certificate import look_share
from fairgrad.audit.record import made_at
from fairgrad.audit.seen_rows import row_digests
from fairgrad.cli import output
from fairgrad.cli.folder import (
    DIGESTS,
    LOOKS,
    as_json,
    load_model,
    provenance,
    provenance_words,
    same_data,
)
from fairgrad.cli.people import model_columns, model_predictions, read_people
from fairgrad.cli.request import AuditRequest, exit_code, measures_on, refuse_idle, usual_measures
from fairgrad.files import locked, read_sealed, sealed_json, write_whole
from fairgrad.membership import group_membership
from fairgrad.tables.column import as_numbers, column_kind, cut_names, cut_numbers
from fairgrad.tables.reading import (
    INSTALL,
    LARGE,
    column_names,
    has_duckdb,
    is_scanned,
    pieces,
    table_bytes,
    table_name,
)
from fairgrad.tables.roles import number_column
from fairgrad.text import Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from fairgrad.audit import Audit, AuditComparison, ImpactTable, Monitor
    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.people import AuditedPeople
    from fairgrad.tables.roles import ColumnRoles

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_command", 1
IMPACT, IMPACT_VERSION = "fairgrad.impact", 1
LOOKS_SCHEMA, LOOKS_VERSION = "fairgrad.looks", 1
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
    needs_rows = request.cluster or request.search or people.counts is not None
    membership = None
    if people.model is not None and not needs_rows:  # as `fit` judges its test rows
        groups = people.columns.groups(people.frame)
        if groups.isna().any(axis=None):
            X, _ = people.model.encoded(people.frame, request.reading.missing)
            membership = group_membership(X, people.truth(), groups)
    result = people.audit(request, membership=membership)
    output.notes(people.notes)
    if request.search:
        searched = ((name, people.frame[name]) for name in request.search)
        result.worst_subgroups(
            {n: as_numbers(v) if column_kind(v) == "number" else v for n, v in searched}
        )
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
    _finish(request, result, values, title, asked, source=source, shown=shown)
    if not request.as_json and not request.explain:
        output.say("")
        advice = f"Next: {NEXT[result.verdict]} --explain shows all details."
        output.screen().print(Paragraph(advice, "dim"))
    return exit_code(result.verdict, request.fail_on)


def impact(params: dict[str, Any]) -> int:
    """Shows selection rates and impact ratios."""
    request = AuditRequest.from_options(params)
    source = provenance(request.table)
    if not request.columns.sensitive and request.model is None:
        raise ValueError("--sensitive is missing; name the columns of the categories")
    from fairgrad.audit import ImpactTable  # noqa: PLC0415 - for this command only

    if request.prediction or not request.score or request.model is not None:
        refuse_idle({"score": request.score}, ["score"], "beside decisions")
        people = decided_people(request)
        table = ImpactTable.from_audit(people.audit(request))
    else:
        refuse_idle({"desirable": request.columns.y_desirable}, ["desirable"], "with scores")
        people = read_people(request)
        score = number_column(people.frame, request.score, "--score")
        groups = people.columns.groups(people.frame)
        options: dict[str, Any] = {
            "min_group": request.min_group,
            "confidence": request.confidence,
            "reference": request.reference_of(people.columns.sensitive),
        }
        if request.threshold is None:
            table = ImpactTable.from_scores(score, groups, **options)
        else:
            decided = np.asarray(cut_numbers(score, [request.threshold]))
            options["y_desirable"] = cut_names([request.threshold])[1]
            table = ImpactTable.from_decisions(decided, groups, **options)
    remarks = [remark if isinstance(remark, str) else remark.message for remark in people.remarks]
    output.notes([*people.notes, *remarks])
    values = {
        "schema": IMPACT,
        "schema_version": IMPACT_VERSION,
        **table.to_dict(),
        "verdict": table.verdict,
        "provenance": source,
    }
    _finish(request, table, values, "Impact ratios", {}, source=source)
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
    request = replace(request, columns=_compared_columns(request, known, params), further=further)
    people = read_people(request, known)
    predicted = [
        people.predictions(source, place)
        if model is None
        else model_predictions(model, people, request.reading.missing)[0]
        for place, source, model in compared
    ]
    people.predicted = predicted[0]
    trained_for = dict.fromkeys(
        name for model in known[::-1] for name in model.settings["measures"]
    )
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
    _finish(request, result, values, f"{two} against {one}", asked, shown=shown)
    return 0


def _compared_columns(
    request: AuditRequest, models: Sequence[SavedModel], params: dict[str, Any]
) -> ColumnRoles:
    """The role of each column: as requested, else as in the last model."""
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


def decided_people(request: AuditRequest) -> AuditedPeople:
    """Reads the rows of a table, with its predictions, those of its scores, or those of a model."""
    if request.model is not None:
        people = _of_model(request, request.model)
    else:
        request.check_columns()
        needs_rows = request.search or request.cluster
        if request.counts or (is_scanned(request.table) and not needs_rows):
            from fairgrad.cli.counted import audited_people  # noqa: PLC0415 - small tables are read

            people = audited_people(request)
        else:
            people = read_people(request)
            if not has_duckdb() and table_bytes(request.table) >= LARGE:
                hint = "to have it counted where it lies, install duckdb (pip install"
                people.notes.append(f"{people.table} is read into memory; {hint} {INSTALL}).")
        people.asked["Table"] = people.table
        people.further["threshold"] = request.threshold
        people.has_labels = request.target is not None
        if not people.has_labels:  # the predictions stand in for the target
            people.predicted = people.truth().to_numpy()
        elif request.prediction is not None:
            people.predicted = people.predictions(request.prediction, "--prediction")
        else:
            score = number_column(people.frame, str(request.score), "--score")
            # Counted rows say whether the score reaches the threshold.
            is_counted = people.counts is not None
            people.predicted = people.above(score, 1 if is_counted else request.threshold or 0)
    people.judged = request.measure or people.judged
    if request.score and people.counts is None:
        people.further["y_score"] = number_column(people.frame, request.score, "--score")
    return people


def _of_model(request: AuditRequest, folder: str) -> AuditedPeople:
    """What a model predicts for a table; the measures are those that it was trained for."""
    table = request.table
    model = load_model(folder, column_names(table, request.reading))
    from fairgrad.cli.counted import predicted_people  # noqa: PLC0415 - a table needs it rarely

    people = predicted_people(model, request)
    if not request.held_out and same_data(table, model.provenance):
        people.notes.append(TRAINED_ON.format(table_name(table)))
    sensitive = people.columns.sensitive
    within = request.within or [n for n in model.settings["within"] if n in sensitive]
    compared = [name for name in sensitive if name not in within]
    separate = bool(model.settings["separate"]) and len(compared) > 1
    measures = model.settings["measures"]
    people.judged = measures_on(measures, sensitive, separate=separate, within=within)
    people.asked = {
        "Table": people.table,
        "Model": Path(folder).name + people.asked.get("Model", ""),
        "Trained for": ", ".join(measures),
    }
    people.model = model
    return people


def certify(params: dict[str, Any]) -> int:
    """Judges a model on a table, records it, and shows the result; 0 if the model is certified.

    Raises:
        ValueError: if the rows are those the model was trained on.
    """
    request = AuditRequest.from_options(params)
    if request.model is None:
        raise ValueError(f"{params['subject']} is a file; give the folder of a model first")
    people, source = decided_people(request), provenance(request.table)
    overlap = _overlap(people, request)
    question = {
        "data": source["data"],
        "measures": [str(measure) for measure in people.judged],
        "options": {name: params[name] for name in ("tolerance", "min_group", "weight")},
        "sensitive": list(people.columns.sensitive),
    }
    path = Path(request.model).expanduser() / LOOKS
    with locked(path):
        looks = _read_looks(path)
        # The same question has the same answer, which tells nothing new.
        asked = [i for i, look in enumerate(looks, start=1) if look["question"] == question]
        look = asked[0] if asked else len(looks) + 1
        confidence = 1 - (1 - request.confidence) * look_share(look)
        audit = people.audit(replace(request, confidence=confidence))
        certificate = Certificate(audit, Candidacy(), overlap=overlap, look=look)
        if not asked:
            entry = {
                "date": made_at(),
                "table": people.table,
                "question": question,
                "certificate": certificate.to_dict(),
            }
            head = {"schema": LOOKS_SCHEMA, "schema_version": LOOKS_VERSION}
            write_whole(path, sealed_json({**head, "looks": [*looks, entry]}) + "\n")
    output.notes(people.notes)
    if request.as_json:
        values = {
            "certificate": certificate.to_dict(),
            "audit": {**audit.to_dict(), "provenance": source},
        }
        output.show_json({**values, "notes": people.notes})
    else:
        style = "bold green" if certificate.is_certified else "bold red"
        output.screen().print(Paragraph(certificate.sentence, style), audit)
        output.inform(f"Recorded: {path}")
    return 0 if certificate.is_certified else 1


def _overlap(people: AuditedPeople, request: AuditRequest) -> tuple[int, int] | None:
    """How many of the rows equal a training row; None if that cannot be known."""
    model, table = people.model, table_name(request.table)
    assert model is not None  # noqa: S101 - for type checkers
    if same_data(request.table, model.provenance):
        raise ValueError(f"the model was trained on {table}; a certificate needs new rows")
    path = Path(str(request.model)).expanduser() / DIGESTS
    if not path.is_file():
        people.notes.append(
            f"{table} was not compared with the training rows: {DIGESTS} is missing."
        )
        return None
    missing = request.reading.missing
    frames: Iterable[pd.DataFrame] = [people.frame]
    if people.counts is not None:  # the rows themselves are not held
        frames = pieces(request.table, model.needed, texts=True, options=request.reading)
    digests = [row_digests(model.encoded(frame, missing)[0]) for frame in frames]
    return SeenRows.load(path).overlap(np.concatenate(digests))


def _read_looks(path: Path) -> list[dict[str, Any]]:
    """The looks at a model so far.

    Raises:
        ValueError: if the file is damaged.
    """
    if not path.exists():
        return []
    try:
        known = read_sealed(path.read_text(encoding="utf-8"))
        if (known["schema"], known["schema_version"]) != (LOOKS_SCHEMA, LOOKS_VERSION):
            raise ValueError("it is of another kind or version")  # noqa: TRY301 - one message
        looks: list[dict[str, Any]] = known["looks"]
    except (ValueError, KeyError, TypeError) as wrong:
        raise ValueError(f"{path} is damaged: {wrong}") from wrong
    return looks


def monitor(params: dict[str, Any]) -> int:
    """Adds a batch to the counts so far, and judges the average since the start."""
    request = AuditRequest.from_options(params)
    if request.state is None and request.time is None:
        raise ValueError(
            "--state is missing: name the file that keeps the counts, or a column of dates (--time)"
        )
    from fairgrad.audit import Monitor  # noqa: PLC0415 - for this command only

    people = decided_people(request)
    how: dict[str, Any] = {
        "tolerance": request.tolerance,
        "confidence": request.confidence,
        "min_group": request.min_group,
    }
    # What is not asked for is as it was when the state was started.
    is_new = request.state is None or not request.state.exists()
    if people.judged or is_new:
        usual = usual_measures(people.desirable, has_labels=people.has_labels)
        how["measures"] = [getattr(m, "measure", m) for m in people.judged] or usual
    # A day with a single label does not tell which one is desirable by default.
    if request.model or people.columns.y_desirable or (is_new and len(people.labels) > 1):
        how["y_desirable"] = people.desirable
    opened = (
        nullcontext(Monitor(**how)) if not request.state else Monitor.opened(request.state, **how)
    )
    with opened as watched:
        add_batches(watched, people, request)
    output.notes(people.notes)
    values = watched.to_dict()
    title = f"Fairness of predicting {people.columns.target} over time"
    shown = {"verdict": watched.verdict, **values}
    _finish(request, watched, values, title, people.asked, shown=shown)
    return exit_code(watched.verdict, request.fail_on)


def add_batches(watched: Monitor, people: AuditedPeople, request: AuditRequest) -> None:
    """Adds the rows of a table, as one batch or one per period."""
    batches = np.full(len(people.frame), request.batch or people.table)
    if request.time:
        batches = people.periods(request.time, request.period)
    groups = replace(people.columns, is_part=True).groups(people.frame, people.times)
    truth = people.truth().to_numpy() if people.has_labels else None
    for batch in sorted(set(batches)):
        chosen = batches == batch
        watched.update(
            None if truth is None else truth[chosen],
            people.predicted[chosen],
            {column: values[chosen] for column, values in groups.items()},
            batch=str(batch),
            count=None if people.times is None else people.times[chosen],
        )


def _finish(
    request: AuditRequest,
    result: Audit | AuditComparison | ImpactTable | Monitor,
    values: dict[str, Any],
    title: str,
    asked: dict[str, str],
    *,
    source: dict[str, Any] | None = None,
    shown: dict[str, Any] | None = None,
) -> None:
    """Writes a result to the files that were asked for, and prints it, or JSON.

    Args:
        request: the request.
        result: an audit, a comparison, an impact table or a monitor.
        values: the result as plain values; --out writes them, or CSV where it is a table.
        title: of the page (--report).
        asked: the request in words.
        source: what the result rests on, for the page.
        shown: what --json prints, if not the values.
    """
    for kind, path in request.outputs.items():
        if kind == "report":
            from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

            asked |= {} if source is None else provenance_words(source)
            Report(result, asked=asked, title=title).save(path)
        elif path.suffix == ".csv" and hasattr(result, "to_csv"):
            result.to_csv(path)
        else:
            write_whole(path, as_json(values))
    if request.as_json:
        output.show_json(shown or values)
        return
    output.screen().print(result.on_terminal(explain=request.explain))
    for path in request.outputs.values():
        output.inform(f"Written: {path}")
