"""Files outlive the code that wrote them: classes move and are renamed, files still load.

The files in files_of_0_x were written before types had tags in files (format version 1) with 240
synthetic rows; predictions.json has some of these rows and what each model predicted for them.
"""

import json
import pkgutil
import sys
import types
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from torch import nn

from fairgrad import Constraints, persistence
from fairgrad.persistence import load, save
from fairgrad.sklearn import FairGradClassifier

FILES = Path(__file__).parent / "files_of_0_x"
KNOWN = json.loads((FILES / "predictions.json").read_text(encoding="utf-8"))
TABLE = pd.DataFrame(KNOWN["table"])
NUMBERS = TABLE.drop(columns="town")
INPUTS = {
    "encoder": TABLE.astype({"town": "category"}),
    "head": np.array(KNOWN["features"]),
    "module": NUMBERS.to_numpy(np.float32),
    "pipeline": TABLE,
}
SHAPE = "fairgrad.NetworkShape"


@pytest.fixture(autouse=True)
def _other_scikit_learn():
    """The files are read by other versions of scikit-learn as well, which says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        yield


def read(name, path=None):
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    return load(path or FILES / f"{name}.skops", module=module if name == "module" else None)


def assert_predicts_as_then(model, name):
    X = INPUTS.get(name, NUMBERS)
    found = model.transform(X) if name == "encoder" else model.predict_proba(X)
    np.testing.assert_allclose(found, KNOWN["expected"][name], atol=1e-6)


def names_in(path):
    """Where the types of a file are said to live."""
    with zipfile.ZipFile(path) as file:
        text = file.read("schema.json").decode()
    found = set()

    def note(node):
        if isinstance(node.get("__module__"), str):
            found.add(f"{node['__module__']}.{node['__class__']}")
        return node

    json.loads(text, object_hook=note)
    return {name for name in found if name.startswith("fairgrad")}


@pytest.fixture
def moved(monkeypatch):
    """A function that lets a tag's class live elsewhere, and nowhere else."""

    def move(tag, made):
        home = types.ModuleType("fairgrad_elsewhere")
        made.__module__, made.__name__ = home.__name__, "Renamed"
        home.Renamed = made
        monkeypatch.setitem(sys.modules, home.__name__, home)
        monkeypatch.setitem(persistence.TYPES, tag, "fairgrad_elsewhere.Renamed")
        return made

    return move


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.skops")))
def test_files_of_0_x_predict_as_they_did(name, tmp_path):
    model = read(name)
    assert_predicts_as_then(model, name)
    again = save(model, tmp_path / "again.skops")
    assert_predicts_as_then(read(name, again), name)
    assert names_in(again) <= set(persistence.TYPES)


@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
@pytest.mark.parametrize("name", ["hidden", "linear"])
def test_models_of_0_x_can_be_trained_on(name, how):
    model = read(name)
    groups, before = model.groups_, model.state_["network.parameters"].copy()
    label, group = np.divmod(np.arange(5 * groups.mass.size) % groups.mass.size, groups.n_groups)
    X, y = NUMBERS.iloc[np.arange(len(label)) % len(NUMBERS)], groups.labels[label]
    s = {attribute: groups.column(a)[group] for a, attribute in enumerate(groups.attributes)}
    if how == "partial_fit":
        model.partial_fit(X, y, sensitive_features=s)
    else:
        model.set_params(warm_start=True, max_iter=1).fit(X, y, sensitive_features=s)
    after = model.state_["network.parameters"]
    assert 0 < np.abs(after - before).max() < 1  # went on from the weights of the file
    assert model.state_["fairness.errors"].shape == model.state_["fairness.weights"].shape


def test_boosted_files_of_0_x_predict_as_they_did():
    lightgbm = pytest.importorskip("fairgrad.lightgbm")
    xgboost = pytest.importorskip("fairgrad.xgboost")
    for package, name in {lightgbm: "boosted.lightgbm.txt", xgboost: "boosted.xgboost.ubj"}.items():
        model = package.load(FILES / name)
        np.testing.assert_allclose(model.predict_proba(NUMBERS), KNOWN["expected"][name], atol=1e-6)
        assert len(model.multipliers_) == 4


NEWER = {
    "fairgrad.AtLeast", "fairgrad.AtMost", "fairgrad.FairDecisionClassifier",
    "fairgrad.SensitiveEncoder",
}  # fmt: skip
"""Types that no file of version 1 can hold."""


def test_the_files_hold_every_type_by_its_old_path():
    held = set().union(*(names_in(path) for path in FILES.glob("*.skops")))
    assert held == set(persistence.OLD_PATHS)
    assert set(persistence.OLD_PATHS.values()) == set(persistence.TYPES) - NEWER


def test_a_class_that_moved_is_found_by_its_old_path_and_by_its_tag(moved, monkeypatch, tmp_path):
    tagged = save(read("hidden"), tmp_path / "tagged.skops")
    place = persistence.TYPES[SHAPE]
    made = moved(SHAPE, type("Shape", (pkgutil.resolve_name(place),), {}))
    monkeypatch.delattr(place)
    for path in (FILES / "hidden.skops", tagged):
        model = load(path)
        assert type(model.shape_) is made
        assert_predicts_as_then(model, "hidden")
    assert names_in(tagged) == names_in(save(model, tmp_path / "later.skops"))


def test_only_the_table_is_trusted(monkeypatch, tmp_path):
    """A path that is in no table is refused, though it names a class of this library."""
    tagged = save(read("linear"), tmp_path / "tagged.skops")
    monkeypatch.delitem(persistence.TYPES, SHAPE)
    monkeypatch.delitem(persistence.OLD_PATHS, "fairgrad.training.network.Shape")
    for path in (FILES / "linear.skops", tagged):
        with pytest.raises(ValueError, match="refused before anything of it was loaded"):
            load(path)
    model = FairGradClassifier(None, max_iter=1).fit(NUMBERS, np.arange(12) % 2)
    with pytest.raises(TypeError, match="model: holds fairgrad"):
        save(model, tmp_path / "other.skops")


def test_arguments_that_were_renamed_keep_their_values(moved):
    class Later(FairGradClassifier):
        def __init__(self, fairness_measure=None, *, schedule="cosine", learning_rate=1.0, new=7):
            self.fairness_measure, self.schedule = fairness_measure, schedule
            self.learning_rate, self.new = learning_rate, new

    moved("fairgrad.FairGradClassifier", Later)
    model = read("linear")
    assert type(model) is Later
    assert model.get_params() == {
        "fairness_measure": "equalized_odds",
        "schedule": "cosine",
        "learning_rate": 0.15,
        "new": 7,
    }
    assert_predicts_as_then(model, "linear")


def test_constraints_of_an_old_file_are_whole():
    """What is inside a class changes as well: these can do all that new ones can."""
    model = read("several_measures")
    own = model.fairness_measure[1].measure
    new = Constraints(c0=[0.0], C=[[1.0, -1.0]], by_label=False)
    assert set(vars(own)) == set(vars(new))
    both = pd.DataFrame({"sex": ["F", "M"] * 6, "race": ["a", "b", "b"] * 4})
    model.fit(NUMBERS, ["hired", "refused", "refused", "hired"] * 3, sensitive_features=both)
    assert len(model.levels_) == 5


def test_requests_of_an_old_file_come_back():
    with sklearn.config_context(enable_metadata_routing=True):
        request = read("pipeline")[-1].get_metadata_routing()
    asked = {name: value for name, value in request.fit.requests.items() if value is not None}
    assert asked == {"sensitive_features": True, "sample_weight": False}
