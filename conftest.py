"""Leaves whose library is not installed are left out when examples in docstrings are run."""

from importlib.util import find_spec
from pathlib import Path

LEAVES = ("lightgbm", "lightning", "skorch", "tensorboard", "transformers", "xgboost")
_SOURCE = Path(__file__).parent / "src" / "fairgrad"

collect_ignore_glob = [
    pattern
    for leaf in LEAVES
    if find_spec(leaf) is None
    for pattern in (f"{_SOURCE}/{leaf}.py", f"{_SOURCE}/{leaf}/*")
]
