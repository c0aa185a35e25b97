"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

MEASURES = (
    "equalized_odds",
    "equality_of_opportunity",
    "demographic_parity",
    "accuracy_parity",
    "four_fifths_rule",
)
"""As `fairgrad.measures.MEASURES`, which is not imported for --help's sake."""


class Bins(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions of click
    """``age=25,60`` as a name and its edges."""

    name = "column=edge,edge"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, list[float]]:
        """Splits at the last equals sign, as names may hold one."""
        if isinstance(value, tuple):
            return value
        column, sign, edges = str(value).rpartition("=")
        try:
            numbers = [float(edge) for edge in edges.split(",")]
        except ValueError:
            numbers = []
        if not sign or not column or not numbers:
            self.fail(f"{value!r} is not of the form column=25,60", param, ctx)
        return column, numbers


class Sizes(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions of click
    """``128,64,32`` as layer sizes."""

    name = "units,units"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        """Whole numbers above 0."""
        if isinstance(value, tuple):
            return value
        try:
            sizes = tuple(int(size) for size in str(value).split(",") if size.strip())
        except ValueError:
            sizes = (0,)
        if not all(size > 0 for size in sizes):
            self.fail(f"{value!r} is not a list of layer sizes such as 128,64,32", param, ctx)
        return sizes


class Tolerance(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions of click
    """A number, or the 80 % rule."""

    name = "number|four_fifths"

    def convert(self, value: Any, param: Any, ctx: Any) -> float | str:
        """A share between 0 and 1, or "four_fifths"."""
        if value == "four_fifths":
            return "four_fifths"
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 1:
            self.fail(f"{value!r} is neither a number from 0 to 1 nor four_fifths", param, ctx)
        return number


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def people_options(*, required: bool = True) -> Callable[[F], F]:
    """What is predicted, and who is to be treated alike."""
    return together(
        click.option("--target", metavar="COLUMN", required=required, help="Column to predict."),
        click.option(
            "--sensitive",
            metavar="COLUMN",
            multiple=True,
            required=required,
            help="Column whose groups are to be treated alike; repeat it for several.",
        ),
        click.option(
            "--positive",
            metavar="VALUE",
            help="The desirable value of the target [default: of two, the last in order].",
        ),
        click.option(
            "--bins",
            type=Bins(),
            multiple=True,
            help='How to cut a sensitive column of numbers into groups: "age=25,60"; repeat.',
        ),
    )


def feature_options() -> Callable[[F], F]:
    """Which other columns are features, and how they are read."""
    return together(
        click.option("--drop", metavar="COLUMN", multiple=True, help="Column not to use; repeat."),
        click.option(
            "--categorical",
            metavar="COLUMN",
            multiple=True,
            help="Column whose numbers are mere codes; repeat.",
        ),
    )


def training_options() -> Callable[[F], F]:
    """How to train."""
    return together(
        click.option(
            "--measure",
            type=click.Choice(MEASURES),
            metavar="MEASURE",
            default="equalized_odds",
            show_default=True,
            help=f"What fair means: {', '.join(MEASURES)}.",
        ),
        click.option(
            "--separate",
            is_flag=True,
            help="Make each sensitive column fair by itself, not their combinations.",
        ),
        click.option(
            "--use-sensitive", is_flag=True, help="Let the model see the sensitive columns."
        ),
        click.option(
            "--model",
            type=click.Choice(["network", "lightgbm"]),
            default="network",
            show_default=True,
            help="A linear model or network, or boosted trees (needs LightGBM).",
        ),
        click.option(
            "--hidden",
            type=Sizes(),
            default="",
            help="Units of hidden layers, such as 128,64,32 [default: a linear model].",
        ),
        click.option(
            "--epochs",
            type=click.IntRange(1),
            metavar="NUMBER",
            help="Passes over the rows; of boosted trees, how many there are.",
        ),
        click.option(
            "--batch-size", type=click.IntRange(1), metavar="NUMBER", help="Rows per step."
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**31 - 1),
            metavar="NUMBER",
            default=0,
            show_default=True,
            help="Of the split and the training; the same seed gives the same model.",
        ),
    )


def bound_options() -> Callable[[F], F]:
    """Which model of a frontier to take."""
    return together(
        click.option(
            "--max-unfairness",
            type=click.FloatRange(0, 1),
            metavar="NUMBER",
            help="Take the most accurate of many models that is at most so unfair (mean |F|).",
        ),
        click.option(
            "--min-accuracy",
            type=click.FloatRange(0, 1),
            metavar="NUMBER",
            help="Take the fairest of many models that is at least so accurate.",
        ),
    )


def tolerance_option() -> Callable[[F], F]:
    """What is still fair."""
    return click.option(
        "--tolerance",
        type=Tolerance(),
        default="0.05",
        show_default=True,
        help="The largest |F| still called fair; four_fifths for the 80 % rule on demographic "
        "parity.",
    )


fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["unfair"]),
    help="Leave with exit code 1 if the verdict is this; for automatic checks.",
)
force_option = click.option("--force", is_flag=True, help="Replace an earlier output.")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for machines instead of tables."
)
