"""Charts as SVG and PNG files, for papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairgrad.files import write_whole

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from fairgrad.report.figure import Figure

FORMATS = ("svg", "png")


def save_figures(
    figures: Sequence[Figure],
    folder: str | os.PathLike[str],
    formats: Sequence[str] = FORMATS,
    *,
    width: int = 460,
    scale: float = 3.0,
) -> list[Path]:
    """Writes every chart in every format; gives the files.

    Args:
        figures: the charts.
        folder: made if it is not there.
        formats: "svg", "png" or both.
        width: of the plotting area, in pixels.
        scale: PNG pixels per pixel of the chart.

    Raises:
        ValueError: if a format is not known.
        ImportError: if vl-convert-python is not installed.

    Example:
        >>> from fairgrad.audit import Audit
        >>> from fairgrad.report import Report
        >>> figures = Report(Audit([0, 1] * 40, [0, 1] * 40, ["a", "a", "b", "b"] * 20)).figures
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in save_figures(figures[:1], folder, ["svg"])]
        ['level-0.svg']
    """
    strangers = [name for name in formats if name not in FORMATS]
    if strangers:
        raise ValueError(f"formats: expected some of {list(FORMATS)}, got {strangers[0]!r}.")
    try:
        import vl_convert  # noqa: PLC0415 - large, and needed for pages and pictures only
    except ImportError as error:
        raise ImportError(
            "Pictures of charts need the package vl-convert-python: pip install vl-convert-python"
        ) from error
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        spec = figure.standalone(width).to_json()
        for name in formats:
            content: Any = (
                vl_convert.vegalite_to_svg(spec)
                if name == "svg"
                else vl_convert.vegalite_to_png(spec, scale=scale)
            )
            written.append(target / f"{figure.id}.{name}")
            write_whole(written[-1], content)
    return written
