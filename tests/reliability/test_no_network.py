"""Neither importing the library nor running the program reaches for a network.

Connections are refused inside of Python; where Linux allows it, there is no network at all, either.
"""

import shutil
import socket
import subprocess
import sys

import pytest

GUARD = """
import socket, sys

def refuse(event, arguments):
    if event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}:
        if event != "socket.connect" or arguments[0].family != socket.AF_UNIX:
            raise SystemExit(f"the network was used: {event} {arguments[1:]}")

sys.addaudithook(refuse)
"""
ALL = """
import importlib, pkgutil, fairgrad
for found in pkgutil.walk_packages(fairgrad.__path__, "fairgrad."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
from fairgrad.cli import main
main(["demo", "--out", sys.argv[1], "--json"])
"""


CUT_OFF = ["unshare", "--map-root-user", "--net"]


def can_cut_off():
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*CUT_OFF, "true"], capture_output=True, check=False).returncode == 0


def run(code, *arguments, before=()):
    command = [*before, sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_everything_is_imported_and_the_demo_runs_without_a_network(tmp_path):
    done = run(GUARD + ALL, tmp_path / "demo", before=CUT_OFF if can_cut_off() else ())
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "demo" / "report.html").is_file()


def test_what_is_cut_off_reaches_nobody():
    if not can_cut_off():
        pytest.skip("this system does not allow a process without a network")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        assert run(code).returncode == 0
        assert "unreachable" in run(code, before=CUT_OFF).stderr


def test_a_use_of_the_network_would_be_noticed():
    code = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')"
    assert "the network was used" in run(GUARD + code).stderr
