"""Settings shared by all tests, and examples left out for want of a library."""

import os
import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

# One thread: small problems are slower with two, and tests run in parallel processes.
torch.set_num_threads(1)

# Machines under load make single examples slow, which says nothing about the code.
# In CI the same tree always gets the same examples; elsewhere every run draws new ones.
slow = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile(
    "default", max_examples=100, derandomize=bool(os.environ.get("CI")), **slow
)
settings.register_profile("thorough", max_examples=2000, **slow)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Leaves whose library is not installed are left out when examples in docstrings are run.
LEAVES = (
    "lightgbm",
    "lightning",
    "mlflow",
    "onnx",
    "skorch",
    "tensorboard",
    "transformers",
    "xgboost",
)
_SOURCE = Path(__file__).parent / "src" / "fairgrad"

collect_ignore_glob = [
    pattern
    for leaf in LEAVES
    if find_spec(leaf) is None
    for pattern in (f"{_SOURCE}/{leaf}.py", f"{_SOURCE}/{leaf}/*")
]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Whatever draws numbers without a seed of its own draws the same ones in every run."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - that state is what check_random_state(None) gives
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def runs_of_mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """MLflow writes to a folder here, where users have a server, and reports to nobody."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path_factory.mktemp('mlflow')}/runs")
        yield
