"""The options of all commands, each declared once.

Nothing large is imported here, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairgrad.definitions import BOUND, BOUNDED_RATES, DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

BOUNDS = f"or a bound on a rate ({', '.join(BOUNDED_RATES)}) of every group, such as 'recall>=0.8'"
SQL_DIALECTS = ("duckdb", "postgres", "sqlite")
"""The keys of `fairgrad.tables.sql.DIALECTS`, for the same reason."""


SHARE, INNER_SHARE = click.FloatRange(0, 1), click.FloatRange(0, 1, min_open=True, max_open=True)


def parse_measure(value: str) -> str:
    """The name of a measure, or a bound on a rate: the text itself."""
    if value not in DEFINITIONS and not BOUND.fullmatch(value.strip()):
        raise click.BadParameter(f"{value!r} is none of {', '.join(DEFINITIONS)}, {BOUNDS}.")
    return value


def parse_bins(value: str) -> tuple[str, list[float]]:
    """``age=25,60`` as a name and its cut points; a name may contain an equals sign."""
    column, sign, edges = value.rpartition("=")
    numbers = _numbers(edges)
    if not sign or not column or not numbers:
        raise click.BadParameter(f"{value!r} does not have the form column=25,60")
    return column, numbers


def parse_cost(value: str) -> tuple[str, float]:
    """``no:yes=5`` as a mistake, which needs the labels to be read, and what it costs."""
    mistake, _, number = value.rpartition("=")
    cost = _numbers(number)
    if ":" not in mistake or len(cost) != 1 or not 0 <= cost[0] < float("inf"):
        raise click.BadParameter(
            f"{value!r} does not have the form TRUE:PREDICTED=5, with a number of at least 0"
        )
    return mistake, cost[0]


def parse_map(value: str) -> dict[str, str]:
    """``1=Passed,0=Failed`` as what each value stands for; values may contain an equals sign."""
    texts = value.split(",")
    pairs = texts if all("=" in text for text in texts) else [value]
    mapping = {}
    for pair in pairs:
        name, _, label = (text.strip() for text in pair.partition("="))
        if not name or not label:
            raise click.BadParameter(f"{value!r} does not have the form 1=Passed,0=Failed")
        mapping[name] = label
    return mapping


def parse_layer_sizes(value: str) -> tuple[int, ...]:
    """``128,64,32`` as layer sizes, whole numbers above 0."""
    sizes = _numbers(value)
    if not sizes or any(size < 1 or size != int(size) for size in sizes):
        raise click.BadParameter(f"{value!r} is not a list of layer sizes such as 128,64,32")
    return tuple(int(size) for size in sizes)


def _numbers(text: str) -> list[float]:
    """Numbers separated by commas; empty if something is not a number."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        return []


def parse_tolerance(value: str) -> float | str:
    """A number above 0 and up to 1, or a share such as "80%" of the highest selection rate.

    Nothing is surely fair within 0, whatever the rows.
    """
    from fairgrad.audit.verdicts import tolerated_ratio  # noqa: PLC0415 - keeps --help quick

    if tolerated_ratio(value) is not None:
        return value
    numbers = _numbers(value)
    if len(numbers) != 1 or not 0 < numbers[0] <= 1:
        raise click.BadParameter(
            f"{value!r} is neither a number above 0 and up to 1, such as 0.05 for 5 points, nor a "
            "ratio of selection rates from 50% to 100%"
        )
    return numbers[0]


class PlainOption(click.Option):
    """An option whose help does not show the range of its numbers, such as x>=0."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        """What the help shows in brackets."""
        return {name: v for name, v in super().get_help_extra(ctx).items() if name != "range"}


class FileOption(PlainOption):
    """An option for reading tables; the help lists these separately."""


class Command(click.Command):
    """A command whose help lists the file-reading options under a heading of their own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options of both kinds."""
        for heading, records in option_sections(self, ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)


def option_sections(
    command: click.Command, context: click.Context
) -> dict[str, list[tuple[str, str]]]:
    """The options of a command as the help lists them, by heading."""
    sections: dict[str, list[tuple[str, str]]] = {"Options": [], "File-reading options": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            is_about_files = isinstance(parameter, FileOption)
            sections["File-reading options" if is_about_files else "Options"].append(record)
    return {heading: records for heading, records in sections.items() if records}


def _column(words: str, *, multiple: bool = False) -> dict[str, Any]:
    """An option that names a column, or several."""
    repeatable = " (repeatable)." if multiple else "."
    return {"metavar": "COLUMN", "help": words + repeatable, "multiple": multiple}


def _number(words: str, kind: Any = click.FLOAT, default: Any = None) -> dict[str, Any]:
    """An option that is a number."""
    shown = {} if default is None else {"default": default, "show_default": True}
    return {"metavar": "NUMBER", "type": kind, "help": words, **shown}


def _flag(words: str) -> dict[str, Any]:
    return {"is_flag": True, "help": words}


def _text(metavar: str, words: str, **more: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": words, **more}


FILE_OPTIONS: dict[str, dict[str, Any]] = {
    "sep": _text("CHARACTER", "Separator of fields, such as ; or tab [default: detected]."),
    "decimal": {"type": click.Choice([".", ","]), "help": "Decimal mark [default: detected]."},
    "encoding": _text("NAME", "Encoding, such as cp1252 [default: detected]."),
    "skip_rows": _number(
        "Rows above the header, such as titles [default: detected].", click.IntRange(min=0)
    ),
    "sheet": _text("NAME", "Sheet of an Excel file [default: the first with a table]."),
    "missing": _text(
        "TEXT",
        "Text that means a missing value, besides NA, null and the like in columns of numbers "
        "and dates (repeatable).",
        multiple=True,
    ),
}
"""How files are written: options of every command that reads a table."""

COLUMN_OPTIONS: dict[str, dict[str, Any]] = {
    "bins": _text(
        "COLUMN=NUMBER,NUMBER",
        'Cut a numeric sensitive column into groups at these numbers, such as "age=25,60" '
        "(repeatable).",
        type=parse_bins,
        multiple=True,
    ),
    "drop": _column("Column to ignore", multiple=True),
    "keep": _column(
        "Use this column although it looks like an identifier or has one value", multiple=True
    ),
    "categorical": _column("Treat this numeric column as categorical", multiple=True),
    "key": _column(
        "Column that identifies a row when a large table is sampled [default: its place]",
        multiple=True,
    ),
    "map": _text(
        "VALUE=LABEL,...",
        "Values that stand for other values, such as 1=Passed,0=Failed (repeatable).",
        type=parse_map,
        multiple=True,
    ),
    "ignore_case": _flag(
        "Merge values of target and sensitive columns that differ in case, spaces or accents only."
    ),
    "counts": _flag(
        "TABLE is the answer to `fairgrad sql counts`: each row stands for n_rows rows."
    ),
}
"""How columns are read: options of some commands, listed with those of files."""

OPTIONS: dict[str, dict[str, Any]] = {
    "target": _column("Column to predict: the true values"),
    "sensitive": _column("Column that defines the groups to treat alike", multiple=True),
    "desirable": _text(
        "VALUE", "Desirable value of the target [default: the second of two, in sorted order]."
    ),
    "weight": _column("Column of sample weights: how many people each row stands for"),
    "measure": _text(
        "MEASURE",
        f"Fairness measure: {', '.join(DEFINITIONS)}; {BOUNDS} (repeatable; all of them are "
        "enforced) [default: equalized_odds].",
        type=parse_measure,
        multiple=True,
    ),
    "separate": _flag("Make each sensitive column fair by itself, instead of their combinations."),
    "within": _column(
        "Compare groups only within each value of this sensitive column", multiple=True
    ),
    "cost": _text(
        "TRUE:PREDICTED=COST",
        "Cost of a mistake, such as no:yes=5; others cost 1 (repeatable). The program then looks "
        "for the lowest mean cost instead of the highest accuracy.",
        type=parse_cost,
        multiple=True,
    ),
    "use_sensitive": _flag(
        "Let the model use the sensitive columns to predict. The law may forbid it."
    ),
    "model": {
        "type": click.Choice(["network", "lightgbm", "xgboost"]),
        "default": "network",
        "show_default": True,
        "help": "Linear model or network, or boosted trees with fair decisions.",
    },
    "layers": _text(
        "SIZE,SIZE",
        "Sizes of the hidden layers, such as 128,64,32 [default: none, a linear model].",
        type=parse_layer_sizes,
    ),
    "epochs": _number(
        "Passes over the training rows, or number of boosted trees [default: by the size of the "
        "table, 300 trees].",
        click.IntRange(1),
    ),
    "seed": _number("Random seed.", click.IntRange(0, 2**31 - 1), default=0),
    "train_rows": _number(
        "Number of rows to train on, approximately. A larger table is sampled.",
        click.IntRange(min=100),
        default=1_000_000,
    ),
    "tolerance": _text(
        "NUMBER|80%",
        "Largest gap to the overall rate that counts as fair; 80% means that every selection rate "
        "is at least 80 % of the highest.",
        type=parse_tolerance,
        default="0.05",
        show_default=True,
    ),
    "exact": _flag("Train for exact fairness (epsilon 0), whatever it costs in accuracy."),
    "min_group": _number(
        "Groups with fewer rows are not judged. A number below 1 is a share of the rows.",
        click.FloatRange(0),
        default=30,
    ),
    "reference": _text(
        "[COLUMN=]GROUP",
        "Compare with this group (repeatable, one per sensitive column) [default: all rows; in "
        "`impact` the most selected category].",
        multiple=True,
    ),
    "test": _text("FILE", "Table to audit the model on; then no rows are held out."),
    "test_size": _number(
        "Share of the rows to hold out for the audit [default: 0.2].", INNER_SHARE
    ),
    "folds": _number(
        "Number of models of a cross-validation; 0 for none [default: 5 below 2,000 rows, else 0].",
        click.IntRange(0, 100),
    ),
    "points": _number("Number of models to train.", click.IntRange(6), default=16),
    "max_unfairness": _number(
        "Choose the most accurate model whose unfairness (mean |F|) is at most this.", SHARE
    ),
    "min_accuracy": _number("Choose the fairest model whose accuracy is at least this.", SHARE),
    "prediction": _column("Column of predictions, if TABLE has one"),
    "score": _column(
        "Column of scores of the desirable value; with --threshold they are the predictions"
    ),
    "threshold": _number("Scores of at least this predict the desirable value."),
    "held_out": _flag("Audit the model on the rows of TABLE that were held out in training."),
    "cluster": _column(
        "Column that identifies rows that belong together, such as those of one person"
    ),
    "search": _column(
        "Column to search for the worst subgroups, beside the sensitive ones", multiple=True
    ),
    "judged": _text(
        "MEASURE",
        f"Measure of the verdict: {', '.join(DEFINITIONS)}; {BOUNDS} (repeatable) "
        "[default: what the model was trained for, else the first four].",
        type=parse_measure,
        multiple=True,
    ),
    "confidence": _number(
        "Confidence level of the intervals and verdicts.", INNER_SHARE, default=0.95
    ),
    "time": _column("Column of dates: count each period of them by itself"),
    "state": _text("FILE", "JSON file that keeps the counts of all batches so far."),
    "batch": _text("NAME", "Name of this batch, such as its date [default: the table's name]."),
    "period": {
        "type": click.Choice(["day", "week", "month"]),
        "help": "Length of the periods of --time [default: month].",
    },
    "dialect": {
        "type": click.Choice(SQL_DIALECTS),
        "metavar": "DIALECT",
        "help": f"The warehouse's dialect of SQL: {', '.join(SQL_DIALECTS)}.",
    },
    "answer": _text(
        "FILE", "Answer of `fairgrad sql counts` for the same target and sensitive columns."
    ),
    "column": _text(
        "NAME", "Name of the new column of predictions.", default="prediction", show_default=True
    ),
    "report": _text("FILE", "HTML file to write the report to."),
    "out": _text("FILE", "JSON file to write the result to."),
    "force": _flag("Replace earlier output."),
    "fail_on": {
        "type": click.Choice(["unfair", "undecided"]),
        "help": "Exit with code 1 if the verdict is unfair, or also if it is undecided.",
    },
    "json": _flag("Print JSON instead of text and tables."),
    "explain": _flag("Show all measures, intervals, scores and methods."),
}
"""All other options, by the name of the argument they become."""

DECLARED = {
    "out": ("-o", "--out"),
    "json": ("--json", "as_json"),
    "judged": ("--measure",),
    "answer": ("--counts",),
}
"""How options are typed that are not called as above."""


def takes(
    *names: str, reading: tuple[str, ...] | None = (), **changed: dict[str, Any] | str
) -> Callable[[F], F]:
    """Gives a command options of `OPTIONS`, in this order.

    Args:
        *names: of options; those that end in "!" are required.
        reading: names of `COLUMN_OPTIONS` that follow, after those of files; None for a command
            that reads no table.
        **changed: the help of an option that means something else here, or several properties.
    """
    declared = []
    for name in names:
        known = (OPTIONS | COLUMN_OPTIONS)[name.rstrip("!")]
        change = changed.get(name.rstrip("!"), {})
        known = known | ({"help": change} if isinstance(change, str) else change)
        flags = DECLARED.get(name.rstrip("!"), (f"--{name.rstrip('!').replace('_', '-')}",))
        declared.append(click.option(*flags, cls=PlainOption, **known, required=name.endswith("!")))
    if reading is not None:
        about_files = FILE_OPTIONS | {name: COLUMN_OPTIONS[name] for name in reading}
        declared += [
            click.option(f"--{name.replace('_', '-')}", cls=FileOption, **known)
            for name, known in about_files.items()
        ]

    def decorate(function: F) -> F:
        for option in reversed(declared):
            function = option(function)
        return function

    return decorate
