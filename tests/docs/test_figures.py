"""Figures that the README and the page of limitations state, against results and code."""

import inspect
import re
from pathlib import Path

import pandas as pd

from fairgrad.audit import Audit
from fairgrad.audit.comparisons import DEFAULT_TOLERANCE
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.usefulness import TOLERATED_LOSS

ROOT = Path(__file__).parents[2]


def page(name):
    return " ".join((ROOT / name).read_text(encoding="utf-8").split())


def default(function, name):
    return inspect.signature(function).parameters[name].default


def test_every_figure_on_the_page_of_limitations():
    text = page("docs/understand/limitations.md")
    figures = []

    def stated(pattern):
        (found,) = re.findall(pattern, text)
        figures.extend(re.findall(r"\d[\d.]*\d|\d", found))
        return found

    epsilon = stated(r"The default epsilon of estimators, .*? is ([\d.]+)\.")
    for estimator in (FairGradClassifier, FairDecisionClassifier):
        assert default(estimator, "epsilon") == float(epsilon)
    assert float(stated(r"more than (\d) points of accuracy")) == 100 * TOLERATED_LOSS
    assert float(stated(r"A model with `epsilon=([\d.]+)` often")) == float(epsilon)
    assert float(stated(r"an audit with a tolerance of ([\d.]+)\*\*")) == DEFAULT_TOLERANCE
    front = stated(r"on the Pareto front in (\d+ of \d+) comparisons")
    assert front in page("docs/reproduction.md")
    threshold = stated(r"the threshold the model was trained at\*\*, ([\d.]+),")
    assert default(Audit, "threshold") == float(threshold)
    assert figures == re.findall(r"\d[\d.]*\d|\d", text)  # there are no others


def test_the_readme_and_the_audit_have_one_confidence():
    (points, confidence) = re.findall(
        r"within (\d+) points of the overall rate with (\d+) % confidence", page("README.md")
    )[0]
    assert int(points) == 100 * DEFAULT_TOLERANCE
    assert int(confidence) == 100 * default(Audit, "confidence")


def test_the_readme_counts_the_results_of_the_paper():
    text = page("README.md")
    numbers = re.search(
        r"Of (\d+) results .*? better in (\d+), reproduces (\d+), .*? trade-off in (\d+) and is "
        r"worse in (\d+)",
        text,
    ).groups()
    total, *parts = map(int, numbers)
    assert sum(parts) == total
    (told,) = re.findall(
        r"its (\d+) results of FairGrad that can be compared: (\d+) better, (\d+) reproduced, "
        r"(\d+) trade-off, (\d+) worse",
        page("docs/reproduction.md"),
    )
    assert numbers == told


def test_what_the_readme_says_of_an_installation():
    text, project = page("README.md"), (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (oldest,) = re.findall(r"Python ([\d.]+) or newer", text)
    assert f'requires-python = ">={oldest}"' in project
    supply = pd.read_csv(ROOT / "results" / "supply.csv")
    (packages,) = re.findall(r"\((\d+) packages\)", text)
    assert f"all {packages}" in set(supply.loc[supply["needed for"] == "audits", "distribution"])


def test_verdicts_keep_their_promises():
    found = pd.read_csv(ROOT / "results" / "verdicts.csv").dropna(subset="goal")
    for row in found.to_dict(orient="records"):
        sign, _, goal = str(row["goal"]).rpartition(" ")
        goal = float(goal)
        noise = 2 * (max(goal * (1 - goal), 0) / row["draws"]) ** 0.5
        low = goal - noise if sign != "<=" else 0.0
        high = goal + noise if sign != ">=" else 1.0
        assert low <= row["value"] <= high, row["case"]


def test_the_page_on_audits_states_the_committed_figures():
    rows = pd.read_csv(ROOT / "results" / "audit_rows.csv")
    errors = pd.read_csv(ROOT / "results" / "audit_coverage.csv")
    text = page("docs/results/audit.md")
    low, high = (round(100 * share) for share in (rows["share"].min(), rows["share"].max()))
    assert f"needs {low} % to {high} % of the rows" in text
    fair, unfair = (100 * errors[f"wrongly {name}"].max() for name in ("fair", "unfair"))
    assert f"called fair in at most {fair:.1f} % of the draws" in text
    assert f"a fair one unfair in at most {unfair:.1f} %" in text


def test_the_page_on_overhead_shows_the_committed_times():
    """Its table and its picture; `make pictures` draws it again."""
    times = pd.read_csv(ROOT / "results" / "overhead.csv").query("batch == 512")
    times = times.set_index("network")
    columns = {"ours": "FairGrad", "not_compiled": "without a compiler", "fairgrad_0_2_0": "0.2.0"}
    picture = (ROOT / "docs" / "pictures" / "overhead.svg").read_text(encoding="utf-8")
    for column, name in columns.items():
        for network, value in times[column].items():
            assert f"plain loss: {value:.12g}; network: {network}; version: {name}" in picture
    text = page("docs/results/overhead.md")
    shown = {"linear": "linear", "one hidden layer of 32": "hidden 32"}
    shown |= {"four hidden layers (128-64-64-32)": "hidden 128-64-64-32"}
    shown |= {"ten hidden layers of 64": "hidden 10 x 64"}
    for title, network in shown.items():
        cells = " | ".join(f"{times[column][network]:.2f}" for column in columns)
        assert f"| {title} | {cells} |" in text


def test_every_paragraph_of_a_law_is_marked_as_unchecked():
    text = " ".join((ROOT / "docs" / "compliance.md").read_text(encoding="utf-8").split())
    cited = list(re.finditer(r"§ [\d-]+|\d+ CFR [\d.]+|Article \d+|Annex IV(?= \*)", text))
    assert len(cited) >= 6
    for one in cited:
        assert "*(unchecked)*" in text[one.end() : one.end() + 36], one[0]


def test_partly_known_groups_keep_their_promises():
    coverage = pd.read_csv(ROOT / "results" / "known_coverage.csv")
    assert (coverage["draws"] >= 1000).all()
    is_random = coverage["hidden"] == "at random"
    powered = coverage[is_random & (coverage["way"] == "prediction-powered")]
    assert powered["coverage"].min() >= 0.94
    bound = coverage[coverage["way"] == "sensitivity bound"]
    assert bound["coverage"].min() >= 0.998
    fits = pd.read_csv(ROOT / "results" / "known_training.csv")
    keys = ["table", "model", "measure"]
    full = fits[fits["way"] == "all groups"].groupby(keys)["unfairness"].mean()
    soft = fits[fits["way"] == "probabilities"].groupby([*keys, "known"])["unfairness"].mean()
    is_near = soft.div(full).le(1.3)
    assert f"{is_near.sum()} of {len(is_near)} combinations" in page("docs/known.md")
