"""``fairgrad compare``: two models, or two columns of predictions, on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairgrad.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairgrad.cli.folder import SavedModel
    from fairgrad.cli.request import AuditRequest
    from fairgrad.tables.roles import ColumnRoles


@click.command(cls=options.Command, short_help="Compare two models, or two columns of predictions.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.argument("table", metavar="TABLE", type=click.Path())
@options.people_options(required=False)
@options.audited_options
@options.out_option("FILE", "JSON file to write the comparison to.")
@options.force_option
@options.json_option
@options.reading_options("bins", "map")
def compare(first: str, second: str, table: str, **params: Any) -> int:
    """Compare B with A on the rows of TABLE: what changes, how sure that is, who changes sides.

    A and B are folders of models, or columns of TABLE that hold predictions.

    \b
      fairgrad compare old/ new/ people.csv
      fairgrad compare decision_2023 decision_2024 people.csv --target y --sensitive sex

    The rows are the same for both, so differences are paired: their intervals rest on the people
    whose prediction changes. With models, the target and the sensitive columns are those of B (or
    of A, if only A is a model), unless --sensitive names others.
    """  # noqa: D301 - click reads the character, not its spelling
    from fairgrad.cli import terminal  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.folder import load_model  # noqa: PLC0415 - as above
    from fairgrad.cli.request import AuditRequest, refuse_idle  # noqa: PLC0415 - as above
    from fairgrad.cli.subject import (  # noqa: PLC0415 - as above
        model_predictions,
        read_people,
    )
    from fairgrad.tables.reading import column_names  # noqa: PLC0415 - as above

    request, sources = AuditRequest.from_options(params, table=(table,)), (first, second)
    if first == second:
        raise ValueError(f"A and B are both {first!r}; name two different systems")
    names = column_names(table, request.reading)
    models = [load_model(source, names) if Path(source).is_dir() else None for source in sources]
    known = [model for model in models if model is not None]
    further = {
        f"prediction of {place}": source
        for place, source, model in zip(("A", "B"), sources, models, strict=True)
        if model is None
    }
    _check_sources(further.values(), names, table)
    if not further:
        refuse_idle(params, ["map"], "between models")
    if request.weight:
        further["weight"] = request.weight
    people = read_people(
        table,
        _columns(request, known),
        further,
        models=known,
        labels=_labels(known),
        value_map=request.value_map,
        reading=request.reading,
    )
    predicted = [
        people.predictions(source, place)
        if model is None
        else model_predictions(model, people, request.reading.missing)[0]
        for place, source, model in zip(("A", "B"), sources, models, strict=True)
    ]
    judged = request.measure or tuple(
        dict.fromkeys(name for model in known[::-1] for name in model.measures)
    )
    weight = people.numbers(request.weight, "--weight") if request.weight else None
    terminal.notes(people.notes)
    audit = people.audit(predicted[0], request, judged, sample_weight=weight)
    found = audit.compare(predicted[1], names=_short(sources))
    outputs = request.outputs
    for path in outputs.values():
        path.parent.mkdir(parents=True, exist_ok=True)
    if "out" in outputs:
        found.to_json(outputs["out"])
    if "report" in outputs:
        from fairgrad.report import Report  # noqa: PLC0415 - charts, only where they are asked for

        one, two = found.names
        asked = {"Table": people.table, "A": str(sources[0]), "B": str(sources[1])}
        Report(found.audit, asked=asked, title=f"{two} against {one}").save(outputs["report"])
    if request.as_json:
        shown = {"left_out": people.left_out, "notes": people.notes}
        terminal.show_json({**found.to_dict(), **shown})
        return 0
    terminal.screen().print(found)
    for path in outputs.values():
        terminal.inform(f"Written: {path}")
    return 0


def _check_sources(columns: Any, names: Sequence[str], table: str) -> None:
    for column in columns:
        if column not in names:
            raise ValueError(
                f"{column!r} is neither a folder nor a column of {Path(table).name}; give the "
                f"folder of a model, or one of its columns: {', '.join(names[:12])}"
                f"{', ...' if len(names) > 12 else ''}"
            )


def _columns(request: AuditRequest, models: Sequence[SavedModel]) -> ColumnRoles:
    """The role of each column: what is asked, else as in the last model."""
    from fairgrad.cli.request import refuse_idle  # noqa: PLC0415 - keeps --help quick
    from fairgrad.cli.subject import model_columns  # noqa: PLC0415 - as above

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
    own = {(model.columns.target, model.settings["desirable"]) for model in models}
    if len(own) > 1:
        said = " and ".join(f"{target} (desirable: {value})" for target, value in sorted(own))
        raise ValueError(f"the two models predict different things: {said}")
    return model_columns(models[-1], request.sensitive)


def _labels(models: Sequence[SavedModel]) -> list[str] | None:
    """All labels of the models; None without one."""
    if not models:
        return None
    labels = dict.fromkeys(label for model in models for label in model.labels)
    return sorted(labels, key=lambda label: label == models[-1].labels[-1])


def _short(sources: tuple[str, str]) -> tuple[str, str]:
    """Names for people: without the way to the folder, where that tells them apart."""
    one, two = (Path(source).name for source in sources)
    return (one, two) if one != two else (str(sources[0]), str(sources[1]))
