"""Neither importing the library nor running the program reaches for a network."""

import subprocess
import sys

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


def run(code, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_everything_is_imported_and_the_demo_runs_without_a_network(tmp_path):
    done = run(GUARD + ALL, tmp_path / "demo")
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "demo" / "report.html").is_file()


def test_a_use_of_the_network_would_be_noticed():
    code = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')"
    assert "the network was used" in run(GUARD + code).stderr
