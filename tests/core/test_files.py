"""Files and folders that are there whole or not at all."""

import os
import stat

import pytest

from fairgrad import files
from fairgrad.files import whole_file, whole_folder, write_whole


def test_write_whole_leaves_the_old_file_if_it_fails(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_folder_of_that_name_is_named_and_kept(tmp_path):
    (tmp_path / "page").mkdir()
    with pytest.raises(IsADirectoryError, match=r"page is a folder; expected the name of a file"):
        write_whole(tmp_path / "page", "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["page"]


def test_a_file_may_be_read_by_whoever_may_read_others(tmp_path):
    (tmp_path / "usual").write_text("")
    write_whole(tmp_path / "new" / "file", "text")
    mode = (tmp_path / "new" / "file").stat().st_mode
    assert stat.S_IMODE(mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_umask_decides_who_may_read(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "file", "text")
        write_whole(tmp_path / "cache", "rows about people", private=True)
        with whole_folder(tmp_path / "folder") as beside:
            (beside / "file").write_text("text")
    finally:
        os.umask(before)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert found == {"file": 0o666 & ~umask, "cache": 0o600, "folder": 0o777 & ~umask}
    assert stat.S_IMODE((tmp_path / "folder" / "file").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("whole", [whole_file, whole_folder])
def test_an_error_leaves_everything_as_it_was(tmp_path, whole):
    def half():
        with whole(tmp_path / "out") as beside:
            (beside / "part" if beside.is_dir() else beside).write_text("half")
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        half()
    assert not list(tmp_path.iterdir())


def test_a_folder_replaces_the_earlier_one_with_all_its_files(tmp_path):
    for name in ("old", "new"):
        with whole_folder(tmp_path / "out") as beside:
            (beside / name).write_text(name)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_folder_that_another_process_puts_there_is_replaced_too(tmp_path, monkeypatch):
    rename = files.Path.rename

    def after_another(path, target):
        if target == tmp_path / "out" and not target.exists():
            monkeypatch.setattr("pathlib.Path.rename", rename)
            target.mkdir()
            (target / "other").write_text("other")
        return rename(path, target)

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    monkeypatch.setattr("pathlib.Path.rename", after_another)
    with whole_folder(tmp_path / "out") as beside:
        (beside / "new").write_text("new")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["new"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("error", [OSError("no"), SystemExit(130)])
def test_the_earlier_folder_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path, monkeypatch, error
):
    rename = files.Path.rename

    def refuse(path, target):
        if path.name == target.name == "out" and target.parent == tmp_path and refused:
            raise refused.pop()
        return rename(path, target)

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("old")
    refused = [error]
    monkeypatch.setattr("pathlib.Path.rename", refuse)
    with pytest.raises(type(error)), whole_folder(tmp_path / "out"):
        pass
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["old"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
