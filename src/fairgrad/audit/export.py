"""An audit as plain values and as JSON."""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairgrad.audit import wording
from fairgrad.files import write_whole

if TYPE_CHECKING:
    import os

    from fairgrad.audit.audit import Audit

SCHEMA, SCHEMA_VERSION = "fairgrad.audit", 1
FRAMES = ("verdicts", "groups", "rates", "levels", "figures", "changes")


def to_dict(audit: Audit) -> dict[str, Any]:
    """Everything an audit found; lists of records for what are data frames otherwise."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "fairgrad_version": version("fairgrad"),
        "rows": int(audit.table.size.sum()),
        "attributes": list(audit.attributes),
        "labels": audit.labels,
        "desirable": audit.desirable,
        "confidence": audit.confidence,
        "weighted": audit.is_weighted,
        "verdict": audit.verdict,
        "warnings": [notice._asdict() for notice in audit.warnings],
        "conventions": _conventions(audit),
    }
    for kind in FRAMES:
        found[kind] = audit.to_frame(kind).to_dict(orient="records")
    plain: dict[str, Any] = _plain(found)
    return plain


def to_json(audit: Audit, path: str | os.PathLike[str] | None = None) -> str:
    """JSON text without NaN; written whole or not at all."""
    text = json.dumps(to_dict(audit), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    if path is not None:
        write_whole(Path(path), text)
    return text


def _conventions(audit: Audit) -> dict[str, Any]:
    return {
        "levels": wording.LEVELS,
        "measures": {f.measure: wording.convention(f.measure) for f in audit.findings},
        "rates": wording.RATES,
        "figures": wording.FIGURES,
        "figures_note": wording.FIGURES_NOTE,
        "intervals": wording.intervals(audit.confidence, audit.is_weighted),
    }


def _plain(value: Any) -> Any:
    """NumPy values as Python's own, NaN and infinities as None."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
