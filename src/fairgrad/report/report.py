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
from fairgrad.audit.sections import DETAILS, METHOD, SUMMARY
from fairgrad.files import cache_folder, write_whole
from fairgrad.report import charts
from fairgrad.report.charts import as_frontier, as_history
from fairgrad.report.figure import CONFIG, DARK, LIGHT, vl_convert_module
from fairgrad.text import Block, Section, as_html

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from fairgrad.audit import Audit, AuditComparison, Certificate, ImpactTable, Monitor
    from fairgrad.report.figure import ReportFigure

CLASSES = {"✓": "good", "✗": "bad", "?": "open"}
TRADE_OFF = "trade-off"
NOTICE = (
    "/*! Contains Vega, Vega-Lite and Vega-Embed, copyright University of Washington Interactive "
    "Data Lab and contributors, used under the BSD-3-Clause licence (github.com/vega). They come "
    "without any warranty. */\n"
)


class Report:
    """An audit, a comparison or an impact table as one self-contained HTML page.

    Args:
        subject: what to report: an `Audit` (give it a baseline to show before and after), what
            `Audit.compare` returns, an `ImpactTable` or a `Monitor`.
        frontier: a fitted `Frontier`, shown on its test rows if it has any, else on its validation
            rows.
        history: a fitted model, whose training is shown if it keeps a history (plain models and
            boosted trees do not).
        chosen: position in the frontier of the model that was chosen.
        title: of the page.
        asked: the options of the run, as names and values.
        certificate: a `fairgrad.audit.Certificate` of the audit, if there is one.
        faults: sentences about problems of the model, for the top of the page.
        opening: "summary", or "trade-off" for a page that opens with the frontier.

    Raises:
        ValueError: if the page cannot open with this, or the model is not fitted.

    Example:
        >>> from fairgrad.audit import Audit
        >>> report = Report(Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20))
        >>> report.figures[0].title
        'Predicted 1, by sensitive_features'
    """

    def __init__(
        self,
        subject: Audit | AuditComparison | ImpactTable | Monitor,
        *,
        frontier: Any = None,
        history: Any = None,
        chosen: int | None = None,
        title: str = "Fairness report",
        asked: Mapping[str, Any] | None = None,
        certificate: Certificate | None = None,
        faults: Sequence[str] = (),
        opening: str = SUMMARY,
    ) -> None:
        if not hasattr(type(subject), "sections"):
            raise ValueError(
                "subject: expected an Audit, a comparison, an ImpactTable or a Monitor, got "
                f"{subject!r}."
            )
        if opening not in {SUMMARY, TRADE_OFF} or (opening == TRADE_OFF and frontier is None):
            raise ValueError(
                f"opening: expected {SUMMARY!r}, or {TRADE_OFF!r} with a frontier, got {opening!r}."
            )
        self.subject, self.title, self.opening = subject, title, opening
        self.certificate = certificate
        self.faults = tuple(str(fault) for fault in faults)
        self.asked = {str(name): str(value) for name, value in (asked or {}).items()}
        self.frontier = None if frontier is None else as_frontier(frontier, chosen)
        self.history = None
        if history is not None and as_history(history) is not None:
            self.history = history

    @property
    def audit(self) -> Any:
        """The audit that the charts are about; that of the second system of a comparison."""
        return getattr(self.subject, "audit", self.subject)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The subject's sections, with what the report knows beside it; at most six."""
        first, *rest = self.subject.sections
        by_key = {section.key: section for section in rest}
        if self.history is not None:
            before = by_key.get(DETAILS, Section(DETAILS, "")).blocks
            trained = Block("How training went", chart="history")
            by_key[DETAILS] = Section(DETAILS, "More detail", (), (*before, trained))
        method = by_key.pop(METHOD, Section(METHOD, "Method and definitions"))
        if self.asked:
            rows = list(self.asked.items())
            block = Block("Options of this run", ("option", "value"), rows, texts=2)
            method = method._replace(blocks=(block, *method.blocks))
        rest = [*by_key.values(), *([method] if method.blocks else [])]
        if self.frontier is None:
            return (first, *rest)
        how = (
            "Each point is a model: further up is more accurate, further left is fairer. "
            "Unfairness is the mean distance of a group's rate from the overall rate."
        )
        blocks = (Block("Trade-off", chart="frontier"),)
        trade_off = Section(TRADE_OFF, "What fairness costs", (self.frontier.sentence, how), blocks)
        if self.opening == SUMMARY:
            return (first, trade_off, *rest)
        judged = first._replace(title=f"The chosen model: {first.title[2:].lower()}")
        return (trade_off, judged, *rest)

    @cached_property
    def _drawn(self) -> dict[tuple[str, str | int], list[ReportFigure]]:
        """The charts of each block that names some, by the kind of chart and what it is about."""
        draw: dict[str, Any] = {
            "compared": lambda _: [charts.compared_figure(self.audit)],
            "levels": lambda place: [charts.level_figure(self.audit, place)],
            "rates": lambda view: charts.rate_figures(self.audit, view),
            "scores": lambda view: charts.score_figures(self.audit, view),
            "monitor": lambda _: charts.monitor_figures(self.subject),  # type: ignore[arg-type]
            "history": lambda _: charts.history_figures(self.history),
            "frontier": lambda _: charts.frontier_figures(self.frontier),
        }
        return {
            (block.chart, block.about): draw[block.chart](block.about)
            for section in self.sections
            for block in section.blocks
            if block.chart
        }

    @property
    def figures(self) -> list[ReportFigure]:
        """All charts, in the order of the page."""
        return [figure for figures in self._drawn.values() for figure in figures]

    def _repr_html_(self) -> str:
        return as_html(self.sections[0], "".join(figure.svg() for figure in self.figures[:1]))

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
            first=self.sections[0],
            sign=self.sections[0].title[:1],
            rest=self.sections[1:],
            certificate=self.certificate,
            faults=self.faults,
            frontier=self.frontier,
            figures=self._drawn,
            classes=CLASSES,
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
