"""One HTML file that needs nothing else and lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import suppress
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import altair as alt
from jinja2 import Environment, PackageLoader, StrictUndefined

from fairgrad.datasets.places import cache_folder
from fairgrad.files import write_whole
from fairgrad.report.figure import CONFIG, DARK, LIGHT, vl_convert_module

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairgrad.report.figure import ReportFigure

NOTICE = (
    "/*! Contains Vega, Vega-Lite and Vega-Embed, copyright University of Washington Interactive "
    "Data Lab and contributors, used under the BSD-3-Clause licence (github.com/vega). They come "
    "without any warranty. */\n"
)


def render(context: Mapping[str, Any], figures: list[ReportFigure]) -> str:
    """The page.

    Every text is escaped by the template, the charts' data stand in a block that the browser does
    not run, and a content security policy allows exactly the two scripts of this page and no
    request at all: whatever a file's column names hold, they stay text.
    """
    scripts = [vega_bundle(), _asset("report.js")]
    environment = Environment(
        loader=PackageLoader("fairgrad.report"), autoescape=True, undefined=StrictUndefined
    )
    light, dark = (
        f":root{{{''.join(f'--{name}:{value};' for name, value in colours.items())}}}"
        for colours in (LIGHT, DARK)
    )
    dark = f"@media screen and (prefers-color-scheme:dark){{{dark}}}"
    specs = {figure.id: figure.spec() for figure in figures}
    page = environment.get_template("report.html.j2").render(
        **context,
        policy=content_security_policy(scripts),
        style=f"{light}{dark}{_asset('report.css')}",
        scripts=scripts,
        charts=json_for_html({"config": CONFIG, "specs": specs}),
    )
    # A lone surrogate in a name could not be written to a file.
    return page.encode(errors="replace").decode()


def json_for_html(value: Any) -> str:
    """JSON that cannot end the script element it stands in, nor open a comment in it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def content_security_policy(scripts: list[str]) -> str:
    """Only these scripts may run; nothing may be loaded or sent."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()) for script in scripts)
    hashes = " ".join(f"'sha256-{digest.decode()}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """The JavaScript that draws charts; afterwards ``window.vegaEmbed`` is there.

    vl-convert bundles it from the very versions of Vega that Altair's charts are made for. That
    takes seconds, so the bundle is kept in the user's cache folder, by these versions.
    """
    vl_convert = vl_convert_module("Reports")
    wanted = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    if wanted not in vl_convert.get_vegalite_versions():
        wanted = max(vl_convert.get_vegalite_versions(), key=_numbers)  # it reads older charts
    kept = cache_folder() / f"vega-lite-{wanted}-vl-convert-{vl_convert.__version__}.js"
    if kept.is_file():
        bundle = kept.read_text(encoding="utf-8")
    else:
        bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=wanted)
        with suppress(OSError):  # a folder that cannot be written to costs time only
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, bundle)
    if "</script" in bundle.lower():
        raise RuntimeError("The JavaScript bundle cannot stand in a page: it closes its own tag.")
    return NOTICE + bundle


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _asset(name: str) -> str:
    return (resources.files("fairgrad.report") / "templates" / name).read_text(encoding="utf-8")
