"""Tests in a real browser. They run only when FAIRGRAD_BROWSER names one, and then never skip."""

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairgrad.report import Report

BROWSER = os.environ.get("FAIRGRAD_BROWSER")
collect_ignore_glob = [] if BROWSER else ["test_*.py"]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


SCREENS = {
    "desktop": {"viewport": {"width": 1200, "height": 900}},
    "phone": {
        "viewport": {"width": 360, "height": 740},
        "is_mobile": True,
        "has_touch": True,
        "color_scheme": "dark",
    },
}


class Visit:
    """A page, opened from its file, and everything that happened in it."""

    def __init__(self, context, path, wait=True):
        self.page = context.new_page()
        self.requests, self.problems = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: self.problems.append(f"dialog {dialog.message}"))
        self.url = path.as_uri()
        self.page.goto(self.url)
        if wait:
            self.wait_until("document.documentElement.dataset.charts === 'ready'")

    def wait_until(self, condition):
        """Waits for a condition; playwright's own way would need a right the page does not give."""
        while not self.page.evaluate(condition):
            assert not self.problems, self.problems
            self.page.wait_for_timeout(100)

    def _console(self, message):
        if message.type in {"error", "warning"}:
            self.problems.append(message.text)

    def check_quiet(self):
        assert self.requests == [self.url]
        assert self.problems == []


@pytest.fixture(scope="session")
def samples():
    place = Path(__file__).parents[1] / "report" / "samples.py"
    spec = importlib.util.spec_from_file_location("samples", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only these tests need it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, headless=True, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report(samples):
    return samples.full_report()


@pytest.fixture(scope="session")
def files(samples, report, tmp_path_factory):
    """The file of a report by its name, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("reports")
    make = {
        "full": lambda: report,
        "hostile": samples.hostile_report,
        "scored": lambda: Report(samples.scored_audit()),
        "labels": lambda: Report(samples.scored_audit(3, n_labels=3)),
        "many": lambda: Report(samples.scored_audit(100, n=20_000)),
        "comparison": lambda: Report(samples.comparison()),
        "impact": lambda: Report(samples.impact_table()),
        "monitor": lambda: Report(samples.monitor()),
        "trade-off": lambda: Report(
            samples.make_audit(), frontier=samples.make_frontier(), opening="trade-off"
        ),
    }

    def saved(name):
        if name == "demo":  # the page that newcomers see first
            command = [sys.executable, "-m", "fairgrad", "demo", "--out", str(folder / "demo")]
            subprocess.run(command, check=True, capture_output=True)
            return folder / "demo" / "report.html"
        return make[name]().save(folder / f"{name}.html")

    return functools.cache(saved)


@pytest.fixture(scope="session")
def open_page(chromium, files):
    contexts = []

    def open_page(name="full", *, wait=True, **options):
        contexts.append(chromium.new_context(**options))
        contexts[-1].set_default_timeout(0)  # however slow the machine
        return Visit(contexts[-1], files(name), wait)

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def shown(open_page):
    """A page by its name and screen, opened once: drawing one takes seconds. Leave it as it is."""
    return functools.cache(lambda name, screen: open_page(name, **SCREENS[screen]))
