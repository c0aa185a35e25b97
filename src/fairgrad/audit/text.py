"""Sections as text: on the terminal, and as Markdown for a model card.

Tables of the terminal fit whatever they are printed on and never cut a name. Where there is room, a
table is a table. Where there is less, its texts wrap; where there is too little for that, each of
its rows becomes a record, one figure per line.
"""

from __future__ import annotations

import io
import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairgrad.audit.verdicts import FAIR, UNDECIDED, UNFAIR
from fairgrad.audit.words import SIGNS, n_of, printable
from fairgrad.files import write_whole
from fairgrad.signs import encodable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from rich.console import ConsoleOptions, RenderResult

    from fairgrad.audit.audit import Audit
    from fairgrad.audit.sections import Block

MOST_ROWS = 40
"""Rows of a table on the terminal and on a card; the JSON and the report have all."""
STYLES = {FAIR: "green", UNFAIR: "bold red", UNDECIDED: "bold yellow"}
Cell = str | Text
LEAST_TEXT = 16
"""Narrower than this a column of texts is hard to read: the rows become records."""
GAP = 2


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A table of texts and figures for rich consoles.

    Attributes:
        title: above it.
        heads: names of the columns.
        rows: cells; a row of one cell alone is a heading over the rows below it.
        texts: how many of the first columns are texts, which may wrap; the others are figures,
            which never do.
        rest: a line below, such as how many rows were left out.
        last: how many of the rows stand apart at the end, such as the row of everyone.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    texts: int = 1
    rest: str = ""
    last: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws it as wide as the console is."""
        heads = [_heading(head, console) for head in self.heads]
        rows = [[_shown(cell, console) for cell in row] for row in self.rows]
        widths = self._text_widths(heads, rows, options.max_width)
        yield Text("")
        yield Text(_shown(self.title, console).plain, style="bold")
        if widths is None:
            yield from self._records(heads, rows)
        else:
            yield Padding(self._table(heads, rows, widths), (0, 0, 0, 1), expand=False)
        if self.rest:
            yield Text(_shown(self.rest, console).plain, style="dim")

    def _text_widths(
        self, heads: list[Text], rows: list[list[Text]], room: int
    ) -> list[int] | None:
        """How wide the columns of texts may be; None if there is no room for a table."""
        full = [row for row in rows if len(row) == len(heads)]
        natural = [
            max(cell_len(line) for cell in column for line in cell.plain.splitlines() or [""])
            for column in zip(heads, *full, strict=True)
        ]
        room -= sum(natural[self.texts :]) + GAP * (len(heads) - 1) + 1
        own = natural[: self.texts]
        widths = list(own)
        while sum(widths) > room:  # the widest gives way first
            widest = widths.index(max(widths))
            if widths[widest] <= LEAST_TEXT:
                return None
            widths[widest] -= 1
        return widths

    def _table(self, heads: list[Text], rows: list[list[Text]], widths: list[int]) -> Table:
        table = Table(
            box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False
        )
        for place, head in enumerate(heads):
            if place < self.texts:
                table.add_column(head, width=widths[place], overflow="fold")
            else:
                column = [row[place].plain for row in rows if len(row) == len(heads)]
                is_word = not any(cell[:1].isdigit() or cell[:1] in {"+", "-"} for cell in column)
                table.add_column(head, justify="left" if is_word else "right", no_wrap=True)
        for number, row in enumerate(rows):
            if self.last and number == len(rows) - self.last:
                table.add_section()
            table.add_row(*row)
        return table

    def _records(self, heads: list[Text], rows: list[list[Text]]) -> RenderResult:
        indent = 0
        heads = [Text(head.plain.replace("\n", " ")) for head in heads]
        wide = max(cell_len(head.plain) for head in heads[self.texts :])
        for row in rows:
            if len(row) < len(heads):
                yield Padding(Text(row[0].plain.strip(), style="bold"), (0, 0, 0, 1), expand=False)
                indent = 2
                continue
            name = ", ".join(cell.plain.strip() for cell in row[: self.texts] if cell.plain.strip())
            yield Padding(Text(name, style="bold"), (0, 0, 0, 1 + indent), expand=False)
            grid = Table.grid(padding=(0, GAP, 0, 0))
            grid.add_column(width=wide, no_wrap=True)
            grid.add_column(overflow="fold")
            for head, cell in zip(heads[self.texts :], row[self.texts :], strict=True):
                grid.add_row(head, cell)
            yield Padding(grid, (0, 0, 0, 3 + indent), expand=False)


@dataclass(frozen=True)
class Paragraph:
    """A sentence, as the console can show it.

    Attributes:
        text: what it says.
        style: rich's name of its style.
    """

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws it; rich wraps it."""
        yield Text(_shown(self.text, console).plain, style=self.style, overflow="fold")


def _heading(head: str, console: Console) -> Text:
    """A heading, which may have several lines."""
    return Text("\n").join(_shown(line, console) for line in head.split("\n"))


def _shown(cell: Cell, console: Console) -> Text:
    """A cell without signs that steer the terminal, or that it cannot show."""
    plain = cell.plain if isinstance(cell, Text) else str(cell)
    style = cell.style if isinstance(cell, Text) else ""
    return Text(encodable(printable(plain), console.encoding), style=style)


class ShownAndWritten(ABC):
    """What has a `to_dict` and shows itself to rich: as JSON and as plain text, too."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""

    @abstractmethod
    def __rich__(self) -> Any: ...

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, also written to a file if a path is given."""
        said = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        if path is not None:
            write_whole(Path(path), said)
        return said

    def summary(self, width: int = 80) -> str:
        """A readable overview as plain text; ``rich.print`` shows it in colour."""
        return as_plain_text(self.__rich__(), width)


def as_plain_text(shown: Any, width: int = 80) -> str:
    """What rich prints, as plain text of at most this width."""
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(shown)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO given above
    return "\n".join(line.rstrip() for line in text.splitlines())


def on_terminal(audit: Audit) -> Group:
    """An audit for any rich console: the conclusion, then the tables that matter most."""
    first, *rest = audit.sections
    parts: list[Any] = [verdict_line(audit.verdict, " ".join(first.sentences))]
    for section in (first, *rest):
        parts += shown_blocks(block for block in section.blocks if block.is_brief)
    return Group(*parts)


def verdict_line(verdict: str, conclusion: str) -> Paragraph:
    """A conclusion after the sign of its verdict, in its colour."""
    return Paragraph(f"{SIGNS[verdict]} {conclusion}", STYLES[verdict])


def shown_blocks(blocks: Iterable[Block]) -> list[Any]:
    """Tables and sentences of some blocks, for a rich console."""
    parts: list[Any] = []
    for block in blocks:
        if block.columns:
            rows, more = _few_rows(block)
            parts.append(FittedTable(
                block.title, block.columns, [[_coloured(cell) for cell in row] for row in rows],
                block.texts, more, block.last,
            ))  # fmt: skip
        else:
            parts.append(Text(""))
        sign, style = ("! ", "yellow") if block.is_warning else ("", "dim" * bool(block.columns))
        parts += [Paragraph(f"{sign}{said}", style) for said in block.sentences]
    return parts


def _few_rows(block: Block) -> tuple[Sequence[Sequence[str]], str]:
    """The first rows, those that stand apart at the end, and how many are left out."""
    n_first = MOST_ROWS - block.last
    if len(block.rows) <= MOST_ROWS:
        return block.rows, ""
    last = block.rows[len(block.rows) - block.last :]
    more = n_of(len(block.rows) - MOST_ROWS, "more row")
    return [*block.rows[:n_first], *last], f"... {more}; the JSON and the report have all."


def _coloured(cell: str) -> Cell:
    """A cell that holds a verdict in its colour."""
    verdict = next((verdict for verdict, sign in SIGNS.items() if cell.startswith(sign)), None)
    return cell if verdict is None else Text(cell, style=STYLES[verdict])


def as_markdown(audit: Audit) -> str:
    """The sections of an audit as a section of a model card."""
    parts = ["## Fairness audit"]
    for place, section in enumerate(audit.sections):
        said = [escape(sentence) for sentence in section.sentences]
        if not place:
            parts.append(f"**{SIGNS[audit.verdict]} {' '.join(said)}**")
        for block in section.blocks:
            if block.is_brief or not block.columns:
                parts += _markdown_block(block)
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block) -> list[str]:
    parts = [f"### {escape(block.title)}"]
    if block.columns:
        rows, more = _few_rows(block)
        lines = [block.columns, *rows]
        cells = [[escape(cell) for cell in line] for line in lines]
        cells.insert(1, ["---"] * len(block.columns))
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in cells))
        parts += [more] if more else []
    return parts + ["\n".join(f"- {escape(said)}" for said in block.sentences)] * bool(
        block.sentences
    )


def escape(text: object) -> str:
    """A user's text as text: nothing in it becomes Markdown or HTML."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    html = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", html)
