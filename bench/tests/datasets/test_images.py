"""UTKFace: labels from file names, images decoded on demand."""

import pickle
import zipfile

import numpy as np
import pytest

from fairgrad_bench.datasets import DataNotFoundError, load

image = pytest.importorskip("PIL.Image", reason="Pillow is needed to make images")

NAMES = [
    "20_0_0_20170109142408075.jpg",
    "21_1_1_20170109142408076.jpg",
    "40_0_2_20170109142408077.jpg",
    "41_1_3_20170109142408078.jpg",
    "61_0_4_20170109142408079.jpg",
    "116_1_0_20170109142408080.jpg",
    "24_0_1_20170116220224657 .jpg",
    "55_0_0_20170116232725357jpg.chip.jpg",
    "39_1_20170116174525125.jpg",
    "61_1_20170109142408075.jpg",
    "61_1_20170109150557335.jpg",
]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "faces"
    path.mkdir()
    for place, name in enumerate(NAMES):
        image.new("RGB", (8, 6), (20 * place, 0, 255)).save(path / name, quality=100)
    (path / "notes.txt").write_text("not an image")
    return path


@pytest.fixture
def archive(folder, tmp_path):
    path = tmp_path / "faces.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for file in folder.iterdir():
            packed.write(file, f"UTKFace/{file.name}")
    return path


def by_name(data):
    names = [name.split("/")[-1] for name in data.images.names]
    return {name: (int(y), int(s)) for name, y, s in zip(names, data.y, data.s, strict=True)}


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_labels_come_from_the_names(kind, request):
    path = request.getfixturevalue(kind)
    gender = by_name(load("utkface", path=path))
    expected = [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4), (1, 0), (0, 1), (0, 0)]
    assert gender == dict(zip(NAMES, expected, strict=False))
    age = by_name(load("utkface", path=path, task="age"))
    assert [age[name][0] for name in NAMES[:8]] == [0, 1, 1, 2, 3, 3, 1, 2]


def test_names_without_a_race_are_skipped_and_counted(folder):
    data = load("utkface", path=folder)
    assert len(data) == 8
    assert data.left_out == {"age, gender or race missing in the name": 3}
    assert "3 left out" in data.describe()


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_images_are_decoded_on_demand(kind, request):
    data = load("utkface", path=request.getfixturevalue(kind))
    images = data.images
    shades = {name.split("/")[-1]: images[i][0, 0, 0] for i, name in enumerate(images.names)}
    for place, name in enumerate(NAMES[:8]):
        assert abs(int(shades[name]) - 20 * place) <= 3
    assert images[0].shape == (6, 8, 3)
    assert images[0].dtype == np.uint8
    batch = images.batch([2, 0])
    assert batch.shape == (2, 3, 6, 8)
    np.testing.assert_allclose(batch[1], images[0].transpose(2, 0, 1) / np.float32(255))
    assert load("utkface", path=data.images.path, size=(4, 5)).images[0].shape == (4, 5, 3)


def test_splits_stay_undecoded_and_keep_rows_together(archive):
    data = load("utkface", path=archive)
    train, validation, test = data.split(seed=10)
    assert len(train) + len(validation) + len(test) == 8
    for part in (train, validation, test):
        for place, name in enumerate(part.X.names):
            assert by_name(data)[name.split("/")[-1]] == (part.y[place], part.s[place])


def test_images_can_be_sent_to_other_processes(archive):
    images = load("utkface", path=archive).images
    images[0]
    copy = pickle.loads(pickle.dumps(images))  # noqa: S301 - our own object, as workers get it
    assert np.array_equal(copy[3], images[3])


def test_bad_arguments(folder, tmp_path):
    with pytest.raises(ValueError, match="task is 'race'; allowed are 'gender' and 'age'"):
        load("utkface", task="race", path=folder)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load("utkface", path=tmp_path / "absent")
    with pytest.raises(ValueError, match="at least two rising ages"):
        load("utkface", task="age", path=folder, age_edges=(0, 40, 20))
    empty = tmp_path / "nothing"
    empty.mkdir()
    with pytest.raises(ValueError, match="holds no image"):
        load("utkface", path=empty)
    with pytest.raises(ValueError, match="neither a folder nor a zip archive"):
        load("utkface", path=folder / "notes.txt")


def test_the_real_portraits():
    try:
        data = load("utkface", task="age")
    except DataNotFoundError as error:
        pytest.skip(str(error).splitlines()[0])
    assert len(data) == 23_704
    assert sum(data.left_out.values()) == 3
    assert data.label_names == ("0-20", "21-40", "41-60", "61 and over")
    ages = np.array([int(name.split("_")[0]) for name in data.images.names])
    assert np.array_equal(data.y, np.digitize(ages, [21, 41, 61]))
    assert data.images.batch(slice(0, 3)).shape == (3, 3, 64, 64)
