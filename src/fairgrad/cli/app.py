"""The commands, and what they have in common: errors in a sentence, exit codes, Ctrl-C.

Nothing large is imported here, nor by the commands before they run, so that ``fairgrad --help`` is
quick: modules that import NumPy, pandas or PyTorch are imported inside the commands' functions.
"""

# ruff: noqa: D301 - click reads the character \b, not its spelling

from __future__ import annotations

import contextlib
import difflib
import gc
import io
import os
import platform
import re
import signal
import sys
import traceback
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, NoReturn

import click

import fairgrad
from fairgrad.cli.options import Command, takes
from fairgrad.signs import HANDLER

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class CommandGroup(click.Group):
    """Commands; an unknown one is answered with the nearest known one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names."""
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            nearest = difflib.get_close_matches(args[0], known, n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest else f" Known: {', '.join(known)}."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


SUBJECT = click.argument("subject", metavar="MODEL|TABLE", type=click.Path())
MORE_TABLES = click.argument("table", nargs=-1, metavar="[TABLE]...", type=click.Path())
TABLES = click.argument("table", metavar="TABLE...", nargs=-1, required=True, type=click.Path())

PEOPLE = ("target!", "sensitive!", "desirable", "weight")
TRAINING = (
    "measure", "tolerance", "separate", "within", "cost", "use_sensitive", "model", "layers",
    "epochs", "seed", "train_rows", "min_group", "test", "test_size",
)  # fmt: skip
READING = ("bins", "drop", "keep", "categorical", "key", "map", "ignore_case")
PREDICTIONS = ("prediction", "score", "threshold")
JUDGED = ("weight", "judged", "within", "tolerance", "min_group", "confidence", "report")


def _folder(words: str) -> dict[str, Any]:
    """The option of a command that writes a folder."""
    return {"metavar": "FOLDER", "help": f"Folder to write {words} to."}


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
    """
    if verbose:
        raise click.UsageError("--verbose is for --version only.")


@app.command(cls=Command, short_help="Try it on census data, in less than a minute.")
@takes(
    "out", "force", "json", reading=None,
    out={**_folder("everything"), "default": "fairgrad-demo", "show_default": True},
)  # fmt: skip
def demo(**params: Any) -> Any:
    """Train a plain and a fair model on census data, and show who gains what.

    Needs no network and less than a minute. An earlier demo in the same folder is replaced.
    """
    return import_module("fairgrad.cli.fit").demo(params)


@app.command(cls=Command, short_help="Train a fair model on a table, and audit it.")
@TABLES
@takes(
    *PEOPLE, "out!", *TRAINING, "exact", "folds", "force", "fail_on", "json",
    reading=READING, out=_folder("the model, its audit and report"),
)  # fmt: skip
def fit(**params: Any) -> Any:
    """Train a fair model on TABLE, audit it, and write both into a folder.

    \b
      fairgrad fit people.csv --target income --sensitive sex --out model

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, or - for the standard
    input.

    The program trains several models, from exactly fair to unconstrained. It keeps the most
    accurate one that is likely to be judged fair within --tolerance on new rows. --exact keeps the
    exactly fair one. Sensitive columns are not features, and are not needed to predict, unless you
    use --use-sensitive.

    The rows are split at random: 60 % train the models, 20 % choose one (validation) and 20 % audit
    it (test). Tables under 2,000 rows are audited by cross-validation (--folds). If TABLE has more
    rows than --train-rows, models are trained on a weighted sample with all rows of rare groups,
    and the audit counts all rows held out.

    The folder contains the model, the audit (audit.json), the rows of the audit (test_rows.csv),
    MODEL_CARD.md and report.html.
    """
    return import_module("fairgrad.cli.fit").fit(params)


@app.command(cls=Command, short_help="Predict the rows of a table with a model.")
@click.argument("model", type=click.Path())
@TABLES
@takes(
    "out", "column", "force", "json",
    out={
        "metavar": "FILE|FOLDER",
        "help": "CSV, TSV or Parquet file to write, or a folder (with / at its end) with one file "
        "for each file of the table [default: CSV on the standard output].",
    },
)  # fmt: skip
def predict(**params: Any) -> Any:
    """Predict the rows of TABLE with MODEL, a folder that `fairgrad fit` has written.

    \b
      fairgrad predict model new.csv --out predictions.csv

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, or - for the standard
    input. It can have any number of rows: a few thousand are predicted at a time.

    The output has all columns of the table, a column of predictions, and the probability of the
    desirable value (of every value, if there are more than two). Sensitive columns are needed only
    if the model was fitted with --use-sensitive.

    Columns may be in any order, and columns the model does not use are ignored. A category that
    the training table did not have is treated as unknown. So is a missing category, unless values
    were missing in training, too. A missing number is replaced by the median.
    """
    return import_module("fairgrad.cli.predict").predict(params)


@app.command(cls=Command, short_help="Audit a model, or predictions of any system.")
@SUBJECT
@MORE_TABLES
@takes(
    "target", "sensitive", "desirable", *PREDICTIONS, "held_out", "cluster", "search", *JUDGED,
    "reference", "out", "force", "fail_on", "json", "explain",
    reading=("bins", "map", "ignore_case", "counts"), out="JSON file to write the audit to.",
)  # fmt: skip
def audit(**params: Any) -> Any:
    """Audit a model on a table, or a table that contains the predictions of any system.

    \b
      fairgrad audit model/ new.csv
      fairgrad audit scored.csv --target y --prediction h --sensitive sex
      fairgrad audit scored.csv --target y --score p --threshold 0.5
          --sensitive sex
      fairgrad audit decided.csv --prediction decision --sensitive sex
      fairgrad audit folder/ --target y --prediction h --sensitive sex
      fairgrad audit people.duckdb::loans --target y --prediction h
          --sensitive sex

    TABLE is one or more CSV, TSV, Parquet or Excel files, a folder of them, a pattern such as
    "2024-*.csv", a table of a duckdb database (FILE::TABLE), or - for the standard input. duckdb
    counts Parquet files, databases and large text files of any size without loading their rows.

    Without --target the audit compares who is selected: demographic parity and the four-fifths
    rule. All other measures need the true values.

    A model brings its target and its sensitive columns; --sensitive names others. The verdict and
    --fail-on are about the measures it was trained for, unless --measure names others. The other
    measures are shown as well.
    """
    return import_module("fairgrad.cli.audit").audit(params)


@app.command(cls=Command, short_help="Compare two models, or two columns of predictions.")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.argument("table", metavar="TABLE", type=click.Path())
@takes(
    "target", "sensitive", "desirable", *JUDGED, "out", "force", "json",
    reading=("bins", "map", "ignore_case"), out="JSON file to write the comparison to.",
)  # fmt: skip
def compare(**params: Any) -> Any:
    """Compare B with A on the rows of TABLE: what changes, how sure that is, who changes sides.

    A and B are folders of models, or columns of TABLE that hold predictions.

    \b
      fairgrad compare old/ new/ people.csv
      fairgrad compare decision_2023 decision_2024 people.csv
          --target y --sensitive sex

    The rows are the same for both, so differences are paired: their intervals rest on the people
    whose prediction changes. With models, the target and the sensitive columns are those of B (or
    of A, if only A is a model), unless --sensitive names others.
    """
    return import_module("fairgrad.cli.audit").compare(params)


@app.command(
    cls=Command, short_help="Selection rates and impact ratios (Local Law 144, 80 % rule)."
)
@SUBJECT
@MORE_TABLES
@takes(
    "sensitive", "desirable", *PREDICTIONS, "min_group", "reference", "confidence", "out", "report",
    "force", "fail_on", "json",
    reading=("bins", "map", "ignore_case"),
    sensitive="Column that defines the categories to compare (repeatable).",
    desirable="Decision that means being selected [default: of two values, the second in sorted "
    "order].",
    min_group={
        "help": "Categories with a smaller share of the rows get no impact ratio; from 1 on a "
        "number of rows.",
        "default": 0.02,
    },
    out="File to write the table to: CSV if it ends in .csv, else JSON.",
    fail_on="Exit with code 1 if an impact ratio is below 0.8 with the given confidence; with "
    "undecided, also if its interval contains 0.8.",
)  # fmt: skip
def impact(**params: Any) -> Any:
    """Show who is selected how often: the table that New York's Local Law 144 requires.

    \b
      fairgrad impact decisions.csv --prediction hired
          --sensitive sex --sensitive race
      fairgrad impact scores.csv --score score --sensitive sex -o summary.csv
      fairgrad impact model/ new.csv

    The impact ratio of a category is its selection rate divided by that of the most selected
    category. The four-fifths rule asks for at least 0.8. With --score, and neither --prediction nor
    --threshold, the table shows scoring rates: the share of scores above the median.
    """
    return import_module("fairgrad.cli.audit").impact(params)


@app.command(cls=Command, short_help="Watch a running system, batch after batch.")
@SUBJECT
@MORE_TABLES
@takes(
    "target", "sensitive", "desirable", *PREDICTIONS, "state", "batch", "time", "period", "judged",
    "tolerance", "min_group", "confidence", "report", "out", "force", "fail_on", "json",
    reading=("bins", "map", "ignore_case", "counts"),
    out="JSON file to write the monitor's counts to.",
    confidence="Confidence level of the verdict over the whole life of the system.",
)  # fmt: skip
def monitor(**params: Any) -> Any:
    """Judge all decisions so far, as often as you like.

    \b
      fairgrad monitor model/ monday.csv --state state.json --fail-on unfair
      fairgrad monitor decided.csv --prediction hired --sensitive sex
          --state state.json
      fairgrad monitor decided.csv --prediction hired --sensitive sex
          --time day --period week

    Each call adds a batch to the counts in the state file and judges the average since the start.
    "Unfair" and "fair" are wrong with at most 5 % probability in the whole life of the system,
    however often you look. A batch is counted once. Measures that compare errors need true values:
    add them later by another call with the same batch and --target.
    """
    return import_module("fairgrad.cli.audit").monitor(params)


@app.command(cls=Command, short_help="Show what fairness costs in accuracy.")
@TABLES
@takes(
    *PEOPLE, "out", *TRAINING, "points", "max_unfairness", "min_accuracy", "force", "json",
    reading=READING, out=_folder("the chosen model, frontier.csv and the report"),
)  # fmt: skip
def frontier(**params: Any) -> Any:
    """Train models on TABLE from exactly fair to unconstrained, and show what each one costs.

    \b
      fairgrad frontier people.csv --target income --sensitive sex --out folder

    The chosen model is the one that `fairgrad fit` chooses: the most accurate one that is likely to
    be judged fair within --tolerance. --max-unfairness or --min-accuracy choose by another bound.
    """
    return import_module("fairgrad.cli.fit").frontier(params)


@app.command(cls=Command, short_help="Certify that a model is fair on new rows.")
@click.argument("subject", metavar="MODEL", type=click.Path())
@TABLES
@takes(
    "sensitive", "weight", "judged", "within", "tolerance", "min_group", "json",
    reading=("ignore_case",),
)  # fmt: skip
def certify(**params: Any) -> Any:
    """Certify that MODEL is fair on the rows of TABLE, which must be new.

    \b
      fairgrad fit people.csv --target income --sensitive sex --out model
      fairgrad certify model new.csv

    The model is certified if it is fair within --tolerance with 95 % confidence. If it is not, the
    exit code is 1.

    TABLE is refused if more of its rows are in the training table than chance explains. The folder
    of the model records each look, and all looks together are wrong with at most 5 % probability.
    """
    return import_module("fairgrad.cli.audit").certify(params)


@app.group(cls=CommandGroup, short_help="Print SQL queries that count or draw rows in a warehouse.")
def sql() -> None:
    """Print SQL queries for a warehouse, so that its rows stay there."""


@sql.command(cls=Command, short_help="Print the query that counts rows for an audit.")
@click.argument("table")
@takes(
    "dialect!", "target", "sensitive", "prediction", "score", "threshold", "weight", "time",
    "period", "bins", reading=None,
)  # fmt: skip
def counts(**params: Any) -> Any:
    """Print the query that counts the rows of TABLE for an audit.

    \b
      fairgrad sql counts bank.decisions --dialect postgres
          --target repaid --prediction decision --sensitive sex
      fairgrad audit --counts answer.csv
          --target repaid --prediction decision --sensitive sex

    TABLE is the name of the table in the warehouse. The answer to the query has one row for each
    combination of values; `fairgrad audit --counts` audits it. Without predictions the query counts
    labels and groups, for `fairgrad sql sample`.
    """
    return import_module("fairgrad.cli.counted").print_counts(params)


@sql.command(cls=Command, short_help="Print the query that draws rows to train on.")
@click.argument("table")
@takes(
    "dialect!", "target!", "sensitive!", "answer!", "train_rows", "test_size", "seed",
    reading=("bins", "key"),
    train_rows="Number of rows to draw, approximately.",
    test_size={
        "type": click.FloatRange(0, 1, max_open=True),
        "help": "Share of the rows that are not drawn, to audit the model on.",
        "default": 0.2,
        "show_default": True,
    },
)  # fmt: skip
def sample(**params: Any) -> Any:
    """Print the query that draws a sample of TABLE to train on.

    \b
      fairgrad sql counts bank.loans --dialect postgres
          --target repaid --sensitive sex
      fairgrad sql sample bank.loans --dialect postgres
          --target repaid --sensitive sex --key id --counts answer.csv
      fairgrad fit sample.csv --target repaid --sensitive sex
          --drop id --weight fairgrad_weight --out model

    The query draws all rows of rare groups and a share of the others: almost exactly the rows that
    `fairgrad fit` draws from the same table with the same --key, --seed and --test-size. The column
    fairgrad_weight contains the number of rows that each row stands for.

    TABLE is the name of the table in the warehouse. --counts is the answer to the first query.
    """
    return import_module("fairgrad.cli.counted").print_sample(params)


@app.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> NoReturn:  # noqa: ARG001 - the package is missing
    """Run the paper's experiments (needs the package fairgrad-bench)."""
    raise click.ClickException(
        "The benchmark is a separate package; install it with `pip install fairgrad-bench`."
    )


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
    # The trainer takes Ctrl-C for "enough epochs"; here it means stop, and write nothing.
    before = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = _run(arguments, command, name)
    finally:
        if arguments is not None:  # a program that has called this one has its own signals again
            for number, handler in before.items():
                signal.signal(number, handler)
    sys.exit(code if isinstance(code, int) else 0)


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
