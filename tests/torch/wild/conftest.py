"""Lets the tests of this folder import what they share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for `scene`
collect_ignore = ["older_script.py", "scene.py", "uneven_worker.py"]  # not tests
