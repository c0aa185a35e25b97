"""The documentation's own extensions can be imported."""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("sphinx") is None:
    collect_ignore = ["test_extensions.py"]  # it needs what builds the documentation

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "extensions"))
