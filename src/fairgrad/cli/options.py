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


SQL_DIALECTS = ("duckdb", "postgres", "redshift", "snowflake", "bigquery", "spark", "sqlite")
"""The keys of `fairgrad.tables.sql.DIALECTS`, for the same reason."""


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
    """A number from 0 to 1, or the 80 % rule."""
    if str(value).lower() == "four_fifths":
        return "four_fifths"
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise click.BadParameter(f"{value!r} is neither a number from 0 to 1 nor four_fifths")
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
        click.option(
            "--desirable",
            metavar="VALUE",
            help="Desirable value of the target [default: of two values, the second in sorted "
            "order].",
        ),
        click.option(
            "--bins",
            type=parse_bins,
            metavar="COLUMN=NUMBER,NUMBER",
            multiple=True,
            help='Cut a numeric sensitive column into groups at these numbers, such as "age=25,60" '
            "(repeatable).",
        ),
    )


def reading_options() -> Callable[[F], F]:
    """How files are written, where what is found in them is wrong."""
    return together(
        click.option(
            "--sep",
            metavar="CHARACTER",
            help="Separator of fields, such as ; or tab [default: found].",
        ),
        click.option(
            "--decimal", type=click.Choice([".", ","]), help="Decimal mark [default: found]."
        ),
        click.option(
            "--encoding", metavar="NAME", help="Encoding, such as cp1252 [default: found]."
        ),
        click.option(
            "--missing",
            metavar="TEXT",
            multiple=True,
            help="Text that means a missing value (repeatable). Among numbers and dates NA, null "
            "and the like always do; among texts they are texts.",
        ),
    )


def judging_options(*, folds: bool) -> Callable[[F], F]:
    """Which rows the model is judged on."""
    options = [
        click.option(
            "--test", metavar="FILE", help="Table to audit the model on; no row is held out."
        ),
        number_option(
            "--test-share",
            "Share of the rows to hold out for the audit [default: 0.2].",
            click.FloatRange(0, 1, min_open=True, max_open=True),
        ),
    ]
    if folds:
        options.append(
            number_option(
                "--folds",
                "Audit by cross-validation: predict every row by a model that was not trained on "
                "it; 0 for none [default: 5 for tables under 2,000 rows, else 0].",
                click.IntRange(0, 100),
            )
        )
    return together(*options)


def feature_options() -> Callable[[F], F]:
    """Which other columns are features, and how they are read."""
    return together(
        column_option("--drop", "Column to ignore (repeatable).", multiple=True),
        column_option(
            "--keep",
            "Use this column although it looks like an identifier or has one value (repeatable).",
            multiple=True,
        ),
        column_option(
            "--categorical",
            "Treat this numeric column as categorical (repeatable).",
            multiple=True,
        ),
    )


given_option = click.option(
    "--given",
    metavar="COLUMN",
    multiple=True,
    help="Compare groups within each value of this sensitive column, not across its values "
    "(repeatable).",
)


def training_options() -> Callable[[F], F]:
    """How to train."""
    return together(
        click.option(
            "--measure",
            type=MeasureOption(),
            multiple=True,
            default=("equalized_odds",),
            show_default=True,
            help=f"Fairness measure: {', '.join(MEASURES)}; {BOUNDS} (repeatable; all that are "
            "given are enforced).",
        ),
        click.option(
            "--separate",
            is_flag=True,
            help="Make each sensitive column fair by itself, instead of their combinations.",
        ),
        given_option,
        click.option(
            "--cost",
            type=parse_cost,
            metavar="TRUE:PREDICTED=COST",
            multiple=True,
            help="What it costs to predict one value of the target where another is true, such as "
            "no:yes=5; other mistakes cost 1 (repeatable). Models are then chosen by the mean cost "
            "in place of the accuracy.",
        ),
        click.option(
            "--use-sensitive",
            is_flag=True,
            help="Let the model look at the sensitive columns to predict; the law may forbid it.",
        ),
        click.option(
            "--model",
            type=click.Choice(["network", "lightgbm"]),
            default="network",
            show_default=True,
            help="A linear model or network, or boosted trees (needs LightGBM).",
        ),
        click.option(
            "--method",
            type=click.Choice(["gradient", "decision", "auto"]),
            default="gradient",
            show_default=True,
            help="How it becomes fair: by the weights of its training, by fair decisions on the "
            "probabilities of a plain model, or whichever is better on the validation rows.",
        ),
        click.option(
            "--hidden",
            type=parse_layer_sizes,
            metavar="SIZE,SIZE",
            default="",
            help="Sizes of the hidden layers, such as 128,64,32 [default: none, a linear model].",
        ),
        number_option(
            "--epochs",
            "Passes over the training rows; with lightgbm, the number of trees.",
            click.IntRange(1),
        ),
        number_option("--batch-size", "Rows per training step.", click.IntRange(1)),
        number_option(
            "--seed", "Random seed.", click.IntRange(0, 2**31 - 1), default=0, show_default=True
        ),
    )


def frontier_options(points: str) -> Callable[[F], F]:
    """How many models to train, and which of them to take; `points` is the help of --points."""
    share = click.FloatRange(0, 1)
    return together(
        number_option(
            "--max-unfairness",
            "Train several models and choose the most accurate whose unfairness (mean |F|) is at "
            "most this.",
            share,
        ),
        number_option(
            "--min-accuracy",
            "Train several models and choose the fairest whose accuracy is at least this.",
            share,
        ),
        number_option("--points", points, click.IntRange(3), default=16, show_default=True),
    )


tolerance_option = click.option(
    "--tolerance",
    type=parse_tolerance,
    metavar="NUMBER|four_fifths",
    default="0.05",
    show_default=True,
    help="Largest |F| that counts as fair; four_fifths applies the 80 % rule to demographic "
    "parity.",
)
certify_option = click.option(
    "--certify",
    is_flag=True,
    help="Train several models and keep one only if it is certified, with 95 % confidence, to be "
    "fair within --tolerance on new people; else no model is written, and the exit code is 1.",
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["unfair", "undecided"]),
    help="Exit with code 1 if the verdict is unfair; with undecided, also if it is undecided.",
)
min_group_option = number_option(
    "--min-group",
    "Groups with fewer rows are shown, but not judged; below 1 a share of the rows, 0 to judge "
    "all.",
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
map_option = click.option(
    "--map",
    "value_map",
    type=parse_map,
    metavar="VALUE=LABEL,...",
    multiple=True,
    help="Which value of the target each predicted value stands for, such as 1=Passed,0=Failed "
    "(repeatable).",
)

audited_options = together(
    map_option,
    column_option("--weight", "Column of sample weights."),
    judged_option,
    given_option,
    tolerance_option,
    min_group_option,
    confidence_option,
    click.option("--report", metavar="FILE", help="HTML file to write the report to."),
)
"""What commands have in common that audit predictions of any system."""
counted_options = together(
    click.option(
        "--counts",
        is_flag=True,
        help="TABLE holds counts, as the query of --sql gives them: each of its rows stands for as "
        "many rows as its column n_rows says.",
    ),
    click.option(
        "--sql",
        type=click.Choice(SQL_DIALECTS),
        metavar="DIALECT",
        help=f"Print the query that counts the rows in a warehouse ({', '.join(SQL_DIALECTS)}), "
        "where TABLE is its name there; --counts audits its answer.",
    ),
)
"""Rows that are counted where they lie."""

over_options = together(
    column_option(
        "--over",
        "Column of dates: audit every period as well; --fail-on is then about the last one.",
    ),
    click.option(
        "--by",
        type=click.Choice(["day", "week", "month"]),
        default="month",
        show_default=True,
        help="The periods of --over.",
    ),
)
"""How levels move."""
force_option = click.option("--force", is_flag=True, help="Replace earlier output.")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of text and tables."
)
