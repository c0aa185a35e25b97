"""``fairgrad-bench``, also ``fairgrad bench``: experiments run, resumed, tabulated and drawn.

Nothing large is imported before a command runs: ``--help`` is quick.
"""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    AnyCommand = TypeVar("AnyCommand", bound=Callable[..., Any])

FAILED, STOPPED = 2, 130
PLANS = (
    "paper",
    "smoke",
    "batch-size",
    "epsilon",
    "fairness-rate",
    "fairness-rate-networks",
)
"""As `fairgrad_bench.plan.PLANS`, which is not imported for the sake of a quick --help."""

SOURCES = ("fairprojection", "linearpost", "oxonfair", "ffb", "abcfair", "utkface")
"""Of published tables, each a module of `fairgrad_bench.published`; cheap ones first."""


class NameList(click.ParamType):  # type: ignore[type-arg]  # generic only in new versions of click
    """``adult,german`` as a tuple."""

    name = "name,name"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:  # noqa: ARG002 - click's
        """Splits at commas."""
        if isinstance(value, tuple):
            return value
        return tuple(part.strip() for part in str(value).split(",") if part.strip())


class SeedList(NameList):
    """``10,20`` as numbers."""

    name = "seed,seed"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Whole numbers."""
        parts = super().convert(value, param, ctx)
        try:
            return tuple(int(part) for part in parts)
        except ValueError:
            return self.fail(f"{value!r} is not a list of whole numbers such as 10,20", param, ctx)


def folder_option(name: str, default: str, words: str) -> Callable[[AnyCommand], AnyCommand]:
    """An option that names a folder."""
    return click.option(name, metavar="FOLDER", default=default, show_default=True, help=words)


records_option = folder_option(
    "--records", "bench-records", "Folder of the records, one file per finished unit."
)


jobs_option = click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes to use."
)
cluster_option = click.option(
    "--cluster", metavar="ADDRESS", help="Run on the dask scheduler at this address."
)


@click.group()
def bench() -> None:
    """Run the paper's experiments and published comparisons."""


@bench.command()
@click.option("--plan", type=click.Choice(PLANS), default="paper", show_default=True, help="Plan.")
@click.option("--datasets", type=NameList(), help='Data sets, such as "adult,gaussian:rows=2000".')
@click.option("--models", type=NameList(), help="linear, nonlinear, lightgbm, or several.")
@click.option("--measures", type=NameList(), help="Fairness measures.")
@click.option("--methods", type=NameList(), help="Methods; module:NAME for your own.")
@click.option("--seeds", type=SeedList(), help="Seeds of the splits.")
@click.option("--grid", type=click.Choice(["paper", "quick"]), help="Combinations to train.")
@click.option("--epochs", type=click.IntRange(1), help="Passes over the training rows.")
@jobs_option
@cluster_option
@records_option
def run(plan: str, records: str, jobs: int, cluster: str | None, **choices: Any) -> int:
    """Train all units of a plan that have no record yet.

    Options that you leave out take the plan's values. The same command resumes an interrupted
    run and tries failed units again.
    """
    from fairgrad_bench.plan import named_plan  # noqa: PLC0415 - keeps --help quick
    from fairgrad_bench.running import run as run_plan  # noqa: PLC0415 - as above

    with _stopping_keeps_records():
        chosen = named_plan(plan).narrowed(**choices)
        outcome = run_plan(chosen, records, jobs=jobs, cluster=cluster)
    click.echo(outcome.describe())
    return FAILED if outcome.failed else 0


@bench.command()
@records_option
@folder_option("--out", "bench-results", "Folder to write the tables into.")
@click.option(
    "--merge",
    metavar="FOLDER",
    help="Folder of earlier results, kept without records: units with no record are taken from it.",
)
def tables(records: str, out: str, merge: str | None) -> int:
    """Write the results as CSV and Markdown tables.

    Shows the paper's figures beside ours, with a verdict on each row. `units.csv` lists the
    versions of the packages that made each unit.
    """
    from fairgrad_bench.records import read_records  # noqa: PLC0415 - as above
    from fairgrad_bench.results import BenchResults  # noqa: PLC0415 - as above

    results = BenchResults.from_records(read_records(records))
    if merge is not None:
        results = results.merged(BenchResults.from_folder(merge))
    for path in results.write(out):
        click.echo(str(path))
    return 0


@bench.command()
@folder_option("--results", "bench-results", "Folder that `tables` wrote into.")
@click.option("--out", metavar="FILE", required=True, help="Markdown file to write.")
def page(results: str, out: str) -> int:
    """Write the summary and the page of all figures from CSV results.

    For results that were kept without their records.
    """
    from fairgrad_bench.results import BenchResults  # noqa: PLC0415 - as above

    for path in BenchResults.from_folder(results).write_pages(out):
        click.echo(str(path))
    return 0


@bench.command()
@records_option
@folder_option("--out", "bench-results/figures", "Folder to write the figures into.")
@click.option(
    "--formats", type=NameList(), default=("png",), show_default="png", help="png, svg or both."
)
def figures(records: str, out: str, formats: tuple[str, ...]) -> int:
    """Draw the results as figures.

    Accuracy against unfairness, and the experiments over batch size and epsilon.
    """
    from fairgrad_bench.figures import write_figures  # noqa: PLC0415 - as above
    from fairgrad_bench.records import read_records  # noqa: PLC0415 - as above
    from fairgrad_bench.results import BenchResults  # noqa: PLC0415 - as above

    for path in write_figures(BenchResults.from_records(read_records(records)), out, formats):
        click.echo(str(path))
    return 0


@bench.command()
@click.option(
    "--epochs", type=click.IntRange(1), default=20, show_default=True, help="Epochs to measure."
)
@click.option(
    "--large/--no-large", default=True, help="The networks of ResNet18's and BERT's size."
)
@folder_option("--out", "bench-results", "Folder to write the table and the figure into.")
def overhead(epochs: int, large: bool, out: str) -> int:
    """Measure what fairness costs in training time.

    Seconds per epoch of the paper's networks. Nothing else should run on the machine meanwhile.
    """
    from fairgrad_bench.overhead import measure_overhead, write_overhead  # noqa: PLC0415 - as above

    for path in write_overhead(measure_overhead(epochs, large=large), out):
        click.echo(str(path))
    return 0


@bench.command()
@records_option
@folder_option("--out", "bench-results", "Folder to write the results into.")
@click.option(
    "--page", metavar="FILE", default="reproduction.md", show_default=True, help="Page to write."
)
@jobs_option
@click.option("--datasets", type=NameList(), help="Only these data sets.")
@click.option("--seeds", type=SeedList(), help="Seeds of the splits.")
@click.option(
    "--overhead-epochs",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Epochs to measure what fairness costs in time; 0 leaves that out.",
)
def reproduce(
    records: str,
    out: str,
    page: str,
    jobs: int,
    overhead_epochs: int,
    datasets: tuple[str, ...] | None,
    seeds: tuple[int, ...] | None,
) -> int:
    """Run all experiments, and write the page that shows them.

    Takes days on one core. The same command resumes an interrupted run. The page is written
    after every stage.
    """
    from fairgrad_bench.reproduction import narrowed_stages  # noqa: PLC0415 - as above
    from fairgrad_bench.reproduction import reproduce as run_all  # noqa: PLC0415 - as above

    with _stopping_keeps_records():
        stages = narrowed_stages(datasets, seeds)
        outcomes = run_all(records, out, page, jobs=jobs, epochs=overhead_epochs, stages=stages)
    for outcome in outcomes:
        click.echo(outcome.describe())
    return FAILED if any(outcome.failed for outcome in outcomes) else 0


@bench.command()
@click.option("--sources", type=NameList(), default=SOURCES, help="Sources [default: all].")
@click.option("--seeds", type=click.IntRange(0), help="At most this many seeds; 0 only tabulates.")
@click.option("--only", default="*", help='Pattern, such as "* / Adult, sex / network* / *".')
@jobs_option
@cluster_option
@folder_option("--records", "published-records", "Folder of the records, one file per model.")
@folder_option("--out", "bench-results", "Folder to write the tables into.")
@click.option("--merge", metavar="FOLDER", help="Earlier tables: rows with more seeds are kept.")
@click.option("--page", metavar="FILE", help="Page whose tables are made anew.")
def published(
    sources: tuple[str, ...],
    records: str,
    out: str,
    merge: str | None,
    page: str | None,
    **choices: Any,
) -> int:
    """Make our rows of published tables.

    Follows the protocol of each source, with the defaults for FairGrad. Writes one table per
    source, their rows and ours, and compares the baselines. The same command resumes an
    interrupted run.
    """
    from fairgrad.files import write_whole  # noqa: PLC0415 - as above
    from fairgrad_bench.published import (  # noqa: PLC0415 - as above
        differing,
        run_published,
        with_tables,
        write_published,
    )

    unknown = [name for name in sources if name not in SOURCES]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r}; expected some of {', '.join(SOURCES)}.")
    with _stopping_keeps_records():
        done = run_published(sources, records, **choices)
    for line in (*write_published(records, out, merge), *differing(out)):
        click.echo(str(line))
    if page is not None:
        write_whole(Path(page), with_tables(Path(page).read_text(encoding="utf-8"), out))
    failures = [record for record in done if record.status == "failed"]
    for record in failures:
        click.echo(f"failed: {record.unit}: {record.reason}", err=True)
    return FAILED if failures else 0


@bench.command()
@click.option("--task", help="Run this task only, in this process, and print its figures as JSON.")
@folder_option("--out", "bench-results", "Folder to write the table into.")
def large(task: str | None, out: str) -> int:
    """Measure time and memory on a large table.

    665,800 rows of ACSIncome; each task has its own process.
    """
    from fairgrad_bench.published.large import measure_large, run_task  # noqa: PLC0415 - as above

    click.echo(run_task(task) if task else str(measure_large(out)))
    return 0


@bench.group()
def data() -> None:
    """List, download and describe the data sets."""


@data.command("list")
def list_all() -> int:
    """List the data sets, their licences, and where a copy of each is."""
    from fairgrad_bench.datasets import overview  # noqa: PLC0415 - as above

    for entry in overview():
        place = entry.place or ("can be fetched" if entry.fetchable else "obtain it yourself")
        click.echo(f"{entry.name}: {entry.title}. Licence: {entry.licence}. Location: {place}.")
    return 0


@data.command()
@click.argument("name")
@click.option("--carrier", help="Source to download from, such as publisher [default: try all].")
def fetch(name: str, carrier: str | None) -> int:
    """Download the data set NAME into the cache; its hash is checked."""
    from fairgrad_bench.datasets import fetch as fetch_files  # noqa: PLC0415 - as above

    fetch_files(name, carrier=carrier, show=click.echo)
    return 0


@data.command()
@click.argument("name")
def describe(name: str) -> int:
    """Describe the data set NAME: rows, labels, groups, groups too small to trust."""
    from fairgrad_bench.datasets import describe as describe_dataset  # noqa: PLC0415 - as above

    click.echo(describe_dataset(name))
    return 0


@contextmanager
def _stopping_keeps_records() -> Iterator[None]:
    """Says on Ctrl-C that nothing is lost, which is true of no other command."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, _stop) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _stop(*_: object) -> NoReturn:
    click.echo("\nStopped. Finished units are kept; the same command resumes.", err=True)
    sys.exit(STOPPED)


def main() -> NoReturn:
    """Runs the program and exits with its code; errors look like those of `fairgrad`."""
    from fairgrad.cli import main as run_command  # noqa: PLC0415 - it loads this very module

    run_command(command=bench, name="fairgrad-bench")
