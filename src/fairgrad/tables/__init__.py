"""Users' tables: reading a file, the role of each column, and features as numbers.

The program and ``fairgrad.datasets`` both read tables through this room. `TableEncoder` is for
everyone who has a data frame.
"""

from typing import Any

__all__ = ["TableEncoder"]


def __getattr__(name: str) -> Any:
    if name != "TableEncoder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fairgrad.tables.encoder import TableEncoder  # noqa: PLC0415 - scikit-learn

    return TableEncoder
