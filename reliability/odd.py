"""Odd data, drawn with hypothesis: columns, features, weights, measures, tables on disk.

Usual values are more frequent than odd ones, so that inputs get past the first check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from hypothesis import strategies as st

from fairgrad.measures import MEASURES, AtLeast, AtMost, On

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MAX_ROWS = 40
LABELS = ("no", "yes", "maybe")

TEXTS = st.sampled_from(
    ["a", "b", "c", "", " a", "A", "é", "\u05e9", "=1+1", "\x1b[31m", "nan", "None", "1", "x" * 300,
     "\u202ebad", "a\nb"]
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([float("nan"), float("inf"), 1e308, 5e-324, -0.0]),
)
SMALL = st.sampled_from([0.0, 1.0, -1.0, 0.5, 3e4, float("nan"), float("inf")])
VALUES = st.one_of(TEXTS, NUMBERS, st.booleans(), st.none(), st.binary(max_size=2), st.just(pd.NaT))
CELLS = st.one_of(
    TEXTS,
    st.sampled_from(["0", "1", "-1", "3,5", "1e400", "2020-01-31", "NA", "?", "1;2", '"', "\x00"]),
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(str),
)
ODD_KINDS = (
    "objects", "floats", "half", "huge", "dates", "bytes", "flat", "deep", "frame", "none", "text",
    "constant", "sparse", "series", "complex", "scalar", "mapping",
)  # fmt: skip
KINDS = ("int", "text", "bool", "series", "list", "tensor")


def pick(data: Any, options: Sequence[Any]) -> Any:
    """One of some options, all alike; hypothesis itself prefers some, and mixes few."""
    drawn = data.draw(st.integers(0, 2**24 - 1))
    return options[(drawn * 2654435761 % 2**32) * len(options) >> 32]


def chance(data: Any, share: float) -> bool:
    """True in this share of the inputs."""
    return bool(pick(data, range(1000)) >= 1000 * (1 - share))


def codes(data: Any, n: int, n_values: int = 2) -> Any:
    """(n,) small integers."""
    cells = data.draw(st.lists(st.integers(0, n_values - 1), min_size=n, max_size=n))
    return np.asarray(cells, dtype=np.int64)


def dressed(column: Any, kind: str) -> Any:
    """Small integers as most people have a column."""
    texts = np.asarray(LABELS, dtype=object)[column % 3]
    made: dict[str, Callable[[], Any]] = {
        "int": lambda: column,
        "text": lambda: texts,
        "bool": lambda: column.astype(bool),
        "series": lambda: pd.Series(texts, dtype="category"),
        "list": texts.tolist,
        "tensor": lambda: torch.as_tensor(column),
    }
    return made[kind]()


def odd_column(data: Any, n: int) -> Any:
    """A column as somebody may have it."""
    n = pick(data, [n, n, n, n, n + 1, max(n - 1, 0), 0])
    kind = pick(data, ODD_KINDS)
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
        "complex": lambda: np.full(n, 1j),
        "scalar": lambda: 3,
        "mapping": lambda: {"a": objects},
    }
    return made[kind]()


def column(data: Any, n: int, n_values: int = 2, kind: str = "") -> Any:
    """A column, most often an ordinary one."""
    if not chance(data, 0.06):
        return dressed(codes(data, n, n_values), kind or pick(data, KINDS))
    return odd_column(data, n)


def _objects(data: Any, n: int) -> Any:
    made = np.empty(n, dtype=object)
    made[:] = data.draw(st.lists(st.one_of(NUMBERS, VALUES), min_size=n, max_size=n))
    return made


def features(data: Any, n: int) -> Any:
    """A table of features."""
    usual = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(n, 3))
    kind = pick(
        data,
        ["usual"] * 20
        + ["frame", "sparse", "half", "nan", "huge", "empty", "odd", "objects", "names"],
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
        "objects": lambda: np.stack([_objects(data, n), _objects(data, n)], axis=1),
        "names": lambda: pd.DataFrame(usual, columns=["a", "a", 1]),
    }
    return made[kind]()


def weights(data: Any, n: int) -> Any:
    """Weights of rows, most often none."""
    kind = pick(data, ["none"] * 16 + ["usual", "usual", "zeros", "negative", "nan", "some", "odd"])
    made: dict[str, Callable[[], Any]] = {
        "none": lambda: None,
        "usual": lambda: np.linspace(0.1, 2, n),
        "zeros": lambda: np.zeros(n),
        "negative": lambda: np.linspace(-1, 1, n),
        "nan": lambda: np.full(n, np.nan),
        "some": lambda: np.arange(n) % 2,
        "odd": lambda: odd_column(data, n),
    }
    return made[kind]()


def bound(data: Any) -> Any:
    """A bound on a rate, most often one that there is."""
    kind = pick(data, [AtLeast, AtMost])
    rates = ["accuracy", "recall", "selection_rate", "false_positive_rate", "precision", None]
    labels = pick(data, [None, None, 1, "yes", [0, 1], "never", []])
    return kind(pick(data, rates), number(data), labels)


def measure(data: Any) -> Any:
    """A measure, most often its name."""
    if not chance(data, 0.12):
        return pick(data, sorted(MEASURES))
    if data.draw(st.booleans()):
        return bound(data)
    if chance(data, 0.05):
        return On((), "accuracy_parity")
    odd = [
        None, "", "fairness", 3, ["demographic_parity", "accuracy_parity"], [], "recall>=0.2",
        "accuracy<=x", "precision>=.5", On("s", "x"), On("sex", "accuracy_parity", within="age"),
        On(("sex", "age"), "demographic_parity"), On("sex", "equalized_odds", within="sex"),
        On("age", "recall>=0.5", epsilon=-1), lambda groups: groups,
    ]  # fmt: skip
    return pick(data, odd)


def people(data: Any, n: int) -> Any:
    """Sensitive values: one column, or a table with the attributes sex and age."""
    if not chance(data, 0.25):
        return column(data, n, 3)
    return {"sex": column(data, n), "age": column(data, n, 3)}


def number(data: Any) -> Any:
    """A bound or a rate, most often a valid one."""
    odd = [-1, float("nan"), float("inf"), "x", None, [0.1, 0.2], True]
    return pick(data, odd if chance(data, 0.1) else [0, 0.01, 0.1, 0.5, 1, 0.2])


def costs(data: Any) -> Any:
    """What mistakes cost, most often nothing special."""
    odd = [
        [[0, 1], [5, 0]], [[0, 1], [2, 0]], [[0, -1], [1, 0]], [[0, 1]], "x", np.eye(3), 3,
        [[0, np.nan], [1, 0]], [[0, np.inf], [1, 0]], np.zeros((2, 2)), [[1, 0], [0, 1]],
    ]  # fmt: skip
    return pick(data, odd) if chance(data, 0.15) else None


def table_file(data: Any, folder: Path) -> Path:
    """A table on disk: a target, a sensitive column and up to three others, in some encoding."""
    n = pick(data, [60] * 12 + [0, 1, 2, 5, 30])
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
    if chance(data, 0.1):
        columns.pop(pick(data, sorted(columns)))
    if chance(data, 0.1):
        pd.DataFrame(columns).to_parquet(folder / "t.parquet")
        return folder / "t.parquet"
    separator = pick(data, [",", ",", ";", "\t"])
    encoding = pick(data, ["utf-8"] * 5 + ["utf-8-sig", "utf-16", "cp1252"])
    text = pd.DataFrame(columns).to_csv(index=data.draw(st.booleans()), sep=separator)
    content = text.encode(encoding, errors="replace")
    cut = len(content) // 2 if chance(data, 0.05) else None
    path = folder / pick(data, ["t.csv"] * 9 + ["t.tsv", "t.txt", "t.parquet"])
    path.write_bytes(content[:cut])
    return path
