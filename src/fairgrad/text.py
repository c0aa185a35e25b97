"""Sections of text and tables as plain data, shown on a terminal, as Markdown or in a notebook.

On a terminal, a table fits the available width and never cuts a name. If there is little room, its
texts wrap; if there is too little for that, each of its rows becomes a record, one figure per line.
"""

from __future__ import annotations

import html
import io
import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairgrad.files import write_whole
from fairgrad.signs import HANDLER

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from rich.console import ConsoleOptions, RenderResult

MOST_ROWS = 40
"""Rows of a table on the terminal and on a card; the JSON and the report have all."""
STYLES = {"✓": "green", "✗": "bold red", "?": "bold yellow"}
"""Colours of the signs of verdicts."""
INK, PAPER = "#1b1f24", "#ffffff"
COLOURS = {"✓": "#00694e", "✗": "#a62b00", "?": "#7a5900"}
"""The same on the white ground of a notebook's output."""
LEAST_TEXT = 16
"""Narrower than this a column of texts is hard to read: the rows become records."""
GAP = 2
ISOLATE, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
"""Around a name in a sentence that is written from right to left."""


class Block(NamedTuple):
    """A table of a section, with what a page draws of it.

    Attributes:
        title: above it; may be empty.
        columns: headings; a line break marks where a narrow heading wraps.
        rows: cells, as text.
        sentences: below it.
        texts: how many of the first columns are texts; the others are figures.
        last: how many of the rows stand apart at the end, such as the row of everyone.
        chart: the kind of chart that a page draws; empty for none.
        about: what the chart is about: a way of grouping, or the position of a finding.
        is_warning: whether its sentences are warnings.
    """

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    sentences: Sequence[str] = ()
    texts: int = 1
    last: int = 0
    chart: str = ""
    about: str | int = ""
    is_warning: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws it as wide as the console; a block with only a chart draws nothing."""
        if self.columns or self.sentences:
            yield Text("")
        if self.columns:
            yield Paragraph(self.title, "bold")
            yield from self._table_or_records(console, options.max_width)
        sign, style = ("! ", "yellow") if self.is_warning else ("", "dim" * bool(self.columns))
        for sentence in self.sentences:
            yield Paragraph(f"{sign}{sentence}", style)

    def few_rows(self) -> tuple[Sequence[Sequence[str]], str]:
        """The first rows, those that stand apart at the end, and how many are left out."""
        if len(self.rows) <= MOST_ROWS:
            return self.rows, ""
        last = self.rows[len(self.rows) - self.last :]
        more = f"... {len(self.rows) - MOST_ROWS:,} more rows; the JSON and the report have all."
        return [*self.rows[: MOST_ROWS - self.last], *last], more

    def _table_or_records(self, console: Console, room: int) -> RenderResult:
        few, more = self.few_rows()
        heads = [
            Text("\n").join(_shown(line, console) for line in head.split("\n"))
            for head in self.columns
        ]
        rows = [[_shown(cell, console) for cell in row] for row in few]
        natural = [
            max(cell_len(line) for cell in column for line in cell.plain.splitlines() or [""])
            for column in zip(heads, *rows, strict=True)
        ]
        room -= sum(natural[self.texts :]) + GAP * (len(heads) - 1) + 1
        widths = natural[: self.texts]
        while sum(widths) > room and max(widths) > LEAST_TEXT:  # the widest gives way first
            widths[widths.index(max(widths))] -= 1
        if sum(widths) > room:
            yield from self._records(heads, rows)
        else:
            yield Padding(self._table(heads, rows, widths), (0, 0, 0, 1), expand=False)
        if more:
            yield Text(more, style="dim")

    def _table(self, heads: list[Text], rows: list[list[Text]], widths: list[int]) -> Table:
        table = Table(
            box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False
        )
        for place, head in enumerate(heads):
            if place < self.texts:
                table.add_column(head, width=widths[place], overflow="fold")
            else:
                firsts = [row[place].plain[:1] for row in rows]
                is_word = not any(first.isdigit() or first in {"+", "-"} for first in firsts)
                table.add_column(head, justify="left" if is_word else "right", no_wrap=True)
        for place, row in enumerate(rows):
            if self.last and place == len(rows) - self.last:
                table.add_section()
            table.add_row(*row)
        return table

    def _records(self, heads: list[Text], rows: list[list[Text]]) -> RenderResult:
        names = [head.plain.replace("\n", " ") for head in heads[self.texts :]]
        for row in rows:
            name = ", ".join(cell.plain.strip() for cell in row[: self.texts] if cell.plain.strip())
            yield Padding(Text(name, style="bold"), (0, 0, 0, 1), expand=False)
            grid = Table.grid(padding=(0, GAP, 0, 0))
            grid.add_column(width=max(map(cell_len, names)), no_wrap=True)
            grid.add_column(overflow="fold")
            for head, cell in zip(names, row[self.texts :], strict=True):
                grid.add_row(head, cell)
            yield Padding(grid, (0, 0, 0, 3), expand=False)


class Section(NamedTuple):
    """A section of an audit.

    Attributes:
        key: its name for programs and links.
        title: its heading.
        sentences: below the heading.
        blocks: tables and charts.
    """

    key: str
    title: str
    sentences: Sequence[str] = ()
    blocks: Sequence[Block] = ()


@dataclass(frozen=True)
class Paragraph:
    """A sentence, as the console can show it.

    Attributes:
        text: the sentence.
        style: the name of its style in rich.
    """

    text: str
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draws it; rich wraps it."""
        yield Text(_shown(self.text, console).plain, style=self.style, overflow="fold")


def _shown(cell: str, console: Console) -> Text:
    """A cell, with verdicts in colour and without characters that the terminal cannot show."""
    style = STYLES.get(cell[:1], "") if cell[1:2] == " " else ""
    encoded = printable(cell).encode(console.encoding, errors=HANDLER)
    return Text(encoded.decode(console.encoding), style=style)


def printable(text: object) -> str:
    """Text without characters that could steer a terminal."""
    plain = str(text).replace(ISOLATE, "").replace(END, "")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain)


def opening(section: Section) -> Paragraph:
    """The first paragraph on a terminal, in the colour of the verdict."""
    sign = section.title[:1] if section.title[:1] in STYLES else ""
    sentences = [sign or f"{section.title}.", *section.sentences]
    return Paragraph(" ".join(sentences), STYLES.get(sign, "bold"))


class ShownAndWritten(ABC):
    """Something with sections and a `to_dict`: shown by rich, and written as text and JSON."""

    @property
    @abstractmethod
    def sections(self) -> Sequence[Section]:
        """The sections, in the order in which readers need them."""

    @property
    def brief(self) -> Section:
        """What fits one screen."""
        return self.sections[0]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """`to_dict` as JSON text, also written to a file if a path is given."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        if path is not None:
            write_whole(Path(path), text)
        return text

    def summary(self, width: int = 80, *, explain: bool = False) -> str:
        """A readable overview as plain text; ``rich.print`` shows it in colour.

        Args:
            width: of the lines.
            explain: show all measures, intervals, definitions and methods.
        """
        return as_plain_text(self.on_terminal(explain=explain), width)

    def on_terminal(self, *, explain: bool = False) -> Group:
        """What fits one screen, or all sections, for any rich console."""
        first, *rest = self.sections if explain else [self.brief]
        parts: list[Any] = [opening(first), *first.blocks]
        for section in rest:
            parts += [Text(""), Paragraph(section.title, "bold")]
            parts += [*map(Paragraph, section.sentences), *section.blocks]
        return Group(*parts)

    __rich__ = on_terminal

    def _repr_html_(self) -> str:
        return as_html(self.sections[0])


def as_plain_text(shown: Any, width: int = 80) -> str:
    """What rich prints, as plain text of at most this width."""
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(shown)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO from above
    return "\n".join(line.rstrip() for line in text.splitlines())


def as_markdown(section: Section) -> str:
    """A section for a model card."""
    sign = section.title[:1] if section.title[:1] in STYLES else ""
    opening = " ".join([sign, *map(escape, section.sentences)]).strip()
    paragraphs = ["## Fairness audit", f"**{opening}**"]
    for block in section.blocks:
        paragraphs.append(f"### {escape(block.title)}")
        if block.columns:
            rows, more = block.few_rows()
            cells = [[escape(cell) for cell in line] for line in (block.columns, *rows)]
            cells.insert(1, ["---"] * len(block.columns))
            paragraphs.append("\n".join(f"| {' | '.join(line)} |" for line in cells))
            paragraphs += [more] if more else []
        if block.sentences:
            paragraphs.append("\n".join(f"- {escape(sentence)}" for sentence in block.sentences))
    return "\n\n".join(paragraphs) + "\n"


def as_html(section: Section, picture: str = "") -> str:
    """A section for a notebook: title, sentences, and a picture, or else its main tables.

    Args:
        section: usually the first one of an audit.
        picture: a chart as SVG.
    """
    colour = COLOURS.get(section.title[:1], INK)
    elements = [
        f'<strong style="color:{colour};font-size:1.3em">{html.escape(section.title)}</strong>'
    ]
    elements += [_html_paragraph(sentence) for sentence in section.sentences]
    elements.append(picture)
    for block in section.blocks:
        if block.columns and not picture:
            elements.append(_html_table(block))
        elif not block.columns:
            elements += [_html_paragraph(sentence) for sentence in block.sentences]
    style = f"max-width:760px;background:{PAPER};color:{INK};padding:8px 12px"
    return f'<div style="{style}">{"".join(elements)}</div>'


def _html_paragraph(sentence: str) -> str:
    return f'<p style="margin:4px 0">{html.escape(sentence)}</p>'


def _html_table(block: Block) -> str:
    """A table whose rates have bars."""
    rows, more = block.few_rows()
    heads = "".join(f"<th>{html.escape(head)}</th>" for head in block.columns)
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            rate = re.fullmatch(r"([\d.]+) %", cell)
            bar = f"linear-gradient(to right,#9cc4e4 {rate[1]}%,transparent 0)" if rate else ""
            style = f"background:{bar};min-width:12em" if rate else ""
            cells.append(f'<td style="{style}">{html.escape(cell)}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    return f"<p><strong>{html.escape(block.title)}</strong></p>{table}{html.escape(more)}"


def escape(text: object) -> str:
    """A user's text as text: nothing in it becomes Markdown or HTML."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    html = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", html)
