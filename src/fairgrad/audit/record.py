"""An audit as plain values, and as a record for a file: what was asked, of which data, when.

The record is what `Audit.to_dict` gives, with its provenance. `audit.schema.json` beside this file
says what it holds, in JSON Schema; fields may be added to it, and none of those it asks for goes
or changes its meaning without a new `schema_version`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

import fairgrad
from fairgrad.audit import frames, sections, words
from fairgrad.text import escape

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.audit.audit import Audit

SCHEMA, SCHEMA_VERSION = "fairgrad.audit", 2
PACKAGES = ("fairgrad", "numpy", "pandas", "scikit-learn", "torch", "lightgbm")
GROUPS_ONLY = (
    "Group fairness compares averages of groups. It promises nothing to a single person, and "
    "nothing about groups that were not named or about whether the true labels were recorded "
    "fairly."
)
LIKE_THESE = (
    "The figures hold for people like those audited, and for decisions taken exactly as predicted."
)


def audit_schema() -> dict[str, Any]:
    """The JSON Schema of an audit's record (draft 2020-12).

    Example:
        >>> schema = audit_schema()
        >>> schema["properties"]["schema"]["const"], "verdict" in schema["required"]
        ('fairgrad.audit', True)
    """
    said = files("fairgrad.audit").joinpath("audit.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(said)
    return schema


def to_dict(audit: Audit) -> dict[str, Any]:
    """Everything an audit found; lists of records for what are data frames otherwise."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "fairgrad_version": fairgrad.__version__,
        "asked": {
            name: [
                {
                    "measure": one.name,
                    "tolerance": one.tolerance,
                    "attributes": [list(names) for names in one.attributes],
                }
                for one in part
            ]
            for name, part in zip(("measures", "others"), audit.wanted, strict=True)
        },
        "rows": audit.table.n_rows,
        "attributes": list(audit.attributes),
        "labels": audit.labels,
        "desirable": audit.desirable,
        "confidence": audit.confidence,
        "weighted": audit.is_weighted,
        "has_labels": audit.has_labels,
        "min_group": audit.min_group,
        "reference": audit.reference,
        "verdict": audit.verdict,
        "conclusion": audit.conclusion,
        "accuracy": audit.accuracy,
        "baseline_accuracy": None if audit.baseline is None else audit.baseline.accuracy,
        "warnings": [notice._asdict() for notice in audit.warnings],
        "conventions": {
            "levels": words.LEVELS,
            "measures": {f.measure: words.convention(f.measure) for f in audit.findings},
            "rates": words.RATES,
            "figures": words.FIGURES,
            "figures_note": words.FIGURES_NOTE,
            "intervals": words.intervals(audit),
            "method": words.METHOD | {"approximate": audit.is_weighted},
        },
    }
    found["compared"] = sections.compared_values(audit)
    found["sections"] = [
        {**section._asdict(), "blocks": [block._asdict() for block in section.blocks]}
        for section in audit.sections
    ]
    found["impact"] = None if audit.impact_table is None else audit.impact_table.to_dict()
    if audit.baseline is not None:
        found["baseline_verdicts"] = frames.verdicts_frame(audit.baseline).to_dict(orient="records")
    if audit.subgroups is not None:
        found["subgroup_search"] = audit.subgroups.about
    for kind, frame in frames.FRAMES.items():
        found[kind] = frame(audit).to_dict(orient="records")
    plain: dict[str, Any] = plain_values(found)
    return plain


def plain_values(value: Any) -> Any:
    """NumPy values as Python's own, NaN and infinities as None."""
    if isinstance(value, dict):
        return {str(key): plain_values(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_values(part) for part in value]
    if isinstance(value, np.generic):
        return plain_values(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def record(audit: Audit) -> dict[str, Any]:
    """Everything an audit found, with the hash of its rows, date and versions."""
    digest = hashlib.sha256()
    labels = audit.labels if audit.has_labels else []
    digest.update(json.dumps([list(map(str, labels)), audit.table.groups.names]).encode())
    rows = audit.rows
    columns = [rows.label if audit.has_labels else None, audit.predicted, rows.group, rows.weight]
    if audit.counts is not None:
        columns.append(audit.counts.times)
    for column in columns:
        if column is not None:
            plain = np.ascontiguousarray(column, dtype="<f8" if column.dtype.kind == "f" else "<i8")
            digest.update(plain.tobytes())
    data = {"name": "rows of the audit", "sha256": digest.hexdigest(), "rows": audit.table.n_rows}
    made = {"date": made_at(), "versions": used_versions(), "command": "", "test": []}
    return {**audit.to_dict(), "provenance": {"data": [data], **made}}


def made_at() -> str:
    """Now, in UTC; what SOURCE_DATE_EPOCH says if it is set."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    seconds = float(fixed) if fixed and fixed.isdigit() else None
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def used_versions() -> dict[str, str]:
    """Those of Python and of the packages that results rest on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        if name == "lightgbm" and "lightgbm" not in sys.modules:
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def bias_and_risks(found: Mapping[str, Any]) -> str:
    """The section "Bias, risks and limitations" of a model card, from an audit's record.

    Args:
        found: an audit's record, as `Audit.record` gives it or its JSON file holds it.

    Example:
        >>> from fairgrad.audit import Audit
        >>> y, s = [0, 1] * 200, ["a"] * 200 + ["b"] * 200
        >>> print(bias_and_risks(Audit(y, y, s).record())[:32])
        ## Bias, risks and limitations
    """
    said = [f"**{found['conclusion']}**"]
    for is_asked, where in ((True, ""), (False, ", by measures that were not asked for")):
        asked = {
            (one["measure"], one["attribute"])
            for one in found["verdicts"]
            if one["asked"] is is_asked
        }
        beyond = [
            f"{level['name']} ({words.in_the_middle(level['measure'])})"
            for level in found["levels"]
            if level["beyond"] and (level["measure"], level["attribute"]) in asked
        ]
        if beyond:
            names = words.listed(list(dict.fromkeys(beyond)), most=8)
            said.append(f"Surely beyond the tolerance{where}: {names}.")
    small = [f"{g['group']} ({g['rows']})" for g in found["groups"] if not g["judged"]]
    if small:
        said.append(f"Too few people to be judged: {words.listed(small, most=8)}.")
    said += [notice["message"] for notice in found["warnings"] if notice["kind"] != "not_judged"]
    if not found["has_labels"]:
        said.append("True labels are not known: nothing is said about errors.")
    source = found.get("provenance")
    if source:
        files = [f"{one['name']}, SHA-256 {one['sha256']}" for one in source["data"]]
        data = f"; data: {words.conjoined(files)}" if files else ""  # a data set of the package
        said.append(f"Audited on {source['date']}, {found['rows']:,} rows{data}.")
    said += [GROUPS_ONLY, LIKE_THESE]
    lines = [
        escape(one) if not one.startswith("**") else f"**{escape(one[2:-2])}**" for one in said
    ]
    return "## Bias, risks and limitations\n\n" + "\n".join(f"- {line}" for line in lines)
