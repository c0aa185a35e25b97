"""Where rows change their label along a line, against the labels at many places."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairgrad.decisions import crossings


@given(
    seed=st.integers(0, 10_000),
    n_labels=st.integers(2, 6),
    one_rises=st.booleans(),
    low=st.sampled_from([-3.0, -0.5, 0.0]),
)
def test_labels_along_a_line(seed, n_labels, one_rises, low):
    rng = np.random.default_rng(seed)
    n, high = 40, low + 2.0
    scores, slopes = rng.normal(size=(n_labels, n)), rng.normal(size=(n_labels, n))
    if one_rises:  # as a bias does
        slopes = np.zeros_like(slopes)
        slopes[seed % n_labels] = 0.5 + rng.random()
    start, t, row, old, new = crossings(scores, slopes, (low, high))
    order = np.argsort(t)
    t, row, old, new = t[order], row[order], old[order], new[order]
    for place in np.linspace(low, high, 23):
        label = start.copy()
        for i in np.flatnonzero(t < place):
            assert label[row[i]] == old[i]
            label[row[i]] = new[i]
        assert (label == (scores + place * slopes).argmax(0)).all()
