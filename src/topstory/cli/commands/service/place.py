"""`topstory place`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import AsJson


def place(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="TOML file of the service.")],
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="Log with the articles: with raw profiles, if the service has a feature model.",
        ),
    ],
    key_file: Annotated[
        Path,
        typer.Option(metavar="FILE", help="File with an API key of the roles read and edit."),
    ],
    pool: Annotated[str, typer.Option(metavar="NAME", help="Pool to fill.")] = "front",
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="All articles of the log, not only those that its last event could show."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Put the articles of a log into a pool of a running service.

    So a service that starts from a log has something to show. Articles that are in the pool already
    stay as they are. Later ones come over HTTP, from wherever articles are made.
    """
    import topstory as ts
    from topstory.cli.output.consoles import print_json, print_line
    from topstory.cli.running_service import running_service
    from topstory.serving.client.placing import place_articles
    from topstory.serving.config.loading import read_config

    settings, events = read_config(config), ts.EventLog.read(log)
    with running_service(settings, key_file) as client:
        report = place_articles(client, events, pool, every)
    if json:
        print_json(report)
        return
    print_line(
        f"Placed {len(report.placed):,} articles in pool {pool!r}; {report.there:,} more were "
        "there already."
    )
