"""Labels and predictions written in two ways: which value means which label.

What is plainly the same is matched, and said: 0 and 1 beside False and True, capitals, blanks, and
the apostrophe that `fairgrad predict` puts before a label that a spreadsheet would compute.
Anything else the user says, or it is an error: a wrong guess would be a false audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.columns import FORMULA_STARTS
from fairgrad.tables.values import as_categories, is_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

MOST_SHOWN = 8
TRUTH = {"true": "1", "false": "0"}


def match_labels(
    values: Sequence[str],
    labels: Sequence[str],
    *,
    column: str,
    target: str,
    given: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], str]:
    """Which label each value of a column stands for, and what to say about it.

    Args:
        values: of the column.
        labels: of the target.
        column: its name, for messages.
        target: where the labels come from, for messages.
        given: what the user says: value -> label. A value given as itself is a label of its own.

    Raises:
        ValueError: if a value matches no label; the message shows both sets.

    Example:
        >>> match_labels(["0", "1"], ["False", "True"], column="h", target="y")
        ({'0': 'False', '1': 'True'}, 'h: 0 was read as False and 1 as True, as in y.')
    """
    said = dict(given or {})
    known = set(labels)
    strangers = [label for value, label in said.items() if label not in known and label != value]
    if strangers:
        raise ValueError(
            f"--map gives {strangers[0]!r}, which is not a value of {target} ({_listed(labels)})"
        )
    by_key: dict[str, list[str]] = {}
    for label in labels:
        by_key.setdefault(_key(label), []).append(label)
    found, unmatched = {}, []
    for value in values:
        same = by_key.get(_key(value), [])
        if value in said:
            found[value] = said[value]
        elif value in known:
            found[value] = value
        elif len(same) == 1:
            found[value] = same[0]
        else:
            unmatched.append(value)
    if unmatched:
        raise ValueError(_mismatch(unmatched, values, labels, column, target))
    read = [f"{value} was read as {label}" for value, label in found.items() if value != label]
    if not read:
        return found, ""
    first, *rest = read
    more = [part.replace(" was read as ", " as ") for part in rest]
    joined = first if not more else f"{', '.join([first, *more[:-1]])} and {more[-1]}"
    return found, f"{column}: {joined}, as in {target}."


def _key(value: str) -> str:
    """The same for what is plainly the same."""
    unmarked = value[1:] if value[:1] == "'" and value[1:].startswith(FORMULA_STARTS) else value
    plain = " ".join(unmarked.casefold().split())
    return TRUTH.get(plain, plain)


def _mismatch(
    unmatched: Sequence[str],
    values: Sequence[str],
    labels: Sequence[str],
    column: str,
    target: str,
) -> str:
    pairs = zip(unmatched[::-1], [*labels][::-1][: len(unmatched)], strict=False)
    example = ",".join(f"{value}={label}" for value, label in pairs)
    own = unmatched[0]
    hint = (
        ""
        if len(unmatched) == len(values)
        else (f"; if {own} is a label that {target} happens not to have, --map {own}={own}")
    )
    return (
        f"the values of {column} ({_listed(values)}) do not match those of {target} "
        f"({_listed(labels)}); say which is which, such as --map {example}{hint}"
    )


def _listed(values: Sequence[str]) -> str:
    shown = ", ".join(values[:MOST_SHOWN])
    more = len(values) - MOST_SHOWN
    return shown if more <= 0 else f"{shown} and {more} more"


def matched_column(
    frame: pd.DataFrame,
    name: str,
    labels: Sequence[str],
    *,
    target: str,
    option: str,
    given: Mapping[str, str] | None = None,
) -> tuple[pd.Series, str]:
    """A column of predictions, its values as the labels they stand for; and what to say.

    Raises:
        ValueError: if it looks like a score, or its values match no labels.
    """
    column = as_categories(frame[name])
    values = [str(value) for value in column.cat.categories]
    if is_quantity(frame[name]) and not set(values) <= {*labels, *(given or {})}:
        raise ValueError(_score(frame[name], option))
    found, note = match_labels(values, labels, column=name, target=target, given=given)
    return column.map(found).astype(object), note


def _score(column: pd.Series, option: str) -> str:
    numbers = column.dropna().astype(float)
    example = "0.5" if numbers.between(0, 1).all() else f"{numbers.median():.3g}"
    return (
        f"{option} names {column.name!r}, which looks like a score and not like predictions: "
        f"{numbers.nunique():,} different numbers from {numbers.min():.4g} to {numbers.max():.4g}. "
        f"Give it as --score {str(column.name)!r} with --threshold {example} in place of "
        "--prediction: scores of at least the threshold then predict the desirable value"
    )
