"""Code in pages that is run when they are built: ``{run}`` for Python, ``{shell}`` for commands.

The blocks of a page share one namespace and one temporary folder. The output of a block and the
value of its last expression are shown below it: a chart as a picture, a data frame as a table. If a
block fails, the build fails, unless the option ``:raises:`` names the error.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from charts import alternative_text, as_spec, write_svg
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from tables import table_of

COLUMNS = "78"
"""The width of a program's output."""


class Workspace:
    """The namespace and the folder of one page."""

    def __init__(self) -> None:
        """Creates an empty workspace."""
        self.folder = tempfile.TemporaryDirectory(prefix="fairgrad-docs-")
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.charts = 0


WORKSPACES: dict[str, Workspace] = {}


def workspace(docname: str) -> Workspace:
    """The workspace of a page."""
    return WORKSPACES.setdefault(docname, Workspace())


def forget(_app: Any, docname: str, _source: Any) -> None:
    """Empties the workspace of a page that is read again."""
    WORKSPACES.pop(docname, None)


def run_python(code: str, names: dict[str, Any], where: str) -> tuple[str, Any]:
    """The output of the code, and the value of its last expression."""
    tree = ast.parse(code, where)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)  # noqa: S102 - our own pages
        if last is not None:
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)  # noqa: S307 - our own pages
    return printed.getvalue(), value


class Run(SphinxDirective):
    """Runs Python code."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "hide": directives.flag,
        "raises": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """The code and its result."""
        code = "\n".join(self.content)
        shown = [] if "hide" in self.options else [literal(code, "python")]
        return [*shown, *self.outcome(code)]

    def outcome(self, code: str) -> list[nodes.Node]:
        """The nodes below the code."""
        place, where = workspace(self.env.docname), f"{self.env.docname}:{self.lineno}"
        expected = self.options.get("raises")
        try:
            with contextlib.chdir(place.folder.name):
                printed, value = run_python(code, place.names, where)
        except Exception as error:
            if type(error).__name__ == expected:
                return [output(f"{expected}: {error}")]
            raise ExtensionError(f"{where}: {type(error).__name__}: {error}", error) from error
        if expected is not None:
            raise ExtensionError(f"{where}: expected {expected}, but nothing was raised.")
        specs = [as_spec(chart) for chart in (value if isinstance(value, list) else [value])]
        if specs and None not in specs:
            return [*output_if(printed), *(self.picture(spec, place) for spec in specs)]
        if isinstance(value, pd.DataFrame):
            return [*output_if(printed), table_of(value)]
        return output_if(printed + ("" if value is None else f"{value!r}\n"))

    def picture(self, spec: dict[str, Any], place: Workspace) -> nodes.Node:
        """The chart as a picture with its description."""
        place.charts += 1
        name = f"{self.env.docname.replace('/', '-')}-{place.charts}.svg"
        write_svg(spec, Path(self.env.srcdir) / "made" / name)
        image = nodes.image(uri=f"/made/{name}", alt=alternative_text(spec), classes=["chart"])
        image["align"] = "center"
        return image


class Shell(SphinxDirective):
    """Runs commands one after the other in the page's folder."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "lines": directives.positive_int,
        "exit": directives.nonnegative_int,
    }

    def run(self) -> list[nodes.Node]:
        """The commands and their output."""
        code = "\n".join(self.content)
        printed = self.printed(code)
        lines = printed.rstrip().splitlines()
        limit = self.options.get("lines", len(lines))
        if len(lines) > limit:
            lines = [*lines[:limit], "..."]
        prompts = "\n".join(
            f"$ {line}" if line and not line.startswith(" ") else line for line in self.content
        )
        return [literal(prompts, "console"), *output_if("\n".join(lines))]

    def printed(self, code: str) -> str:
        """Standard output and error of the commands."""
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": COLUMNS,
            "NO_COLOR": "1",
            "OMP_NUM_THREADS": "1",
        }
        done = subprocess.run(  # noqa: S603 - our own pages
            ["/bin/sh", "-ec", code],
            cwd=workspace(self.env.docname).folder.name,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != self.options.get("exit", 0):
            raise ExtensionError(
                f"{self.env.docname}:{self.lineno}: exit code {done.returncode}:\n{done.stdout}"
            )
        return done.stdout


def literal(text: str, language: str, *classes: str) -> nodes.literal_block:
    """A block of code or text."""
    return nodes.literal_block(text, text, language=language, classes=list(classes))


def output(text: str) -> nodes.Node:
    """The output of a block."""
    return literal(text.rstrip(), "none", "output")


def output_if(text: str) -> list[nodes.Node]:
    """The output of a block, if there is any."""
    return [output(text)] if text.strip() else []


def setup(app: Any) -> dict[str, Any]:
    """Registers the directives."""
    app.add_directive("run", Run)
    app.add_directive("shell", Shell)
    app.connect("source-read", forget)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
