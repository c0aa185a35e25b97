"""Usual files are read without skops, and as skops reads them; it reads all others."""

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import sklearn
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairgrad import On, persistence
from fairgrad.archive import SCHEMA, UnusualArchive, read_archive
from fairgrad.sklearn import FairGradClassifier


def assert_same_content(own, theirs):
    """Equal types and values all the way down."""
    assert type(own) is type(theirs)
    if isinstance(own, dict):
        assert list(own) == list(theirs)
        assert list(map(type, own)) == list(map(type, theirs))
        for key, part in own.items():
            assert_same_content(part, theirs[key])
    elif isinstance(own, (list, tuple)):
        assert len(own) == len(theirs)
        for part, other in zip(own, theirs, strict=True):
            assert_same_content(part, other)
    elif isinstance(own, np.ndarray) and own.dtype == object:
        assert_same_content(own.tolist(), theirs.tolist())
    elif isinstance(own, np.ndarray):
        assert own.dtype == theirs.dtype
        np.testing.assert_array_equal(own, theirs)
    elif hasattr(own, "__dict__") and not isinstance(own, type):
        assert_same_content(vars(own), vars(theirs))
    else:
        assert repr(own) == repr(theirs)


def by_skops(data):
    trusted = [*persistence.TYPES.values(), *persistence.ALSO_TRUSTED]
    return skops.io.loads(persistence._renamed(data, persistence.TYPES), trusted=trusted)  # noqa: SLF001


@pytest.mark.parametrize("kind", ["linear", "hidden", "several measures", "pipeline"])
def test_a_model_is_what_skops_makes_of_it(hiring, kind, tmp_path):
    model = FairGradClassifier(
        None, hidden_layer_sizes=(4,) if kind == "hidden" else (), max_iter=1
    )
    given = {}
    if kind == "several measures":
        parts = [On("sex", "demographic_parity"), On("race", "accuracy_parity")]
        model.set_params(fairness_measure=parts, epsilon=1.0)
        given["sensitive_features"] = hiring.both
    if kind == "pipeline":
        model = make_pipeline(StandardScaler(), model)
    data = persistence.save(model.fit(hiring.X, hiring.y, **given), tmp_path / "m").read_bytes()
    assert_same_content(read_archive(data, persistence.TYPES), by_skops(data))


keys = st.one_of(st.text(max_size=3), st.integers(-3, 3), st.floats(allow_nan=False, width=32))
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.slices(5), st.sampled_from([np.float32, np.int64, str]),
    arrays.arrays(st.sampled_from([np.float64, np.int32, np.bool_, "U3"]), (2, 1)),
    st.floats(width=32).map(np.float32), st.booleans().map(np.bool_),
    st.lists(st.one_of(st.text(max_size=2), st.none()), max_size=3).map(
        lambda parts: np.array([*parts, "a"], dtype=object)
    ),
)  # fmt: skip
contents = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.lists(parts, max_size=3).map(tuple),
        st.dictionaries(keys, parts, max_size=3),
    ),
    max_leaves=12,
)


@given(content=contents)
def test_values_are_what_skops_makes_of_them(content):
    data = skops.io.dumps([content, content])
    own = read_archive(data, {})
    assert_same_content(own, skops.io.loads(data))
    assert own[0] is own[1] or not isinstance(content, (list, dict, np.ndarray))


@pytest.mark.parametrize(
    "content",
    [
        {1, 2},
        b"bytes",
        np.random.RandomState(0),
        np.array([["a", None]], dtype=object),
        np.float16(1.0),
        {True: 1},
        RandomForestClassifier(),
        np.sum,
    ],
    ids=lambda content: getattr(content, "__name__", type(content).__name__),
)
def test_what_is_not_usual_is_left_to_skops(content):
    with pytest.raises(UnusualArchive):
        read_archive(skops.io.dumps(content), {})


def altered(data, change):
    """The archive with another schema."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == SCHEMA:
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            new.writestr(name, content)
    return made.getvalue()


@pytest.mark.parametrize(
    "node",
    [
        {"__module__": "os", "__class__": "system", "__loader__": "TypeNode"},
        {"__module__": "os", "__class__": "_Environ", "__loader__": "ObjectNode"},
        {"__module__": "builtins", "__class__": "list", "__loader__": "ObjectNode"},
        {"__module__": "operator", "__class__": "call", "__loader__": "OperatorFuncNode"},
        {"__module__": "builtins", "__class__": "eval", "__loader__": "FunctionNode"},
        {"__module__": "fairgrad.files", "__class__": "Path", "__loader__": "ObjectNode"},
    ],
    ids=lambda node: f"{node['__class__']} {node['__loader__']}",
)
def test_a_stranger_deep_inside_is_found_before_anything_is_made(node, monkeypatch):
    made = []
    monkeypatch.setattr(np, "load", lambda *_, **__: made.append(1))
    data = skops.io.dumps([np.zeros(2), {"a": [1]}])
    for content in (node, {**node, "content": []}):
        with pytest.raises(UnusualArchive):
            read_archive(
                altered(data, lambda schema, c=content: schema["content"].append(c)),
                persistence.TYPES,
            )
    assert not made


@pytest.mark.parametrize("protocol", [None, True, -1, 3, "2"])
def test_other_protocols_are_left_to_skops(protocol):
    data = skops.io.dumps([1])
    with pytest.raises(UnusualArchive):
        read_archive(altered(data, lambda schema: schema.update(protocol=protocol)), {})


def test_what_holds_itself_is_left_to_skops():
    data = skops.io.dumps([[1]])
    with pytest.raises(UnusualArchive):
        read_archive(
            altered(data, lambda schema: schema["content"][0].update(__id__=schema["__id__"])), {}
        )


PREDICT = """
import sys
from fairgrad.persistence import load
model = load(sys.argv[1])
print(model.predict_proba([[0.0], [1.0]]).tolist(), "torch" in sys.modules, "skops" in sys.modules)
"""


def test_a_linear_model_is_loaded_and_predicts_without_pytorch_and_skops(tmp_path):
    X, y, s = [[0.0], [1.0]] * 50, [0, 1] * 50, [0, 0, 1, 1] * 25
    model = FairGradClassifier(None, max_iter=2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), model.set_fit_request(sensitive_features=True))
        model.fit(X, y, sensitive_features=s)
    path = persistence.save(model, tmp_path / "model.skops")
    done = subprocess.run(
        [sys.executable, "-c", PREDICT, str(path)], capture_output=True, text=True, check=True
    )
    expected = model.predict_proba([[0.0], [1.0]]).tolist()
    assert done.stdout.strip() == f"{expected} False False"
