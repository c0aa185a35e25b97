"""Every test of data has a cache of its own; shared data files are used where they exist."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "datasets"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        if SHARED.is_dir():
            patch.setenv("FAIRGRAD_DATA", str(SHARED))
        yield
