"""Hints about a table: leaks, proxies, values that may mean "missing", copies, identifiers.

Nothing is changed by a hint: it names the columns and counts, and the option that would help.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fairgrad.columns import counted
from fairgrad.tables.column import IDENTIFIER, as_numbers, column_kind, value_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

LEAK, PROXY = 0.99, 0.8
"""AUC from which on a hint names features that reveal the target, or a sensitive value."""

MOST_ROWS = 20_000
"""Leaks and proxies are found in a sample of so many rows."""

FEWEST_ROWS = 25
"""Of both kinds, for a hint; fewer are too few."""

COPIES_SHARE = 0.05
"""With fewer identical rows than this share, they are copies; else different people."""

SENTINELS = (-1, -7, -8, -9, -99, -999, -9999, 99, 999, 9999, 99999, 999999)
SENTINEL_DAYS = ("1900-01-01", "1899-12-31", "9999-12-31", "2999-12-31")
SENTINEL_TEXTS = re.compile(
    r"(?i)refused?( to answer)?|don'?t know|dk|unknown|not (available|applicable|known|stated)"
    r"|no (answer|response|data)|prefer not to (say|answer)|missing|iap|inap(plicable)?"
    r"|\?+|-+|\.\.+|tbd|n\.a\."
)
_FEWEST_SENTINELS = 3
_MOST_LISTED = 5


def hints(
    label: pd.Series,
    sensitive: pd.DataFrame,
    features: pd.DataFrame,
    sources: Mapping[str, str],
) -> list[str]:
    """What the reader should know of features that reveal too much.

    Each feature is asked how well it alone tells two kinds of rows apart, by the area under the ROC
    curve (AUC). Numbers are scores themselves. The score of a category is the share of the one kind
    among rows with the same value in the other half of the table, so that a feature gains nothing
    from values that are in few rows.
    """
    rows = np.sort(np.random.default_rng(0).permutation(len(label))[:MOST_ROWS])
    sampled = features.iloc[rows]
    sentences = []
    leaks = _revealing(sampled, _kinds(label.iloc[rows]), LEAK, sources)
    if leaks:
        target = label.name if len(label.cat.categories) == 2 else f"a value of {label.name}"
        known, one = ("it is", "it") if len(leaks) == 1 else ("they are", "them")
        verb = "alone predicts" if len(leaks) == 1 else "each predict"
        sentences.append(
            f"{_listed(leaks)} {verb} {target} almost perfectly: if {known} known only "
            f"afterwards, leave {one} out (--drop)."
        )
    for name in sensitive:
        others = sampled.drop(columns=name, errors="ignore")
        proxies = _revealing(others, _kinds(sensitive[name].iloc[rows]), PROXY, sources)
        if proxies:
            sentences.append(f"{name} can be predicted from {_listed(proxies)}.")
    return sentences


def auc(codes: NDArray[Any], is_one: NDArray[Any]) -> float:
    """How well categories tell two kinds of rows apart; scores come from the other half."""
    half, n = np.random.default_rng(0).permutation(len(codes)) % 2, int(codes.max()) + 1
    place = codes + n * half
    rows = np.bincount(place, minlength=2 * n).reshape(2, n)
    ones = np.bincount(place, weights=is_one, minlength=2 * n).reshape(2, n)
    prior = ones.sum(axis=1, keepdims=True) / rows.sum(axis=1, keepdims=True)
    score = (ones + prior) / (rows + 1)
    return rank_auc(score[1 - half, codes], is_one)


def rank_auc(scores: NDArray[Any], is_one: NDArray[Any]) -> float:
    """The exact AUC of scores, in the better direction; missing ones come first."""
    # As scipy.stats.rankdata, which is slow to import.
    rank = pd.Series(np.where(np.isnan(scores), -np.inf, scores)).rank().to_numpy()
    n_ones = int(is_one.sum())
    pairs = n_ones * (len(is_one) - n_ones)
    above = (float(rank[is_one].sum()) - n_ones * (n_ones + 1) / 2) / pairs
    return max(above, 1 - above)


def _kinds(column: pd.Series) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The known rows, and which of them have a value; of two values the second alone."""
    codes = column.cat.codes.to_numpy()
    known = codes >= 0
    n = len(column.cat.categories)
    is_kind = [codes[known] == code for code in (range(1, 2) if n == 2 else range(n))]
    return [(known, k) for k in is_kind if FEWEST_ROWS <= k.sum() <= len(k) - FEWEST_ROWS]


def _revealing(
    features: pd.DataFrame,
    kinds: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    least: float,
    sources: Mapping[str, str],
) -> dict[str, float]:
    """AUC of the features that tell some kind from the others that well; the highest first."""
    aucs: dict[str, float] = {}
    for name in features if kinds else ():
        column = features[name]
        is_named = isinstance(column.dtype, pd.CategoricalDtype)
        values = column.cat.codes.to_numpy(np.int64) + 1 if is_named else as_numbers(column)
        measure: Any = auc if is_named else rank_auc
        figure = max(measure(values[rows], is_one) for rows, is_one in kinds)
        if figure >= least:
            source = sources.get(str(name), str(name))
            aucs[source] = max(figure, aucs.get(source, 0.0))
    return dict(sorted(aucs.items(), key=lambda pair: -pair[1]))


def _listed(aucs: Mapping[str, float]) -> str:
    shown = [f"{name} (AUC {figure:.2f})" for name, figure in list(aucs.items())[:_MOST_LISTED]]
    shown += [f"{len(aucs) - _MOST_LISTED} more"] if len(aucs) > _MOST_LISTED else []
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def sentinel_hints(frame: pd.DataFrame) -> list[str]:
    """Values that often mean "missing": -99, 9999, 1900-01-01, "Refused"; with their counts."""
    notes = []
    for name in frame:
        counts = sentinels(frame[name])
        if counts:
            listed = " and ".join(f"{text} ({counted(n, 'row')})" for text, n in counts.items())
            quoted = (f'"{text}"' if " " in text else text for text in counts)
            how = " ".join(f"--missing {text}" for text in quoted)
            notes.append(f"{name}: {listed} may mean a missing value; then use {how}.")
    more = len(notes) - _MOST_LISTED
    tail = [f"{more} more columns have values that may mean a missing value."] if more > 0 else []
    return notes[:_MOST_LISTED] + tail


def sentinels(column: pd.Series) -> dict[str, int]:
    """Values of a column that may mean "missing", and in how many rows they are."""
    counts = column.value_counts()
    kind = column_kind(column)
    if kind == "category":
        codes = {str(v): int(n) for v, n in counts.items() if SENTINEL_TEXTS.fullmatch(str(v))}
        return codes if len(codes) < len(counts) else {}
    if kind == "date":
        codes = {str(v)[:10]: int(n) for v, n in counts.items() if str(v)[:10] in SENTINEL_DAYS}
        return {text: n for text, n in codes.items() if n >= _FEWEST_SENTINELS}
    others = counts.index[~counts.index.isin(SENTINELS)].to_numpy(dtype=np.float64)
    if len(others) < _FEWEST_SENTINELS:
        return {}
    low, high = float(others.min()), float(others.max())
    return {
        value_name(float(value)): int(counts[value])
        for value in counts.index[counts.index.isin(SENTINELS)]
        if counts[value] >= _FEWEST_SENTINELS
        and ((value < 0 <= low) or value > high + max(1.0, 0.1 * (high - low)))
    }


def repeated_identifiers(frame: pd.DataFrame) -> list[str]:
    """Columns that look like the identifiers of people who are in several rows."""
    sentences = []
    for name in (name for name in map(str, frame) if IDENTIFIER.fullmatch(name.strip())):
        n, distinct = int(frame[name].notna().sum()), frame[name].nunique()
        if 50 < distinct <= 0.75 * n and n / distinct < 100:
            sentences.append(
                f"{name} has {distinct:,} different values in {counted(n, 'row')}. If it "
                f"identifies people, their rows are not independent: audit with --cluster {name}."
            )
    return sentences


def find_copies(frame: pd.DataFrame) -> tuple[NDArray[np.int64] | None, list[str]]:
    """(n,) the number of the first row that is identical to each row, and a hint.

    The numbers are None if there are no copies, or so many that they are people of their own.
    """
    hashes = pd.util.hash_pandas_object(frame, index=False).to_numpy()
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    copies, n_rows = np.asarray(first[place], dtype=np.int64), len(frame)
    n_copies = int((copies != np.arange(n_rows)).sum())
    if not n_copies or n_copies > n_rows / 2:
        return None, []
    are_copies = n_copies < COPIES_SHARE * n_rows
    verb = "is an exact copy" if n_copies == 1 else "are exact copies"
    kept = " Copies are kept on the same side of the split." if are_copies else ""
    hint = f"{n_copies:,} of {counted(n_rows, 'row')} {verb} of another row.{kept}"
    return copies if are_copies else None, [hint]
