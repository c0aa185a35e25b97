"""The report: an audit, and what led to it, as one page to hand on."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.files import write_whole
from fairgrad.report import sections
from fairgrad.report.frontier import as_frontier, frontier_figures
from fairgrad.report.history import as_history, history_figures
from fairgrad.report.images import FORMATS, save_figures
from fairgrad.report.levels import level_figure
from fairgrad.report.page import render
from fairgrad.report.rates import change_figures, rate_figures

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from fairgrad.audit import Audit
    from fairgrad.report.figure import Figure


class Report:
    """An audit as one self-contained HTML page.

    Args:
        audit: what to report; give it a baseline to show before and after.
        frontier: `FrontierData`, or a frame of its points (epsilon, accuracy, unfairness).
        history: a frame with the columns epoch, quantity ("level", "multiplier", "weight"), name
            and value.
        title: of the page.
        asked: what was asked for and how it was made, as names and values: shown as given.

    Example:
        >>> from fairgrad.audit import Audit
        >>> report = Report(Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20))
        >>> [figure.title for figure in report.figures[:2]]  # doctest: +NORMALIZE_WHITESPACE
        ['Demographic parity by sensitive_features', 'Equalized odds by sensitive_features']
    """

    def __init__(
        self,
        audit: Audit,
        *,
        frontier: Any = None,
        history: Any = None,
        title: str = "Fairness report",
        asked: Mapping[str, Any] | None = None,
    ) -> None:
        self.audit, self.title = audit, title
        self.asked = {str(name): str(value) for name, value in (asked or {}).items()}
        self.frontier = None if frontier is None else as_frontier(frontier)
        self.history = None if history is None else as_history(history)

    @cached_property
    def _by_section(self) -> dict[str, list[Figure]]:
        audit = self.audit
        figures = {"levels": [level_figure(audit, i) for i in range(len(audit.findings))]}
        figures |= {f"rates {view}": rate_figures(audit, view) for view in audit.views}
        if audit.baseline is not None:
            figures |= {f"changes {view}": change_figures(audit, view) for view in audit.views}
        if self.frontier is not None:
            figures["frontier"] = frontier_figures(self.frontier)
        if self.history is not None:
            figures["history"] = history_figures(self.history)
        return figures

    @property
    def figures(self) -> list[Figure]:
        """All charts, in the order of the page."""
        return [figure for part in self._by_section.values() for figure in part]

    def html(self) -> str:
        """The page."""
        context = {
            "title": self.title,
            "made": f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC",
            "version": version("fairgrad"),
            "asked": self.asked,
            "frontier": sections.frontier(self.frontier, self._by_section),
            "history": self._by_section.get("history", []),
            **sections.of_audit(self.audit, self._by_section),
        }
        return render(context, self.figures)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, whole or not at all; gives its path."""
        write_whole(Path(path), self.html())
        return Path(path)

    def save_charts(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = FORMATS
    ) -> list[Path]:
        """Writes every chart as SVG and PNG into a folder; gives the files."""
        return save_figures(self.figures, folder, formats)
