"""Formulas as MathML, which browsers draw by themselves: no script, no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def rows_of(formula: str) -> str:
    """A displayed formula as docutils takes it: aligned if it has several lines."""
    if re.search(r"\\\\|&", formula) and r"\begin" not in formula:
        return rf"\begin{{aligned}}{formula}\end{{aligned}}"
    return formula


def visit_inline(writer: Any, node: Any) -> None:
    """A formula in a line."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: Any) -> None:
    """A formula by itself."""
    formula = tex2mathml(rows_of(node.astext().strip()), as_block=True)
    writer.body.append(f'<div class="math-block">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Registers the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
