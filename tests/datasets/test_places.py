"""Where bytes come from: the order of the places, verification."""

import gzip
import hashlib
import lzma
from dataclasses import replace

import pytest

from fairgrad.datasets import DataNotFoundError, load
from fairgrad.datasets.loading import find_schema, from_schema, parse, read_raw
from fairgrad.datasets.places import package_folder, recorded_hash
from fairgrad.datasets.schema import DataFile
from fairgrad.files import write_whole


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """An empty named folder and an empty cache."""
    named, cache = tmp_path / "named", tmp_path / "cache"
    named.mkdir()
    monkeypatch.setenv("FAIRGRAD_DATA", str(named))
    monkeypatch.setenv("FAIRGRAD_CACHE", str(cache))
    return named, cache


@pytest.fixture
def german_bytes():
    return lzma.decompress((package_folder() / "german_credit.csv.xz").read_bytes())


@pytest.fixture
def elsewhere(german_bytes):
    """German credit's schema under a file name that the package does not hold."""
    digest = hashlib.sha256(german_bytes).hexdigest()
    return replace(find_schema("german"), name="elsewhere", files=(DataFile("other.csv", digest),))


def test_package_first_then_folder_then_cache(folders, german_bytes, elsewhere):
    named, cache = folders
    assert read_raw(find_schema("german")).place == "the package"
    write_whole(cache / "other.csv", german_bytes)
    assert read_raw(elsewhere).place == "the cache"
    write_whole(named / "other.csv.gz", gzip.compress(german_bytes))
    assert read_raw(elsewhere).place == "the folder named by FAIRGRAD_DATA"


@pytest.mark.parametrize(
    ("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress)]
)
def test_any_compression_gives_the_same_data(folders, german_bytes, elsewhere, ending, pack):
    write_whole(folders[0] / f"other.csv{ending}", pack(german_bytes))
    data = from_schema(elsewhere, read_raw(elsewhere))
    assert data.frame.equals(load("german").frame)


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("", lambda content: content[:-1]),
        ("", lambda content: content.replace(b"A11", b"A12", 1)),
        (".gz", lambda content: gzip.compress(content)[:-20]),
        (".gz", lambda content: b"not gzip" + content),
        (".xz", lambda content: lzma.compress(content)[:-30]),
    ],
)
def test_damaged_copy_is_passed_over_for_a_sound_one(
    folders, german_bytes, elsewhere, ending, damage
):
    named, cache = folders
    write_whole(named / f"other.csv{ending}", damage(german_bytes))
    with pytest.raises(DataNotFoundError, match=r"FAIRGRAD_DATA: .*(SHA-256|cannot be unpacked)"):
        read_raw(elsewhere)
    write_whole(cache / "other.csv", german_bytes)
    assert read_raw(elsewhere).place == "the cache"


@pytest.mark.usefixtures("folders")
def test_all_reasons_and_the_way_out_are_named(monkeypatch):
    with pytest.raises(DataNotFoundError) as caught:
        load("celeba")
    message = str(caught.value)
    assert message.count("celeba_attributes.csv not in") == 3
    assert "fairgrad data fetch celeba" in message
    monkeypatch.delenv("FAIRGRAD_DATA")
    with pytest.raises(DataNotFoundError, match="FAIRGRAD_DATA: not set"):
        load("celeba")
    with pytest.raises(DataNotFoundError, match="by hand: https://susanqq"):
        load("utkface")


def test_unwritable_cache_is_no_obstacle(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("a file where the cache folder should be")
    monkeypatch.setenv("FAIRGRAD_CACHE", str(blocked))
    assert len(load("german")) == 1000


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


def test_file_without_a_published_hash_needs_a_recorded_one(folders, german_bytes, elsewhere):
    schema = replace(elsewhere, files=(DataFile("other.csv", ""),))
    path = folders[1] / "other.csv"
    write_whole(path, german_bytes)
    assert not recorded_hash(path)
    with pytest.raises(DataNotFoundError, match="SHA-256"):
        read_raw(schema)
    write_whole(
        path.with_name("other.csv.sha256"), hashlib.sha256(german_bytes).hexdigest().encode()
    )
    assert len(read_raw(schema).frame) == 1000
