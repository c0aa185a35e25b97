"""The order of the gallery: from the first step to the fine points."""

from __future__ import annotations

ORDER = (
    "plot_swap_loss",
    "plot_fit_table",
    "plot_read_audit",
    "plot_frontier",
    "plot_several_attributes",
    "plot_own_measure",
    "plot_negative_weights",
    "plot_small_groups",
    "plot_resume",
    "plot_two_processes",
    "plot_boosting",
    "plot_lightning",
    "plot_transformers",
    "plot_finetune_head",
)


class ReadingOrder:
    """Sorts scripts by `ORDER`; those it does not name come last."""

    def __init__(self, _folder: str) -> None:
        """Takes the folder, as sphinx-gallery wants it."""

    def __call__(self, name: str) -> tuple[int, str]:
        """The key of a file."""
        stem = name.removesuffix(".py")
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)
