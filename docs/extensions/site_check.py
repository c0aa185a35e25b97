"""Checks the built pages: links and anchors resolve, pictures have a text, nothing loads from afar.

It runs at the end of every build, where each problem is a warning (and so an error), or by hand:
``python docs/extensions/site_check.py build/docs``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
"""Elements that load a file as soon as the page is opened."""


@dataclass
class Page:
    """The links and pictures of a page.

    Attributes:
        anchors: the anchors that links may lead to.
        links: the targets of its links.
        loads: the files that it loads.
        no_text: pictures without an alternative text.
    """

    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)
    no_text: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """Reads a page."""

    def __init__(self) -> None:
        """Starts with an empty page."""
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Records an element."""
        values = {name: value or "" for name, value in attrs}
        self.page.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.page.links.add(values["href"])
        if tag == "img" and not values.get("alt", "").strip():
            self.page.no_text.append(values.get("src", ""))
        loads = values.get(LOADING.get(tag, ""), "")
        if loads and values.get("rel") not in {"search", "index", "next", "prev", "canonical"}:
            self.page.loads.add(loads)


def read_page(path: Path) -> Page:
    """A page of the site."""
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def problems_of(folder: Path) -> list[str]:
    """All problems, one sentence each."""
    files = {path: read_page(path) for path in sorted(folder.rglob("*.html"))}
    files = {p: page for p, page in files.items() if "_static" not in p.parts}  # templates
    problems = []
    for path, page in files.items():
        name = path.relative_to(folder)
        problems += [f"{name}: a picture without a text: {source}" for source in page.no_text]
        problems += [
            f"{name}: loads from elsewhere: {url}" for url in sorted(page.loads) if _is_far(url)
        ]
        for link in sorted(page.links | page.loads):
            if not _is_far(link) and not _leads_somewhere(link, path, files):
                problems.append(f"{name}: a link leads nowhere: {link}")
    return problems


def _is_far(link: str) -> bool:
    url = urlsplit(link)
    return bool(url.scheme or url.netloc)


def _leads_somewhere(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    url = urlsplit(link)
    target = (path.parent / unquote(url.path)).resolve() if url.path else path
    if target.is_dir():
        target /= "index.html"
    if not url.fragment or target not in pages:
        return target.exists()
    return unquote(url.fragment) in pages[target].anchors


def check(app: Any, error: Exception | None) -> None:
    """At the end of a build: each problem is a warning."""
    if error is not None or app.builder.format != "html":
        return
    from sphinx.util import logging  # noqa: PLC0415 - by hand it runs without Sphinx

    for problem in problems_of(Path(app.outdir).resolve()):
        logging.getLogger(__name__).warning(problem, type="site")


def setup(app: Any) -> dict[str, Any]:
    """Registers the check."""
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    problems = problems_of(Path(sys.argv[1]).resolve())
    print("\n".join(problems) or "all links resolve, all pictures have a text")
    sys.exit(bool(problems))
