"""Files outlive the code that wrote them: classes move, and old formats are named as such.

The file in files_of_0_x was written by an earlier version.
"""

import json
import pkgutil
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairgrad import persistence
from fairgrad.persistence import load, save
from fairgrad.sklearn import FairGradClassifier

FILES = Path(__file__).parent / "files_of_0_x"
NUMBERS = pd.DataFrame(np.arange(24.0).reshape(8, 3) % 7, columns=list("abc"))
GROUPS = "fairgrad.Groups"


def types_in(path):
    """The fairgrad types that a file names."""
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
def model():
    rows = np.arange(len(NUMBERS))
    return FairGradClassifier(fairness_rate=0.1, max_iter=1, min_group=0).fit(
        NUMBERS, rows % 2, sensitive_features=rows // 2 % 2
    )


def test_an_older_format_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"format version 1; .* reads version \d.* Fit .* again"):
        load(FILES / "linear.skops")


def test_a_class_that_moved_is_found_by_its_tag(model, monkeypatch, tmp_path):
    path = save(model, tmp_path / "tagged.skops")
    assert types_in(path) <= set(persistence.TYPES)
    place = persistence.TYPES[GROUPS]
    made = type("Groups", (pkgutil.resolve_name(place),), {})
    home = types.ModuleType("fairgrad_elsewhere")
    made.__module__, made.__name__ = home.__name__, "Renamed"
    home.Renamed = made
    monkeypatch.setitem(sys.modules, home.__name__, home)
    monkeypatch.setitem(persistence.TYPES, GROUPS, "fairgrad_elsewhere.Renamed")
    monkeypatch.delattr(place)
    again = load(path)
    assert type(again.groups_) is made
    np.testing.assert_array_equal(again.predict(NUMBERS), model.predict(NUMBERS))
    assert types_in(path) == types_in(save(again, tmp_path / "later.skops"))


def test_only_the_table_is_trusted(model, monkeypatch, tmp_path):
    """A path that is in no table is refused, though it names a class of this library."""
    path = save(model, tmp_path / "tagged.skops")
    monkeypatch.delitem(persistence.TYPES, GROUPS)
    with pytest.raises(ValueError, match="was refused; nothing"):
        load(path)
    with pytest.raises(TypeError, match="model: contains fairgrad"):
        save(model, tmp_path / "other.skops")
