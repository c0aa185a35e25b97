"""``fairgrad demo``: all of it on data that come with the package."""

from __future__ import annotations

import click

from fairgrad.cli import options


@click.command(short_help="See it on census data, in less than a minute.")
@click.option(
    "--out", metavar="FOLDER", default="fairgrad-demo", show_default=True, help="Folder to write."
)
@options.force_option
@options.json_option
def demo(out: str, force: bool, as_json: bool) -> int:
    """Train a plain and a fair model on census data, and show who gains what.

    Needs no network and less than a minute. An earlier demo in the same folder is replaced.
    """
    from fairgrad.cli.work import demo as work  # noqa: PLC0415 - keeps --help quick

    return work.run(out, force=force, as_json=as_json)
