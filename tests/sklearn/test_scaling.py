"""Means and standard deviations of features, against NumPy's."""

import numpy as np
import pytest

from fairgrad.sklearn import FairGradClassifier
from fairgrad.sklearn.rows import FEW_NUMBERS, moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 3), (3000, 1), (2500, 17), (40, 700)])
def test_moments_are_those_of_numpy(n, d, weighted, dtype):
    rng = np.random.default_rng(n + d)
    X = (rng.normal(size=(n, d)) * rng.uniform(0.1, 9, d) + 100 * rng.normal(size=d)).astype(dtype)
    weight = rng.random(n) if weighted else None
    if weighted and n > 1000:
        weight[: n // 2] = 0.0
    mean, variance = moments(X, weight)
    exact = X.astype(np.float64)
    expected = np.average(exact, axis=0, weights=weight)
    np.testing.assert_allclose(mean, expected, rtol=1e-12 if dtype == np.float64 else 1e-6)
    squares = np.average((exact - expected) ** 2, axis=0, weights=weight)
    np.testing.assert_allclose(variance, squares, rtol=1e-5, atol=1e-10)


def test_rows_that_do_not_lie_one_after_the_other():
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(50, 4)))
    mean, variance = moments(X, None)
    np.testing.assert_allclose(mean, X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(variance, X.var(0), rtol=1e-12)


class TestPrecision:
    """Large tables in double precision are trained on in single precision."""

    @pytest.fixture
    def table(self):
        rng = np.random.default_rng(0)
        s = rng.integers(0, 2, 2000)
        X = rng.normal(size=(2000, 5)) + 0.5 * s[:, None]
        assert X.size > FEW_NUMBERS
        return X, (X.sum(1) + rng.normal(size=2000) > 1).astype(int), s

    def fitted(self, X, table, **settings):
        model = FairGradClassifier(
            "demographic_parity",
            fairness_rate=0.05,
            random_state=0,
            **settings,
        )
        return model.fit(X, table[1], sensitive_features=table[2])

    @pytest.mark.parametrize("hidden", [(), (4,)])
    def test_it_is_the_same_model_in_either(self, table, hidden):
        settings = {"hidden_layer_sizes": hidden, "max_iter": 5}
        double = self.fitted(table[0], table, **settings)
        single = self.fitted(table[0].astype(np.float32), table, **settings)
        assert double.state_["network.parameters"].dtype == np.float32
        assert double.predict_proba(table[0]).dtype == np.float64  # as it came
        np.testing.assert_allclose(
            double.predict_proba(table[0]), single.predict_proba(table[0]), atol=1e-4
        )

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("columns", [1, -1])
    def test_views_with_negative_strides(self, table, dtype, columns):
        X, y, s = table[0].astype(dtype)[::-1, ::columns], table[1][::-1], table[2][::-1]
        expected = self.fitted(X.copy(), (X, y, s), max_iter=2).predict_proba(X)
        found = self.fitted(X, (X, y, s), max_iter=2).predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-6)

    def test_features_far_from_0_lose_nothing(self, table):
        """In single precision such dates, in seconds, would be rounded to two minutes."""
        near = self.fitted(table[0], table, max_iter=5)
        X = table[0] + 1.7e9
        far = self.fitted(X, table, max_iter=5)
        np.testing.assert_allclose(far.predict_proba(X), near.predict_proba(table[0]), atol=1e-4)

    def test_features_beyond_single_precision_stay_as_they_are(self, table):
        model = self.fitted(table[0] * 1e39, table, standardize=False, learning_rate=1e-40)
        assert model.state_["network.parameters"].dtype == np.float64

    def test_small_tables_stay_as_they_are(self, table):
        few = [part[:100] for part in table]
        assert self.fitted(few[0], few).state_["network.parameters"].dtype == np.float64
