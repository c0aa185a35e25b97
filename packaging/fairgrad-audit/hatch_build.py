"""Puts the package from the folder above into the wheel, but for what was compiled here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = {".c", ".so", ".pyd", ".pyc"}


class SamePackage(BuildHookInterface):
    """The same files as in the wheel of fairgrad."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Lists them; there is no other place to name files outside of this folder."""
        del version  # there is one kind of wheel
        source = Path(self.root).parents[1] / "src" / "fairgrad"
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.suffix not in COMPILED:
                place = Path("fairgrad") / path.relative_to(source)
                build_data["force_include"][str(path)] = place.as_posix()
