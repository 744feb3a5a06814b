"""`topstory serve`, `topstory export-journal`, `topstory backup-journal`, `topstory new-key`."""

from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A TOML file; see the operations page.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Listen here instead of as configured.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65535, help="And on this port; 0: any.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep the journal and the state here.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=64,
            help="Answer with this many processes, beside one that learns; 1: one does all.",
        ),
    ] = None,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Say whether the configuration is good, and end.")
    ] = False,
) -> None:
    """Put a policy live: decide, learn and survive, over HTTP.

    Without a file it listens on 127.0.0.1:8000 with the demo's twenty articles, and makes a key
    that it tells once. What is acknowledged is on disk: `kill -9` loses nothing.
    """
    import msgspec

    from topstory.cli.output.consoles import answers
    from topstory.serving.config.loading import check_files, read_config
    from topstory.serving.config.open_files import needed

    settings = read_config(config)
    folder = None if data is None else str(data)
    given = {"host": host, "port": port, "data": folder, "workers": workers}
    settings = msgspec.structs.replace(
        settings, **{key: value for key, value in given.items() if value is not None}
    )
    if config is None:
        settings = msgspec.structs.replace(settings, demo=True)
    console = answers()
    if check_config:
        check_files(settings)
        needed(settings)
        where = "the defaults" if config is None else config
        console.print(
            f"{where}: good; pools: {', '.join(settings.pools)}", markup=False, soft_wrap=True
        )
        return
    from topstory.serving.server import serve as run

    run(settings, lambda words: typer.echo(words))


def export_journal(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="A service's data folder, or the URL of its PostgreSQL journal."
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The log's folder to write.")],
    pool: Annotated[str, typer.Option(metavar="NAME", help="Which pool.")] = "front",
    part: Annotated[
        str,
        typer.Option(
            metavar="PART",
            help="all: every bucket, with propensities over the traffic mix; uniform: the uniform "
            "bucket alone, a log of random exploration.",
        ),
    ] = "all",
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also decisions whose payoff may still come.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a sentence.")
    ] = False,
) -> None:
    """Write a service's journal as a log that `topstory replay` reads.

    The service may be running. OUT is there whole or not at all, and replaces a log that is there.
    """
    from topstory.cli.output.consoles import answers
    from topstory.cli.output.numbers import count
    from topstory.cli.output.printing import print_json
    from topstory.serving.journal.clock import Clock
    from topstory.serving.journal.connect import journal_of
    from topstory.serving.state.pool import FOREVER
    from topstory.serving.upkeep.journal_export import export

    if part not in ("all", "uniform"):
        raise typer.BadParameter(f"{part!r} is not all or uniform", param_hint="--part")
    journal = journal_of(data)
    try:
        now = FOREVER if unfinished else Clock(after=journal.last()[1]).now()
        told = export(journal, out, pool, "all" if part == "all" else "uniform", now)
    finally:
        journal.close()
    if json:
        print_json(told)
    else:
        left = f"; {count(told.open, 'decision')} still open, left out" if told.open else ""
        answers().print(f"{count(told.events, 'event')} into {out}{left}", markup=False)


def backup_journal(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to make.")],
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The service's TOML file. It is copied too."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Its data folder, if not as configured.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a sentence.")
    ] = False,
) -> None:
    """Copy all that a service needs to go on elsewhere, and check that the copy can be opened.

    The service may be running, and does not wait. OUT is there whole or not at all; it is a data
    folder: to restore, let `data` name it, or a copy of it, and start.
    """
    import msgspec

    from topstory.cli.output.consoles import answers, remarks
    from topstory.cli.output.numbers import count
    from topstory.cli.output.printing import print_json
    from topstory.serving.config.loading import read_config
    from topstory.serving.upkeep.backup import back_up

    settings = read_config(config)
    if data is not None:
        settings = msgspec.structs.replace(settings, data=str(data))
    with remarks().status("copying") as status:
        told = back_up(settings, out, config, status.update)
    if json:
        print_json(told)
        return
    answers().print(
        f"records up to {told.record:,} ({told.at:%Y-%m-%d %H:%M:%S} UTC) into {out}: "
        f"{told.bytes / 1e6:,.1f} MB with {count(told.snapshots, 'snapshot')} and "
        f"{count(told.archived, 'archived log')}; it was opened, and is whole",
        markup=False,
        soft_wrap=True,
    )


def new_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")],
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="decide, feedback, edit or read; repeated. All if none."),
    ] = None,
) -> None:
    """Make an API key: it is printed once, with the lines for the configuration that has its hash.

    The service itself never knows the key.
    """
    from topstory.serving.api.endpoints import ROLES
    from topstory.serving.security.api_keys import new_key as make
    from topstory.serving.security.secret_files import key_entry

    for each in role or ():
        if each not in ROLES:
            raise typer.BadParameter(f"{each!r} is not {', '.join(ROLES)}", param_hint="--role")
    if not name.isprintable() or '"' in name or "\\" in name or not 0 < len(name) <= 64:
        raise typer.BadParameter("a name is 1 to 64 plain characters", param_hint="NAME")
    key, digest = make()
    typer.echo(f"{key}\n\n{key_entry(name, digest, tuple(role or ROLES))}", nl=False)
