"""The program's commands and options as a page: ``{program-options}``. Nothing is copied by hand.

What click knows about each command becomes sections and definition lists.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from fairgrad.cli.app import app as program
from fairgrad.cli.options import option_sections

if TYPE_CHECKING:
    from collections.abc import Iterator

OTHERS = {"bench"}
"""Commands of another package, which are described elsewhere."""


class CommandHelp(NamedTuple):
    """A command as its help describes it."""

    path: str
    usage: str
    words: str
    options: dict[str, list[tuple[str, str]]]


def commands(command: click.Command, path: str = "fairgrad") -> Iterator[CommandHelp]:
    """The command and its subcommands, in the order in which they were added.

    Example:
        >>> [command.path for command in commands(program)][:3]
        ['fairgrad', 'fairgrad demo', 'fairgrad fit']
    """
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    options = option_sections(command, context)
    yield CommandHelp(path, usage, inspect.cleandoc(command.help or ""), options)
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            if name not in OTHERS and not below.hidden:
                yield from commands(below, f"{path} {name}")


def paragraphs(words: str) -> Iterator[nodes.Node]:
    """Help as paragraphs; blocks that click does not wrap become literal blocks."""
    for block in re.split(r"\n\s*\n", words.replace("\f", "")):
        if block.startswith("\b\n"):
            text = block.removeprefix("\b\n")
            yield nodes.literal_block(text, text, language="console")
        elif block.strip():
            yield nodes.paragraph("", "", *inline(" ".join(block.split())))


def inline(text: str) -> Iterator[nodes.Node]:
    """Text in which `code` and names of options are literals.

    Example:
        >>> [node.astext() for node in inline("use `out` or --out, not in-out")]
        ['use ', 'out', ' or ', '--out', ', not in-out']
    """
    place = 0
    for match in re.finditer(r"`+([^`]+)`+|(?<![\w-])(--[a-z][\w-]*)", text):
        if match.start() > place:
            yield nodes.Text(text[place : match.start()])
        code = match[1] or match[2]
        yield nodes.literal(code, code)
        place = match.end()
    if place < len(text):
        yield nodes.Text(text[place:])


def section_of(command: CommandHelp) -> nodes.section:
    """A command as a section that can be linked to: ``#fairgrad-fit``."""
    section = nodes.section(ids=[nodes.make_id(command.path)])
    section += nodes.title("", "", nodes.literal(command.path, command.path))
    section += nodes.literal_block(command.usage, command.usage, language="none")
    section += list(paragraphs(command.words))
    for heading, options in command.options.items():
        if len(command.options) > 1:
            section += nodes.rubric(heading, heading)
        listed = nodes.definition_list()
        for names, words in options:
            term = nodes.term("", "", nodes.literal(names, names))
            listed += nodes.definition_list_item(
                "", term, nodes.definition("", nodes.paragraph("", "", *inline(words)))
            )
        section += listed
    return section


class ProgramOptions(SphinxDirective):
    """All commands with all options."""

    def run(self) -> list[nodes.Node]:
        """One section each."""
        self.env.note_reread()  # the program changes without this page
        return [section_of(command) for command in commands(program)]


def setup(app: Any) -> dict[str, Any]:
    """Registers the directive."""
    app.add_directive("program-options", ProgramOptions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
