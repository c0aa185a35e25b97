"""The bundled data sets: the paper's counts, and a plain classifier as good as the paper's."""

import hashlib
import lzma
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairgrad.datasets import PAPER_SEEDS, load, names
from fairgrad.datasets.dataset import FILES

#: Rows, columns of the matrix, and rows of each cell (label by label, group by group).
COUNTS = {
    "adult": (45_222, 52, [13_026, 20_988, 1_669, 9_539]),
    "adult_multigroup": (45_222, 52, [2_598, 10_428, 2_720, 18_268, 214, 1_455, 787, 8_752]),
    "german": (1_000, 57, [109, 191, 201, 499]),
}


@pytest.fixture(scope="module")
def adult():
    return load("adult")


def test_rows_columns_and_cells_are_the_papers(adult):
    X, y, s = adult.encode()
    assert X.shape == (45222, 52)
    assert np.bincount(2 * y + s).tolist() == [13026, 20988, 1669, 9539]
    assert adult.label_names[1] == ">50K"
    assert adult.group_names == ("sex=Female", "sex=Male")


def test_matrix_against_a_hand_encoded_row(adult):
    """First row of the census file: 39, State-gov, Bachelors, never married, ..., man, <=50K."""
    encoded = adult.encode()
    row = dict(zip(encoded.feature_names, encoded.X[0].tolist(), strict=True))
    ones = {name for name, value in row.items() if value == 1.0}
    assert ones == {
        "workclass_State-gov",
        "education_Bachelors",
        "marital-status_Never-married",
        "occupation_Adm-clerical",
        "relationship_Not-in-family",
        "native-country_United-States",
    }
    assert row["age"] == pytest.approx(2 * (39 - 17) / (90 - 17) - 1)
    assert row["hours-per-week"] == pytest.approx(2 * (40 - 1) / (99 - 1) - 1)
    assert row["capital-gain"] == pytest.approx(2 * 2174 / 99999 - 1)
    assert encoded.y[0] == 0
    assert encoded.s[0] == 1


def test_plain_logistic_regression_reaches_the_papers_accuracy(adult):
    """The paper's unconstrained linear model: .846 accuracy over the five seeds."""
    scores = []
    for seed in PAPER_SEEDS:
        train, _, test = adult.split(seed)
        model = LogisticRegression(max_iter=300).fit(train.X, train.y)
        scores.append(model.score(test.X, test.y))
    assert np.mean(scores) == pytest.approx(0.847, abs=0.004)


@pytest.mark.parametrize("name", names())
def test_counts(name):
    data = load(name)
    X, y, s = data.encode()
    rows, columns, cells = COUNTS[name]
    assert X.shape == (rows, columns)
    assert np.bincount(y * len(data.group_names) + s).tolist() == cells
    assert not data.frame.isna().any(axis=None)
    assert data.source
    assert data.licence
    assert data.citation


def test_every_bundled_file_has_its_attribution_and_hash():
    readme = (FILES / "README.md").read_text()
    files = list(FILES.glob("*.xz"))
    for path in files:
        digest = hashlib.sha256(lzma.decompress(path.read_bytes())).hexdigest()
        assert f"{path.stem}: {digest}" in readme
    assert readme.count("CC BY 4.0") == len(files) == 2


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="data sets are adult, .*german.*fairgrad-bench"):
        load("compas")


def test_import_is_light():
    code = (
        "import sys, fairgrad.datasets; "
        "print([m for m in ('torch', 'PIL', 'sklearn', 'pooch') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
