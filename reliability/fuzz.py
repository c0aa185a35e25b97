"""Odd inputs for everything that takes data: what is not understood is refused by a sentence.

Each target draws its arguments with hypothesis and calls the library, or the program. An input ends
well if it is accepted and the results are finite, or if it is refused by a ValueError or TypeError
that names an argument (the program: exit code 2 and one sentence). All else is a fault: another
exception, a warning of NumPy, NaN in a result, a traceback. Inputs are the same in every run.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression

from fairgrad.audit import Audit
from fairgrad.cli import main
from fairgrad.constraints import Constraints
from fairgrad.frontier import Frontier
from fairgrad.groups import Groups
from fairgrad.measures import MEASURES, On
from fairgrad.sklearn import FairDecisionClassifier, FairGradClassifier
from fairgrad.torch import CrossEntropyLoss

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ROWS = 40


@dataclass
class Tally:
    """How the inputs of one target ended."""

    accepted: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    sentences: Counter[str] = field(default_factory=Counter)

    @property
    def inputs(self) -> int:
        """All of them."""
        return self.accepted + self.refused + len(self.faults)


# Columns -----------------------------------------------------------------------------------------

TEXTS = st.sampled_from(
    ["a", "b", "c", "", " a", "A", "é", "\u05e9", "=1+1", "\x1b[31m", "nan", "None", "1", "x" * 300]
)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([float("nan"), float("inf"), 1e308, 5e-324, -0.0]),
)
SMALL = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3e4, float("nan"), float("inf")])
VALUES = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none(), st.binary(max_size=2), st.just(pd.NaT))


KINDS = ("int", "text", "bool", "series", "list", "tensor")


def usual_column(data: Any, n: int, n_values: int = 2, kind: str = "") -> Any:
    """A column as most people have it."""
    cells = data.draw(st.lists(st.integers(0, n_values - 1), min_size=n, max_size=n))
    codes = np.asarray(cells, dtype=np.int64)
    kind = kind or data.draw(st.sampled_from(KINDS))
    texts = np.asarray(["no", "yes", "maybe"], dtype=object)[codes % 3]
    made: dict[str, Callable[[], Any]] = {
        "int": lambda: codes,
        "text": lambda: texts,
        "bool": lambda: codes.astype(bool),
        "series": lambda: pd.Series(texts, dtype="category"),
        "list": texts.tolist,
        "tensor": lambda: torch.as_tensor(codes.astype(np.int64)),
    }
    return made[kind]()


def odd_column(data: Any, n: int) -> Any:
    """A column as somebody may have it."""
    n = data.draw(st.sampled_from([n, n, n, n, n + 1, max(n - 1, 0), 0]))
    kind = data.draw(
        st.sampled_from(
            ["objects", "floats", "half", "huge", "dates", "bytes", "flat", "deep", "frame", "none",
             "text", "constant", "sparse", "series"]
        )
    )  # fmt: skip
    cells = data.draw(st.lists(VALUES, min_size=n, max_size=n))
    numbers = data.draw(st.lists(SMALL, min_size=n, max_size=n))
    objects = np.empty(n, dtype=object)
    objects[:] = cells
    made: dict[str, Callable[[], Any]] = {
        "objects": lambda: objects,
        "floats": lambda: np.asarray(numbers, dtype=np.float64),
        "half": lambda: np.asarray(numbers, dtype=np.float16),
        "huge": lambda: np.full(n, 2**63, dtype=np.uint64),
        "dates": lambda: pd.Series(pd.date_range("2020-01-01", periods=n)),
        "bytes": lambda: np.asarray([b"a", b"b"] * n)[:n],
        "flat": lambda: np.zeros((n, 1)),
        "deep": lambda: np.zeros((n, 2, 2)),
        "frame": lambda: pd.DataFrame({"a": objects, "b": [0, 1] * (n // 2) + [0] * (n % 2)}),
        "none": lambda: None,
        "text": lambda: "text",
        "constant": lambda: np.ones(n, dtype=np.int64),
        "sparse": lambda: scipy.sparse.csr_matrix(np.ones((n, 1))),
        "series": lambda: pd.Series(cells, dtype=object, index=range(10, 10 + n)),
    }
    return made[kind]()


def column(data: Any, n: int, n_values: int = 2, kind: str = "") -> Any:
    """Usual more often than odd, so that inputs get past the first check."""
    if data.draw(st.integers(0, 9)):
        return usual_column(data, n, n_values, kind)
    return odd_column(data, n)


def features(data: Any, n: int) -> Any:
    """A table of features."""
    usual = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(n, 3))
    kind = data.draw(
        st.sampled_from(["usual"] * 8 + ["frame", "sparse", "half", "nan", "huge", "empty", "odd"])
    )
    made: dict[str, Callable[[], Any]] = {
        "usual": lambda: usual,
        "frame": lambda: pd.DataFrame(usual, columns=list("abc")),
        "sparse": lambda: scipy.sparse.csr_matrix(usual),
        "half": lambda: usual.astype(np.float16),
        "nan": lambda: np.where(usual > 1, np.nan, usual),
        "huge": lambda: usual * 1e300,
        "empty": lambda: usual[:, :0],
        "odd": lambda: odd_column(data, n),
    }
    return made[kind]()


def weights(data: Any, n: int) -> Any:
    """Weights of rows, most often none."""
    kind = data.draw(
        st.sampled_from(["none"] * 12 + ["usual", "usual", "zeros", "negative", "nan", "odd"])
    )
    made: dict[str, Callable[[], Any]] = {
        "none": lambda: None,
        "usual": lambda: np.linspace(0.1, 2, n),
        "zeros": lambda: np.zeros(n),
        "negative": lambda: np.linspace(-1, 1, n),
        "nan": lambda: np.full(n, np.nan),
        "odd": lambda: odd_column(data, n),
    }
    return made[kind]()


def measure(data: Any) -> Any:
    """A measure's name, most often a right one."""
    odd = [None, "", "fairness", 3, ["demographic_parity", "accuracy_parity"], On("s", "x"), []]
    return data.draw(st.sampled_from([*MEASURES] * 8 + odd))


def number(data: Any) -> Any:
    """A bound or a rate, most often a right one."""
    return data.draw(
        st.sampled_from([0, 0, 0.01, 0.1, 0.1, 0.1, 0.5, 1, -1, float("nan"), float("inf"), "x"])
    )


# Targets: each draws its arguments and calls; what it returns has to be finite -------------------


def use_groups(data: Any) -> list[Any]:
    """`Groups` from rows and from counts, and every measure on them."""
    n = data.draw(st.integers(0, MAX_ROWS))
    if data.draw(st.booleans()):
        counts = data.draw(
            st.dictionaries(st.tuples(VALUES, VALUES), st.one_of(NUMBERS, TEXTS), max_size=6)
        )
        groups = Groups.from_counts(counts)
    else:
        groups = Groups.from_data(
            column(data, n), column(data, n, 3), sample_weight=weights(data, n)
        )
    constraints = MEASURES[data.draw(st.sampled_from(sorted(MEASURES)))](groups)
    return [groups.mass, constraints.C]  # c0 is NaN where a group has nobody of a label


def use_constraints(data: Any) -> list[Any]:
    """`Constraints` of a user's own."""
    shape = data.draw(st.sampled_from([(2, 2), (2, 2), (1, 3), (3, 1), (0, 2), (2, 0)]))
    cells = data.draw(st.lists(st.one_of(SMALL, SMALL, NUMBERS), min_size=4, max_size=4))
    flat = np.asarray(cells, dtype=object)
    C = np.resize(flat, shape)
    c0 = np.resize(flat, data.draw(st.sampled_from([shape[0], shape[0], 1, 3])))
    both = [(C, c0), (C.astype(float), c0.astype(float)), (C.tolist(), 0), (None, 0), ("C", "c")]
    given = data.draw(st.sampled_from(both))
    bounds = {"lower": number(data), "upper": number(data)} if data.draw(st.booleans()) else {}
    made = Constraints(given[1], given[0], data.draw(st.booleans()), **bounds)
    return [made.c0, made.C]


def use_audit(data: Any) -> list[Any]:
    """`Audit`, its texts and tables."""
    n = data.draw(st.integers(0, MAX_ROWS))
    kind = data.draw(st.sampled_from(KINDS))
    audit = Audit(
        column(data, n, kind=kind),
        column(data, n, kind=kind),
        column(data, n, 3),
        measures=measure(data),
        tolerance=number(data),
        confidence=data.draw(st.sampled_from([0.95] * 9 + [0.5, 0, 1, "x"])),
        sample_weight=weights(data, n),
        baseline=data.draw(st.sampled_from([None, None, True])) and column(data, n, kind=kind),
        min_group=data.draw(st.sampled_from([30] + [0] * 9 + [5, -1, "x"])),
    )
    audit.to_json()
    audit.to_markdown()
    str(audit)
    return []


def use_losses(data: Any) -> list[Any]:
    """A loss, and a step with it."""
    n = data.draw(st.integers(0, MAX_ROWS))
    y, s = column(data, n, kind="tensor"), column(data, n, 3, "tensor")
    criterion = CrossEntropyLoss(y, s, measure(data), epsilon=number(data))
    width = data.draw(st.sampled_from([2, 2, 2, 1, 3]))
    rows = data.draw(st.sampled_from([n, n, n, 1, n + 1]))
    logits = torch.linspace(-1, 1, rows * width).reshape(rows, width).requires_grad_()
    batch = (y, s) if data.draw(st.integers(0, 2)) else (odd_column(data, n), odd_column(data, n))
    criterion(logits, *batch).backward()
    return [criterion.levels, criterion.cell_weights, logits.grad]


def use_estimator(data: Any) -> list[Any]:
    """`FairGradClassifier`: fit, and predict the same rows."""
    model = FairGradClassifier(
        measure(data),
        epsilon=number(data),
        max_iter=2,
        fairness_rate=0.05,
        compare_plain=False,
        validation_fraction=data.draw(st.sampled_from([0.0, 0.0, 0.3, 1.5])),
        use_sensitive=data.draw(st.booleans()),
        random_state=0,
    )
    return _fitted(model, data)


def use_decision(data: Any) -> list[Any]:
    """`FairDecisionClassifier` around logistic regression."""
    model = FairDecisionClassifier(
        LogisticRegression(max_iter=20), measure(data), number(data), random_state=0
    )
    return _fitted(model, data)


def use_frontier(data: Any) -> list[Any]:
    """A frontier of three models."""
    quick = FairGradClassifier(max_iter=2, fairness_rate=0.05, compare_plain=False, random_state=0)
    n = data.draw(st.integers(0, MAX_ROWS))
    epsilons = data.draw(st.sampled_from([3, 3, [0.0, 0.1], [0.1, -1], [], 0, "x"]))
    frontier = Frontier(quick, measure(data), epsilons, random_state=0)
    X = features(data, n)
    frontier.fit(X, column(data, n), sensitive_features=column(data, n, 3))
    return [frontier.select(max_unfairness=1.0).predict_proba(X)]


def _fitted(model: Any, data: Any) -> list[Any]:
    n = data.draw(st.integers(0, MAX_ROWS))
    X, s = features(data, n), column(data, n, 3)
    model.fit(X, column(data, n, 3), sensitive_features=s, sample_weight=weights(data, n))
    known = {"sensitive_features": s} if getattr(model, "use_sensitive", False) else {}
    proba = model.predict_proba(X, **known)
    if not np.allclose(proba.sum(axis=1), 1):
        raise AssertionError("probabilities do not sum to 1")
    return [proba]


# The program -------------------------------------------------------------------------------------

CELLS = st.one_of(
    TEXTS,
    st.sampled_from(["0", "1", "-1", "3,5", "1e400", "2020-01-31", "NA", "?", "1;2", '"', "\x00"]),
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(str),
)


def table_file(data: Any, folder: Path) -> Path:
    """A table on disk: a target, a sensitive column and up to three others, in some encoding."""
    n = data.draw(st.sampled_from([0, 1, 2, 5, 30, 60, 60, 60, 60]))
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    columns: dict[str, list[str]] = {
        "y": rng.choice(["no", "yes"], n).tolist(),
        "s": rng.choice(["f", "m"], n).tolist(),
        "x": rng.normal(size=n).round(3).astype(str).tolist(),
        "h": rng.choice(["no", "yes"], n).tolist(),
    }
    for name in data.draw(st.lists(st.sampled_from(["y", "s", "x", "z", "h"]), max_size=2)):
        some = data.draw(st.lists(CELLS, min_size=1, max_size=4))
        columns[name] = (some * (n // len(some) + 1))[:n]
    if data.draw(st.integers(0, 5)) == 0:
        columns.pop(data.draw(st.sampled_from(sorted(columns))))
    separator = data.draw(st.sampled_from([",", ",", ";", "\t"]))
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"]))
    text = pd.DataFrame(columns).to_csv(index=data.draw(st.booleans()), sep=separator)
    content = text.encode(encoding, errors="replace")
    cut = data.draw(st.sampled_from([None, None, None, None, len(content) // 2]))
    path = folder / data.draw(st.sampled_from(["t.csv", "t.csv", "t.tsv", "t.txt", "t.parquet"]))
    path.write_bytes(content[:cut])
    return path


def run_program(*arguments: object) -> int:
    """Runs the program in this process: its exit code. A fault is an AssertionError."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code
    said = err.getvalue()
    if code not in {0, 1, 2} or "Traceback" in said or "Unexpected error" in said:
        raise AssertionError(f"exit code {code}: {said[-300:]}")
    if code == 2 and sum(line.startswith("Error: ") for line in said.splitlines()) != 1:
        raise AssertionError(f"not one sentence: {said[-300:]}")
    if "\x1b" in said + out.getvalue():
        raise AssertionError("an escape sequence of a name reached the terminal")
    return int(code)


def use_program_audit(data: Any) -> list[Any]:
    """`fairgrad audit` of a table with predictions."""
    with tempfile.TemporaryDirectory() as folder:
        path = table_file(data, Path(folder))
        named = ["--target", "y", "--prediction", "h", "--sensitive", "s", "--min-group", "0"]
        further = data.draw(st.sampled_from([[], ["--json"], ["--weight", "x"], ["--score", "x"]]))
        if run_program("audit", path, *named, *further) == 2:
            raise ValueError("refused by the program")
    return []


def use_program_fit(data: Any) -> list[Any]:
    """`fairgrad fit`, then `fairgrad predict` of the same table, which has to work."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = table_file(data, Path(folder)), Path(folder) / "model"
        named = ["--target", "y", "--sensitive", "s", "--epochs", "2", "--out", out, "--no-plain"]
        if run_program("fit", path, *named) == 2:
            if out.exists():
                raise AssertionError("refused, and yet a model was written")
            raise ValueError("refused by the program")
        if run_program("predict", out, path, "--out", Path(folder) / "p.csv"):
            raise AssertionError("the model does not predict its own table")
        scores = pd.read_csv(Path(folder) / "p.csv").filter(like="probability")
        return [scores.to_numpy(dtype=np.float64)]


TARGETS: dict[str, tuple[Callable[[Any], list[Any]], float]] = {
    "groups and measures": (use_groups, 0.3),
    "constraints": (use_constraints, 0.1),
    "losses": (use_losses, 0.2),
    "audit": (use_audit, 0.2),
    "estimator": (use_estimator, 0.1),
    "decision": (use_decision, 0.05),
    "frontier": (use_frontier, 0.01),
    "fairgrad audit": (use_program_audit, 0.03),
    "fairgrad fit, predict": (use_program_fit, 0.01),
}
"""What is called, and its share of the inputs: less where a call takes longer."""

ARGUMENTS = re.compile(
    r"\b(X|y|s|c0|C|labels?|sensitive\w*|sample_weight|weights?|measures?|fairness_measure|epsilons?"
    r"|tolerance|confidence|min_group|y_\w+|s_\w+|counts|lower|upper|slack|logits|input|target"
    r"|reduction|validation\w*|baseline|predictions?|estimator|n_\w+)\b"
)
THEIRS = re.compile(r"Found array with|Expected 2D array|^Target -?\d+ is out of bounds")
"""Sentences of the estimator that is wrapped, and of PyTorch's own loss."""
USUAL_WARNINGS = (UserWarning, ConvergenceWarning, FutureWarning)


def fuzz(name: str, inputs: int) -> Tally:
    """Calls one target with so many inputs, the same in every run."""
    tally, target = Tally(), TARGETS[name][0]

    @seed(0)
    @settings(
        max_examples=inputs,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: Any) -> None:
        _judge(target, data, tally)

    with _quiet():
        run()
    return tally


def _judge(target: Callable[[Any], list[Any]], data: Any, tally: Tally) -> None:
    try:
        found = target(data)
    except (ValueError, TypeError, IndexError, NotFittedError) as error:
        said = str(error)
        is_ours = ARGUMENTS.search(said) and not isinstance(error, IndexError)
        if is_ours or THEIRS.search(said) or said == "refused by the program":
            tally.refused += 1
            tally.sentences[re.sub(r"\d+", "N", said)[:90]] += 1
        else:
            tally.faults.append(f"names no argument: {type(error).__name__}: {said[:300]}")
    except UnsatisfiedAssumption:  # hypothesis draws again
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
        tally.faults.append(f"{type(error).__name__}: {str(error)[:300]}")
    else:
        values = [np.asarray(value, dtype=np.float64) for value in found if value is not None]
        if all(np.isfinite(value).all() for value in values):
            tally.accepted += 1
        else:
            tally.faults.append(f"not finite: {values}"[:300])


@contextlib.contextmanager
def _quiet() -> Any:
    """Warnings of this library are for users; those of NumPy and pandas are faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for usual in USUAL_WARNINGS:
            warnings.simplefilter("ignore", usual)
        yield


def fuzz_all(inputs: int) -> dict[str, Tally]:
    """All targets; the inputs are shared out among them, at least 20 each."""
    shares = {name: share for name, (_, share) in TARGETS.items()}
    return {name: fuzz(name, max(20, round(share * inputs))) for name, share in shares.items()}
