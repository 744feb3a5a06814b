"""`topstory serve`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Role(StrEnum):
    """What a machine does."""

    ALONE = "alone"
    FRONT = "front"
    LEARNER = "learner"
    ALL = "all"


def serve(
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TOML file; see the configuration page."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=65535, help="Port to listen on; 0 picks a free one."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the journal and the state.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=64,
            help="Number of processes that answer requests, beside one that learns. With 1, a "
            "single process does both.",
        ),
    ] = None,
    role: Annotated[
        Role | None,
        typer.Option(
            help="In a fleet, whose machines share a PostgreSQL journal: answer requests, learn, "
            "or both, which is the default with such a journal. Or serve alone, which is the "
            "default without one, and with several workers.",
        ),
    ] = None,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            help="Wait until the service that owns the PostgreSQL journal is gone, then take over. "
            "In a fleet every machine does so by itself.",
        ),
    ] = False,
    accept_lost_tail: Annotated[
        bool,
        typer.Option(
            "--accept-lost-tail",
            help="Start though the journal has lost its last records, and record the loss in it.",
        ),
    ] = False,
    set_clock: Annotated[
        bool,
        typer.Option(
            "--set-clock",
            "--set-clock-back",
            help="If the journal's time does not agree with the system clock, set it to that, and "
            "record so in the journal.",
        ),
    ] = False,
    check_config: Annotated[
        bool, typer.Option("--check-config", help="Check the configuration and exit.")
    ] = False,
) -> None:
    """Serve decisions over HTTP, and learn from feedback.

    Without --config it listens on 127.0.0.1:8000 with the twenty articles of the demo, and creates
    an API key that it prints once. Whatever it has acknowledged is on disk: `kill -9` loses
    nothing.
    """
    import msgspec

    from topstory.cli.output.consoles import print_line
    from topstory.serving.config.loading import check_files, read_config
    from topstory.serving.config.open_files import needed

    settings = read_config(config)
    folder = None if data is None else str(data)
    given = {"host": host, "port": port, "data": folder, "workers": workers}
    given["role"] = None if role is None else str(role)
    settings = msgspec.structs.replace(
        settings, **{key: value for key, value in given.items() if value is not None}
    )
    if config is None:
        pages = msgspec.structs.replace(settings.pages, today=True)
        settings = msgspec.structs.replace(settings, demo=True, pages=pages)
    if check_config:
        check_files(settings)
        needed(settings)
        where = "Default configuration" if config is None else config
        print_line(f"{where}: OK; pools: {', '.join(settings.pools)}")
        return
    from topstory.serving.server import serve as run
    from topstory.serving.state.recovery.data_folder import StartOptions

    options = StartOptions(standby, accept_lost_tail, set_clock)
    run(settings, lambda line: typer.echo(line), options)
