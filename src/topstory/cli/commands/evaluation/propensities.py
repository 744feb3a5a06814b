"""`topstory propensities`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import AsJson, LogFolder


def propensities(
    log: LogFolder,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder for the log with its propensities.")
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="logistic: a regression over article, user and time; counts: shares within pool "
            "and hour; auto: the one that foretells better what was shown.",
        ),
    ] = "auto",
    folds: Annotated[
        int,
        typer.Option(
            metavar="N", help="Each event's estimate comes from a model of the other folds."
        ),
    ] = 5,
    replace: Annotated[
        bool, typer.Option("--replace", help="Estimate although LOG recorded propensities.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Estimate with what probability a log showed its articles, where it did not record that.

    The log in OUT is marked: whatever is computed from it says that its propensities were
    estimated, and `topstory evaluate` says how wrong they may be before a conclusion turns. The
    estimate is right only if nothing else than user, pool and time decided what was shown.

    If nothing was left to chance, nothing can be concluded. Then the command says so, and what to
    do instead. An existing log in OUT is replaced.
    """
    # Imported here: these need compiled kernels, and --help does not.
    import topstory as ts
    from topstory.cli.output.consoles import print_json, stderr_console, stdout_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.propensity_tables import show_propensities
    from topstory.cli.reports.propensities import propensity_report
    from topstory.events.folder.contents import check_replaceable

    if Path(log).resolve() == out.resolve():
        raise typer.BadParameter("LOG and OUT must be different folders", param_hint="OUT")
    if out.exists():
        check_replaceable(out)
    events = ts.EventLog.read(log)
    with work_bar(stderr_console(), "reading", events=False) as follow:
        found = ts.estimate_propensities(
            events, method=method, folds=folds, replace_recorded=replace, progress=follow
        )
    found.log.write(out)
    report = propensity_report(str(log), str(out), found)
    if json:
        print_json(report)
    else:
        show_propensities(report, stdout_console())
