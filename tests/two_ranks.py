"""Runs a script in two processes that train together, as torchrun does, at less cost.

    python two_ranks.py MODULES SCRIPT [ARGUMENT ...]

The two are forked from this process after it has imported the modules (separated by commas), which
take most of the time of a short run. The store through which they meet is made here, as torchrun
makes it, so that no port is chosen before it is in use.
"""

import importlib
import os
import runpy
import signal
import sys
from pathlib import Path

from torch.distributed import TCPStore


def main():
    modules, script, *arguments = sys.argv[1:]
    sys.path[0] = str(Path(script).parent)  # here, folders have the names of libraries
    for name in modules.split(","):
        importlib.import_module(name)
    reading, writing = os.pipe()
    ranks = []
    for rank in "01":
        pid = os.fork()
        if pid == 0:
            port = str(int(os.read(reading, 5)))
            os.environ.update(
                RANK=rank, LOCAL_RANK=rank, WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                MASTER_ADDR="127.0.0.1", MASTER_PORT=port, TORCHELASTIC_USE_AGENT_STORE="True",
                TORCHELASTIC_RUN_ID="tests", TORCHELASTIC_RESTART_COUNT="0",
            )  # fmt: skip
            sys.argv = [script, *arguments]
            runpy.run_path(script, run_name="__main__")
            return
        ranks.append(pid)
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.write(writing, b"%05d" % store.port * 2)
    codes = []
    while ranks:
        pid, status = os.wait()
        ranks.remove(pid)
        codes.append(os.waitstatus_to_exitcode(status))
        if codes[-1]:
            for other in ranks:
                os.kill(other, signal.SIGKILL)
    sys.exit(next((code for code in codes if code), 0))


if __name__ == "__main__":
    main()
