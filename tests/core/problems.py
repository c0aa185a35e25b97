"""Random classification results, and every measure computed straight from its definition."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def results(draw, max_labels=4, max_groups=6, unknown=False, weights=False, n_attributes=1):
    """(y, h, s, weight): labels, predictions, sensitive values (all groups and labels present)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels = draw(st.integers(2, max_labels))
    n_groups = [draw(st.integers(2, max_groups)) for _ in range(n_attributes)]
    n = draw(st.integers(1, 60)) + n_labels * max(n_groups)
    y = np.concatenate([np.arange(n_labels), rng.integers(0, n_labels, n - n_labels)])
    columns = [np.concatenate([np.arange(g), rng.integers(0, g, n - g)]) for g in n_groups]
    for column in columns:
        rng.shuffle(column)
    s = np.stack(columns, axis=1)
    if unknown:
        hide = rng.random(s.shape) < 0.2
        hide[
            [np.flatnonzero(s[:, a] == g)[0] for a, G in enumerate(n_groups) for g in range(G)]
        ] = 0
        s = np.where(hide, -1, s)
    h = np.where(rng.random(n) < 0.6, y, rng.integers(0, n_labels, n))
    weight = rng.random(n) + 0.01 if weights else np.ones(n)
    return y, h, s[:, 0] if n_attributes == 1 else s, weight


def probability(event, given, weight):
    """P(event | given), NaN if nothing is given."""
    total = weight[given].sum()
    return weight[given & event].sum() / total if total > 0 else np.nan


def definition(measure, y, h, s, weight, desirable=(1,), labels=None):
    """The levels of a measure, straight from its definition, over rows whose s is known."""
    labels, known = np.unique(y) if labels is None else labels, s != -1
    y, h, s, weight = y[known], h[known], s[known], weight[known]
    everyone = np.ones(len(y), dtype=bool)
    groups = np.unique(s)

    def gap(event, within):
        overall = probability(event, within, weight)
        return [probability(event, within & (s == r), weight) - overall for r in groups]

    if measure == "accuracy_parity":
        return np.array(gap(h == y, everyone))
    if measure == "equalized_odds":
        return np.array([gap(h == y, y == label) for label in labels]).ravel()
    if measure == "equality_of_opportunity":
        zero = [0.0] * len(groups)
        rows = [gap(h == y, y == label) if label in desirable else zero for label in labels]
        return np.array(rows).ravel()
    if measure == "demographic_parity":
        return np.array([gap(h == label, everyone) for label in labels]).ravel()
    if measure == "equalized_odds_all":
        if len(labels) == 2:
            return definition("equalized_odds", y, h, s, weight, labels=labels)
        return np.array([gap(h == p, y == label) for p in labels for label in labels]).ravel()
    if measure == "four_fifths_rule":
        chosen = np.isin(h, desirable)
        rates = [probability(chosen, s == r, weight) for r in groups]
        return np.array(
            [a - 0.8 * b for i, a in enumerate(rates) for j, b in enumerate(rates) if i != j]
        )
    raise AssertionError(measure)


def bounded(rate, y, h, s, weight, labels):
    """The rates that `AtLeast` and `AtMost` speak of, straight from their definitions."""
    groups = np.unique(s[s != -1])
    if rate == "accuracy":
        return np.array([probability(h == y, s == r, weight) for r in groups])
    if rate == "recall":
        return np.array(
            [probability(h == k, (y == k) & (s == r), weight) for k in labels for r in groups]
        )
    chosen, others = np.isin(h, labels), ~np.isin(y, labels)
    within = np.ones(len(y), dtype=bool) if rate == "selection_rate" else others
    return np.array([probability(chosen, within & (s == r), weight) for r in groups])
