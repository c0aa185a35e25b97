"""Takes pictures of the demo's report: ``python scripts/pictures.py [report]``.

Without a report it runs the demo first, in a temporary folder. It needs playwright and a Chromium;
the environment variable FAIRGRAD_BROWSER names the executable if it is not /usr/bin/chromium.
Writes the first screen to docs/pictures: report.png, for the README, and report_phone.png; and the
charts of committed results (*.svg) for pages that are read on code hosts, too.
"""  # noqa: INP001 - a script, not a package

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"
BROWSER = os.environ.get("FAIRGRAD_BROWSER", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
SCREENS = {"report.png": (1280, 620), "report_phone.png": (390, 844)}
READY = "document.documentElement.dataset.charts === 'ready'"


def draw_charts() -> list[Path]:
    """Draws the charts of pages that code hosts show, too, from the committed results."""
    sys.path.insert(0, str(DOCS / "extensions"))
    charts, results_charts = (import_module(name) for name in ("charts", "results_charts"))
    drawn = {
        "overhead": results_charts.overhead_chart(),
        "published": results_charts.published_overview(),
        "reproduction": results_charts.reproduction_chart(),
    }
    for source in results_charts.published_sources():
        drawn[f"published_{source}"] = results_charts.published_chart(source)
    for name, chart in drawn.items():
        charts.write_svg(charts.as_spec(chart), PICTURES / f"{name}.svg")
    return [PICTURES / f"{name}.svg" for name in drawn]


def demo_report(folder: Path) -> Path:
    """Runs the demo; gives its report."""
    subprocess.run([sys.executable, "-m", "fairgrad", "demo"], cwd=folder, check=True)
    return folder / "fairgrad-demo" / "report.html"


def take(report: Path) -> list[Path]:
    """Opens the report on each screen and takes the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, headless=True, args=FLAGS)
        for name, (width, height) in SCREENS.items():
            page = browser.new_page(
                viewport={"width": width, "height": height},
                device_scale_factor=1.5,
                color_scheme="light",
            )
            page.goto(report.absolute().as_uri())
            wait_for_charts(page)
            page.screenshot(path=PICTURES / name)
        browser.close()
    return [PICTURES / name for name in SCREENS]


def wait_for_charts(page: Page) -> None:
    """Asks until they are drawn; the page's policy forbids playwright's own way of waiting."""
    for _ in range(200):
        if page.evaluate(READY):
            return
        page.wait_for_timeout(100)
    raise RuntimeError("The charts of the report were not drawn within 20 seconds.")


def main(arguments: list[str]) -> None:
    """Takes the pictures and says where they are."""
    if arguments:
        written = take(Path(arguments[0]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            written = take(demo_report(Path(folder)))
    for path in (*written, *draw_charts()):
        sys.stdout.write(f"{path} ({path.stat().st_size // 1000} kB)\n")


if __name__ == "__main__":
    main(sys.argv[1:])
