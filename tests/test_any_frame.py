"""A table means the same in pandas, polars (eager and lazy) and Arrow, wherever tables come in."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairgrad import TableEncoder, fairness_levels
from fairgrad.audit import Audit
from fairgrad.columns import as_pandas, encode
from fairgrad.frontier import Frontier
from fairgrad.groups import Groups
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.sklearn import FairGradClassifier
from fairgrad.torch import CrossEntropyLoss
from fairgrad.xgboost import FairGradXGBClassifier

KINDS = {
    "polars": lambda frame: frame,
    "lazy polars": pl.DataFrame.lazy,
    "Arrow table": pl.DataFrame.to_arrow,
    "Arrow batch": lambda frame: frame.to_arrow().combine_chunks().to_batches()[0],
}
FEATURES = ["age", "hours", "job"]


@pytest.fixture(scope="module")
def people():
    """Two sensitive columns with unknown values, categories, a label of words, and weights."""
    rng = np.random.default_rng(0)
    n = 600
    sex, job = rng.choice(["F", "M"], n), rng.choice(["clerk", "cook"], n)
    age, hours = rng.normal(40, 10, n), rng.normal(size=n)
    score = hours + (sex == "M") + 0.5 * (job == "cook") + rng.normal(size=n)
    return pl.DataFrame(
        {
            "age": age,
            "hours": hours,
            "job": pl.Series(job, dtype=pl.Enum(["clerk", "cook"])),
            "sex": [None if i % 50 == 0 else value for i, value in enumerate(sex.tolist())],
            "region": pl.Series(rng.choice(["N", "S"], n), dtype=pl.Categorical),
            "hired": np.where(score > 0.5, "yes", "no"),
            "weight": rng.uniform(0.5, 1.5, n),
            "guess": np.where(hours > 0, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def plain(people):
    """The same in pandas, made by hand: what all others are compared with."""
    columns = {name: people[name].to_list() for name in people.columns}
    categories = {name: pd.Categorical(columns[name]) for name in ("job", "region")}
    return pd.DataFrame({**columns, **categories})


@pytest.fixture(scope="module", params=list(KINDS))
def other(people, request):
    """Gives some columns in another library."""
    return lambda *names: KINDS[request.param](people.select(names))


def test_a_frame_has_the_same_values_in_pandas(other, plain):
    found = as_pandas(other(*plain.columns))
    assert found["sex"].isna().sum() == 12
    pd.testing.assert_frame_equal(found, plain, check_dtype=False, check_categorical=False)
    assert isinstance(found["job"].dtype, pd.CategoricalDtype)


@given(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1).filter(any))
def test_a_missing_category_stays_missing(values):
    expected = [value or "?" for value in values]
    for kind in (pl.String, pl.Categorical, pl.Enum(["c", "b", "a", "unused"])):
        column = pl.Series("s", values, dtype=kind)
        arrow = column.to_arrow()
        for given_ in (column, pa.chunked_array([arrow]), arrow, {"s": arrow}["s"]):
            codes, names = encode(given_, "s")
            assert np.append(names, "?")[codes].tolist() == expected


def test_a_name_of_a_column_names_its_groups(people):
    groups = Groups.from_data(people["hired"], people["sex"])
    assert groups.names == ("sex=F", "sex=M", "sex=?")
    assert groups.label_name == "hired"
    assert Groups.from_data([0, 1], pl.Series([5, 6])).names == ("s=5", "s=6")


def test_what_is_no_table_is_left_alone():
    for value in ([1, 2], np.ones(2), "text", None, {"a": 1}, object()):
        assert as_pandas(value) is value


def test_audit(other, plain):
    people = plain[["sex", "region"]]
    asked = {"measures": ["equalized_odds"]}
    expected = Audit(plain["hired"], plain["guess"], people, sample_weight=plain["weight"], **asked)
    found = Audit(
        other("hired"), other("guess"), other("sex", "region"), sample_weight=other("weight"),
        **asked,
    )  # fmt: skip
    assert found.to_dict() == expected.to_dict()


def test_levels(other, plain):
    expected = fairness_levels(plain["hired"], plain["guess"], plain["sex"], "accuracy_parity")
    found = fairness_levels(other("hired"), other("guess"), other("sex"), "accuracy_parity")
    assert found.names == expected.names
    np.testing.assert_array_equal(found.values, expected.values)


def test_table_encoder(other, plain):
    columns = ["age", "hours", "sex", "region"]
    expected = TableEncoder().fit_transform(plain[columns])
    pd.testing.assert_frame_equal(TableEncoder().fit_transform(other(*columns)), expected)


def test_estimator(other, plain):
    model = FairGradClassifier("demographic_parity", fairness_rate=0.05, max_iter=3, random_state=0)
    expected = model.fit(plain[["age", "hours"]], plain["hired"], sensitive_features=plain["sex"])
    probability, names = expected.predict_proba(plain[["age", "hours"]]), model.constraint_names_
    model.fit(other("age", "hours"), other("hired"), sensitive_features=other("sex"))
    assert model.feature_names_in_.tolist() == ["age", "hours"]
    assert model.constraint_names_ == names
    np.testing.assert_array_equal(model.predict_proba(other("age", "hours")), probability)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(other("hours", "weight"))


def test_estimator_with_validation_rows(other, plain):
    model = FairGradClassifier("demographic_parity", max_iter=3, random_state=0)
    names = ["age", "hours"]
    rows, s = (plain[names], plain["hired"]), plain["sex"]
    expected = model.fit(*rows, sensitive_features=s, validation=(*rows, s)).predict_proba(rows[0])
    rows, s = (other(*names), other("hired")), other("sex")
    model.fit(*rows, sensitive_features=s, validation=(*rows, s))
    np.testing.assert_array_equal(model.predict_proba(rows[0]), expected)


@pytest.mark.parametrize(
    "model",
    [
        FairGradLGBMClassifier(n_estimators=5, random_state=0, verbosity=-1),
        FairGradXGBClassifier(n_estimators=5, random_state=0, enable_categorical=True),
    ],
    ids=["LightGBM", "XGBoost"],
)
def test_boosted_trees_with_categories(model, other, plain):
    label = (plain["hired"] == "yes").astype(int)
    asked = {"sample_weight": plain["weight"], "sensitive_features": plain["sex"]}
    model.fit(plain[FEATURES], label, **asked)
    expected, labels = model.predict_proba(plain[FEATURES]), model.predict(plain[FEATURES])
    assert len(np.unique(expected[:, 1])) > 10
    y = pl.Series(label.to_numpy())
    model.fit(
        other(*FEATURES),
        y.to_frame().lazy(),
        sample_weight=other("weight"),
        sensitive_features=other("sex"),
        eval_set=[(other(*FEATURES), y)],
    )
    np.testing.assert_array_equal(model.predict_proba(other(*FEATURES)), expected)
    np.testing.assert_array_equal(model.predict(other(*FEATURES)), labels)


def test_frontier(other, plain):
    frontier = Frontier(
        FairGradClassifier(fairness_rate=0.05, max_iter=2),
        fairness_measure="demographic_parity",
        epsilons=3,
        random_state=0,
    )
    features = ["age", "hours"]
    asked = {"sensitive_features": plain[["sex", "region"]], "sample_weight": plain["weight"]}
    frontier.fit(plain[features], plain["hired"], **asked)
    expected = frontier.points_
    asked = {"sensitive_features": other("sex", "region"), "sample_weight": other("weight")}
    frontier.fit(other(*features), other("hired"), **asked)
    pd.testing.assert_frame_equal(frontier.points_, expected)


def test_loss(other, plain):
    expected = CrossEntropyLoss(plain["hired"] == "yes", plain[["sex", "region"]], "equalized_odds")
    label = pl.Series((plain["hired"] == "yes").to_list())
    found = CrossEntropyLoss(label, other("sex", "region"), "equalized_odds")
    assert found.groups.names == expected.groups.names
    np.testing.assert_array_equal(found.groups.mass, expected.groups.mass)


def test_the_losses_load_no_library_of_frames():
    code = (
        "import sys, numpy as np, torch, fairgrad.torch as f; y = [0, 1, 0, 1]; "
        "f.CrossEntropyLoss(y, np.array([0, 0, 1, 1]), 'equalized_odds')(torch.zeros(4, 2), "
        "torch.tensor(y), torch.tensor([0, 0, 1, 1])); "
        "print({'narwhals', 'pandas', 'polars', 'pyarrow', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()", done.stderr
