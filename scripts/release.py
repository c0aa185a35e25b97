"""The version of a release, in all places that name it.

``python scripts/release.py set 1.2.3`` writes it; ``python scripts/release.py check v1.2.3`` says
whether a tag fits: the release workflow asks. The recipe is in CONTRIBUTING.md.
"""  # noqa: INP001 - a script, not a package

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:\.dev\d+|(?:a|b|rc)\d+)?")
PLACES = {
    "pyproject.toml": re.compile(r'^(version = ")(.+?)(")$', re.MULTILINE),
    "bench/pyproject.toml": re.compile(r'^(version = ")(.+?)(")$', re.MULTILINE),
    "CITATION.cff": re.compile(r"^(version: )(.+?)()$", re.MULTILINE),
}
"""File -> what precedes the version in it, the version, what follows."""


def versions(root: Path = ROOT) -> dict[str, str]:
    """The version that each place names."""
    named = {}
    for name, pattern in PLACES.items():
        match = pattern.search((root / name).read_text(encoding="utf-8"))
        if match is None:
            raise ValueError(f"{name}: expected a version, found none.")
        named[name] = match[2]
    return named


def set_version(version: str, root: Path = ROOT) -> None:
    """Writes the version into all places."""
    if not VERSION.fullmatch(version):
        raise ValueError(
            f"version: expected one such as 1.2.3, 1.2.3rc1 or 1.2.3.dev0, got {version!r}."
        )
    versions(root)  # nothing is written if a place is not as expected
    for name, pattern in PLACES.items():
        file = root / name
        text = file.read_text(encoding="utf-8")
        file.write_text(pattern.sub(rf"\g<1>{version}\g<3>", text, count=1), encoding="utf-8")


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """What keeps a tag from being released."""
    version = tag.removeprefix("v")
    sentences = [
        f"{name} says {named}, the tag says {version}"
        for name, named in versions(root).items()
        if named != version
    ]
    if not tag.startswith("v") or not VERSION.fullmatch(version) or ".dev" in version:
        sentences.append(f"the tag is {tag}; a release has a tag such as v1.2.3")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changes, re.MULTILINE):
        sentences.append(f"CHANGELOG.md has no heading '## {version} (YEAR-MONTH-DAY)'")
    return sentences


def main(arguments: list[str]) -> int:
    """The two commands."""
    match arguments:
        case ["set", version]:
            set_version(version)
            return 0
        case ["check", tag]:
            wrong = problems(tag)
            print("\n".join(wrong) or f"{tag} can be released.", file=sys.stderr)  # noqa: T201 - its answer
            return int(bool(wrong))
    print(__doc__, file=sys.stderr)  # noqa: T201 - its help
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
