"""`TableEncoder` on data frames, against scikit-learn's transformers."""

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, QuantileTransformer, StandardScaler

import fairgrad
from fairgrad import persistence
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.onnx import to_onnx
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.tables import TableEncoder

CITIES = ["Bonn", "Lyon", "Rome"]


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "wage": rng.gamma(2, 900, n),
            "city": rng.choice(CITIES, n),
            "job": rng.choice(["a", "b"], n).astype(object),
            "remote": rng.random(n) < 0.5,
        }
    )
    frame.loc[rng.random(n) < 0.1, "wage"] = np.nan
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame


def expected(frame):
    """The same matrix by scikit-learn."""
    scaler = MinMaxScaler((-1, 1))
    encoder = make_column_transformer(
        (OneHotEncoder(categories=[CITIES, [False, True]]), ["city", "remote"]),
        (
            make_pipeline(
                SimpleImputer(strategy="constant", fill_value="(missing)"),
                OneHotEncoder(categories=[["a", "b", "(missing)"]]),
            ),
            ["job"],
        ),
        (scaler, ["age"]),
        (make_pipeline(SimpleImputer(strategy="median", add_indicator=True), scaler), ["wage"]),
        sparse_threshold=0,
    )
    return encoder.fit_transform(frame)


def test_the_matrix_is_that_of_scikit_learn():
    frame = people()
    found = TableEncoder().fit_transform(frame)
    assert list(found) == [
        "city_Bonn", "city_Lyon", "city_Rome", "remote_False", "remote_True",
        "job_a", "job_b", "job_(missing)", "age", "wage", "missingindicator_wage",
    ]  # fmt: skip
    np.testing.assert_allclose(found, expected(frame), atol=1e-6)
    assert (found.dtypes == np.float32).all()
    assert found.index.equals(frame.index)
    assert fairgrad.TableEncoder is TableEncoder


def test_later_tables_are_read_as_the_first_one():
    frame = people()
    encoder = TableEncoder().fit(frame)
    later = frame.iloc[[5, 3]][["job", "city", "remote", "wage", "age"]]
    whole = encoder.transform(frame)
    pd.testing.assert_frame_equal(encoder.transform(later), whole.iloc[[5, 3]])
    texts = later.astype(object).map(lambda value: "" if pd.isna(value) else str(value))
    pd.testing.assert_frame_equal(encoder.transform(texts), whole.iloc[[5, 3]])
    pd.testing.assert_frame_equal(
        encoder.transform(pl.from_pandas(frame)), whole.reset_index(drop=True)
    )
    unseen = encoder.transform(later.assign(city="Oslo"))
    assert (unseen[[f"city_{name}" for name in CITIES]] == 0).all(axis=None)
    assert list(encoder.get_feature_names_out()) == list(whole)


def test_columns_that_cannot_help_are_left_out():
    rng = np.random.default_rng(0)
    frame = people(60).assign(
        id=rng.permutation(10_000)[:60],
        name=[f"person {i}" for i in range(60)],
        same="x",
        empty=None,
        code=rng.choice([3, 7], 60),
        price=[f"1,{i * i % 997:03}.25" for i in range(60)],
        since=[f"2024-01-{1 + i % 28:02}" for i in range(60)],
    )
    encoder = TableEncoder(categorical=["code"], keep=["same"]).fit(frame)
    assert set(encoder.left_out_) == {"id", "name", "empty"}
    names = set(encoder.get_feature_names_out())
    assert {"code_3", "code_7", "same_x", "price", "since (age in days)"} <= names
    assert "since" in " ".join(encoder.notes_)
    prices = np.array([1_000.25 + i * i % 997 for i in range(60)])
    scaled = 2 * (prices - prices.min()) / np.ptp(prices) - 1
    np.testing.assert_allclose(encoder.transform(frame)["price"], scaled, atol=1e-6)


def test_names_suit_boosting_libraries():
    values = ["5,200 to 10,400", "5:200 to 10_400", "<HS", "[a]", '{"b"}', "plain"] * 20
    frame = pd.DataFrame({"income: gross": values, "x": np.arange(120.0)})
    names = TableEncoder().fit(frame).transform(frame).columns
    assert names.is_unique
    assert "income_ gross_plain" in names
    y, s = np.arange(120) % 2, np.arange(120) % 3
    for kind in (
        FairGradLGBMClassifier,
        pytest.importorskip("fairgrad.xgboost").FairGradXGBClassifier,
    ):
        model = make_pipeline(TableEncoder(), kind("accuracy_parity", n_estimators=2, epsilon=1.0))
        name = model.steps[-1][0]
        assert len(model.fit(frame, y, **{f"{name}__sensitive_features": s}).predict(frame)) == 120


@pytest.mark.parametrize("missing", [("?",), ("-99",)])
def test_texts_that_mean_missing(missing):
    frame = pd.DataFrame({"x": ["1", "2", missing[0], "4"] * 5, "y": list("abab") * 5})
    found = TableEncoder(missing=missing).fit_transform(frame)
    assert found["missingindicator_x"].tolist() == [-1, -1, 1, -1] * 5
    assert found["x"].iloc[2] == pytest.approx(-1 + 2 * (2 - 1) / 3)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.zeros((3, 2)), TypeError, "data frame"),
        (pd.DataFrame({"x": []}), ValueError, "rows"),
        (pd.DataFrame([[1, 2]], columns=["x", "x"]), ValueError, "two columns"),
        (pd.DataFrame({"x": ["1", "2", "3", "many"] * 9}), ValueError, "mixes numbers and texts"),
        (pd.DataFrame({"x": ["1"] * 30}), ValueError, "no column is left"),
        (pd.DataFrame({"x": [1.0, np.inf] * 3}), ValueError, "3 infinite numbers"),
    ],
)
def test_tables_that_cannot_be_encoded(table, error, words):
    with pytest.raises(error, match=words):
        TableEncoder().fit(table)


def test_later_tables_that_cannot_be_read():
    encoder = TableEncoder()
    with pytest.raises(NotFittedError):
        encoder.transform(people())
    encoder.fit(people())
    with pytest.raises(ValueError, match="lacks the column 'age'"):
        encoder.transform(people().drop(columns="age"))
    with pytest.raises(ValueError, match="'age' holds 'old'"):
        encoder.transform(people().astype({"age": object}).assign(age="old"))
    with pytest.raises(TypeError, match="data frame"):
        encoder.transform(np.zeros((2, 5)))


@pytest.fixture(scope="module")
def fitted():
    frame = people(600).assign(code=np.random.default_rng(1).choice([1, 2, 5], 600))
    rng = np.random.default_rng(2)
    score = frame["age"] / 30 + (frame["city"] == "Rome") - frame["wage"].fillna(1_000) / 2_000
    label = np.where(score + rng.logistic(size=600) > 1, "yes", "no")
    sex = rng.choice(["F", "M"], 600)

    def fit(classifier):
        encoder = TableEncoder(categorical=["code"])
        model = make_pipeline(encoder, classifier)
        name = type(classifier).__name__.lower()
        return model.fit(frame, label, **{f"{name}__sensitive_features": sex}), frame

    return fit


CLASSIFIERS = {
    "linear": FairGradClassifier(max_iter=5, random_state=0),
    "network": FairGradClassifier(hidden_layer_sizes=(8,), max_iter=3, random_state=0),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_pipelines_are_cloned_and_saved(fitted, tmp_path, name):
    model, frame = fitted(clone(CLASSIFIERS[name]))
    assert clone(model)[0].get_params() == model[0].get_params()
    path = persistence.save(model, tmp_path / "model.skops")
    loaded = persistence.load(path)
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded[0].features_ == model[0].features_


@pytest.mark.parametrize("name", [*CLASSIFIERS, "trees"])
def test_a_graph_reads_columns(fitted, name):
    trees = FairGradLGBMClassifier(n_estimators=5, verbose=-1, random_state=0)
    model, frame = fitted(trees if name == "trees" else clone(CLASSIFIERS[name]))
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    odd = frame.head(3).assign(city="Oslo", code=9, job=None, wage=np.nan)
    frame = pd.concat([frame, odd], ignore_index=True)
    rows = {}
    for one in session.get_inputs():
        column = frame[one.name]
        if one.type == "tensor(string)":
            texts = column.astype(object).where(column.notna(), "").astype(str)
            rows[one.name] = texts.to_numpy(dtype=object)[:, None]
        else:
            rows[one.name] = column.to_numpy(dtype=np.float64)[:, None]
    label, probabilities = session.run(None, rows)
    np.testing.assert_array_equal(label, model.predict(frame))
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), atol=1e-5)


def test_column_transformers_are_saved_and_exported(tmp_path):
    frame = people(400).dropna().assign(code=np.arange(400)[: len(people(400).dropna())] % 3)
    rng = np.random.default_rng(2)
    label = np.where(frame["age"] / 30 + rng.logistic(size=len(frame)) > 2, "yes", "no")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude=np.number)),
        (OneHotEncoder(handle_unknown="ignore"), ["code"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
        (MinMaxScaler(), ["wage"]),
        sparse_threshold=0,
    )
    texts = frame.astype({"remote": str})
    sex = rng.choice(["F", "M"], len(frame))
    model = make_pipeline(encoder, FairGradClassifier(max_iter=5, random_state=0))
    model.fit(texts, label, fairgradclassifier__sensitive_features=sex)
    loaded = persistence.load(persistence.save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(texts), model.predict_proba(texts))
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    later = pd.concat([texts, texts.head(2).assign(city="Oslo", code=9, age=np.nan)])
    rows = {
        one.name: later[one.name].to_numpy(object if one.type == "tensor(string)" else float)[
            :, None
        ]
        for one in session.get_inputs()
    }
    found, probabilities = session.run(None, rows)
    np.testing.assert_array_equal(found, model.predict(later))
    np.testing.assert_allclose(probabilities, model.predict_proba(later), atol=1e-5)
    ranked = make_column_transformer((QuantileTransformer(n_quantiles=9), ["age"]))
    other = make_pipeline(ranked, FairGradClassifier(None, max_iter=1)).fit(texts, label)
    with pytest.raises(TypeError, match="got QuantileTransformer"):
        to_onnx(other)


def test_dates_are_no_input_of_a_graph():
    frame = people(200).assign(day=pd.date_range("2024-01-01", periods=200).astype(str))
    model = make_pipeline(TableEncoder(), FairGradClassifier(None, max_iter=1))
    model.fit(frame, np.arange(200) % 2)
    with pytest.raises(ValueError, match="'day' holds dates"):
        to_onnx(model)


@pytest.mark.parametrize("model", [FairGradClassifier(), FairDecisionClassifier()])
def test_estimators_name_the_encoder_if_they_get_texts(model):
    frame = people().dropna()
    half = np.arange(len(frame)) % 2
    with pytest.raises(ValueError, match=r"X.*'(a|b|Bonn|Lyon|Rome)'.*fairgrad\.TableEncoder\(\)"):
        model.fit(frame, half, sensitive_features=half)


VALUES = st.one_of(
    st.lists(st.integers(-5, 5), min_size=30, max_size=30),
    st.lists(st.floats(-1e6, 1e6), min_size=30, max_size=30),
    st.lists(st.sampled_from(["x", "y", "NA", "", None, "1", "2"]), min_size=30, max_size=30),
    st.lists(st.sampled_from([True, False, None]), min_size=30, max_size=30),
)


@given(columns=st.lists(VALUES, min_size=1, max_size=4), later=st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_rows_do_not_depend_on_each_other(columns, later):
    """Each row of a table of any kind has the same numbers alone, later, in any order."""
    frame = pd.DataFrame({f"c{i}": pd.Series(own, dtype=object) for i, own in enumerate(columns)})
    frame = frame.infer_objects()
    encoder = TableEncoder()
    try:
        whole = encoder.fit_transform(frame)
    except ValueError as error:
        assert str(error)  # noqa: PT017 - refused in a sentence is fine
        return
    order = list(range(30))
    later.shuffle(order)
    assert np.isfinite(whole).all(axis=None)
    assert (whole.abs() <= 1 + 1e-6).all(axis=None)
    found = encoder.transform(frame.iloc[order])
    np.testing.assert_array_equal(found, whole.iloc[order])
    one = order[0]
    np.testing.assert_array_equal(encoder.transform(frame.iloc[[one]]), whole.iloc[[one]])
