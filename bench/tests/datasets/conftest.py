"""Every test of data has its own cache; shared data files are used where they exist."""

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).parents[3].parent / "shared" / "datasets"


@pytest.fixture(scope="session")
def shared():
    """Folder of data files, as named by the environment or beside the repository."""
    return Path(os.environ.get("FAIRGRAD_DATA") or _BESIDE)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory, shared):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        if shared.is_dir():
            patch.setenv("FAIRGRAD_DATA", str(shared))
        yield
