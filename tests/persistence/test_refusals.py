"""Files that are not to be trusted, and models that cannot be saved."""

import json
import sys
import zipfile

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from fairgrad.measures import equalized_odds
from fairgrad.persistence import FORMAT_VERSION, load, save
from fairgrad.sklearn import FairGradClassifier

QUICK = {"max_iter": 2, "random_state": 0, "fairness_rate": 0.02, "compare_plain": False}


@pytest.fixture
def model(hiring):
    return FairGradClassifier(**QUICK).fit(hiring.X, hiring.y, sensitive_features=hiring.sex)


@pytest.fixture
def path(model, tmp_path):
    return save(model, tmp_path / "model.skops")


def rewrite(path, name, change):
    """Changes one JSON file of the archive."""
    with zipfile.ZipFile(path) as file:
        content = {entry: file.read(entry) for entry in file.namelist()}
    content[name] = json.dumps(change(json.loads(content[name]))).encode()
    with zipfile.ZipFile(path, "w") as file:
        for entry, data in content.items():
            file.writestr(entry, data)


def with_attribute(node):
    """Puts a node of a stranger's making among the attributes of the model."""

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
    with pytest.raises(ValueError, match="refused before anything of it was loaded"):
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
    with zipfile.ZipFile(path) as file:
        content = {entry: file.read(entry) for entry in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for entry, data in content.items():
            file.writestr(entry, poisoned.read_bytes() if entry.endswith(".npy") else data)
    with pytest.raises(ValueError, match="path: .* is damaged: .*pickle"):
        load(path)
    assert not trace.exists()


def test_a_newer_format_is_refused_with_the_reason(path):
    def newer(header):
        versions = {"fairgrad": "9.9"}
        return {**header, "format_version": FORMAT_VERSION + 1, "versions": versions}

    rewrite(path, "fairgrad.json", newer)
    with pytest.raises(ValueError, match=r"written by fairgrad 9\.9; this .* pip install -U"):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: {**header, "format": "other"},
        lambda header: {**header, "format_version": "1"},
        lambda header: {**header, "format_version": 0},
        lambda header: [header],
        lambda header: {**header, "padding": "x" * 2**17},
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


def test_weights_that_are_missing(path):
    rewrite(path, "fairgrad.json", lambda header: {**header, "module": "Linear"})
    with pytest.raises(ValueError, match="module: the file holds the weights of a Linear"):
        load(path)
    with pytest.raises(ValueError, match="path: .* is damaged"):
        load(path, module=nn.Linear(3, 2))


@pytest.mark.parametrize("part", np.linspace(0.05, 0.95, 10))
def test_a_flipped_bit_is_noticed_or_harmless(path, model, hiring, part):
    content = bytearray(path.read_bytes())
    content[int(part * len(content))] ^= 4
    path.write_bytes(content)
    try:
        found = load(path).predict_proba(hiring.X)
    except ValueError:
        with pytest.raises(ValueError, match="^path: "):
            load(path)
    else:  # it hit a date, or a name that is not looked at
        np.testing.assert_array_equal(found, model.predict_proba(hiring.X))


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
    rule = FairGradClassifier(**QUICK, selection=lambda accuracy, _: int(np.argmax(accuracy)))
    rule.fit(hiring.X, hiring.y, **s)
    tree = DecisionTreeClassifier().fit(hiring.X, hiring.y)
    function = make_pipeline(FunctionTransformer(abs), FairGradClassifier(None, max_iter=1))
    function.fit(hiring.X, hiring.y)
    for model in (measure, rule, tree, function):
        with pytest.raises(TypeError, match="model: holds"):
            save(model, path)
        assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


def test_what_is_no_fitted_model(tmp_path):
    with pytest.raises(NotFittedError):
        save(FairGradClassifier(), tmp_path / "model.skops")
    with pytest.raises(TypeError, match="expected a scikit-learn estimator, got dict"):
        save({}, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []
