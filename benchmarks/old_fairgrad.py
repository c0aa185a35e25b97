"""Loads the losses of fairgrad 0.2.0 beside ours: both packages have the same import name."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any


def download_old_package(folder: Path) -> Path:
    """Downloads the wheel of fairgrad 0.2.0 and unpacks it; gives the folder to import from."""
    command = ["pip", "download", "--quiet", "--no-deps", "--dest", str(folder), "fairgrad==0.2.0"]
    subprocess.run([sys.executable, "-m", *command], check=True)
    wheel = next(folder.glob("fairgrad-0.2.0*.whl"))
    zipfile.ZipFile(wheel).extractall(folder / "unpacked")
    return folder / "unpacked"


def load_old_loss() -> Any:
    """The class ``CrossEntropyLoss`` of fairgrad 0.2.0."""
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_fairgrad(name)}
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, str(download_old_package(Path(folder))))
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
