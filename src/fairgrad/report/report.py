"""The report: an audit, and what led to it, as one self-contained page to hand on.

The page needs nothing else and lets nothing else in: it loads no file, sends no request, and runs
only its own two scripts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import altair as alt
from jinja2 import Environment, PackageLoader, StrictUndefined

import fairgrad
from fairgrad.audit import FAIR, UNDECIDED, UNFAIR, words
from fairgrad.audit.sections import DETAILS, METHOD, Block, Section
from fairgrad.files import cache_folder, write_whole
from fairgrad.report import charts
from fairgrad.report.figure import CONFIG, DARK, FORMATS, LIGHT, save_figures, vl_convert_module
from fairgrad.report.models import as_frontier, as_history, frontier_figures, history_figures

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from fairgrad.audit import Audit, AuditOverTime, Certificate
    from fairgrad.report.figure import ReportFigure

CLASSES = {FAIR: "good", UNFAIR: "bad", UNDECIDED: "open"}
NOTICE = (
    "/*! Contains Vega, Vega-Lite and Vega-Embed, copyright University of Washington Interactive "
    "Data Lab and contributors, used under the BSD-3-Clause licence (github.com/vega). They come "
    "without any warranty. */\n"
)


class Report:
    """An audit as one self-contained HTML page.

    Args:
        audit: what to report; give it a baseline to show before and after.
        frontier: a fitted `Frontier`, shown on its test rows if it has any, else on its validation
            rows; `FrontierData`; or a frame of its points (epsilon, accuracy, unfairness).
        history: a fitted model, whose training is shown if it keeps a history (plain models and
            boosted trees do not); or a frame with the columns epoch, quantity ("level",
            "multiplier", "weight"), name and value.
        chosen: position in the frontier of the model that was chosen.
        over: audits of consecutive periods of the same rows, to show how levels move.
        title: of the page.
        asked: what was asked for and how it was made, as names and values: shown as given.
        certificate: a `fairgrad.audit.Certificate` of the audit, if there is one.
        faults: sentences that say what is wrong with the model, for the top of the page.

    Example:
        >>> from fairgrad.audit import Audit
        >>> report = Report(Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20))
        >>> report.figures[0].title
        'Predicted 1, by sensitive_features'
    """

    def __init__(
        self,
        audit: Audit,
        *,
        frontier: Any = None,
        history: Any = None,
        chosen: int | None = None,
        over: AuditOverTime | None = None,
        title: str = "Fairness report",
        asked: Mapping[str, Any] | None = None,
        certificate: Certificate | None = None,
        faults: Sequence[str] = (),
    ) -> None:
        self.audit, self.title = audit, title
        self.over, self.certificate = over, certificate
        self.faults = tuple(str(fault) for fault in faults)
        self.asked = {str(name): str(value) for name, value in (asked or {}).items()}
        self.frontier = None if frontier is None else as_frontier(frontier, chosen)
        self.history = None if history is None else as_history(history)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The audit's sections, with what the report knows beside the audit."""
        found = {section.key: section for section in self.audit.sections}
        details: list[Block] = []
        if self.over is not None:
            blocks = self.over.blocks()
            details += [blocks[0]._replace(chart="over_time"), *blocks[1:]]
        if self.history is not None:
            details.append(Block("How training went", chart="history"))
        if details:
            before = found.get(DETAILS, Section(DETAILS, "")).blocks
            found[DETAILS] = Section(DETAILS, "More detail", (), (*before, *details))
        if self.asked:
            rows = tuple(self.asked.items())
            block = Block("What was asked", ("option", "value"), rows, texts=2)
            method = found.pop(METHOD)
            found[METHOD] = method._replace(blocks=(block, *method.blocks))
        return tuple(found.values())

    @cached_property
    def _drawn(self) -> dict[tuple[str, str | int], list[ReportFigure]]:
        """The charts of each block that names some, by the kind of chart and what it is about."""
        found: dict[tuple[str, str | int], list[ReportFigure]] = {}
        if self.frontier is not None:
            found["frontier", ""] = frontier_figures(self.frontier)
        for section in self.sections:
            for block in section.blocks:
                if block.chart:
                    found[block.chart, block.about] = self._draw(block)
        return found

    def _draw(self, block: Block) -> list[ReportFigure]:
        draw: dict[str, Any] = {
            "compared": lambda place: [charts.compared_figure(self.audit, place)],
            "levels": lambda place: [charts.level_figure(self.audit, place)],
            "rates": lambda view: charts.rate_figures(self.audit, view),
            "scores": lambda view: charts.score_figures(self.audit, view),
            "thresholds": lambda _: charts.threshold_figures(self.audit),
            "over_time": lambda _: charts.over_time_figures(self.over),  # type: ignore[arg-type]
            "history": lambda _: history_figures(self.history),
        }
        figures: list[ReportFigure] = draw[block.chart](block.about)
        return figures

    @property
    def figures(self) -> list[ReportFigure]:
        """All charts, in the order of the page."""
        return [figure for figures in self._drawn.values() for figure in figures]

    def html(self) -> str:
        """The page.

        Every text is escaped by the template, the charts' data stand in a block that the browser
        does not run, and a content security policy allows exactly the two scripts of this page and
        no request at all: whatever a file's column names hold, they stay text.
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
        specs = {figure.id: figure.spec() for figure in self.figures}
        page = environment.get_template("report.html.j2").render(
            title=self.title,
            made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            version=fairgrad.__version__,
            audit=self.audit,
            summary=self.sections[0],
            rest=self.sections[1:],
            certificate=self.certificate,
            faults=self.faults,
            frontier=self.frontier,
            figures=self._drawn,
            classes=CLASSES,
            signs=words.SIGNS,
            policy=content_security_policy(scripts),
            style=f"{light}{dark}{_asset('report.css')}",
            scripts=scripts,
            charts=json_for_html({"config": CONFIG, "specs": specs}),
        )
        # A lone surrogate in a name could not be written to a file.
        return page.encode(errors="replace").decode()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, whole or not at all; gives its path."""
        write_whole(Path(path), self.html())
        return Path(path)

    def save_charts(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = FORMATS
    ) -> list[Path]:
        """Writes every chart as SVG and PNG into a folder; gives the files."""
        return save_figures(self.figures, folder, formats)


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
