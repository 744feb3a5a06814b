"""`topstory split`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import AsJson, LogFolder


def split(
    log: LogFolder,
    first: Annotated[Path, typer.Argument(metavar="OUT1", help="Folder for the earlier part.")],
    second: Annotated[Path, typer.Argument(metavar="OUT2", help="Folder for the later part.")],
    at: Annotated[
        str,
        typer.Option(
            metavar="TIME|SHARE",
            help="Where to cut: a time, such as 2026-03-02 or 2026-03-02T12:00, which begins the "
            "later part; or a share of the events, such as 0.8 or 80%.",
        ),
    ],
    json: AsJson = False,
) -> None:
    """Cut a log in two: one part to learn or tune on, and a later one to judge on.

    Existing logs in OUT1 and OUT2 are replaced.
    """
    import topstory as ts
    from topstory.cli.output.consoles import print_json, print_line
    from topstory.cli.output.numbers import count
    from topstory.cli.reports.split import PartReport, SplitReport
    from topstory.events.folder.contents import check_replaceable

    places = [Path(path).resolve() for path in (log, first, second)]
    if len(set(places)) < 3:
        raise typer.BadParameter(
            "LOG, OUT1 and OUT2 must be three different folders", param_hint="OUT2"
        )
    events = ts.EventLog.read(log)
    parts = events.split(parse_at(at))
    for path in (first, second):  # both, before either is written
        if path.exists():
            check_replaceable(path)
    for part, path in zip(parts, (first, second), strict=True):
        part.write(path)
    report = SplitReport(
        "topstory-split",
        1,
        str(log),
        tuple(
            PartReport(str(path), len(part), "" if part.times is None else part.times.span())
            for part, path in zip(parts, (first, second), strict=True)
        ),
    )
    if json:
        print_json(report)
        return
    for part_ in report.parts:
        when = f", {part_.span}" if part_.span else ""
        print_line(f"Wrote {count(part_.events, 'event')} to {part_.log}{when}")


def parse_at(text: str) -> float | str:
    """A share, or a time as text.

    >>> parse_at("0.8"), parse_at("80%"), parse_at("2026-03-02")
    (0.8, 0.8, '2026-03-02')
    """
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return text
