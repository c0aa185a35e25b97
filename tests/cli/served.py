"""The program with its imports done: each run is a process forked from this one.

A run differs from one that a shell starts only in that modules are loaded already, which takes most
of the time of a short run. Reads one request per line (arguments, folder, files of the two outputs)
and answers each with the run's exit code.
"""

import atexit
import gc
import importlib
import json
import os
import sys
import traceback

from fairgrad.cli import main

LOADED = (
    "torch",
    "skops.io",
    "pyarrow.parquet",
    "fairgrad.cli.training",
    "fairgrad.frontier",
    "fairgrad.persistence",
    "fairgrad.report",
    "fairgrad.sklearn",
    "fairgrad.training.trainer",
)
"""What the program imports when it needs it; nothing here starts a thread, as forks lose those."""


def become(request):
    """Turns this process into a run of the program, and ends it.

    What the program leaves to be done at its end is done; taking the modules apart, which takes
    half a second, is not.
    """
    os.chdir(request["cwd"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    outputs = [
        os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for name in ("out", "err")
    ]
    for target, opened in enumerate([nothing, *outputs]):
        os.dup2(opened, target)
    sys.argv = ["fairgrad", *request["arguments"]]
    code = 1
    try:
        main(request["arguments"])
    except SystemExit as left:
        code = left.code or 0
    except BaseException:  # noqa: BLE001 - as at the top of any program
        traceback.print_exc()
    atexit._run_exitfuncs()  # noqa: SLF001 - has no public name
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve():
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()  # what is loaded is not looked at again by every run
    answers = os.dup(1)
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            os.close(answers)
            become(json.loads(line))
        _, status = os.waitpid(child, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve()
