"""The data set as the paper's experiments use it, and its description in words."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairgrad.datasets import Dataset, Encoded, Split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fairgrad.splitting import SplitRows
    from fairgrad_bench.datasets.images import Images

#: With fewer rows, a rate is uncertain by 10 percentage points or more (95 %, at worst).
SMALL_CELL = 100
#: A list longer than this is cut off.
_LONG = 12
_WIDTH = 88


@dataclass(frozen=True, eq=False, repr=False)
class PaperDataset(Dataset):
    """A data set made by a schema, which may have images or a fixed split.

    Attributes:
        title: Readable name.
        meanings: What each column says.
        images: The images, where the features are images.
        own_split: The parts, where the data come with a split of their own. The features are then
            not scaled, and seeds change nothing.
    """

    title: str = ""
    meanings: Mapping[str, str] = field(default_factory=dict)
    images: Images | None = None
    own_split: SplitRows | None = None

    def encode(self) -> Encoded:
        """As ``Dataset.encode``; images are not decoded, and data with an own split not scaled."""
        if self.images is not None:
            return self.encoded(self.images)
        if self.own_split is not None:
            return self.encoded(self.frame.to_numpy(), tuple(map(str, self.frame)))
        return super().encode()

    def indices(self, seed: int = 10, *, stratified: bool = False) -> SplitRows:
        """The data's own parts, or those of ``Dataset.indices``."""
        return self.own_split or super().indices(seed, stratified=stratified)

    def split(self, seed: int = 10, *, stratified: bool = False) -> Split:
        """As ``Dataset.split``; images and data with an own split are not standardised."""
        if self.images is None and self.own_split is None:
            return super().split(seed, stratified=stratified)
        encoded = self.encode()
        parts = self.indices(seed, stratified=stratified)
        return Split(*(encoded.rows(rows) for rows in parts))

    def describe(self) -> str:
        """A readable summary: rows, labels, groups, groups too small to trust, terms of use."""
        left_out = [f"{count:,} left out ({reason})" for reason, count in self.left_out.items()]
        terms = [("Note", note) for note in self.notes]
        terms += [("Source", self.source), ("Licence", self.licence), ("Cite", self.citation)]
        lines = [self.title, "; ".join([f"{len(self):,} rows", *left_out]), "", *_labels(self)]
        lines += ["", *_groups(self), "", *_small_cells(self), "", _features(self)]
        lines += [_wrapped(f"{what}: {text}") for what, text in terms if text]
        return "\n".join(lines)


def _labels(data: PaperDataset) -> list[str]:
    counts = np.bincount(data.y, minlength=len(data.label_names))
    shares = [_share(count, len(data)) for count in counts]
    rows = list(zip(data.label_names, counts, shares, strict=True))
    return [f"Label: {_with_meaning(data, str(data.label.name))}", *_aligned(rows)]


def _groups(data: PaperDataset) -> list[str]:
    counts = _cells(data)
    sensitive = "; ".join(_with_meaning(data, str(name)) for name in data.sensitive)
    names = [*data.group_names, "unknown"]
    rows: list[tuple[object, ...]] = [("", "rows", "share", *data.label_names)]
    for name, cells in zip(names, counts, strict=True):
        if cells.sum() or name != "unknown":
            rows.append((name, cells.sum(), _share(cells.sum(), len(data)), *cells))
    return [f"Sensitive: {sensitive}", *_aligned(rows)]


def _cells(data: PaperDataset) -> np.ndarray:
    """Rows of each group (the last: unknown) and label."""
    shape = (len(data.group_names) + 1, len(data.label_names))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (data.s, data.y), 1)
    return counts


def _small_cells(data: PaperDataset) -> list[str]:
    counts = _cells(data)[:-1]
    small = [
        f"{data.group_names[group]}, {data.label.name}={data.label_names[label]}: "
        f"{counts[group, label]:,} rows"
        for group, label in sorted(np.argwhere(counts < SMALL_CELL), key=lambda c: counts[tuple(c)])
    ]
    if not small:
        return [f"Every group has at least {SMALL_CELL} rows of every label."]
    return [
        (
            f"Too small to trust (a rate from fewer than {SMALL_CELL} rows may be off by 10 points "
            "or more):"
        ),
        *_cut_off(f"  {line}" for line in small),
    ]


def _features(data: PaperDataset) -> str:
    if data.images is not None:
        return "Features: images, decoded on demand"
    kinds = [isinstance(data.frame[name].dtype, pd.CategoricalDtype) for name in data.frame]
    numbers, categories = len(kinds) - sum(kinds), sum(kinds)
    return f"Features: {len(kinds)} ({numbers} numbers, {categories} categories)"


def _with_meaning(data: PaperDataset, name: str) -> str:
    meaning = data.meanings.get(name, "")
    return f"{name} ({meaning})" if meaning else name


def _share(count: int, of: int) -> str:
    return f"{100 * count / of:.1f} %"


def _aligned(rows: Sequence[tuple[object, ...]]) -> list[str]:
    """Rows of a table: the first column to the left, the others to the right."""
    texts = [[cell if isinstance(cell, str) else f"{cell:,}" for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = [[first.ljust(widths[0]), *map(str.rjust, rest, widths[1:])] for first, *rest in texts]
    return _cut_off("  " + "  ".join(line) for line in lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(
        text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _cut_off(lines: Iterable[str]) -> list[str]:
    lines = list(lines)
    if len(lines) <= _LONG + 1:
        return lines
    return [*lines[:_LONG], f"  ... and {len(lines) - _LONG} more"]
