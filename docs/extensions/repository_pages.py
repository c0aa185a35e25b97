"""Pages that live in the repository for readers of the code, shown on the site as well.

Their links into the repository become links between pages, or plain names where there is no page.
Links to scripts of the gallery, on any page, lead to the page that the gallery makes of them. A
comment such as ``<!-- pages: first second -->`` becomes a hidden table of contents, which is not
seen on a code host.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
WHOLE = {"contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md"}
"""Pages whose text is a file of the repository's root."""

PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "docs/architecture.md": "architecture.md",
    "docs/reproduction.md": "reproduction.md",
    "docs/reproduction_figures.md": "reproduction_figures.md",
}
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
SCRIPT = re.compile(r"\]\(((?:\.\./)*)gallery/(plot_\w+)\.py\)")
CONTENTS = re.compile(r"<!-- pages: (.*?) -->")


def with_contents(text: str) -> str:
    """The text with its comment on pages as a table of contents.

    Example:
        >>> print(with_contents("<!-- pages: first second -->").replace("`", "~"))
        ~~~{toctree}
        :hidden:
        <BLANKLINE>
        first
        second
        ~~~
    """

    def block(comment: re.Match[str]) -> str:
        return "\n".join(["```{toctree}", ":hidden:", "", *comment[1].split(), "```"])

    return CONTENTS.sub(block, text)


def with_links_of_the_site(text: str) -> str:
    """The text with its links turned.

    Example:
        >>> with_links_of_the_site("See [how](../CONTRIBUTING.md) and [results/](../results).")
        'See [how](contributing.md) and `results/`.'
    """

    def turned(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2].removeprefix("../"), link[3] or ""
        page = PAGES.get(target, target.removeprefix("docs/"))
        if "://" in target:
            return link[0]
        if (REPOSITORY / "docs" / page).is_file():
            return f"[{words}]({page}{anchor})"
        return f"`{words.strip('`')}`"

    return LINK.sub(turned, text)


def turn_links(_app: Any, docname: str, source: list[str]) -> None:
    """Reads the files of the root, and turns links for readers of the code into the site's."""
    if docname in WHOLE:
        source[0] = (REPOSITORY / WHOLE[docname]).read_text(encoding="utf-8")
    if docname in {*WHOLE, "architecture", "reproduction"}:
        source[0] = with_links_of_the_site(source[0])
    source[0] = with_contents(SCRIPT.sub(r"](\1auto_gallery/\2.rst)", source[0]))


def setup(app: Any) -> dict[str, Any]:
    """Registers the reader."""
    app.connect("source-read", turn_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
