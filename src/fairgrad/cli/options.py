"""Options that several commands share.

Nothing large is imported here, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from fairgrad.definitions import BOUND, BOUNDED_RATES, DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

MEASURES = tuple(DEFINITIONS)
"""The keys of `fairgrad.measures.MEASURES`, without importing NumPy."""

BOUNDS = f"or a bound on a rate ({', '.join(BOUNDED_RATES)}) of every group, such as 'recall>=0.8'"


class MeasureOption(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions of click
    """The name of a measure, or a bound on a rate."""

    name = "MEASURE"

    def convert(self, value: str, param: Any, ctx: Any) -> str:
        """The text itself, if it is one."""
        if value not in MEASURES and not BOUND.fullmatch(value.strip()):
            self.fail(f"{value!r} is none of {', '.join(MEASURES)}, {BOUNDS}.", param, ctx)
        return value


SQL_DIALECTS = ("duckdb", "postgres", "sqlite")
"""The keys of `fairgrad.tables.sql.DIALECTS`, for the same reason."""


class FileOption(click.Option):
    """An option that says how a table is read; the help lists these apart."""


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


def parse_bins(value: str | tuple[str, list[float]]) -> tuple[str, list[float]]:
    """``age=25,60`` as a name and its cut points; a name may contain an equals sign."""
    if isinstance(value, tuple):  # click reads defaults twice
        return value
    column, sign, edges = value.rpartition("=")
    try:
        numbers = [float(edge) for edge in edges.split(",")]
    except ValueError:
        numbers = []
    if not sign or not column or not numbers:
        raise click.BadParameter(f"{value!r} does not have the form column=25,60")
    return column, numbers


def parse_cost(value: str | tuple[str, float]) -> tuple[str, float]:
    """``no:yes=5`` as a mistake, which needs the labels to be read, and what it costs."""
    if isinstance(value, tuple):  # as above
        return value
    mistake, _, number = value.rpartition("=")
    try:
        cost = float(number)
    except ValueError:
        cost = float("nan")
    if ":" not in mistake or not 0 <= cost < float("inf"):
        raise click.BadParameter(
            f"{value!r} does not have the form TRUE:PREDICTED=5, with a number of at least 0"
        )
    return mistake, cost


def parse_map(value: str | dict[str, str]) -> dict[str, str]:
    """``1=Passed,0=Failed`` as what each value stands for; values may contain an equals sign."""
    if isinstance(value, dict):  # as above
        return value
    parts = value.split(",")
    pairs = parts if all("=" in part for part in parts) else [value]
    found = {}
    for pair in pairs:
        name, sign, label = pair.partition("=")
        if not sign or not name.strip() or not label.strip():
            raise click.BadParameter(f"{value!r} does not have the form 1=Passed,0=Failed")
        found[name.strip()] = label.strip()
    return found


def parse_layer_sizes(value: str | tuple[int, ...]) -> tuple[int, ...]:
    """``128,64,32`` as layer sizes, whole numbers above 0."""
    if isinstance(value, tuple):  # as above
        return value
    try:
        sizes = tuple(int(size) for size in value.split(",") if size.strip())
    except ValueError:
        sizes = (0,)
    if not all(size > 0 for size in sizes):
        raise click.BadParameter(f"{value!r} is not a list of layer sizes such as 128,64,32")
    return sizes


def parse_tolerance(value: str | float) -> float | str:
    """A number from 0 to 1, or a share such as "80%" of the highest selection rate."""
    from fairgrad.audit.verdicts import tolerated_ratio  # noqa: PLC0415 - keeps --help quick

    if tolerated_ratio(str(value)) is not None:
        return str(value)
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise click.BadParameter(
            f"{value!r} is neither a number from 0 to 1 nor a share such as 80%"
        )
    return number


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def column_option(name: str, words: str, **more: Any) -> Callable[[F], F]:
    """An option that names a column."""
    return click.option(name, metavar="COLUMN", help=words, **more)


def number_option(name: str, words: str, kind: Any, **more: Any) -> Callable[[F], F]:
    """An option that is a number."""
    return click.option(name, type=kind, metavar="NUMBER", help=words, **more)


def people_options(*, required: bool = True) -> Callable[[F], F]:
    """What is predicted, and who is to be treated alike."""
    return together(
        column_option("--target", "Column to predict: the true values.", required=required),
        column_option(
            "--sensitive",
            "Column that defines the groups to treat alike (repeatable).",
            multiple=True,
            required=required,
        ),
        desirable_option("Desirable value of the target"),
    )


def desirable_option(words: str) -> Callable[[F], F]:
    """Which value people want to get."""
    default = " [default: of two values, the second in sorted order]."
    return click.option("--desirable", metavar="VALUE", help=words + default)


prediction_options = together(
    column_option("--prediction", "Column of predictions, if TABLE has one."),
    column_option(
        "--score",
        "Column of scores of the desirable value. With --threshold they replace the predictions.",
    ),
    number_option(
        "--threshold", "Scores of at least this predict the desirable value.", click.FLOAT
    ),
)
"""What was predicted, by a system of any kind."""


READ_OPTIONS = {
    "sep": {
        "metavar": "CHARACTER",
        "help": "Separator of fields, such as ; or tab [default: detected].",
    },
    "decimal": {"type": click.Choice([".", ","]), "help": "Decimal mark [default: detected]."},
    "encoding": {"metavar": "NAME", "help": "Encoding, such as cp1252 [default: detected]."},
    "skip-rows": {
        "type": click.IntRange(min=0),
        "metavar": "NUMBER",
        "help": "Rows above the header, such as titles [default: detected].",
    },
    "sheet": {"metavar": "NAME", "help": "Sheet of an Excel file [default: the first]."},
    "missing": {
        "metavar": "TEXT",
        "multiple": True,
        "help": "Text that means a missing value (repeatable). In columns of numbers and dates NA, "
        "null and similar texts always do.",
    },
}
"""How files are written."""

COLUMN_OPTIONS = {
    "bins": {
        "type": parse_bins,
        "metavar": "COLUMN=NUMBER,NUMBER",
        "multiple": True,
        "help": 'Cut a numeric sensitive column into groups at these numbers, such as "age=25,60" '
        "(repeatable).",
    },
    "drop": {"metavar": "COLUMN", "multiple": True, "help": "Column to ignore (repeatable)."},
    "keep": {
        "metavar": "COLUMN",
        "multiple": True,
        "help": "Use this column although it looks like an identifier or has one value "
        "(repeatable).",
    },
    "categorical": {
        "metavar": "COLUMN",
        "multiple": True,
        "help": "Treat this numeric column as categorical (repeatable).",
    },
    "key": {
        "metavar": "COLUMN",
        "multiple": True,
        "help": "Column that identifies a row when a large table is sampled, as `fairgrad sql "
        "sample` does (repeatable) [default: the row's place in the file].",
    },
    "map": {
        "type": parse_map,
        "metavar": "VALUE=LABEL,...",
        "multiple": True,
        "help": "Which value of the target each predicted value stands for, such as "
        "1=Passed,0=Failed (repeatable).",
    },
    "counts": {
        "is_flag": True,
        "help": "TABLE holds counts, as the query of `fairgrad sql counts` gives them: each row "
        "stands for as many rows as its column n_rows says.",
    },
}
"""How columns are read."""


def reading_options(*columns: str) -> Callable[[F], F]:
    """How files are written, and how these columns are read: the shared file-reading options."""
    declared: dict[str, Any] = READ_OPTIONS | {name: COLUMN_OPTIONS[name] for name in columns}
    return together(
        *(click.option(f"--{name}", cls=FileOption, **how) for name, how in declared.items())
    )


test_options = together(
    click.option(
        "--test", metavar="FILE", help="Table to audit the model on; then no rows are held out."
    ),
    number_option(
        "--test-size",
        "Share of the rows to hold out for the audit [default: 0.2].",
        click.FloatRange(0, 1, min_open=True, max_open=True),
    ),
)
"""Which rows the model is judged on."""

folds_option = number_option(
    "--folds",
    "Audit by cross-validation with this number of models; 0 for none [default: 5 for tables under "
    "2,000 rows, else 0].",
    click.IntRange(0, 100),
)
within_option = column_option(
    "--within",
    "Compare groups within each value of this sensitive column, not across its values "
    "(repeatable).",
    multiple=True,
)


train_rows_option = number_option(
    "--train-rows",
    "Maximum number of rows to train on; a larger table is sampled.",
    click.IntRange(min=100),
    default=1_000_000,
    show_default=True,
)
training_options = together(
    train_rows_option,
    click.option(
        "--measure",
        type=MeasureOption(),
        multiple=True,
        default=("equalized_odds",),
        show_default=True,
        help=f"Fairness measure: {', '.join(MEASURES)}; {BOUNDS} (repeatable; all of them are "
        "enforced).",
    ),
    click.option(
        "--separate",
        is_flag=True,
        help="Make each sensitive column fair by itself, instead of their combinations.",
    ),
    within_option,
    click.option(
        "--cost",
        type=parse_cost,
        metavar="TRUE:PREDICTED=COST",
        multiple=True,
        help="Cost of predicting one value of the target where another is true, such as no:yes=5; "
        "other mistakes cost 1 (repeatable). Models are then chosen by mean cost instead of "
        "accuracy.",
    ),
    click.option(
        "--use-sensitive",
        is_flag=True,
        help="Let the model use the sensitive columns to predict; the law may forbid it.",
    ),
    click.option(
        "--model",
        type=click.Choice(["network", "lightgbm", "xgboost"]),
        default="network",
        show_default=True,
        help="A linear model or network, or boosted trees with fair decisions (needs LightGBM or "
        "XGBoost).",
    ),
    click.option(
        "--layers",
        type=parse_layer_sizes,
        metavar="SIZE,SIZE",
        default="",
        help="Sizes of the hidden layers, such as 128,64,32 [default: none, a linear model].",
    ),
    number_option(
        "--epochs",
        "Passes over the training rows; of boosted trees, their number.",
        click.IntRange(1),
    ),
    number_option(
        "--seed", "Random seed.", click.IntRange(0, 2**31 - 1), default=0, show_default=True
    ),
)
"""How to train."""

points_option = number_option(
    "--points", "Number of models to train.", click.IntRange(3), default=16, show_default=True
)
bound_options = together(
    number_option(
        "--max-unfairness",
        "Choose the most accurate model whose unfairness (mean |F|) is at most this.",
        click.FloatRange(0, 1),
    ),
    number_option(
        "--min-accuracy",
        "Choose the fairest model whose accuracy is at least this.",
        click.FloatRange(0, 1),
    ),
)
"""Which model of a frontier to take."""

tolerance_option = click.option(
    "--tolerance",
    type=parse_tolerance,
    metavar="NUMBER|80%",
    default="0.05",
    show_default=True,
    help="Largest gap to the overall rate that counts as fair; 80% judges the ratio of selection "
    "rates (the four-fifths rule).",
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["unfair", "undecided"]),
    help="Exit with code 1 if the verdict is unfair; with undecided, also if it is undecided.",
)
min_group_option = number_option(
    "--min-group",
    "Groups with fewer rows are shown, but not judged. A number below 1 is a share of the rows; 0 "
    "judges all groups.",
    click.FloatRange(0),
    default=30,
    show_default=True,
)
confidence_option = number_option(
    "--confidence",
    "Confidence level of the intervals and verdicts.",
    click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
)
judged_option = click.option(
    "--measure",
    type=MeasureOption(),
    multiple=True,
    help=f"Fairness measure the verdict is about: {', '.join(MEASURES)}; {BOUNDS} (repeatable) "
    "[default: what the model was trained for, else the first four].",
)
audited_options = together(
    column_option("--weight", "Column of sample weights."),
    judged_option,
    within_option,
    tolerance_option,
    min_group_option,
    confidence_option,
    click.option("--report", metavar="FILE", help="HTML file to write the report to."),
)
"""What commands have in common that audit predictions of any system."""
dialect_option = click.option(
    "--dialect",
    type=click.Choice(SQL_DIALECTS),
    metavar="DIALECT",
    required=True,
    help=f"The warehouse's dialect of SQL: {', '.join(SQL_DIALECTS)}.",
)
time_options = together(
    column_option(
        "--time",
        "Column of dates: audit every period as well. --fail-on then judges the last period.",
    ),
    click.option(
        "--period",
        type=click.Choice(["day", "week", "month"]),
        help="Length of the periods of --time [default: month].",
    ),
)
"""How fairness changes over time."""


def out_option(metavar: str, words: str, **more: Any) -> Callable[[F], F]:
    """Where a command writes its result."""
    return click.option("-o", "--out", metavar=metavar, help=words, **more)


force_option = click.option("--force", is_flag=True, help="Replace earlier output.")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of text and tables."
)
