"""Colours: told apart by colour-blind people, readable on light and on dark.

Charts name colours as CSS variables, so that the page's light, dark and print styles recolour them
without drawing them anew. Pictures outside the page get the light colours filled in.
"""

from __future__ import annotations

import json
from typing import Any

# The eight series colours follow Okabe and Ito's set, darkened on light ground and lightened on
# dark ground where the original would be too faint to read.
LIGHT = {
    "ink": "#1b1f24",
    "muted": "#57606a",
    "grid": "#e3e6ea",
    "page": "#ffffff",
    "card": "#f6f8fa",
    "band": "#dbe9f5",
    "accent": "#0067a6",
    "before": "#b25a00",
    "good": "#00694e",
    "bad": "#a62b00",
    "open": "#7a5900",
    "c1": "#0072b2",
    "c2": "#d55e00",
    "c3": "#009e73",
    "c4": "#7a1f6b",
    "c5": "#b98100",
    "c6": "#2f8fc4",
    "c7": "#5d6470",
    "c8": "#7a6a00",
}
DARK = {
    "ink": "#e8eaed",
    "muted": "#a9b1bb",
    "grid": "#353b43",
    "page": "#14171b",
    "card": "#1e2329",
    "band": "#1d3a52",
    "accent": "#62b8f0",
    "before": "#f2a33a",
    "good": "#4fd1a8",
    "bad": "#ff9270",
    "open": "#e9c34a",
    "c1": "#62b8f0",
    "c2": "#ff8a4c",
    "c3": "#3ccfa0",
    "c4": "#e29ac4",
    "c5": "#f0b93a",
    "c6": "#9ad4f7",
    "c7": "#b5bcc6",
    "c8": "#e0d05a",
}
SERIES = tuple(f"c{i}" for i in range(1, 9))


def var(name: str) -> str:
    """The CSS variable of a colour."""
    if name not in LIGHT:
        raise ValueError(f"name: expected one of {list(LIGHT)}, got {name!r}.")
    return f"var(--{name})"


def css(colours: dict[str, str]) -> str:
    """The declarations of all variables."""
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def filled_in(spec: dict[str, Any]) -> dict[str, Any]:
    """A chart with the light colours in place of the variables, for pictures."""
    text = json.dumps(spec)
    for name, value in LIGHT.items():
        text = text.replace(f'"var(--{name})"', f'"{value}"')
    filled: dict[str, Any] = json.loads(text)
    return filled
