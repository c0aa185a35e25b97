"""The map of the code is that of the code: its rooms, and every stop of its walks."""

import pkgutil
import re
from pathlib import Path

import pytest

import fairgrad

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LIBRARY, BENCHMARK = ROOT / "src" / "fairgrad", ROOT / "bench" / "src" / "fairgrad_bench"
MOST_STOPS = 12
WALK = re.compile(r"^### (.+?)\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
STOP = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |\n\n|\Z)", re.MULTILINE | re.DOTALL)
FIRST_COLUMN = re.compile(r"^\| (`.*?) \|", re.MULTILINE)
WALKS = dict(WALK.findall(TEXT.partition("## Five walks")[2]))
STOPS = [
    pytest.param(title, stop, id=f"{title}, {number}")
    for title, walk in WALKS.items()
    for number, stop in STOP.findall(walk)
]


def table_of(heading):
    """The names in the first column of the table below a heading."""
    rows = FIRST_COLUMN.findall(TEXT.partition(heading)[2].partition("\n\n")[0])
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_every_room_is_on_the_map():
    rooms = {module.name for module in pkgutil.iter_modules(fairgrad.__path__)}
    assert set(table_of("| room | what it is for | needs |")) == rooms


def test_every_module_of_the_benchmark_is_on_the_map():
    modules = {module.name for module in pkgutil.iter_modules([str(BENCHMARK)])}
    found = set(table_of("| module of `fairgrad_bench` | what it is for |"))
    assert found == modules - {"__main__"}


def test_there_are_five_walks_of_few_stops():
    lengths = {title: sum(p.values[0] == title for p in STOPS) for title in WALKS}
    assert len(lengths) == 5
    assert all(5 <= length <= MOST_STOPS for length in lengths.values()), lengths


@pytest.mark.parametrize(("title", "stop"), STOPS)
def test_a_stop_is_where_the_walk_says(title, stop):
    folder = BENCHMARK if "benchmark" in title else LIBRARY
    files = [folder / name for name in re.findall(r"`([\w/]+\.(?:py|c))`", stop)]
    assert all(file.is_file() for file in files), files
    named = re.findall(r"`[\w/]+\.py` ((?:(?:,| and| or)? ?`[A-Za-z_][\w.]*`)+)", stop)
    names = [name for group in named for name in re.findall(r"`([\w.]+)`", group)]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    for part in (part for name in names for part in name.split(".")):
        assert re.search(rf"\b(?:def|class) {part}\b", source), part
