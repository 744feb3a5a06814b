"""`topstory export`."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer


class ExportReport(msgspec.Struct, frozen=True):
    """What was written for another tool."""

    to: str
    events: int
    files: tuple[str, ...]


def export(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log's folder.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="What to write: obp, dsjson, jsonl or r6a.")
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a sentence.")
    ] = False,
) -> None:
    """Write a log for another tool: Open Bandit Pipeline, Vowpal Wabbit, JSON lines, Yahoo's text.

    OUT is written whole or not at all, and replaces the file that is there.
    """
    import topstory as ts
    from topstory.cli.output.consoles import answers
    from topstory.cli.output.following import following
    from topstory.cli.output.numbers import count
    from topstory.cli.output.printing import print_json
    from topstory.events.formats.exporting import export as write
    from topstory.events.formats.registry import WRITERS

    if to not in WRITERS:
        raise typer.BadParameter(
            f"none is called {to!r}; there are {', '.join(WRITERS)}", param_hint="--to"
        )
    events = ts.EventLog.read(log)
    with following("exporting", len(events)) as follow:
        files = write(events, to, out, follow)
    report = ExportReport(to, len(events), tuple(map(str, files)))
    if json:
        print_json(report)
    else:
        names = " and ".join(report.files)
        answers().print(f"{count(report.events, 'event')} into {names}", markup=False)
