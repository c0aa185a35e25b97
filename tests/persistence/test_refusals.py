"""Files that are not to be trusted, and models that cannot be saved."""

import hashlib
import io
import json
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from fairgrad import persistence
from fairgrad.measures import equalized_odds
from fairgrad.persistence import FORMAT_VERSION, load, save
from fairgrad.sklearn import FairGradClassifier

pytestmark = pytest.mark.filterwarnings("ignore::fairgrad.usefulness.FairnessWarning")
QUICK = {"max_iter": 2, "random_state": 0, "fairness_rate": 0.02}


@pytest.fixture
def model(hiring):
    return FairGradClassifier(**QUICK).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)


@pytest.fixture
def path(model, tmp_path):
    return save(model, tmp_path / "model.skops")


def entries(path):
    with zipfile.ZipFile(path) as file:
        return {entry: file.read(entry) for entry in file.namelist()}


def write(path, content):
    """Writes an archive with a correct checksum, as an attacker can."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for entry, data in content.items():
            file.writestr(entry, data)
        file.comment = b"fairgrad sha256 " + b"0" * 64
    before = path.read_bytes()[:-64]
    path.write_bytes(before + hashlib.sha256(before).hexdigest().encode())


def rewrite(path, name, change):
    """Changes one JSON file of the archive."""
    content = entries(path)
    content[name] = json.dumps(change(json.loads(content[name]))).encode()
    write(path, content)


def with_attribute(node):
    """Adds an attacker's node to the attributes of the model."""

    def change(schema):
        schema["content"]["content"]["verbose"] = node
        return schema

    return change


def text(value):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def arguments(*values):
    return {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [text(value) for value in values],
    }


def hostile_nodes(command):
    call = {"content": arguments(command)}
    function = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
    keywords = {
        "__class__": "dict",
        "__module__": "builtins",
        "__loader__": "DictNode",
        "content": {},
        "key_types": {**arguments(), "__class__": "list", "__loader__": "ListNode"},
    }
    return {
        "construct": {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "ConstructorFromReduceNode",
            **call,
        },
        "list": {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "ListNode",
            "content": [text(command)],
        },
        "function": function,
        "partial": {
            "__class__": "partial",
            "__module__": "functools",
            "__loader__": "PartialNode",
            "content": {
                "func": function,
                "args": arguments(command),
                "kwds": keywords,
                "namespace": text(None),
            },
        },
        "type": {"__class__": "Popen", "__module__": "subprocess", "__loader__": "TypeNode"},
        "import": {"__class__": "Evil", "__module__": "evil_module", "__loader__": "ObjectNode"},
    }


@pytest.mark.parametrize("kind", hostile_nodes(""))
def test_no_code_runs(path, tmp_path, monkeypatch, kind):
    trace = tmp_path / "was here"
    (tmp_path / "evil_module.py").write_text(f"open({str(trace)!r}, 'w')\nclass Evil: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    rewrite(path, "schema.json", with_attribute(hostile_nodes(f"touch '{trace}'")[kind]))
    with pytest.raises(ValueError, match="was refused; nothing"):
        load(path)
    assert not trace.exists()
    assert "evil_module" not in sys.modules


def test_pickled_arrays_are_not_read(path, tmp_path):
    trace = tmp_path / "was here"

    class Evil:
        def __reduce__(self):
            return open, (str(trace), "w")

    poisoned = tmp_path / "poisoned.npy"
    np.save(poisoned, np.array([Evil()], dtype=object), allow_pickle=True)
    pickled = poisoned.read_bytes()
    write(path, {k: pickled if k.endswith(".npy") else v for k, v in entries(path).items()})
    with pytest.raises(ValueError, match="path: .* is damaged: .*pickle"):
        load(path)
    assert not trace.exists()


def test_a_newer_format_is_refused_with_the_reason(path):
    def newer(header):
        versions = {"fairgrad": "9.9"}
        return {**header, "format_version": FORMAT_VERSION + 1, "versions": versions}

    rewrite(path, "fairgrad.json", newer)
    with pytest.raises(ValueError, match=rf"version {FORMAT_VERSION + 1}; this .* pip install -U"):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: {**header, "format": "other"},
        lambda header: {**header, "format_version": "1"},
        lambda header: {**header, "format_version": 0},
        lambda header: [header],
    ],
)
def test_strange_headers(path, change):
    rewrite(path, "fairgrad.json", change)
    with pytest.raises(ValueError, match="path: "):
        load(path)


def test_files_that_are_no_models(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.skops")
    whole = path.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a model saved by fairgrad"):
            load(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("schema.json", "{}")
    with pytest.raises(ValueError, match="not a model saved by fairgrad"):
        load(path)


def test_a_flipped_bit_is_noticed_wherever_it_is(path):
    whole = path.read_bytes()
    places = np.linspace(0, len(whole) - 1, 500).astype(int).tolist()
    for number, place in enumerate(places):
        content = bytearray(whole)
        content[place] ^= 1 << number % 8
        path.write_bytes(content)
        with pytest.raises(ValueError, match="^path: "):
            load(path)


def test_a_file_that_was_cut_short(path):
    whole = path.read_bytes()
    for length in np.linspace(0, len(whole) - 1, 50).astype(int).tolist():
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="^path: "):
            load(path)


def test_a_file_without_its_checksum(path):
    content = entries(path)
    with zipfile.ZipFile(path, "w") as file:
        for entry, data in content.items():
            file.writestr(entry, data)
    with pytest.raises(ValueError, match="damaged: its end, with the checksum, is missing"):
        load(path)


def array(shape, content=b""):
    stream = io.BytesIO()
    head = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, head)
    return stream.getvalue() + content


def sparse(**arrays):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in arrays.items():
            file.writestr(f"{name}.npy", content)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bomb.bin", lambda: bytes(2**28)),
        ("shape.npy", lambda: array((2**40, 2**20))),
        ("shape.npy", lambda: array((2**33,))),
        ("inside.npz", lambda: sparse(data=array((2**45,)))),
        ("inside.npz", lambda: sparse(data=bytes(2**28 + 1))),
    ],
    ids=["bomb", "shape", "long", "shape of a sparse one", "bomb in an archive"],
)
def test_files_that_would_fill_the_memory(path, name, content):
    write(path, {**entries(path), name: content()})
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="^path: .* was refused: "):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["schema.json", "fairgrad.json"])
def test_json_that_is_small_on_disk_is_not_parsed(path, monkeypatch, name):
    monkeypatch.setattr(persistence, "MAX_JSON", 2**16)
    write(path, {**entries(path), name: b"[" + b"{}," * 500_000 + b"{}]"})
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"^path: .*{name} has 1,500,0.. bytes"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 5e6  # parsed, it would be 36 MB
    finally:
        tracemalloc.stop()


def test_what_could_not_be_loaded_is_not_saved(model, tmp_path, monkeypatch):
    monkeypatch.setattr(persistence, "MAX_JSON", 2**8)
    with pytest.raises(ValueError, match="^model: .* at most 256"):
        save(model, tmp_path / "new.skops")
    assert not (tmp_path / "new.skops").exists()


@pytest.mark.parametrize("name", ["../outside", "/outside", "deep/../../outside"])
def test_nothing_is_written_when_a_file_is_read(path, tmp_path, name):
    write(path, {**entries(path), name: b"text"})
    before = sorted(tmp_path.rglob("*"))
    load(path)
    assert sorted(tmp_path.rglob("*")) == before
    assert not (tmp_path.parent / "outside").exists()


def test_a_schema_that_never_ends(path):
    content = entries(path)
    write(path, {**content, "schema.json": b'{"content":' * 200_000 + b"1" + b"}" * 200_000})
    with pytest.raises(ValueError, match="^path: "):
        load(path)


def test_a_damaged_archive(path):
    rewrite(path, "schema.json", lambda schema: {"__class__": "str", **text(schema and "hello")})
    with pytest.raises(ValueError, match="path: "):
        load(path)
    rewrite(path, "schema.json", lambda _: {})
    with pytest.raises(ValueError, match="path: "):
        load(path)


def own_measure(groups):
    return equalized_odds(groups)


def test_models_that_could_not_be_loaded_are_not_saved(hiring, tmp_path, path):
    before = path.read_bytes()
    s = {"sensitive_features": hiring.sex}
    measure = FairGradClassifier(own_measure, **QUICK).fit(hiring.X, hiring.y, **s)
    tree = DecisionTreeClassifier().fit(hiring.X, hiring.y)
    function = make_pipeline(FunctionTransformer(abs), FairGradClassifier(None, max_iter=1))
    function.fit(hiring.X, hiring.y)
    for model in (measure, tree, function):
        with pytest.raises(TypeError, match="model: contains"):
            save(model, path)
        assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


def test_what_is_no_fitted_model(tmp_path):
    with pytest.raises(NotFittedError):
        save(FairGradClassifier(), tmp_path / "model.skops")
    with pytest.raises(TypeError, match="expected a scikit-learn estimator, got dict"):
        save({}, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []
