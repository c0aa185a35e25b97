"""The commands, and what they have in common: errors in a sentence, exit codes, Ctrl-C.

Nothing large is imported here, nor by the commands before they run, so that ``fairgrad --help`` is
quick: modules that import NumPy, pandas or PyTorch are imported inside the commands' functions.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import platform
import re
import signal
import sys
import traceback
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NoReturn

import click

import fairgrad
from fairgrad.cli.commands import COMMANDS
from fairgrad.cli.options import CommandGroup
from fairgrad.signs import HANDLER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FAILED, STOPPED, NOT_READ = 2, 130, 141
"""Exit codes besides 0, done, and 1, which is for an unfair model and nothing else."""

DEBUG = "FAIRGRAD_DEBUG"
OPTIONS = {
    "max_unfairness": "--max-unfairness",
    "min_accuracy": "--min-accuracy",
    "y_score": "--score",
    "y_desirable": "--desirable",
    "sample_weight": "--weight",
    "cluster": "--cluster",
    "y_pred": "--prediction",
    "y_true": "--target",
    "min_group": "--min-group",
    "reference": "--reference",
    "cost_matrix": "--cost",
    "fresh": "TABLE",
}
"""What the library's arguments are called here."""


OF_MODELS = ("torch", "skops", "safetensors")
"""What the extra `torch` installs."""


def _show_version(ctx: click.Context, _: click.Parameter, is_asked: bool) -> None:
    """Prints the version and, with --verbose, what a bug report needs."""
    if not is_asked:
        return
    click.echo(f"fairgrad {fairgrad.__version__}")
    if ctx.params.get("verbose"):
        from fairgrad.audit.record import used_versions  # noqa: PLC0415 - keeps --version quick

        step = "not available: PyTorch is not installed"
        with contextlib.suppress(ImportError):
            from fairgrad.torch import is_compiled  # noqa: PLC0415 - as above

            step = "compiled" if is_compiled else "not compiled"
        known = {"system": platform.platform(), "processor": platform.machine(), **used_versions()}
        known |= {"step": step, "encoding": sys.stdout.encoding}
        click.echo("\n".join(f"{name}: {value}" for name, value in known.items()))
    ctx.exit()


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.option("--verbose", is_flag=True, is_eager=True, help="With --version: for a bug report.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def app(verbose: bool, quiet: bool) -> None:  # noqa: ARG001 - `output.is_quiet` reads it
    """Train classifiers that treat groups of people alike, and see how fair they are.

    \b
    Start with:
      fairgrad demo
      fairgrad fit data.csv --target income --sensitive sex --out model/
      fairgrad audit model/ new.csv

    Exit codes: 0: success; 1: the verdict matches --fail-on, or `certify` did not certify the
    model; 2: error, with a message.
    """  # noqa: D301 - click reads the character, not its spelling
    if verbose:
        raise click.UsageError("--verbose is for --version only.")


for command in COMMANDS:
    app.add_command(command)
for plugin in entry_points(group="fairgrad.commands"):  # they replace ours by name
    with contextlib.suppress(ImportError):  # a package that was removed must not stop the rest
        app.add_command(plugin.load(), plugin.name)


def main(
    arguments: Sequence[str] | None = None, command: click.Command = app, name: str = "fairgrad"
) -> NoReturn:
    """Runs the program, or a command of another package, and exits with its exit code."""
    gc.set_threshold(100_000)  # nearly all that is imported stays: searching it takes time
    # Small networks are slower with two threads than with one.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a sign gets another one
            stream.reconfigure(errors=HANDLER)
    if sys.stdout is None:  # closed by the shell, as in `fairgrad audit ... >&-`
        _fail("The standard output is closed, so the result would be lost; redirect it to a file.")
    with _own_signals(is_called=arguments is not None):
        code = _run(arguments, command, name)
    sys.exit(code if isinstance(code, int) else 0)


@contextlib.contextmanager
def _own_signals(*, is_called: bool) -> Iterator[None]:
    """The trainer takes Ctrl-C for "enough epochs"; here it means stop, and write nothing.

    A program that has called this one has its own signals again afterwards.
    """
    before = {one: signal.signal(one, _stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if is_called:
            for one, handler in before.items():
                signal.signal(one, handler)


def _run(arguments: Sequence[str] | None, command: click.Command, name: str) -> Any:
    """The exit code of a command, if it gives one; mistakes end the program with a sentence."""
    try:
        typed = sys.argv[1:] if arguments is None else list(arguments)
        return command.main(arguments, prog_name=name, standalone_mode=False, obj=typed)
    except click.exceptions.Abort:
        _stop()
    except click.exceptions.NoArgsIsHelpError as asked:  # no mistake, but a question
        click.echo(asked.format_message())
        sys.exit(0)
    except click.UsageError as error:
        hint = f" See `{error.ctx.command_path} --help`." if error.ctx else ""
        _fail(f"{_sentence(error.format_message())}{hint}")
    except click.ClickException as error:
        _fail(error.format_message())
    except SystemExit as left:
        # click exits with 1 when the reader of the output has closed it, as `head` does.
        sys.exit(NOT_READ if left.code == 1 else left.code)
    except Exception as error:  # noqa: BLE001 - the user gets a sentence, whatever happened
        if isinstance(error.__context__, SystemExit):  # a stop, after which a file did not close
            sys.exit(STOPPED)
        _explain(error)


def _explain(error: Exception) -> NoReturn:
    if os.environ.get(DEBUG):
        traceback.print_exc()
        sys.exit(FAILED)
    expected = (ValueError, TypeError, OSError, ImportError, MemoryError)
    if isinstance(error, ModuleNotFoundError) and error.name in OF_MODELS:
        _fail(f"This command {fairgrad.NO_TORCH}")
    if str(error).startswith("embedded null"):
        _fail("A file name or an option contains a NUL byte. Remove it.")
    if isinstance(error, MemoryError):
        _fail("Out of memory; use fewer rows, or fewer columns (--drop).")
    if isinstance(error, expected) and str(error):
        _fail(_sentence(re.sub(r"^\[Errno -?\d+\] ", "", str(error))))
    _fail(
        f"Unexpected error ({type(error).__name__}: {error}). Please report it, with the output of "
        f"the same command when the environment variable {DEBUG} is set to 1."
    )


def _sentence(text: str) -> str:
    """An error of the library, with the option's name instead of the argument's."""
    named = re.sub(rf"^({'|'.join(OPTIONS)}):", lambda match: f"{OPTIONS[match[1]]}:", text)
    return named if named.endswith((".", "?", "!", "`")) else f"{named}."


def _fail(message: str) -> NoReturn:
    # Names come from users' files: control characters must not reach the terminal.
    shown = "".join(
        c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in message
    )
    click.echo(f"Error: {shown}", err=True)
    sys.exit(FAILED)


def _stop(*_: object) -> NoReturn:
    click.echo("\nStopped. Files are written completely or not at all.", err=True)
    sys.exit(STOPPED)
