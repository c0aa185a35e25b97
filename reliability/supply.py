"""What an installation brings along: distributions, their versions, sizes and licences.

Read from the metadata of what is installed here, for ``pip install fairgrad``, ``fairgrad[report]``
and ``fairgrad[torch]``; nothing is downloaded.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pandas as pd
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "pyproject.toml"
MOST = 40
"""Letters of a licence's name that are shown."""


def needed(requirements: list[str]) -> dict[str, tuple[Distribution, str]]:
    """All distributions that requirements ask for on this machine; "asked for" or by whom."""
    found: dict[str, tuple[Distribution, str]] = {}
    waiting = [(one, "") for one in requirements]
    while waiting:
        text, by = waiting.pop(0)
        wanted = Requirement(text)
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if name in found or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        try:
            own = distribution(name)
        except PackageNotFoundError:  # of another system, or of an environment that lacks it
            continue
        found[name] = (own, by)
        waiting += [(one, name) for one in own.requires or []]
    return found


def licence(own: Distribution) -> str:
    """The licence as the distribution says it."""
    words = own.metadata.get("License-Expression") or own.metadata.get("License") or ""
    listed = [
        one.rpartition(" :: ")[2]
        for one in own.metadata.get_all("Classifier") or []
        if one.startswith("License :: OSI Approved :: ")
    ]
    if not words and not listed:  # all that is left is the text itself, whose first line is a title
        texts = [file for file in own.files or [] if file.name.startswith("LICEN")]
        words = texts[0].read_text(encoding="utf-8") if texts else ""
    first = words.strip().splitlines()[0] if words.strip() else ""
    shown = first if 0 < len(first) <= MOST else ", ".join(listed) or first
    return textwrap.shorten(shown, MOST, placeholder=" ...") or "not said"


def megabytes(own: Distribution) -> float:
    """What its files take."""
    paths = [Path(str(own.locate_file(file))) for file in own.files or []]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def supply() -> pd.DataFrame:
    """One row per distribution, the largest first."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    base, extras = project["dependencies"], project["optional-dependencies"]
    wanted = {
        "audits": needed(base),
        "reports": needed([*base, *extras["report"]]),
        "training": needed([*base, *extras["report"], *extras["torch"][1:]]),
    }
    rows = [
        {
            "distribution": name,
            "version": own.version,
            "licence": licence(own),
            "megabytes": round(megabytes(own), 1),
            "because of": by or "fairgrad",
            "needed for": next(what for what, found in wanted.items() if name in found),
        }
        for name, (own, by) in wanted["training"].items()
    ]
    frame = pd.DataFrame(rows).sort_values("megabytes", ascending=False, ignore_index=True)
    size = dict(zip(frame["distribution"], frame["megabytes"], strict=True))
    total = [
        {
            "distribution": f"all {len(found)}",
            "megabytes": round(sum(size[name] for name in found), 1),
            "needed for": what,
        }
        for what, found in wanted.items()
    ]
    return pd.concat([frame, pd.DataFrame(total)], ignore_index=True)
