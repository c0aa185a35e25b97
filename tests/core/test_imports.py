"""Importing the library leaves the user's process as it was."""

import json
import subprocess
import sys

CODE = """
import importlib, json, os, random
random.seed(1)
state, before = random.getstate(), dict(os.environ)
import sklearn  # sets variables of its own
allowed = set(os.environ) - set(before)
for name in ("sklearn", "audit", "torch", "frontier", "report", "persistence", "boosting"):
    importlib.import_module(f"fairgrad.{name}")
changed = [name for name in os.environ if os.environ[name] != before.get(name)]
print(json.dumps([random.getstate() == state, sorted(set(changed) - allowed)]))
"""


def test_random_numbers_and_environment_are_those_of_before():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, []]
