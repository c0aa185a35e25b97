"""The documentation's own extensions can be imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "extensions"))
