import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def samples():
    spec = importlib.util.spec_from_file_location("samples", Path(__file__).with_name("samples.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def report(samples):
    return samples.full_report()
