"""The gallery's index: in the order of learning, and with a text for each picture."""

from __future__ import annotations

import re
from typing import Any

THUMBNAIL = re.compile(r'(_thumb\.svg\n +:alt:)\n(.*?thumbnail-title">)([^<]+)<', re.DOTALL)

ORDER = (
    "plot_swap_loss",
    "plot_fit_table",
    "plot_decision",
    "plot_read_audit",
    "plot_frontier",
    "plot_several_attributes",
    "plot_conditional",
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
    """Sorts scripts by `ORDER`; other scripts come last."""

    def __init__(self, _folder: str) -> None:
        """Takes the folder that sphinx-gallery passes."""

    def __call__(self, name: str) -> tuple[int, str]:
        """The key of a file."""
        stem = name.removesuffix(".py")
        return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)


def with_words(text: str) -> str:
    r"""The index with a text for every small picture.

    Example:
        >>> print(with_words('x_thumb.svg\n  :alt:\n<div class="thumbnail-title">Boosting</div>'))
        x_thumb.svg
          :alt: A chart from: Boosting
        <div class="thumbnail-title">Boosting</div>
    """
    return THUMBNAIL.sub(r"\1 A chart from: \3\n\2\3<", text)


def name_pictures(_app: Any, docname: str, source: list[str]) -> None:
    """Changes the index as it is read."""
    if docname == "auto_gallery/index":
        source[0] = with_words(source[0])


def setup(app: Any) -> dict[str, Any]:
    """Registers the reader."""
    app.connect("source-read", name_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
