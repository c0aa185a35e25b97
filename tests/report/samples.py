"""Made-up audits, frontiers and histories, for tests of the page as text and in a browser."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from fairgrad.audit import Audit, ImpactTable, Monitor
from fairgrad.report import FrontierData, Report


def make_audit(names=("F", "M"), column="sex", n=800, baseline=True):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    group = rng.integers(len(names), size=n)
    wrong = rng.random((2, n)) < 0.15 + 0.1 * (group % 2)
    after, before = np.where(wrong, 1 - y, y)
    s = pd.Series(np.array(names, dtype=object)[group], name=column)
    return Audit(y, after, s, baseline=before if baseline else None)


def scored_audit(n_groups=2, n=1200, n_labels=2):
    """With scores and a search; groups of very different sizes."""
    rng = np.random.default_rng(0)
    share = np.array([0.6, 0.4]) if n_groups == 2 else rng.dirichlet(np.ones(n_groups))
    group = rng.choice(n_groups, size=n, p=share)
    names = ["F", "M"] if n_groups == 2 else [f"job {i}" for i in range(n_groups)]
    s = pd.Series(np.array(names, dtype=object)[group], name="sex" if n_groups == 2 else "job")
    if n_labels == 2:
        score = 1 / (1 + np.exp(-rng.normal(0.5 * (group % 2), 1, n)))
        y = np.where(rng.random(n) < score, "yes", "no")
        pred = np.where(score >= 0.5, "yes", "no")
    else:
        score = rng.dirichlet(np.ones(n_labels), n)
        y = np.array([rng.choice(n_labels, p=row) for row in score])
        pred = score.argmax(axis=1)
    audit = Audit(y, pred, s, y_score=score)
    audit.worst_subgroups({"town": rng.choice(["x", "y", "z"], n)}, k=2)
    return audit


def make_frontier(groups=("F", "M"), n=6):
    steps = np.arange(n)
    points = pd.DataFrame(
        {
            "epsilon": steps / 50,
            "accuracy": 0.8 + 0.01 * np.sqrt(steps),
            "unfairness": 0.01 + 0.01 * steps,
            "on_frontier": steps != 3,
        }
    )
    rates = pd.DataFrame(
        [
            {"point": i, "group": group, "rate": rate, "value": 0.5 + 0.05 * i - 0.1 * j}
            for i in steps
            for j, group in enumerate(groups)
            for rate in ("accuracy", "selection_rate")
        ]
    )
    return FrontierData(points, rates, chosen=2, measure="equalized odds")


def make_history(names=("F", "M"), epochs=5):
    """What a chart reads of a fitted model."""
    values = 0.4 * np.outer(np.arange(1, epochs + 1), [1, -1])
    history = {"accuracy": np.zeros(epochs), "levels": values, "multipliers": values}
    return SimpleNamespace(
        fit=None, classes_=[0, 1], groups_=(), constraint_names_=names, history_=history
    )


HOSTILE = [
    "<script>window.hacked = 1</script>",
    '</script><img src=x onerror="window.hacked = 1">',
    "quotes \" ' ` and {{ 7 * 7 }} ${1}",
    "emoji 👩🏽‍🔬",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "x" * 300,
]


def hostile_report(column="<b>sex</b>"):
    """Hostile text wherever a user's text can come in."""
    return Report(
        make_audit(names=HOSTILE, column=column),
        frontier=make_frontier(groups=HOSTILE[:2]),
        history=make_history(HOSTILE[:2]),
        title=HOSTILE[0],
        asked={HOSTILE[0]: HOSTILE[1]},
    )


def two_systems():
    """Labels, sex, decisions of a fair model, and of a plain one that selects men more often."""
    rng = np.random.default_rng(0)
    sex = pd.Series(rng.choice(["Female", "Male"], 6000), name="sex")
    y = np.where(rng.random(6000) < 0.4, "yes", "no")
    plain = np.where(rng.random(6000) < 0.9, y, "no")
    plain[(sex == "Female") & (rng.random(6000) < 0.4)] = "no"
    fair = np.where(rng.random(6000) < np.where(sex == "Male", 0.82, 0.80), y, "no")
    return y, sex, fair, plain


def comparison():
    """A fair model beside a plain one."""
    y, sex, fair, plain = two_systems()
    return Audit(y, plain, sex).compare(fair, names=("the old system", "the new system"))


def impact_table():
    """Of the plain model's decisions."""
    _, sex, _, plain = two_systems()
    return ImpactTable.from_decisions(plain, sex)


def monitor():
    """The plain model, month after month."""
    y, sex, _, plain = two_systems()
    found = Monitor("demographic_parity")
    for month in range(1, 4):
        rows = slice(2000 * (month - 1), 2000 * month)
        found.update(y[rows], plain[rows], sex[rows], batch=f"2026-0{month}-01")
    return found


def full_report():
    """Every section."""
    return Report(
        make_audit(), frontier=make_frontier(), history=make_history(), asked={"Data": "made up"}
    )
