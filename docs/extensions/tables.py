"""Data frames as tables of a page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    import pandas as pd


def as_text(value: Any, digits: int = 4) -> str:
    """A figure for people: so many significant digits, nothing where there is none.

    Example:
        >>> [as_text(value) for value in (0.123456, 1234.5, 12, True, float("nan"), "linear")]
        ['0.1235', '1,234', '12', 'yes', '', 'linear']
    """
    if hasattr(value, "item"):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return _float_text(value, digits)
    return str(value)


def _float_text(value: float, digits: int) -> str:
    if value == 0 or 1e-4 <= abs(value) < 1:
        return f"{value:.{digits}f}"
    if 1 <= abs(value) < 1e15:
        before = len(str(int(abs(value))))
        return f"{value:,.{max(digits - before, 0)}f}"
    return f"{value:.{digits - 1}g}"


def table_of(frame: pd.DataFrame, digits: int = 4) -> nodes.table:
    """The frame as a table, numbers to the right."""
    right = [frame[name].dtype.kind in "iuf" for name in frame]
    group = nodes.tgroup(cols=len(right))
    group += [nodes.colspec(colwidth=1) for _ in right]
    head, body = nodes.thead(), nodes.tbody()
    names = [str(name).replace("_", " ") for name in frame]
    head += _row(names, right)
    for values in frame.itertuples(index=False):
        body += _row([as_text(value, digits) for value in values], right)
    group += [head, body]
    return nodes.table("", group, classes=["table", "figures"])


def _row(texts: list[str], right: list[bool]) -> nodes.row:
    row = nodes.row()
    for text, is_number in zip(texts, right, strict=True):
        entry = nodes.entry("", nodes.paragraph("", text))
        if is_number:
            entry["classes"].append("text-right")
        row += entry
    return row
