"""The library, called with odd data. What a target returns has to be finite.

Where all that was drawn is usual, the figures are also compared with their definitions, computed
here directly from the rows: a wrong result without a warning is the worst fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from fairgrad.audit import Audit, ImpactTable
from fairgrad.constraints import Constraints
from fairgrad.evaluate import fairness_levels
from fairgrad.frontier import Frontier
from fairgrad.groups import Groups
from fairgrad.lightgbm import FairGradLGBMClassifier
from fairgrad.measures import constraints_of
from fairgrad.report import Report
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.torch import BCEWithLogitsLoss, CrossEntropyLoss, MultiMarginLoss, NLLLoss
from reliability import odd

if TYPE_CHECKING:
    from collections.abc import Iterable

CLOSE = 1e-6
GAPS = {
    "accuracy_parity": (lambda y, h, _: h == y, lambda y, _: np.ones(len(y), bool), (None,)),
    "equalized_odds": (lambda y, h, _: h == y, lambda y, label: y == label, None),
    "demographic_parity": (
        lambda _, h, label: h == label,
        lambda y, _: np.ones(len(y), bool),
        None,
    ),
}
"""Of some measures: the event, the rows it is counted in, and the labels gone through."""


def direct_levels(measure: str, y: Any, h: Any, s: Any) -> list[float]:
    """The levels of a measure, straight from its definition; those not defined are left out."""
    event, within, labels = GAPS[measure]
    found = []
    for label in np.unique(y) if labels is None else labels:
        rows, hit = within(y, label), event(y, h, label)
        for group in np.unique(s):
            own = rows & (s == group)
            if own.any():
                found.append(hit[own].mean() - hit[rows].mean())
    return found


def check_levels(what: str, levels: Iterable[float], measure: str, y: Any, h: Any, s: Any) -> None:
    """Compares levels with their definition, in whatever order."""
    ours = np.sort([level for level in levels if np.isfinite(level)])
    truth = np.sort(direct_levels(measure, y, h, s))
    if ours.shape != truth.shape or not np.allclose(ours, truth, atol=CLOSE):
        raise AssertionError(f"{what}: {measure} is {ours.tolist()}, in truth {truth.tolist()}")


# Rows and measures -------------------------------------------------------------------------------


def use_groups(data: Any) -> list[Any]:
    """`Groups` from rows and from counts, and every measure on them."""
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    if data.draw(st.booleans()):
        counts = data.draw(
            st.dictionaries(
                st.tuples(odd.VALUES, odd.VALUES), st.one_of(odd.NUMBERS, odd.TEXTS), max_size=6
            )
        )
        groups = Groups.from_counts(counts)
    else:
        groups = Groups.from_data(
            odd.column(data, n), odd.people(data, n), sample_weight=odd.weights(data, n)
        )
    constraints = constraints_of(odd.measure(data), groups, epsilon=odd.number(data))
    return [groups.mass, constraints.C]  # c0 is NaN where a group has nobody of a label


def use_levels(data: Any) -> list[Any]:
    """`fairness_levels` of predictions; compared with the definition where all is usual."""
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    measure, kind = odd.measure(data), odd.pick(data, odd.KINDS)
    if data.draw(st.booleans()):
        fairness_levels(
            odd.column(data, n, 3, kind),
            odd.column(data, n, 3, kind),
            odd.people(data, n),
            measure,
            sample_weight=odd.weights(data, n),
        )
        return []
    y, h, s = (odd.codes(data, n, 2) for _ in range(3))
    own, group = odd.dressed(y, kind), odd.pick(data, odd.KINDS)
    found = fairness_levels(own, odd.dressed(h, kind), odd.dressed(s, group), measure)
    if isinstance(measure, str) and measure in GAPS:
        check_levels("fairness_levels", found.values, measure, y, h, s)
    return []


def use_constraints(data: Any) -> list[Any]:
    """`Constraints` of a user's own."""
    shape = odd.pick(data, [(2, 2), (2, 2), (1, 3), (3, 1), (0, 2), (2, 0)])
    cells = data.draw(
        st.lists(st.one_of(odd.SMALL, odd.SMALL, odd.NUMBERS), min_size=4, max_size=4)
    )
    flat = np.asarray(cells, dtype=object)
    C = np.resize(flat, shape)
    c0 = np.resize(flat, odd.pick(data, [shape[0], shape[0], 1, 3]))
    both = [(C, c0), (C.astype(float), c0.astype(float)), (C.tolist(), 0), (None, 0), ("C", "c")]
    passed = odd.pick(data, both)
    bounds = {}
    if data.draw(st.booleans()):
        bounds = {"lower": odd.number(data), "upper": odd.number(data)}
    made = Constraints(passed[1], passed[0], data.draw(st.booleans()), **bounds)
    return [made.c0, made.C]


# Audits ------------------------------------------------------------------------------------------


def _scores(data: Any, n: int) -> Any:
    """Scores, most often none."""
    usual = np.linspace(0, 1, n)
    kinds = [None] * 20 + [usual, usual, usual.tolist(), np.stack([1 - usual, usual], 1), usual[1:]]
    kinds += [np.full(n, np.nan), -usual, usual.astype(np.float16), ["a"] * n, np.zeros((n, 5))]
    return odd.pick(data, kinds)


def use_audit(data: Any) -> list[Any]:
    """`Audit` of rows: its texts, tables and page, and its levels against the definitions."""
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    kind = odd.pick(data, odd.KINDS)
    options = {
        "tolerance": odd.number(data),
        "confidence": odd.pick(data, [0.95] * 30 + [0.5, 0, 1, "x"]),
        "min_group": odd.pick(data, [30, 30] + [0] * 20 + [5, -1, "x"]),
    }
    if data.draw(st.booleans()):
        baseline = odd.pick(data, [None, None, True])
        audit = Audit(
            odd.pick(data, [True] * 5 + [None]) and odd.column(data, n, kind=kind),
            odd.column(data, n, kind=kind),
            odd.people(data, n),
            measures=odd.measure(data),
            others=odd.pick(data, [(), (), ["accuracy_parity"], "x", 3]),
            sample_weight=odd.weights(data, n),
            baseline=baseline and odd.column(data, n, kind=kind),
            y_score=_scores(data, n),
            y_desirable=odd.pick(data, [None] * 5 + [1, "yes", [0, 1], "never"]),
            **options,
        )
    else:
        y, h, s = (odd.codes(data, n) for _ in range(3))
        audit = Audit(*(odd.dressed(own, kind) for own in (y, h, s)), **options)
        levels = audit.to_frame("levels")
        if options["min_group"] == 0:
            for measure in GAPS:
                own = levels.loc[levels["measure"] == measure, "level"]
                check_levels("Audit", own, measure, y, h, s)
    audit.to_json()
    audit.to_markdown()
    str(audit)
    audit.summary()
    if odd.chance(data, 0.01):
        Report(audit).html()
    return []


def use_counts(data: Any) -> list[Any]:
    """`Audit.from_counts`, and that it is the audit of the rows."""
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    usual = {"y": odd.codes(data, n), "h": odd.codes(data, n), "s": odd.codes(data, n, 3)}
    frame = pd.DataFrame({**usual, "count": odd.pick(data, [1, 1, 7, 10**9])})
    names: dict[str, Any] = {"target": "y", "prediction": "h", "sensitive_features": "s"}
    if data.draw(st.booleans()):
        strange = odd.pick(data, ["y", "h", "s", "count"])
        cells = data.draw(st.lists(odd.VALUES, min_size=n, max_size=n))
        frame[strange] = pd.Series(cells, dtype=object, index=frame.index)
        if odd.chance(data, 0.2):
            frame = frame.drop(columns=strange)
        name = odd.pick(data, sorted(names))
        names[name] = odd.pick(data, [names[name]] * 4 + [None, "z", 3, ["s", "y"]])
    options = {"measures": odd.measure(data), "min_group": 0}
    audit = Audit.from_counts(frame, **names, **options)
    repeated = frame.loc[frame.index.repeat(frame["count"].clip(0, 7).astype(int))]
    if (frame["count"] <= 7).all() and all(isinstance(name, str) for name in names.values()):
        rows = Audit(
            *(repeated[names[name]] for name in ("target", "prediction")),
            repeated[[names["sensitive_features"]]],
            **options,
        )
        if [f.verdict for f in rows.findings] != [f.verdict for f in audit.findings]:
            raise AssertionError("Audit.from_counts: another verdict than that of the rows")
    audit.to_json()
    return []


def use_impact(data: Any) -> list[Any]:
    """`ImpactTable` of decisions and of scores."""
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    options = {
        "min_group": odd.pick(data, [0.02] * 9 + [0, 5, -1, "x"]),
        "confidence": odd.pick(data, [0.95] * 15 + [1, "x"]),
    }
    if data.draw(st.booleans()):
        table = ImpactTable.from_scores(
            odd.pick(data, [np.linspace(0, 1, n)] * 3 + [_scores(data, n)]),
            odd.people(data, n),
            **options,
        )
    else:
        desirable = odd.pick(data, [None] * 5 + [1, "yes", "never"])
        table = ImpactTable.from_decisions(
            odd.column(data, n), odd.people(data, n), y_desirable=desirable, **options
        )
    table.to_csv()
    table.summary()
    rates = table.frame["rate"].to_numpy(dtype=np.float64)
    return [rates[table.frame["number"].to_numpy() > 0]]


# Models ------------------------------------------------------------------------------------------


def use_losses(data: Any) -> list[Any]:
    """A loss, and a step with it."""
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    y, s = odd.column(data, n, kind="tensor"), odd.column(data, n, 3, "tensor")
    kind = odd.pick(data, [CrossEntropyLoss] * 3 + [NLLLoss, MultiMarginLoss])
    flat = odd.chance(data, 0.2)
    kind = BCEWithLogitsLoss if flat else kind
    criterion = kind(y, s, odd.measure(data), epsilon=odd.number(data), cost_matrix=odd.costs(data))
    width = odd.pick(data, [2, 2, 2, 1, 3])
    rows = odd.pick(data, [n, n, n, 1, n + 1])
    shape = (rows,) if flat else (rows, width)
    logits = torch.linspace(-1, 1, rows * (1 if flat else width)).reshape(shape).requires_grad_()
    usual = (y.float(), s) if flat and isinstance(y, torch.Tensor) else (y, s)
    drawn = (odd.odd_column(data, n), odd.odd_column(data, n))
    batch = drawn if odd.chance(data, 0.2) else usual
    criterion(logits, *batch).backward()
    return [criterion.levels, criterion.cell_weights, logits.grad]


def use_estimator(data: Any) -> list[Any]:
    """`FairGradClassifier`: fit, and predict the same rows."""
    model = FairGradClassifier(
        odd.measure(data),
        epsilon=odd.number(data),
        max_iter=2,
        fairness_rate=0.05,
        validation_fraction=odd.pick(data, [0.0] * 8 + [0.3, 1.5]),
        use_sensitive=data.draw(st.booleans()),
        cost_matrix=odd.costs(data),
        random_state=0,
    )
    return _fitted(model, data)


def use_decision(data: Any) -> list[Any]:
    """`FairDecisionClassifier` around logistic regression."""
    model = FairDecisionClassifier(
        LogisticRegression(max_iter=20),
        odd.measure(data),
        odd.number(data),
        n_folds=odd.pick(data, [2, 3, 3, 0, "x"]),
        use_sensitive=data.draw(st.booleans()),
        cost_matrix=odd.costs(data),
        random_state=0,
    )
    return _fitted(model, data)


def use_trees(data: Any) -> list[Any]:
    """`FairGradLGBMClassifier`, of two trees."""
    model = FairGradLGBMClassifier(
        odd.measure(data),
        epsilon=odd.number(data),
        use_sensitive=data.draw(st.booleans()),
        cost_matrix=odd.costs(data),
        n_estimators=2,
        min_child_samples=2,
        n_jobs=1,
        verbose=-1,
        random_state=0,
    )
    return _fitted(model, data)


def use_frontier(data: Any) -> list[Any]:
    """A frontier of three models."""
    quick = FairGradClassifier(max_iter=2, fairness_rate=0.05, random_state=0)
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    epsilons = odd.pick(data, [3, 3, [0.0, 0.1], [0.1, -1], [], 0, "x"])
    frontier = Frontier(quick, odd.measure(data), epsilons, random_state=0)
    X = odd.features(data, n)
    frontier.fit(X, odd.column(data, n), sensitive_features=odd.people(data, n))
    return [frontier.select(max_unfairness=1.0).predict_proba(X)]


def _fitted(model: Any, data: Any) -> list[Any]:
    n = data.draw(st.integers(0, odd.MAX_ROWS))
    X = odd.features(data, n)
    if data.draw(st.booleans()):
        y, s = odd.column(data, n, 3), odd.people(data, n)
        model.fit(X, y, sensitive_features=s, sample_weight=odd.weights(data, n))
        truth = None
    else:
        truth = odd.codes(data, n, odd.pick(data, [2, 3])), odd.codes(data, n)
        y, s = odd.dressed(truth[0], odd.pick(data, ("int", "text"))), truth[1]
        model.fit(X, y, sensitive_features=s)
    known = {"sensitive_features": s} if getattr(model, "use_sensitive", False) else {}
    proba = model.predict_proba(X, **known)
    if not np.allclose(proba.sum(axis=1), 1):
        raise AssertionError("probabilities do not sum to 1")
    predicted = model.predict(X, **known)
    # Fair decisions may differ from the most probable class: that is what makes them fair.
    decides = isinstance(model, FairDecisionClassifier)
    if not decides and not np.array_equal(predicted, model.classes_[proba.argmax(axis=1)]):
        raise AssertionError("predictions are not the most probable classes")
    measure = model.fairness_measure
    if truth is not None and isinstance(measure, str) and measure in GAPS:
        h = np.searchsorted(model.classes_, predicted)
        _, own = np.unique(truth[0], return_inverse=True)
        if isinstance(y, np.ndarray) and y.dtype == object:
            own = np.searchsorted(model.classes_, y)
        found = fairness_levels(y, predicted, s, measure).values
        check_levels(type(model).__name__, found, measure, own, h, s)
    return [proba]
