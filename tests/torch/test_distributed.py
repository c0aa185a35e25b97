"""Two processes on this machine behave as one that sees the joined batches."""

import os
import subprocess
import sys
from pathlib import Path


def test_two_processes_are_as_one():
    worker = Path(__file__).with_name("distributed_worker.py")
    command = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", str(worker)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert run.returncode == 0, run.stderr
