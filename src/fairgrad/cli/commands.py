"""The commands: their options and their help. What a command does is imported when it runs.

Nothing large is imported here, so that ``--help`` is quick.
"""

# ruff: noqa: D301 - click reads the character \b, not its spelling

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

import click

from fairgrad.cli.options import Command, CommandGroup, takes

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


def _run(module: str, name: str, params: dict[str, Any]) -> Any:
    """Runs a function of this package: the exit code."""
    return getattr(import_module(f"fairgrad.cli.{module}"), name)(params)


@click.command(cls=Command, short_help="Train a fair model on a table, and audit it.")
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
    return _run("fit", "fit", params)


@click.command(cls=Command, short_help="Show what fairness costs in accuracy.")
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
    return _run("fit", "frontier", params)


@click.command(cls=Command, short_help="Try it on census data, in less than a minute.")
@takes(
    "out", "force", "json", reading=None,
    out={**_folder("everything"), "default": "fairgrad-demo", "show_default": True},
)  # fmt: skip
def demo(**params: Any) -> Any:
    """Train a plain and a fair model on census data, and show who gains what.

    Needs no network and less than a minute. An earlier demo in the same folder is replaced.
    """
    return _run("fit", "demo", params)


@click.command(cls=Command, short_help="Predict the rows of a table with a model.")
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
    input. It can have any number of rows: some thousand are predicted at a time.

    The output has all columns of the table, a column of predictions, and the probability of the
    desirable value (of every value, if there are more than two). Sensitive columns are needed only
    if the model was fitted with --use-sensitive.

    Columns may be in any order, and columns the model does not use are ignored. A category that
    training did not have counts as none of the known ones, and so does a missing category, unless
    training had some. A missing number is replaced by the median.
    """
    return _run("predict", "predict", params)


@click.command(cls=Command, short_help="Audit a model, or predictions of any system.")
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
    return _run("audit", "audit", params)


@click.command(
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
    return _run("audit", "impact", params)


@click.command(cls=Command, short_help="Compare two models, or two columns of predictions.")
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
    return _run("audit", "compare", params)


@click.command(cls=Command, short_help="Certify that a model is fair on new rows.")
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

    Rows of the training table are recognized and refused. The folder of the model records each
    look, and all looks together are wrong with at most 5 % probability.
    """
    return _run("certify", "certify", params)


@click.command(cls=Command, short_help="Watch a running system, batch after batch.")
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
      fairgrad monitor decided.csv --prediction hired --sensitive sex --state state.json
      fairgrad monitor decided.csv --prediction hired --sensitive sex --time day --period week

    Each call adds a batch to the counts in the state file and judges the average since the start.
    "Unfair" and "fair" are wrong with at most 5 % probability in the whole life of the system,
    however often you look. A batch is counted once. Measures that compare errors need true values:
    add them later by another call with the same batch and --target.
    """
    return _run("monitor", "monitor", params)


@click.group(
    cls=CommandGroup, short_help="Print SQL queries that count or draw rows in a warehouse."
)
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
    return _run("counted", "print_counts", params)


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
    return _run("counted", "print_sample", params)


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> NoReturn:  # noqa: ARG001 - the package is missing
    """Run the paper's experiments (needs the package fairgrad-bench)."""
    raise click.ClickException(
        "The benchmark is a separate package; install it with `pip install fairgrad-bench`."
    )


COMMANDS = (demo, fit, predict, audit, compare, impact, monitor, frontier, certify, sql, bench)
