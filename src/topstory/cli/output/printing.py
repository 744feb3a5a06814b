"""An answer on standard output: a table, or one JSON document."""

import msgspec
import typer

from topstory.cli.output.consoles import answers
from topstory.cli.reports.replay import Report


def print_report(report: Report, json: bool) -> None:
    """Print replays."""
    if json:
        print_json(report)
    else:
        from topstory.cli.output.tables import show_report

        show_report(report, answers())


def print_json(record: msgspec.Struct) -> None:
    """Print a record as JSON, laid out for people too."""
    typer.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())
