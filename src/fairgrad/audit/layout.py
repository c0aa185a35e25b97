"""Tables that fit whatever they are printed on, and never cut a name.

Where there is room, a table is a table. Where there is less, its texts wrap; where there is too
little for that, each of its rows becomes a record, one figure per line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairgrad.audit.words import printable
from fairgrad.signs import encodable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

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
        heads = [_shown(head, console) for head in self.heads]
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


def _shown(cell: Cell, console: Console) -> Text:
    """A cell without signs that steer the terminal, or that it cannot show."""
    plain = cell.plain if isinstance(cell, Text) else str(cell)
    style = cell.style if isinstance(cell, Text) else ""
    return Text(encodable(printable(plain), console.encoding), style=style)
