"""`topstory prior`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import AsJson, LogFolder


def prior(
    log: LogFolder,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write (safetensors).")],
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Feature model that makes contexts of the log's raw profiles, as `topstory "
            "features apply` does.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Learn from an earlier log where new articles start, instead of at a payoff of 0.

    The policies whose names end in `-prior` start from it (`--prior OUT`). It pays most where each
    article has little data. LOG is best of random exploration, with the same contexts and article
    features as the logs that follow.
    """
    import topstory as ts
    from topstory.cli.output.consoles import print_json, stdout_console
    from topstory.cli.output.numbers import count
    from topstory.cli.reports.prior import prior_report
    from topstory.sealed import check_place

    check_place(out)
    events = ts.EventLog.read(log)
    if features is not None:
        events = ts.FeatureBuilder.load(features).apply(events)
    found = ts.fit_prior(events)
    found.save(out)
    report = prior_report(str(log), str(out), found)
    if json:
        print_json(report)
        return
    console = stdout_console()
    console.print(
        f"Wrote {report.out}: what {count(report.events, 'event')} and "
        f"{count(report.articles, 'article')} teach about new ones.",
        markup=False,
        soft_wrap=True,
    )
    shared = (
        f"hybrid: ridge {report.ridge:.0f}, and {report.weight:g} of what the shared part learned"
        if report.article_features
        else "hybrid: nothing, since the log has too many features"
    )
    console.print(
        f"A new article starts at a payoff of {report.mean_payoff:.4f}, which counts as "
        f"{report.mean_trials:.0f} trials; {shared}.",
        style="dim",
        markup=False,
        soft_wrap=True,
    )
