"""`topstory plan`."""

from typing import Annotated

import typer

from topstory.cli.arguments import AsJson, LogFolder


def plan(
    log: LogFolder,
    lift: Annotated[
        float, typer.Option(metavar="L", help="Lift that is to be seen: 0.05 is 5 % more.")
    ] = 0.05,
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="S,…", help="Shares of visitors to be shown an article at random, to compare."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Say how much exploration it takes to see a lift, for how long, and what it costs.

    For a log that cannot say what another policy would earn. If a small share of visitors is shown
    an article at random, the log of those days can.
    """
    from topstory.cli.arguments import parse_numbers
    from topstory.cli.output.consoles import print_json, stdout_console
    from topstory.cli.output.plan_table import show_plan
    from topstory.cli.reports.plan import plan_report
    from topstory.evaluation import plan as plan_for
    from topstory.evaluation.off_policy.plan import SHARES
    from topstory.events import EventLog

    asked = parse_numbers(shares, "--shares") or SHARES
    report = plan_report(str(log), plan_for(EventLog.read(log), lift, asked))
    if json:
        print_json(report)
    else:
        show_plan(report, stdout_console())
