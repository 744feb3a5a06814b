"""`topstory export`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import AsJson, LogFolder


def export(
    log: LogFolder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write.")],
    to: Annotated[
        str, typer.Option(metavar="FORMAT", help="What to write: obp, dsjson, jsonl or r6a.")
    ],
    json: AsJson = False,
) -> None:
    """Write a log for another tool: Open Bandit Pipeline, Vowpal Wabbit, JSON lines, Yahoo's text.

    An existing OUT is replaced. If the export fails, it stays as it was.
    """
    import topstory as ts
    from topstory.cli.output.consoles import print_json, print_line, stderr_console
    from topstory.cli.output.numbers import count
    from topstory.cli.output.progress import count_bar
    from topstory.cli.reports.export import ExportReport
    from topstory.events.formats.exporting import export_log
    from topstory.events.formats.registry import WRITERS

    if to not in WRITERS:
        raise typer.BadParameter(
            f"no format is called {to!r}; choose from {', '.join(WRITERS)}", param_hint="--to"
        )
    events = ts.EventLog.read(log)
    with count_bar(stderr_console(), "exporting", len(events)) as follow:
        files = export_log(events, to, out, follow)
    report = ExportReport(to, len(events), tuple(map(str, files)))
    if json:
        print_json(report)
    else:
        print_line(f"Wrote {count(report.events, 'event')} to {' and '.join(report.files)}")
