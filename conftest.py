"""Settings shared by all tests, and examples left out for want of a library."""

import os
from importlib.util import find_spec
from pathlib import Path

import torch
from hypothesis import settings

# One thread: small problems are slower with two, and tests run in parallel processes.
torch.set_num_threads(1)

# Machines under load make single examples slow, which says nothing about the code.
settings.register_profile("default", deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Leaves whose library is not installed are left out when examples in docstrings are run.
LEAVES = ("lightgbm", "lightning", "skorch", "tensorboard", "transformers", "xgboost")
_SOURCE = Path(__file__).parent / "src" / "fairgrad"

collect_ignore_glob = [
    pattern
    for leaf in LEAVES
    if find_spec(leaf) is None
    for pattern in (f"{_SOURCE}/{leaf}.py", f"{_SOURCE}/{leaf}/*")
]
