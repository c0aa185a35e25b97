"""People of two groups that differ, small enough for every training framework."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # for `tiny`, which worker processes share
collect_ignore = ["lightning_worker.py", "tiny.py", "transformers_worker.py"]  # not tests


@pytest.fixture(scope="session")
def people():
    generator = torch.Generator().manual_seed(0)
    n = 192
    s = torch.randint(0, 2, (n,), generator=generator)
    x = torch.randn(n, 3, generator=generator)
    x[:, 0] += 1.5 * s
    noise = torch.randn(n, generator=generator) * torch.where(s == 1, 0.3, 1.5)
    return SimpleNamespace(x=x, s=s, y=(x.sum(1) + noise > 0.7).long())
