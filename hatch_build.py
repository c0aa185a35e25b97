"""Compiles the one C file, where there is a compiler; without it the package works, but slower."""

from __future__ import annotations

import hashlib
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("src/fairgrad/compiled/_step.c")
INCLUDED = "_linear.h"


class CompiledStep(BuildHookInterface):
    """Puts ``fairgrad.compiled._step`` beside its source, and into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds before the wheel is packed; an editable install finds the module in src/."""
        del version  # standard and editable wheels need the same
        if self.target_name != "wheel":
            return
        built = self._build()
        if built is not None:
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"
            build_data["artifacts"].append(str(built.relative_to(self.root)))

    def _build(self) -> Path | None:
        """The compiled module, or None if it cannot be compiled here."""
        from setuptools import Distribution, Extension  # noqa: PLC0415 - there at build time only
        from setuptools.command.build_ext import build_ext  # noqa: PLC0415 - see above

        source = Path(self.root) / SOURCE
        # fairgrad.compiled compares it with the source that lies beside the module.
        parts = (source, source.with_name(INCLUDED))
        digest = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
        built_from = ("BUILT_FROM", f'"{digest}"')
        extension = Extension(
            "_step", [str(source)], define_macros=[built_from], py_limited_api=True
        )
        if sys.platform == "win32":
            extension.extra_compile_args = ["/O2", "/std:c11"]
        else:
            # The last two let loops with conditions be vectorised; results stay the same.
            extension.extra_compile_args = ["-O3", "-fno-math-errno", "-fno-trapping-math"]
        with tempfile.TemporaryDirectory() as folder:
            command = build_ext(Distribution({"ext_modules": [extension]}))
            command.build_lib = command.build_temp = folder
            try:
                command.ensure_finalized()
                command.run()
            except Exception as error:  # noqa: BLE001 - whatever a foreign compiler may raise
                self.app.display_warning(
                    f"fairgrad: no compiled step ({error}); it will be slower."
                )
                return None
            (built,) = (f for f in Path(folder).glob("_step*") if f.suffix in {".so", ".pyd"})
            target = source.with_name(built.name)
            # Renamed into place: a running process that has loaded the old file keeps it. Written
            # over, the file would change under it and the process would crash.
            beside = target.with_name(f"{target.name}.new")
            shutil.copyfile(built, beside)
            beside.replace(target)
        return target
