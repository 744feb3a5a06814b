"""`topstory import`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topstory.cli.arguments import AsJson
from topstory.events.formats.registry import READERS

if TYPE_CHECKING:
    from rich.console import Console

    from topstory.events.formats.importing import ImportReport


def import_(
    format: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help=f"What the files are: {', '.join(READERS[:-1])} or {READERS[-1]}.",
        ),
    ],
    file: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE... OUT",
            help="Files in order of time, which may be gzipped; and last the folder to write the "
            "log to.",
        ),
    ],
    map: Annotated[
        Path | None,
        typer.Option(
            metavar="TOML",
            help="csv, jsonl, parquet: mapping that says what your columns are "
            "(docs/guides/your-data.md).",
        ),
    ] = None,
    suggest: Annotated[
        bool,
        typer.Option(
            "--suggest",
            help="csv, jsonl, parquet: print a mapping for FILE, made from its columns and first "
            "rows, and import nothing. There is no OUT then.",
        ),
    ] = False,
    query: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="csv, jsonl, parquet: import the rows of a query, in which the files are the "
            "table `events`. Needs the extra sql.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail at the first bad row.")] = False,
    max_bad: Annotated[
        float,
        typer.Option(
            metavar="X",
            min=0,
            max=1,
            help="Fail if more than this share of the rows is bad, or of the bytes damaged.",
        ),
    ] = 0.01,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="Option of the format (see docs/guides/importing.md), or setting of the mapping, "
            "such as shown=item or user.country=category; may be repeated.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of processes that parse dsjson, vw or jsonl. Default: as many as help.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Import a log in another format into a folder that every command reads.

    Bad rows are skipped and counted by reason; the first row of each reason is shown with its file
    and line. If the import fails, OUT stays as it was.
    """
    from topstory.cli.output.consoles import print_json, stderr_console, stdout_console
    from topstory.cli.output.progress import byte_bar
    from topstory.events.formats.importing import check_options, import_log
    from topstory.events.formats.source_files import find_files

    if format not in READERS:
        raise typer.BadParameter(
            f"no format is called {format!r}; choose from {', '.join(READERS)}", param_hint="FORMAT"
        )
    options: dict[str, Any] = _options(option)
    options |= {} if map is None else {"map": map}
    options |= {} if query is None else {"query": query}
    if suggest:
        print_suggestion(format, file, options.get("articles.file", options.get("articles")))
        return
    check_options(format, options)
    if len(file) < 2:
        raise typer.BadParameter(
            "it is missing: name the folder for the log after the file, such as "
            f"topstory import {format} {file[0]} logs/",
            param_hint="OUT",
        )
    *names, folder = file
    out = Path(folder)
    if out.is_file():
        raise typer.BadParameter(
            f"{out} is a file, and the last argument is the folder for the log", param_hint="OUT"
        )
    files = find_files(names)
    size = sum(path.stat().st_size for path in files)
    with byte_bar(stderr_console(), "importing", size) as follow:
        report = import_log(
            format,
            files,
            out,
            strict=strict,
            max_bad=max_bad,
            workers=workers,
            progress=follow,
            **options,
        )
    if json:
        print_json(report)
    else:
        _show(report, out, stdout_console())


def print_suggestion(format: str, files: list[str], articles: str | None) -> None:
    """Print a mapping for the first file."""
    from topstory.events.formats.mapped.suggestion import suggest_mapping
    from topstory.events.formats.source_files import find_files

    path = find_files(files)[0]
    listed = None if articles is None else Path(articles)
    typer.echo(suggest_mapping(format, path, listed), nl=False)


def _options(given: list[str] | None) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"expected NAME=VALUE, got {text!r}", param_hint="--option")
        options[name.replace("-", "_")] = value
    return options


def _show(report: "ImportReport", out: Path, console: "Console") -> None:
    from topstory.cli.output.numbers import count, rate

    console.print(
        f"Wrote {count(report.events, 'event')} to {out}: read {count(report.rows, 'row')} and "
        f"{report.bytes / 1e6:,.1f} MB in {report.seconds:.1f} s, "
        f"{rate(report.events / report.seconds)}, "
        f"{report.bytes / report.seconds / 1e6:,.0f} MB/s",
        markup=False,
        soft_wrap=True,
    )
    if report.lost_bytes:
        console.print(
            f"\nNot read: {report.lost_bytes:,} bytes of damaged files, "
            f"{report.lost_bytes / report.bytes:.2%} of all",
            markup=False,
            soft_wrap=True,
        )
    for title, found in (
        ("Skipped", report.skipped),
        ("Left out", report.left_out),
        ("Kept", report.noted),
    ):
        for reason, rows in sorted(found.items(), key=lambda item: -item[1]):
            first = report.first[reason]
            line = f":{first.line}" if first.line else ""  # 0: it is about the file
            text = f": {first.text}" if first.text else ""
            console.print(
                f"\n{title} {count(rows, 'row')}: {reason}\n  first at {first.file}{line}{text}",
                markup=False,
                soft_wrap=True,
            )
