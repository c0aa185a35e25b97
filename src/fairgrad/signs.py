"""Replaces characters that a terminal cannot show.

A pipe on Windows takes cp1252, a minimal server ASCII. Known signs are replaced by similar ones
and other characters, as in a user's name, by their codes. Nothing is lost and nothing fails.
"""

from __future__ import annotations

import codecs

STAND_INS = {
    "✓": "ok",
    "✗": "x",
    "→": "->",
    "←": "<-",
    "≤": "<=",
    "≥": ">=",
    "±": "+/-",
    "\N{MULTIPLICATION SIGN}": "x",
    "·": "-",
    "…": "...",
    "ε": "epsilon",
    "λ": "lambda",
    "\N{EN DASH}": "-",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{REPLACEMENT CHARACTER}": "?",
    "\N{FIRST STRONG ISOLATE}": "",
    "\N{POP DIRECTIONAL ISOLATE}": "",
}
HANDLER = "fairgrad.signs"


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    spelled = (
        STAND_INS.get(sign, sign.encode("ascii", "backslashreplace").decode("ascii"))
        for sign in signs
    )
    return "".join(spelled), error.end


codecs.register_error(HANDLER, _stand_in)
