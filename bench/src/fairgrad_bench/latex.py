"""Tables as LaTeX, for papers; they need the packages booktabs and graphicx."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairgrad.bench.layout import HEADINGS, NEEDS_S, SHORT, Cell, Line, Section

if TYPE_CHECKING:
    from collections.abc import Iterable

ARROWS = {"ACCURACY": r" $\uparrow$", "MEAN ABS.": r" $\downarrow$"}
SPECIAL = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
ABBREVIATED = {"not comparable": "n/c", "not in the paper": "--"}


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Example:
        >>> print(escape("rows_1 & 50 %"))
        rows\_1 \& 50 \%
    """
    return "".join(SPECIAL.get(character, character) for character in text)


def document(found: Iterable[Section]) -> str:
    """All tables, to be included in a document."""
    head = "% Needs \\usepackage{booktabs} and \\usepackage{graphicx}.\n"
    return head + "\n".join(section(one) for one in found)


def section(found: Section) -> str:
    """One table, a rule between measures."""
    blocks = [" \\\\\n".join(_row(line) for line in block) for block in found.blocks]
    body = " \\\\\n\\midrule\n".join(blocks)
    caption = (
        f"{escape(found.title)}: means over seeds and standard deviations, ours beside the "
        f"paper's. $\\dagger$ {NEEDS_S}. $\\ddagger$ {SHORT}."
    )
    return "\n".join(
        [
            r"\begin{table}[p]",
            r"\centering\small\setlength\tabcolsep{3pt}",
            f"\\caption{{{caption}}}",
            r"\resizebox{\textwidth}{!}{\begin{tabular}{ll" + "rr" * len(HEADINGS) + "l}",
            r"\toprule",
            f"{_headings()} \\\\",
            r"\midrule",
            f"{body} \\\\",
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table}",
            "",
        ]
    )


def _headings() -> str:
    found = [r"\textbf{METHOD}", r"\textbf{MEASURE}"]
    for name in HEADINGS.values():
        found += [f"\\textbf{{{name}}}{ARROWS.get(name, '')}", "paper"]
    return " & ".join([*found, r"\textbf{VERDICT}"])


def _row(line: Line) -> str:
    marks = r"$^\dagger$" * line.needs_s + r"$^\ddagger$" * line.short
    cells = [f"{escape(line.method)}{marks}", rf"\textbf{{{escape(line.measure)}}}"]
    for ours, paper in zip(line.ours, line.paper, strict=True):
        cells += [_figure(ours), _figure(paper)]
    return " & ".join([*cells, ABBREVIATED.get(line.verdict, line.verdict)])


def _figure(cell: Cell) -> str:
    return "" if cell.value is None else f"${cell.value:.4f} \\pm {cell.deviation:.4f}$"
