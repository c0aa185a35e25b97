"""Boosted trees for the program: how they are grown, and their files in a model's folder."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from fairgrad.cli.settings import Settings
    from fairgrad.lightgbm import FairGradLGBMClassifier

ENCODER, TREES = "features.skops", "model.txt"
FILES = (ENCODER, TREES, f"{TREES}.fairness.json")
"""What a folder holds in place of the file of a network."""

ROUNDS = 300
MOST_ROWS_IN_A_LEAF, LEAST_ROWS_IN_A_LEAF, LEAVES_OF_A_TABLE = 100, 20, 200


def check_installed() -> None:
    """Refuses early what would fail when training starts.

    Raises:
        ValueError: if LightGBM is not there.
    """
    if find_spec("lightgbm") is None:
        raise ValueError(
            "--model lightgbm needs the package lightgbm: pip install 'fairgrad[lightgbm]'"
        )


def boosted(settings: Settings, n_rows: int, measure: Any, **parameters: Any) -> Any:
    """An unfitted classifier; its trees fit little of the noise, so that fairness carries over.

    Leaves hold at least 100 rows, in small tables a two-hundredth of them, and never below 20.

    Args:
        settings: what was asked.
        n_rows: it will be trained on.
        measure: as the estimator takes it; None for a plain model.
        **parameters: further ones of the estimator.
    """
    from fairgrad.lightgbm import FairGradLGBMClassifier  # noqa: PLC0415 - optional

    in_proportion = max(LEAST_ROWS_IN_A_LEAF, n_rows // LEAVES_OF_A_TABLE)
    return FairGradLGBMClassifier(
        measure,
        n_estimators=settings.epochs or ROUNDS,
        num_leaves=15,
        min_child_samples=min(MOST_ROWS_IN_A_LEAF, in_proportion),
        colsample_bytree=0.3,
        random_state=settings.seed,
        deterministic=True,
        force_row_wise=True,
        n_jobs=0,  # as many threads as OpenMP is told to use
        verbose=-1,
        **parameters,
    )


def save(pipeline: Any, folder: Path) -> None:
    """Writes the encoder, and the trees in LightGBM's own format with the multipliers beside."""
    from fairgrad import lightgbm, persistence  # noqa: PLC0415 - only where it is asked for

    persistence.save(pipeline[0], folder / ENCODER)
    lightgbm.save(pipeline[-1], folder / TREES)


def load(folder: Path) -> tuple[Any, FairGradLGBMClassifier]:
    """The encoder and the classifier of a folder."""
    check_installed()
    from fairgrad import lightgbm, persistence  # noqa: PLC0415 - only where it is asked for

    return persistence.load(folder / ENCODER), lightgbm.load(folder / TREES)
