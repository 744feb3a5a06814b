"""The command `topstory` and its subcommands."""

from typing import Annotated

import typer

from topstory import __version__
from topstory.cli.commands.compile_ import compile_
from topstory.cli.commands.demo import demo
from topstory.cli.commands.evaluation.choose import choose
from topstory.cli.commands.evaluation.evaluate import evaluate
from topstory.cli.commands.evaluation.plan import plan
from topstory.cli.commands.evaluation.propensities import propensities
from topstory.cli.commands.evaluation.replay import replay
from topstory.cli.commands.evaluation.study import study
from topstory.cli.commands.evaluation.tune import tune
from topstory.cli.commands.learning.features import features
from topstory.cli.commands.learning.prior import prior
from topstory.cli.commands.learning.train import train
from topstory.cli.commands.logs.export import export
from topstory.cli.commands.logs.import_ import import_
from topstory.cli.commands.logs.inspect import inspect
from topstory.cli.commands.logs.simulate import simulate
from topstory.cli.commands.logs.split import split
from topstory.cli.commands.service.journal import (
    backup_journal,
    exclude,
    export_journal,
    verify_journal,
)
from topstory.cli.commands.service.new_key import new_key
from topstory.cli.commands.service.place import place
from topstory.cli.commands.service.promote import promote
from topstory.cli.commands.service.serve import serve
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
    *(evaluate, choose, plan, propensities),
    *(serve, place, promote, export_journal, backup_journal, verify_journal, exclude, new_key),
    demo,
    compile_,
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
