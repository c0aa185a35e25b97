"""Processes with few rows, no rows, no batches left, other settings, or late."""

import os
import subprocess
import sys
from pathlib import Path


def test_two_uneven_processes():
    worker = Path(__file__).with_name("uneven_worker.py")
    command = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", str(worker)]
    run = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
