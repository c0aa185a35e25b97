"""``fairgrad audit``: how fair predictions are, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from fairgrad.audit import Audit
    from fairgrad.cli.provenance import Provenance
    from fairgrad.cli.subject import AuditedPeople

SCHEMA, SCHEMA_VERSION = "fairgrad.audit_command", 1
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
@click.option("-o", "--out", metavar="FILE", help="JSON file to write the audit to.")
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
    if _is_model(given):
        source = Provenance.of(given["table"])
        found, people, asked = _audit_model(given)
    else:
        source = Provenance.of(_files(given))
        found, people, asked = _audit_table(given)
    terminal.notes(people.notes)
    if given["search"]:
        found.worst_subgroups(people.searchable(given["search"]), k=given["search_depth"])
    _write(found, people, asked, targets, source)
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
            "audit": audit_values(found, source),
        }
        terminal.show_json(shown)
    else:
        terminal.screen().print(found)
        for path in targets.values():
            terminal.progress(f"Written: {path}")
    return exit_code(found.verdict, given["fail_on"])


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
    named = ("prediction", "desirable", "bins", "target", "threshold")
    unfit = [name for name in named if given[name] not in (None, (), "")]
    if unfit:
        raise ValueError(f"--{unfit[0]} is for tables with predictions, not for models")
    return True


def _audit_model(given: Mapping[str, Any]) -> tuple[Audit, AuditedPeople, dict[str, str]]:
    """A model and a table that it predicts."""
    import numpy as np  # noqa: PLC0415 - keeps --help quick

    from fairgrad.cli.folder import held_out_rows, load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.provenance import same_data  # noqa: PLC0415 - as above
    from fairgrad.cli.request import measures_on, read_options  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import (  # noqa: PLC0415 - as above
        model_columns,
        model_predictions,
        model_scores,
        read_people,
    )
    from fairgrad.tables.reading import column_names, table_name  # noqa: PLC0415 - as above

    table, reading = given["table"], read_options(given)
    model = load_model(given["subject"], column_names(table, reading))
    columns, in_order = model_columns(model, given["sensitive"]), np.sort(model.labels)
    kept = [f"probability of {label}" for label in in_order]  # as the audit sorts labels

    def held_out(frame: pd.DataFrame) -> pd.DataFrame:
        """The rows held out; of a cross-validation with the predictions that were kept."""
        rows, stored = held_out_rows(frame, given["subject"], table, model)
        own = None if stored is None else stored[["prediction", *kept]].add_suffix(STORED)
        return rows if own is None else rows.assign(**{str(n): own[n].to_numpy() for n in own})

    people = read_people(
        table,
        columns,
        _further(given),
        models=[model],
        more=given["search"],
        labels=sorted(model.labels, key=lambda label: label == model.labels[-1]),
        value_map=given["value_map"],
        reading=reading,
        select=held_out if given["held_out"] else None,
    )
    if not given["held_out"] and same_data(table, model.provenance):
        people.notes.append(TRAINED_ON.format(table_name(table)))
    is_stored = f"prediction{STORED}" in people.frame
    if is_stored:  # by models that were not kept
        predicted = people.frame[f"prediction{STORED}"].to_numpy(dtype=object)
        scores = people.frame[[f"{name}{STORED}" for name in kept]].to_numpy(dtype=np.float64)
    else:
        found = model_scores(model, people, given["missing"])
        predicted = model_predictions(model, found)
        scores = found[:, np.argsort(np.asarray(model.labels, dtype=str))]
    judged: list[Any] = list(given["measure"])
    if not judged:
        separate = bool(model.settings["separate"])
        judged = measures_on(model.measures, columns.sensitive, separate=separate)
    own = {} if given["score"] else {"y_score": scores}
    audit = people.audit(predicted, given, judged, **_options(people, given), **own)
    asked = {
        "Table": people.table,
        "Model": Path(given["subject"]).name + (", cross-validated" if is_stored else ""),
        "Trained for": ", ".join(model.measures),
    }
    return audit, people, asked


def _audit_table(given: Mapping[str, Any]) -> tuple[Audit, AuditedPeople, dict[str, str]]:
    """A table that has predictions, or scores to make them from."""
    from fairgrad.cli.request import read_columns, read_options  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.subject import read_people  # noqa: PLC0415 - as above

    by_score = given["score"] and given["threshold"] is not None
    for name in ("target", "prediction", "sensitive"):
        if not given[name] and not (name == "prediction" and by_score):
            raise ValueError(
                f"--{name} is missing; to audit a table with predictions: fairgrad audit "
                "table.csv --target COLUMN --prediction COLUMN --sensitive COLUMN (or --score "
                "COLUMN --threshold NUMBER in place of --prediction)"
            )
    if given["threshold"] is not None and not given["score"]:
        raise ValueError("--threshold needs --score, the column it is a threshold of")
    people = read_people(
        _files(given),
        read_columns(given),
        _further(given),
        more=given["search"],
        value_map=given["value_map"],
        reading=read_options(given),
    )
    if given["prediction"]:
        predicted = people.predictions(given["prediction"], "--prediction")
    else:
        score = people.numbers(given["score"], "--score")
        predicted = people.above(score, given["threshold"])
    # What another system was trained for is not known, so no threshold is expected of it.
    own = {"threshold": given["threshold"]}
    found = people.audit(predicted, given, given["measure"], **_options(people, given), **own)
    return found, people, {"Table": people.table}


def _further(given: Mapping[str, Any]) -> dict[str, str]:
    """The further columns that every row must have."""
    return {option: given[option] for option in FURTHER_COLUMNS if given[option]}


def _options(people: AuditedPeople, given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if given["baseline"]:
        found["baseline"] = people.predictions(given["baseline"], "--baseline")
        found["baseline_name"] = given["baseline"]
    if given["score"]:
        found["y_score"] = people.numbers(given["score"], "--score")
    if given["weight"]:
        found["sample_weight"] = people.numbers(given["weight"], "--weight")
    return found


def _write(
    found: Audit,
    people: AuditedPeople,
    asked: Mapping[str, str],
    targets: Mapping[str, Path],
    source: Provenance,
) -> None:
    from fairgrad.cli.provenance import audit_json  # noqa: PLC0415 - keeps --help quick
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above

    for path in targets.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    if "out" in targets:
        write_whole(targets["out"], audit_json(found, source))
    if "report" in targets:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        title = f"Fairness of predicting {people.columns.target}"
        notes = {f"Note {i}": note for i, note in enumerate(people.notes, start=1)}
        asked = {**asked, **notes, **source.in_words()}
        Report(found, asked=asked, title=title).save(targets["report"])
