"""From sections to one HTML file that needs nothing else and lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fairgrad.report.colours import DARK, LIGHT, css
from fairgrad.report.figure import CONFIG
from fairgrad.report.javascript import vega_bundle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.report.figure import Figure


def render(context: Mapping[str, Any], figures: list[Figure]) -> str:
    """The page.

    Every text is escaped by the template, the charts' data stand in a block that the browser does
    not run, and a content security policy allows exactly the two scripts of this page and no
    request at all: whatever a file's column names hold, they stay text.
    """
    scripts = [vega_bundle(), _asset("report.js")]
    environment = Environment(
        loader=PackageLoader("fairgrad.report"), autoescape=True, undefined=StrictUndefined
    )
    page = environment.get_template("report.html.j2").render(
        **context,
        policy=content_security_policy(scripts),
        style=_style(),
        scripts=scripts,
        charts=json_for_html(
            {"config": CONFIG, "specs": {figure.id: figure.spec() for figure in figures}}
        ),
    )
    # A lone surrogate in a name could not be written to a file.
    return page.encode(errors="replace").decode()


def json_for_html(value: Any) -> str:
    """JSON that cannot end the script element it stands in, nor open a comment in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def content_security_policy(scripts: list[str]) -> str:
    """Only these scripts may run; nothing may be loaded or sent."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _style() -> str:
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{css(DARK)}}}}}"
    return f":root{{{css(LIGHT)}}}{dark}{_asset('report.css')}"


def _asset(name: str) -> str:
    return (resources.files("fairgrad.report") / "templates" / name).read_text(encoding="utf-8")
