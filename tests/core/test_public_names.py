"""The package's own names: all there, and loaded only when asked for."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import fairgrad


@pytest.mark.parametrize("name", fairgrad.__all__)
def test_every_name_is_there(name):
    assert getattr(fairgrad, name).__name__ == name
    assert name in dir(fairgrad)


def test_the_version_is_that_of_the_distribution():
    assert fairgrad.__version__ == version("fairgrad")


def test_other_names_are_not():
    with pytest.raises(AttributeError, match="has no attribute 'Classifier'"):
        _ = fairgrad.Classifier


def test_importing_the_package_loads_nothing_large():
    code = (
        "import sys, fairgrad; print(*{'torch', 'numpy', 'pandas', 'sklearn'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not run.stdout.split()
