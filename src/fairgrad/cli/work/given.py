"""Options as click gives them -> what the rest of the program takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairgrad.cli.people import Columns
from fairgrad.cli.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

UNFAIR = 1
"""The exit code of --fail-on."""


def columns_of(given: Mapping[str, Any]) -> Columns:
    """Which column plays which part."""
    return Columns(
        target=given["target"],
        sensitive=tuple(dict.fromkeys(given["sensitive"])),
        drop=tuple(given.get("drop", ())),
        categorical=tuple(given.get("categorical", ())),
        bins=dict(given.get("bins", ())),
        positive=given.get("positive"),
        use_sensitive=given.get("use_sensitive", False),
    )


def settings_of(given: Mapping[str, Any]) -> Settings:
    """How to train."""
    return Settings(
        measure=given["measure"],
        epsilon=given.get("epsilon"),
        max_unfairness=given.get("max_unfairness"),
        min_accuracy=given.get("min_accuracy"),
        separate=given["separate"],
        hidden=given["hidden"],
        epochs=given["epochs"],
        batch_size=given["batch_size"],
        paper_grid=given.get("grid") == "paper",
        points=given["points"],
        seed=given["seed"],
    )


def tolerance_of(given: Mapping[str, Any]) -> Any:
    """As the audit takes it: the 80 % rule speaks of demographic parity alone."""
    tolerance = given["tolerance"]
    return {"demographic_parity": tolerance} if tolerance == "four_fifths" else tolerance


def exit_code(verdict: str, fail_on: str | None) -> int:
    """1 where the verdict is the one the user asked to fail on."""
    return UNFAIR if fail_on is not None and verdict == fail_on else 0
