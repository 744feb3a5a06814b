"""The command `topstory` and its subcommands."""

from typing import Annotated

import typer

from topstory import __version__
from topstory.cli.commands.choose import choose
from topstory.cli.commands.demo import demo
from topstory.cli.commands.evaluate import evaluate
from topstory.cli.commands.export import export
from topstory.cli.commands.features import features
from topstory.cli.commands.import_ import import_
from topstory.cli.commands.inspect import inspect
from topstory.cli.commands.journal import (
    backup_journal,
    exclude,
    export_journal,
    verify_journal,
)
from topstory.cli.commands.new_key import new_key
from topstory.cli.commands.plan import plan
from topstory.cli.commands.prior import prior
from topstory.cli.commands.promote import promote
from topstory.cli.commands.replay import replay
from topstory.cli.commands.serve import serve
from topstory.cli.commands.simulate import simulate
from topstory.cli.commands.split import split
from topstory.cli.commands.study import study
from topstory.cli.commands.train import train
from topstory.cli.commands.tune import tune
from topstory.cli.errors import reports_errors

app = typer.Typer(
    help="Learn which story to lead with, for each visitor.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for command in (
    *(simulate, import_, export, inspect, split, replay, tune, study, prior, train),
    *(evaluate, choose, plan),
    *(serve, export_journal, backup_journal, verify_journal, exclude, promote, new_key, demo),
):
    app.command(command.__name__.rstrip("_").replace("_", "-"))(reports_errors(command))
app.add_typer(features)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"topstory {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Learn which story to lead with, for each visitor."""
