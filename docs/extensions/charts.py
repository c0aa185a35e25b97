"""Charts of the gallery and of the pages: Altair's, drawn as SVG without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vl_convert
from altair import TopLevelMixin

from fairgrad.report import ReportFigure
from fairgrad.report.figure import CONFIG, LIGHT, filled_in

WIDTH = 560
"""The width of a report's figure in a page, in pixels."""


def as_spec(value: Any) -> dict[str, Any] | None:
    """The Vega-Lite specification of a chart or a report's figure; None for anything else."""
    if isinstance(value, ReportFigure):
        value = value.standalone(WIDTH)
    if not isinstance(value, TopLevelMixin):
        return None
    spec = value.to_dict(format="vega-lite")
    return {**spec, "config": styled(spec.get("config", {})), "padding": 12}


def styled(config: dict[str, Any]) -> dict[str, Any]:
    """The report's style, with room for a reader's fonts to be wider than those measured here."""
    style = filled_in(CONFIG) if "background" not in config else config
    return {
        **style,
        "background": LIGHT["page"],
        "font": "Arial, 'Liberation Sans', Helvetica, sans-serif",
        "axis": {**style["axis"], "titlePadding": 14},
        "legend": {**style["legend"], "columnPadding": 28},
    }


def alternative_text(spec: dict[str, Any]) -> str:
    """The description of a chart, on one line.

    Raises:
        ValueError: if it has none: every picture needs a text.
    """
    words = " ".join(str(spec.get("description", "")).split())
    if not words:
        raise ValueError("chart: expected .properties(description='what it shows'), got none.")
    return words


def write_svg(spec: dict[str, Any], path: Path) -> None:
    """Draws a chart into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")


class ChartScraper:
    """Finds the chart at the end of a block of a gallery script."""

    def __repr__(self) -> str:
        """A constant, so that Sphinx sees no change from build to build."""
        return "ChartScraper"

    def __call__(self, _block: Any, block_vars: Any, gallery_conf: Any) -> str:
        """Draws the last expression of the block, if it is a chart; gives the text to embed it."""
        shown = block_vars["example_globals"].get("___")
        spec = as_spec(shown)
        if spec is None:
            return ""
        block_vars["example_globals"]["___"] = None  # so that the next block does not show it again
        path = Path(next(block_vars["image_path_iterator"])).with_suffix(".svg")
        write_svg(spec, path)
        place = path.relative_to(gallery_conf["src_dir"]).as_posix()
        return (
            f"\n.. image:: /{place}\n   :alt: {alternative_text(spec)}\n"
            "   :class: chart\n   :align: center\n\n"
        )
