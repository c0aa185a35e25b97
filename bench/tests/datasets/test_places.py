"""Where bytes come from: the order of the places, verification."""

import gzip
import hashlib
import lzma
from dataclasses import replace

import pytest

from fairgrad.files import write_whole
from fairgrad_bench.datasets import DataNotFoundError, load
from fairgrad_bench.datasets.loading import find_schema, from_schema, parse, read_raw
from fairgrad_bench.datasets.places import recorded_hash
from fairgrad_bench.datasets.schema import Attribute, DataFile, FeatureColumn, Schema


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty named folder and an empty cache."""
    named, cache = tmp_path / "named", tmp_path / "cache"
    named.mkdir()
    monkeypatch.setenv("FAIRGRAD_DATA", str(named))
    monkeypatch.setenv("FAIRGRAD_CACHE", str(cache))
    return named, cache


@pytest.fixture
def table_bytes():
    return b"age,group,label\n" + b"30,a,0\n40,b,1\n50,a,1\n" * 100


@pytest.fixture
def elsewhere(table_bytes):
    """The schema of the table in ``other.csv``."""
    return Schema(
        name="elsewhere",
        title="A small table",
        label=Attribute("label", "", {0: "no", 1: "yes"}),
        sensitive=(Attribute("group", "", ("a", "b")),),
        features=(FeatureColumn("age"),),
        source="made by the test",
        licence="",
        citation="",
        files=(DataFile("other.csv", hashlib.sha256(table_bytes).hexdigest()),),
    )


def test_first_the_folder_then_the_cache(folders, table_bytes, elsewhere):
    named, cache = folders
    write_whole(cache / "other.csv", table_bytes)
    assert read_raw(elsewhere).place == "the cache"
    write_whole(named / "other.csv.gz", gzip.compress(table_bytes))
    assert read_raw(elsewhere).place == "the folder named by FAIRGRAD_DATA"


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_any_compression_gives_the_same_data(folders, table_bytes, elsewhere, ending, pack):
    write_whole(folders[0] / f"other.csv{ending}", pack(table_bytes))
    data = from_schema(elsewhere, read_raw(elsewhere))
    assert data.frame["age"].tolist() == [30, 40, 50] * 100


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("", lambda content: content[:-1]),
        ("", lambda content: content.replace(b"30", b"31", 1)),
        (".gz", lambda content: gzip.compress(content)[:-20]),
        (".gz", lambda content: b"not gzip" + content),
        (".xz", lambda content: lzma.compress(content)[:-30]),
    ],
)
def test_damaged_copy_is_passed_over_for_a_sound_one(
    folders, table_bytes, elsewhere, ending, damage
):
    named, cache = folders
    write_whole(named / f"other.csv{ending}", damage(table_bytes))
    with pytest.raises(DataNotFoundError, match=r"FAIRGRAD_DATA: .*(SHA-256|cannot be unpacked)"):
        read_raw(elsewhere)
    write_whole(cache / "other.csv", table_bytes)
    assert read_raw(elsewhere).place == "the cache"


@pytest.mark.usefixtures("folders")
def test_all_reasons_and_the_way_out_are_named(monkeypatch):
    with pytest.raises(DataNotFoundError) as caught:
        load("celeba")
    message = str(caught.value)
    assert message.count("celeba_attributes.csv not in") == 2
    assert "fairgrad-bench data fetch celeba" in message
    monkeypatch.delenv("FAIRGRAD_DATA")
    with pytest.raises(DataNotFoundError, match="FAIRGRAD_DATA: not set"):
        load("celeba")
    with pytest.raises(DataNotFoundError, match="by hand: https://susanqq"):
        load("utkface")


def test_missing_texts_and_columns_when_parsing():
    frame = parse(b"a,b,c\n1,?,x\n2,5,NA\n", ["c", "b"], ("?",))
    assert list(frame) == ["c", "b"]
    assert frame["b"].isna().tolist() == [True, False]
    assert frame["c"].tolist() == ["x", "NA"]


def test_personal_columns_of_an_original_file_are_never_read(folders, shared):
    """The publisher's own COMPAS file has names and birth dates; a copy of it is accepted."""
    source = shared / "compas-scores-two-years.csv.gz"
    if not source.is_file():
        pytest.skip("COMPAS is not at hand")
    lines = gzip.decompress(source.read_bytes()).splitlines(keepends=True)
    people = [b"jane doe,1980-01-01," + line for line in lines[1:]]
    content = b"name,dob," + lines[0] + b"".join(people)
    file = DataFile("compas-scores-two-years.csv", hashlib.sha256(content).hexdigest())
    write_whole(folders[0] / file.name, content)
    schema = replace(find_schema("compas"), files=(file,))
    assert not {"name", "dob"} & set(read_raw(schema).frame)
    assert len(from_schema(schema, read_raw(schema))) == 6172


def test_file_without_a_published_hash_needs_a_recorded_one(folders, table_bytes, elsewhere):
    schema = replace(elsewhere, files=(DataFile("other.csv", ""),))
    path = folders[1] / "other.csv"
    write_whole(path, table_bytes)
    assert not recorded_hash(path)
    with pytest.raises(DataNotFoundError, match="SHA-256"):
        read_raw(schema)
    write_whole(
        path.with_name("other.csv.sha256"), hashlib.sha256(table_bytes).hexdigest().encode()
    )
    assert len(read_raw(schema).frame) == 300
