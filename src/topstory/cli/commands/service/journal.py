"""`topstory export-journal`, `backup-journal`, `verify-journal` and `exclude`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import AsJson

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="Data folder of a service, or the URL of its PostgreSQL journal."
    ),
]


def export_journal(
    data: Data,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write the log to.")],
    pool: Annotated[str, typer.Option(metavar="NAME", help="Pool to export.")] = "front",
    part: Annotated[
        str,
        typer.Option(
            metavar="PART",
            help="all: every bucket, with propensities over the traffic mix; uniform: only the "
            "uniform bucket, which is a log of random exploration.",
        ),
    ] = "all",
    unfinished: Annotated[
        bool,
        typer.Option("--unfinished", help="Include decisions that can still receive feedback."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Export the journal of a service as a log that `topstory replay` reads.

    The service may be running. An existing log in OUT is replaced. If the export fails, it stays
    as it was. What `topstory exclude` excluded is left out, and counted.
    """
    from topstory.cli.output.consoles import print_json, print_line
    from topstory.cli.output.numbers import count
    from topstory.serving.journal.clock import Clock
    from topstory.serving.journal.connect import journal_of
    from topstory.serving.state.pool import FOREVER
    from topstory.serving.upkeep.journal_export import export

    if part not in ("all", "uniform"):
        raise typer.BadParameter(f"choose all or uniform, got {part!r}", param_hint="--part")
    journal = journal_of(data)
    try:
        now = FOREVER if unfinished else Clock(after=journal.last()[1]).now()
        report = export(journal, out, pool, "all" if part == "all" else "uniform", now)
    finally:
        journal.close()
    if json:
        print_json(report)
        return
    left_out = [
        f"{count(number, what)} that {why}"
        for number, what, why in (
            (report.open, "decision", "can still receive feedback"),
            (report.excluded, "decision", "an operator excluded"),
            (report.excluded_payoffs, "payoff", "an operator excluded"),
            (report.earlier, "decision", "had another feature model"),
        )
        if number
    ]
    more = f"; left out {', '.join(left_out)}" if left_out else ""
    print_line(f"Wrote {count(report.events, 'event')} to {out}{more}")


def backup_journal(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to create.")],
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file of the service. It is copied too."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Data folder, if not the configured one."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Copy everything that a service needs to be restored, and check that the copy opens.

    The service may be running, and is not held up. OUT is a data folder: to restore, set `data` to
    it, or to a copy of it, and start. If the backup fails, no OUT is left behind.
    """
    import msgspec

    from topstory.cli.output.consoles import print_json, print_line, stderr_console
    from topstory.cli.output.numbers import count
    from topstory.serving.config.loading import read_config
    from topstory.serving.upkeep.backup import back_up

    settings = read_config(config)
    if data is not None:
        settings = msgspec.structs.replace(settings, data=str(data))
    with stderr_console().status("copying") as status:
        report = back_up(settings, out, config, status.update)
    if json:
        print_json(report)
        return
    print_line(
        f"Backed up records up to {report.record:,} ({report.at:%Y-%m-%d %H:%M:%S} UTC) to {out}: "
        f"{report.bytes / 1e6:,.1f} MB, {count(report.snapshots, 'snapshot')}, "
        f"{count(report.archived, 'archived log')}. Checked: the copy opens and is complete."
    )


def verify_journal(data: Data, json: AsJson = False) -> None:
    """Check every record of a journal: its checksum, and that none is missing.

    The service may be running. If a record is damaged, this names the first one and exits with
    status 1. A start checks only what it reads: the records after the newest snapshot.
    """
    from topstory.cli.output.consoles import print_json, print_line
    from topstory.serving.upkeep.verification import verify

    report = verify(data)
    if json:
        print_json(report)
        return
    chained = (
        f"None is missing after record {report.chained_from:,}"
        if report.chained_from is not None
        else "It was written before version 0.2 and has no checksums: every record can be read. "
        "The next start of the service adds them"
    )
    print_line(
        f"Checked {report.records:,} records up to number {report.last:,}: all are as they were "
        f"written. {chained}."
    )


def exclude(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TOML file of the service.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Data folder, if not the configured one."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was sent with this API key.")
    ] = None,
    visitor: Annotated[
        str | None, typer.Option(metavar="ID", help="What was shown to this visitor.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="From then on, such as 2026-05-01T12:00 (UTC)."),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Before then.")] = None,
    json: AsJson = False,
) -> None:
    """Undo what a key or a visitor taught a service, or all that it learned in a time.

    Stop the service first. The journal keeps every record, and one more that excludes these: from
    the next start on, the state is exactly what it would be without them. Give at least one of
    --key, --visitor, --since and --until; all that are given must hold.
    """
    import msgspec

    from topstory.cli.output.consoles import print_json, print_line
    from topstory.cli.output.numbers import count
    from topstory.serving.config.loading import read_config
    from topstory.serving.upkeep.excluding import exclude as append

    if key is None and visitor is None and since is None and until is None:
        raise typer.BadParameter("give at least one of --key, --visitor, --since and --until")
    times = [_time(name, text) for name, text in (("--since", since), ("--until", until))]
    settings = read_config(config)
    if data is not None:
        settings = msgspec.structs.replace(settings, data=str(data))
    report = append(settings, key, visitor, *times)
    if json:
        print_json(report)
    elif report.record is None:
        print_line("Nothing to exclude: no decision or payoff matches.")
    else:
        print_line(
            f"Excluded {count(report.decisions, 'decision')} and {count(report.payoffs, 'payoff')} "
            f"(record {report.record:,}). Start the service: it folds its state again without them."
        )


def _time(option: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"expected a time such as 2026-05-01T12:00, got {text!r}", param_hint=option
        ) from None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when
