"""The README's figures of the paper's experiments are those of the committed results."""

import re
from pathlib import Path

import pandas as pd
import pytest

from fairgrad_bench.comparison import tally

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPARISON = pd.read_csv(ROOT / "results" / "comparison.csv")
PUBLISHED = {
    "FairProjection": ("COMPAS, race", "FairProjection (logistic), KL .05"),
    "FFB": ("Adult, sex", "Diff penalty, weight 0.5, run here"),
    "LinearPost": ("Communities, race", "LinearPost (logistic)"),
    "OxonFair": ("Adult, race in 5 groups", "OxonFair"),
}
"""Cell and row of theirs, by the source that a line of the README begins with."""

KINDS = {
    "linear": ("FairGradClassifier", "FairDecisionClassifier (logistic)"),
    "network": ("network with FairGrad's loss",),
    "boosted trees": ("FairGradLGBMClassifier", "FairDecisionClassifier (LightGBM)"),
}
"""How the names of our rows begin, by the kind of model."""


def table_after(sentence):
    """The table that follows a sentence, as lists of cells by the first cell of their row."""
    after = README[README.index(sentence) :]
    table = re.search(r"\n\n(\|.*?)\n\n", after, re.DOTALL)[1]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()]
    return rows[0][1:], {row[0]: row[1:] for row in rows[2:]}


def pair(row, prefix=""):
    """Accuracy and unfairness as the README prints them."""
    names = ("accuracy", "mean_abs_fairness" if "mean_abs_fairness" in row else "gap")
    return " / ".join(f"{row[prefix + name]:.3f}".lstrip("0") for name in names)


def test_published_tables():
    """Ours is the row of the same kind of model with the nearest gap."""
    columns, rows = table_after("## Results")
    assert columns == ["model", "measure", "their result", "FairGrad"]
    assert len(rows) <= 5
    for title, (model, words, theirs, ours) in rows.items():
        begin, measure = title.split(",")[0], words.replace(" ", "_")
        if begin == "FairGrad's paper":
            keys = {"dataset": "adult", "model": model, "method": "fairgrad", "measure": measure}
            found = COMPARISON[(COMPARISON[list(keys)] == pd.Series(keys)).all(axis=1)].iloc[0]
            assert (theirs, ours) == (pair(found, "paper_"), pair(found))
            continue
        cell, method = PUBLISHED[begin]
        found = pd.read_csv(ROOT / "results" / f"published_{begin.lower()}.csv")
        found = found[(found["measure"] == measure) & (found["cell"] == cell)]
        rival = found[found["method"] == method].iloc[0]
        assert theirs == pair(rival)
        like = found[
            found["method"].str.startswith(KINDS[model]) & (found["inputs"] == rival["inputs"])
        ]
        distance = (like["gap"] - rival["gap"]).abs().round(4)
        nearest = like[distance == distance.min()].to_dict("records")
        assert ours in [pair(row) for row in nearest], title


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (r"Of (\d+) results", lambda found: sum(found.verdicts.values()) - _not_compared(found)),
        (r"better in\s+(\d+)", lambda found: found.verdicts["better"]),
        (r"reproduces\s+(\d+)", lambda found: found.verdicts["reproduced"]),
        (r"trade-off in\s+(\d+)", lambda found: found.verdicts["trade-off"]),
        (r"worse in\s+(\d+)", lambda found: found.verdicts["worse"]),
    ],
)
def test_tally(words, count):
    section = README[README.index("## Results") :]
    assert int(re.search(words, section)[1]) == count(tally(COMPARISON))


def _not_compared(found):
    return found.verdicts["not comparable"] + found.verdicts["not in the paper"]


def test_what_the_pages_say_of_gaussian_data():
    """Of all changes of the protocol only slower multipliers give the paper's three cells."""
    found = pd.read_csv(ROOT / "results" / "gaussian_protocol.csv").set_index("protocol")
    verdicts = found.drop(index="paper").filter(like="verdict")
    agrees = verdicts.isin(["better", "reproduced"]).all(axis=1)
    assert agrees[agrees].index.tolist() == [
        "fairness rate 0.0005",
        "20,000 rows, fairness rate 0.0025",
    ]
    assert found.loc["the groups' names swapped"].equals(found.loc["the paper's protocol"])


def test_what_the_page_says_of_equal_unfairness():
    page = (ROOT / "docs" / "results" / "accuracy.md").read_text(encoding="utf-8")
    every = pd.read_csv(ROOT / "results" / "equal_unfairness_summary.csv")
    titles = {"linear": "linear", "network": "networks", "trees": "boosted trees"}
    ways = {"weights": "weights in training", "decisions": "fair decisions"}
    every = every[every["other"] == "reduction"]
    assert len(every) == 6
    for own in every.to_dict("records"):
        figures = (own["ahead"], own["level"], own["behind"], f"{own['mean_difference']:+.4f}")
        costs = (f"{own['cost']:g}", f"{own['cost_of_other']:g}")
        cells = (titles[own["model"]], ways[own["way"]], *figures, *costs)
        assert f"| {' | '.join(map(str, cells))} |" in page
