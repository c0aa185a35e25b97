"""Gaussian toy data: points in the plane whose label and group overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fairgrad_bench.datasets.loading import RawTable, from_schema
from fairgrad_bench.datasets.schema import Attribute, DataFile, FeatureColumn, Schema

if TYPE_CHECKING:
    from fairgrad_bench.datasets.dataset import PaperDataset

#: Clouds of points: label, group, centre, variance, share of the points.
CLOUDS = (
    (-1, -1, (2.0, -2.0), 1.0, 1 / 4),
    (-1, 1, (4.5, -1.5), 1.0, 1 / 4),
    (1, -1, (3.0, -1.0), 1.0, 1 / 8),
    (1, -1, (1.0, 4.0), 0.5, 1 / 8),
    (1, 1, (2.5, 2.5), 1.0, 1 / 4),
)

SCHEMA = Schema(
    name="gaussian",
    title="Gaussian toy data",
    label=Attribute(
        "label",
        "label of the cloud that the point was drawn from",
        {-1: "negative", 1: "positive"},
    ),
    sensitive=(
        Attribute(
            "group",
            "group of the cloud that the point was drawn from",
            {-1: "first", 1: "second"},
        ),
    ),
    features=(FeatureColumn("x1", "first coordinate"), FeatureColumn("x2", "second coordinate")),
    source="generated on demand",
    licence="none needed: generated",
    citation=(
        "Michael Lohaus, Michael Perrot and Ulrike von Luxburg. Too relaxed to be fair. ICML 2020."
    ),
)


def load(rows: int = 100_000, seed: int = 0) -> PaperDataset:
    """Draw the points.

    Args:
        rows: Number of points; the paper draws 50,000 of each label.
        seed: Seed of the generator.
    """
    if rows < len(CLOUDS):
        raise ValueError(f"rows is {rows}; at least {len(CLOUDS)} points are needed")
    return from_schema(SCHEMA, RawTable(draw(rows, seed), DataFile("", ""), "generated"))


def draw(rows: int, seed: int) -> pd.DataFrame:
    """Points of every cloud, one after the other; the last takes the rest of the rounding."""
    generator = np.random.default_rng(seed)
    counts = [int(rows * cloud[-1]) for cloud in CLOUDS]
    counts[-1] = rows - sum(counts[:-1])
    parts = []
    for (label, group, centre, variance, _), count in zip(CLOUDS, counts, strict=True):
        points = generator.normal(centre, np.sqrt(variance), size=(count, 2))
        parts.append(
            pd.DataFrame({"x1": points[:, 0], "x2": points[:, 1], "label": label, "group": group})
        )
    return pd.concat(parts, ignore_index=True)
