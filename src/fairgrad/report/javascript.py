"""The JavaScript that draws charts, as one piece to put into the page.

It is bundled by vl-convert from the very versions of Vega that Altair's charts are made for.
"""

from __future__ import annotations

from functools import lru_cache

import altair as alt

NOTICE = (
    "/*! Contains Vega, Vega-Lite and Vega-Embed, copyright University of Washington Interactive "
    "Data Lab and contributors, used under the BSD-3-Clause licence (github.com/vega). They come "
    "without any warranty. */\n"
)


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed; afterwards ``window.vegaEmbed`` is there.

    Raises:
        ImportError: if vl-convert-python is not installed.
    """
    try:
        import vl_convert  # noqa: PLC0415 - large, and needed for pages and pictures only
    except ImportError as error:
        raise ImportError(
            "Reports need the package vl-convert-python, which brings the charts' JavaScript: "
            "pip install vl-convert-python"
        ) from error
    wanted = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
    known = (
        wanted in vl_convert.get_vegalite_versions()
    )  # else its latest, which reads older charts
    bundle: str = vl_convert.javascript_bundle(
        "window.vegaEmbed = vegaEmbed;", vl_version=wanted if known else None
    )
    if "</script" in bundle.lower():
        raise RuntimeError("The JavaScript bundle cannot stand in a page: it closes its own tag.")
    return NOTICE + bundle
