"""``fairgrad certify``: judges a model on new rows.

Each look at the model is recorded in its folder, and all looks share one error. Rows of its
training table are recognized by their digests, and refused.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import Candidacy, Certificate, SeenRows
from fairgrad.audit.certificate import look_share
from fairgrad.audit.record import made_at
from fairgrad.audit.seen_rows import row_digests
from fairgrad.cli import output
from fairgrad.cli.audit import decided_people
from fairgrad.cli.folder import DIGESTS, LOOKS, provenance, same_data
from fairgrad.cli.request import AuditRequest
from fairgrad.files import locked, read_sealed, sealed_json, write_whole
from fairgrad.tables.reading import pieces, table_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from fairgrad.cli.people import AuditedPeople

SCHEMA, SCHEMA_VERSION = "fairgrad.looks", 1


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
        "measures": [str(one) for one in people.judged],
        "options": {name: params[name] for name in ("tolerance", "min_group", "weight")},
        "sensitive": list(people.columns.sensitive),
    }
    path = Path(request.model).expanduser() / LOOKS
    with locked(path):
        looks = _read_looks(path)
        # The same question has the same answer, which tells nothing new.
        asked = [i for i, one in enumerate(looks, start=1) if one["question"] == question]
        look = asked[0] if asked else len(looks) + 1
        confidence = 1 - (1 - request.confidence) * look_share(look)
        audit = people.audit(replace(request, confidence=confidence))
        one_model = Candidacy()
        certificate = Certificate(audit, one_model, overlap=overlap, look=look)
        if not asked:
            entry = {
                "date": made_at(),
                "table": people.table,
                "question": question,
                "certificate": certificate.to_dict(),
            }
            head = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
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
        output.say_paragraph(certificate.sentence, style)
        output.screen().print(audit)
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
        if (known["schema"], known["schema_version"]) != (SCHEMA, SCHEMA_VERSION):
            raise ValueError("it is of another kind or version")  # noqa: TRY301 - one message
        looks: list[dict[str, Any]] = known["looks"]
    except (ValueError, KeyError, TypeError) as wrong:
        raise ValueError(f"{path} is damaged: {wrong}") from wrong
    return looks
