"""Users' names inside sentences: short, and unable to disturb the words around them."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 80
ISOLATE, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
LEFT_TO_RIGHT = frozenset(
    {"L", "EN", "ES", "ET", "AN", "CS", "NSM", "BN", "B", "S", "WS", "ON", ""}
)


def in_sentence(name: str) -> str:
    """A name cut to a bearable length; isolated if it holds text that runs right to left.

    Without the isolation one such name would turn around the rest of the sentence.
    """
    short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
    if all(unicodedata.bidirectional(sign) in LEFT_TO_RIGHT for sign in short):
        return short
    return f"{ISOLATE}{short}{END}"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names in a sentence, shortened when there are many.

    Example:
        >>> listed(["a", "b", "c"], most=2)
        'a; b; and 1 more'
    """
    shown = "; ".join(in_sentence(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}; and {len(names) - most} more"


def printable(text: object) -> str:
    """Text without characters that could steer a terminal."""
    plain = str(text).replace(ISOLATE, "").replace(END, "")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain)
