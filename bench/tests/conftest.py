"""Other processes must find the tests' methods, too."""

import os
import sys
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor

HERE = str(Path(__file__).parent)


@pytest.fixture(autouse=True)
def methods_importable(monkeypatch):
    get_reusable_executor().shutdown()  # processes of an earlier test would not know the path
    monkeypatch.syspath_prepend(HERE)
    inherited = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [HERE, inherited])))
    yield
    sys.modules.pop("bench_methods", None)


@pytest.fixture
def tiny():
    """A plan's choices for a run of a second."""
    return {"datasets": ("german",), "models": ("linear",), "seeds": (10, 20)}
