"""``fairgrad audit``: how fair predictions are, and how sure that is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from fairgrad.audit import Audit, AuditOverTime
    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.subject import AuditedPeople
    from fairgrad.tables.dialect import ReadingOptions
    from fairgrad.tables.roles import ColumnRoles

    AuditedSubject = tuple[Audit, AuditOverTime | None, AuditedPeople, dict[str, str]]

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_command", 1
LL144 = "fairgrad.ll144"
TRAINED_ON = (
    "{} is the table that this model was trained on: it knows most of these rows, and the figures "
    "are better than for new people. Use --held-out to audit it on the rows held out."
)
STORED = " of the cross-validation"
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
    "--score",
    "Column of scores of the desirable value: shown by group and for other thresholds; with "
    "--threshold in place of predictions.",
)
@options.number_option(
    "--threshold", "Scores of at least this predict the desirable value.", click.FLOAT
)
@options.column_option(
    "--search",
    "Column to search for the worst subgroups with, beside the sensitive ones (repeatable).",
    multiple=True,
)
@options.number_option(
    "--search-depth",
    "Most conditions of a subgroup.",
    click.IntRange(1, 6),
    default=3,
    show_default=True,
)
@options.audited_options
@options.counted_options
@options.over_options
@click.option(
    "--format",
    "shape",
    type=click.Choice(["audit", "ll144"]),
    default="audit",
    show_default=True,
    help="The whole audit, or the table of selection rates and impact ratios that New York's Local "
    "Law 144 asks for (with --score and without --prediction: scoring rates).",
)
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    help="File to write the audit to, as JSON; of --format ll144 as CSV, if it ends in .csv.",
)
@options.force_option
@options.fail_on_option
@options.json_option
def audit(**given: Any) -> int:
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
    "2024-*.csv", a table of a duckdb database (FILE::TABLE), or - for the input. Parquet files,
    databases and large text files are counted by duckdb where they lie, whatever their size.

    Without --target the audit is about who is selected: demographic parity and the four-fifths
    rule. Measures that compare predictions with the truth need it.

    For a model, the target and the sensitive columns are those it was fitted with, unless
    --sensitive names others. The verdict, and --fail-on, are about the measures it was trained
    for, unless --measure names others; the other measures are shown beside it.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import check_file  # noqa: PLC0415 - as above
    from fairgrad.cli.provenance import Provenance, audit_values  # noqa: PLC0415 - as above
    from fairgrad.cli.request import exit_code  # noqa: PLC0415 - as above

    targets = {
        name: check_file(given[name], force=given["force"])
        for name in ("out", "report")
        if given[name] is not None
    }
    _check_search(given)
    if given["sql"]:
        return _print_query(given)
    if given["shape"] == "ll144":
        return _impact(given, targets)
    if _is_model(given):
        source = Provenance.of(given["table"])
        found, over, people, asked = _audit_model(given)
    else:
        source = Provenance.of(_files(given))
        found, over, people, asked = _audit_table(given)
    terminal.notes(people.notes)
    if given["search"]:
        found.worst_subgroups(people.searchable(given["search"]), k=given["search_depth"])
    values = audit_values(found, source)
    values |= {} if over is None else {"over": over.to_dict()}
    _write(found, over, people, asked, source.in_words(), targets, values)
    if given["as_json"]:
        judged = list(dict.fromkeys(finding.measure for finding in found.asked))
        shown = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "verdict": found.verdict,
            "conclusion": found.conclusion,
            "judged_by": judged,
            "desirable": found.desirable,
            "left_out": people.left_out,
            "notes": people.notes,
            "audit": values,
        }
        terminal.show_json(shown)
    else:
        terminal.screen().print(found)
        if over is not None:
            terminal.screen().print(over)
        for path in targets.values():
            terminal.progress(f"Written: {path}")
    return exit_code((over or found).verdict, given["fail_on"])


def _check_search(given: Mapping[str, Any]) -> None:
    """What is predicted is no condition: its subgroups would have the largest gaps of all."""
    for name in ("target", "prediction", "score", "baseline"):
        if given[name] and given[name] in given["search"]:
            raise ValueError(f"--search {given[name]} is the column of --{name}; name others")


def _files(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The table, if no model is named."""
    return (given["subject"], *given["table"])


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
    named = ("prediction", "desirable", "bins", "target", "threshold", "counts")
    unfit = [name for name in named if given[name] not in (None, (), "", False)]
    if unfit:
        raise ValueError(f"--{unfit[0]} is for tables with predictions, not for models")
    return True


def _audit_model(given: Mapping[str, Any]) -> AuditedSubject:
    """A model and a table that it predicts."""
    from fairgrad.cli.counted import (  # noqa: PLC0415 - keeps --help quick
        counts_predictions,
        predicted_people,
    )
    from fairgrad.cli.folder import load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.provenance import same_data  # noqa: PLC0415 - as above
    from fairgrad.cli.request import measures_on, read_options  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import audited_over_time, model_columns  # noqa: PLC0415 - as above
    from fairgrad.tables.reading import column_names, table_name  # noqa: PLC0415 - as above

    table, reading = given["table"], read_options(given)
    model = load_model(given["subject"], column_names(table, reading))
    columns = model_columns(model, given["sensitive"])
    own: dict[str, Any] = {}
    is_stored = False
    if counts_predictions(given):
        people, predicted = predicted_people(model, columns, given, reading)
    else:
        people, predicted, scores, is_stored = _predicted_rows(model, columns, given, reading)
        own = {} if given["score"] else {"y_score": scores}
    if not given["held_out"] and same_data(table, model.provenance):
        people.notes.append(TRAINED_ON.format(table_name(table)))
    judged: list[Any] = list(given["measure"])
    if not judged:
        separate = bool(model.settings["separate"])
        kept_given = [name for name in model.settings.get("given", ()) if name in columns.sensitive]
        within = given["given"] or kept_given
        judged = measures_on(model.measures, columns.sensitive, separate=separate, given=within)
    options = {**_options(people, given), **own}
    audit = people.audit(predicted, given, judged, **options)
    over = audited_over_time(people, predicted, given, judged, options)
    asked = {
        "Table": people.table,
        "Model": Path(given["subject"]).name + (", cross-validated" if is_stored else ""),
        "Trained for": ", ".join(model.measures),
    }
    return audit, over, people, asked


def _predicted_rows(
    model: SavedModel, columns: ColumnRoles, given: Mapping[str, Any], reading: ReadingOptions
) -> tuple[AuditedPeople, Any, Any, bool]:
    """Rows, what a model predicts for them, the scores, and whether these were kept from before."""
    import numpy as np  # noqa: PLC0415 - keeps --help quick

    from fairgrad.cli.folder import held_out_rows  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import (  # noqa: PLC0415 - as above
        model_predictions,
        model_scores,
        read_people,
    )

    table, in_order = given["table"], np.sort(model.labels)
    kept = [f"probability of {label}" for label in in_order]  # as the audit sorts labels

    def held_out(frame: pd.DataFrame) -> pd.DataFrame:
        """The rows held out; of a cross-validation with the predictions that were kept."""
        rows, stored = held_out_rows(frame, given["subject"], table, model)
        own = None if stored is None else stored[["prediction", *kept]].add_suffix(STORED)
        return rows if own is None else rows.assign(**{str(n): own[n].to_numpy() for n in own})

    people = read_people(
        table,
        columns,
        _further(given, "over"),
        models=[model],
        more=given["search"],
        labels=sorted(model.labels, key=lambda label: label == model.labels[-1]),
        value_map=given["value_map"],
        reading=reading,
        select=held_out if given["held_out"] else None,
    )
    if f"prediction{STORED}" in people.frame:  # by models that were not kept
        predicted = people.frame[f"prediction{STORED}"].to_numpy(dtype=object)
        scores = people.frame[[f"{name}{STORED}" for name in kept]].to_numpy(dtype=np.float64)
        return people, predicted, scores, True
    found = model_scores(model, people, given["missing"])
    scores = found[:, np.argsort(np.asarray(model.labels, dtype=str))]
    return people, model_predictions(model, found), scores, False


def _audit_table(given: Mapping[str, Any]) -> AuditedSubject:
    """A table that has predictions, or scores to make them from."""
    from fairgrad.cli.counted import audited_people  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import read_columns, read_options  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import audited_over_time  # noqa: PLC0415 - as above

    _check_columns(given)
    has_labels, further = bool(given["target"]), _further(given)
    if not has_labels:  # the predictions stand in for the target
        further.pop("prediction")
    people = audited_people(
        _files(given), read_columns(_targeted(given)), further, given, read_options(given)
    )
    predicted: Any
    if not has_labels:
        predicted = people.truth().to_numpy()
    elif given["prediction"]:
        predicted = people.predictions(given["prediction"], "--prediction")
    else:
        score = people.numbers(given["score"], "--score")
        # Counted rows say whether the score reaches the threshold.
        reached = given["threshold"] if people.counts is None else 1
        predicted = people.above(score, reached)
    # What another system was trained for is not known, so no threshold is expected of it.
    own = {"threshold": given["threshold"], "has_labels": has_labels}
    options = {**_options(people, given), **own}
    found = people.audit(predicted, given, given["measure"], **options)
    over = audited_over_time(people, predicted, given, given["measure"], options)
    return found, over, people, {"Table": people.table}


def _print_query(given: Mapping[str, Any]) -> int:
    """The query whose answer --counts takes."""
    from fairgrad.cli.counted import printed_query  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.request import read_columns  # noqa: PLC0415 - as above

    if given["counts"]:
        raise ValueError("--sql and --counts exclude each other; use only one of them")
    _check_columns(given)
    further = {k: v for k, v in _further(given).items() if given["target"] or k != "prediction"}
    click.echo(printed_query(given, read_columns(_targeted(given)), further), nl=False)
    return 0


def _targeted(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without a target the predictions stand in for it."""
    return {**given, "target": given["target"] or given["prediction"]}


def _check_columns(given: Mapping[str, Any]) -> None:
    """Refuses a table with predictions of which too little is said."""
    by_score = given["score"] and given["threshold"] is not None
    for name in ("prediction", "sensitive", "target"):
        if not given[name] and not (name == "prediction" and by_score):
            if name == "target" and given["prediction"]:
                continue  # who is selected can be said without it
            raise ValueError(
                f"--{name} is missing; to audit a table with predictions: fairgrad audit "
                "table.csv --target COLUMN --prediction COLUMN --sensitive COLUMN (or --score "
                "COLUMN --threshold NUMBER in place of --prediction; without --target only "
                "selection rates are audited)"
            )
    if given["threshold"] is not None and not given["score"]:
        raise ValueError("--threshold needs --score, the column it is a threshold of")


def _impact(given: Mapping[str, Any], targets: Mapping[str, Path]) -> int:
    """The table of impact ratios, of decisions or of scores."""
    from fairgrad.audit import ImpactTable  # noqa: PLC0415 - keeps --help quick
    from fairgrad.audit.impact import MIN_SHARE  # noqa: PLC0415 - as above
    from fairgrad.cli import terminal  # noqa: PLC0415 - as above
    from fairgrad.cli.provenance import Provenance  # noqa: PLC0415 - as above
    from fairgrad.cli.request import read_columns, read_options  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import read_people  # noqa: PLC0415 - as above
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above

    if "report" in targets:
        raise ValueError("--report shows the whole audit; leave out --format ll144")
    # By default the rule's own share: 30 people, the audit's default, are no part of it.
    share = given["min_group"] if given["min_group"] < 1 else MIN_SHARE
    how = {"min_group": share, "confidence": given["confidence"]}
    is_scored = bool(given["score"]) and not given["prediction"] and given["threshold"] is None
    if _is_model(given) or not is_scored:
        audit_of = _audit_model if _is_model(given) else _audit_table
        found, _, people, _ = audit_of({**given, "min_group": share})
        table = ImpactTable.from_audit(found)
    else:
        if not given["sensitive"]:
            raise ValueError("--sensitive is missing; name the columns of the categories")
        people = read_people(
            _files(given),
            read_columns({**given, "target": given["score"]}),
            {},
            labels=[],
            reading=read_options(given),
        )
        score = people.numbers(given["score"], "--score")
        table = ImpactTable.from_scores(score, people.columns.groups(people.frame), **how)
    remarks = [one if isinstance(one, str) else one.message for one in people.remarks]
    terminal.notes([*people.notes, *remarks])
    source = Provenance.of(given["table"] if _is_model(given) else _files(given))
    values = {
        "schema": LL144,
        "schema_version": 1,
        **table.to_dict(),
        "provenance": source.to_dict(),
    }
    if "out" in targets:
        targets["out"].parent.mkdir(parents=True, exist_ok=True)
        if targets["out"].suffix == ".csv":
            table.to_csv(targets["out"])
        else:
            said = json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
            write_whole(targets["out"], said)
    if given["as_json"]:
        terminal.show_json(values)
    else:
        terminal.screen().print(table)
        for path in targets.values():
            terminal.progress(f"Written: {path}")
    return 0


def _further(given: Mapping[str, Any], *more: str) -> dict[str, str]:
    """The further columns that every row must have."""
    return {option: given[option] for option in (*FURTHER_COLUMNS, *more) if given[option]}


def _options(people: AuditedPeople, given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if given["baseline"]:
        found["baseline"] = people.predictions(given["baseline"], "--baseline")
        found["baseline_name"] = given["baseline"]
    if given["score"] and people.counts is None:
        found["y_score"] = people.numbers(given["score"], "--score")
    if given["weight"] and people.counts is None:
        found["sample_weight"] = people.numbers(given["weight"], "--weight")
    return found


def _write(
    found: Audit,
    over: AuditOverTime | None,
    people: AuditedPeople,
    asked: Mapping[str, str],
    source: Mapping[str, str],
    targets: Mapping[str, Path],
    values: Mapping[str, Any],
) -> None:
    from fairgrad.files import write_whole  # noqa: PLC0415 - keeps --help quick

    for path in targets.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    if "out" in targets:
        said = json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False)
        write_whole(targets["out"], said + "\n")
    if "report" in targets:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        title = f"Fairness of predicting {people.columns.target}"
        notes = {f"Note {i}": note for i, note in enumerate(people.notes, start=1)}
        asked = {**asked, **notes, **source}
        Report(found, over=over, asked=asked, title=title).save(targets["report"])
