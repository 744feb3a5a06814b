"""`topstory study`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topstory.cli.arguments import Address, AsJson, EngineName, Save, Seed, Support
from topstory.cli.policy_options import given_grids, with_policy_grids

if TYPE_CHECKING:
    from topstory.cli.reports.replay import SavedReport
    from topstory.cli.reports.study import StudyReport
    from topstory.events import EventLog
    from topstory.report.records import Cell
    from topstory.studies import Study


@with_policy_grids
def study(
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="Folder for the report and all its numbers.")
    ],
    scale: Annotated[
        str,
        typer.Option(
            metavar="SCALE",
            help="Simulated logs: demo (2 M events to tune on, 6 M to evaluate on, three data "
            "sizes) or paper (4.7 M and 36 M, the paper's six data sizes and its ridge of 1).",
        ),
    ] = "demo",
    tuning: Annotated[
        str | None,
        typer.Option(metavar="LOG", help="Your own log for tuning the parameters."),
    ] = None,
    evaluation: Annotated[
        str | None,
        typer.Option(metavar="LOG", help="Your own log for evaluating the policies."),
    ] = None,
    exploration: Annotated[
        str | None,
        typer.Option(
            metavar="LOG",
            help="Your own log of random exploration, for the offsets of warm policies, and for "
            "features if all three logs are raw. Default: the first tenth of the tuning log.",
        ),
    ] = None,
    support: Support = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Policies to compare. Default: those of the paper that learn, and but for "
            "scale paper ucb, linucb disjoint and linucb hybrid from a prior, too.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="S,T,…",
            help="Shares of retained events to learn from. Default, as in the paper: "
            "1,0.3,0.2,0.1,0.05,0.01; at scale demo: 1,0.2,0.05.",
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B,…",
            help="Values to try of a parameter that policies are tuned by, such as "
            "temperature=0.01,0.1; may be repeated. Default: eight, and more beyond the edge if "
            "the best is there.",
        ),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Learning paths (seeds) to evaluate each policy with. Default: 3, and up to "
            "20 if the log has fewer than 500,000 events; at scale demo: 4.",
        ),
    ] = None,
    tune_on: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What parameters are chosen by: the CTR of a bucket, deployment (as in the "
            "paper) or learning, or the total over both.",
        ),
    ] = "total",
    learning_share: Annotated[
        float,
        typer.Option(metavar="S", help="Share of the traffic that learns, in totals."),
    ] = 0.1,
    tune_ridge: Annotated[
        bool | None,
        typer.Option(
            "--tune-ridge/--paper-ridge",
            help="Tune the ridge of disjoint and hybrid models as well, or keep the paper's 1. "
            "Default: tune it, except at scale paper.",
            show_default=False,
        ),
    ] = None,
    delays: Annotated[
        str | None,
        typer.Option(
            metavar="M,N,…",
            help="Minutes: replay each policy with payoffs that it learns so much later, too, for "
            "a figure of CTR by delay. The evaluation log needs timestamps. Default: none.",
        ),
    ] = None,
    seed: Seed = 0,
    engine: EngineName = "local",
    address: Address = None,
    save: Save = None,
    json: AsJson = False,
    **grids: str | None,
) -> None:
    """Run the paper's whole evaluation: tune each policy, evaluate it on another log, and report.

    Every finished run is recorded at once: if the study is interrupted, the same command continues
    it. OUT gets report.html, table1 as csv, md and tex, runs.parquet, and the figures.
    """
    import topstory as ts
    from topstory.cli.arguments import parse_names, parse_numbers, parse_support, parse_values
    from topstory.cli.output.consoles import print_json, stderr_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.warnings import printed_warnings
    from topstory.cli.reports.study import StudyReport
    from topstory.engines import engine as named_engine
    from topstory.extras import require
    from topstory.studies import StudyWarning

    tried = parse_values(values, "--values")
    for name, option, text in given_grids(grids):
        if name in tried:
            raise typer.BadParameter(f"--values sets {name}, too", param_hint=option)
        tried[name] = parse_numbers(text, option) or []
    require("report")  # or the study would run for minutes, and then not be written
    logs = {
        role: None if path is None else ts.EventLog.read(path)
        for role, path in (
            ("tuning", tuning),
            ("evaluation", evaluation),
            ("exploration", exploration),
        )
    }
    if save is not None:
        _check_saving(logs["evaluation"])
    console = stderr_console()
    with (
        printed_warnings(console, StudyWarning),
        work_bar(console, "study") as follow,
        _resumable(),
    ):
        found = ts.study(
            out,
            scale=scale,
            tuning=logs["tuning"],
            evaluation=logs["evaluation"],
            exploration=logs["exploration"],
            support=parse_support(support, "--support"),
            policies=parse_names(policy),
            sizes=parse_numbers(sizes, "--sizes"),
            values=tried,
            repeats=repeats,
            tune_on=tune_on,
            learning_share=learning_share,
            tune_ridge=tune_ridge,
            delays=parse_numbers(delays, "--delays") or (),
            seed=seed,
            engine=named_engine(engine, address=address),
            progress=follow,
        )
        page = found.write()
    report = found.report()
    record = StudyReport(
        format="topstory-study",
        version=1,
        out=str(out),
        report=str(page),
        summary=report.summary,
        table=report.table,
        replays=len(found.tuned) + len(found.evaluated),
        seconds=found.seconds,
        saved=None if save is None else _saved(save, found, logs, seed),
        learning_share=learning_share,
    )
    if json:
        print_json(record)
    else:
        _show(record, report.binary)


def _check_saving(log: "EventLog | None") -> None:
    if log is None:
        raise typer.BadParameter(
            "it needs your own logs: --tuning and --evaluation", param_hint="--save"
        )


def _saved(
    path: Path, found: "Study", logs: "dict[str, EventLog | None]", seed: int
) -> "SavedReport":
    """The recommended policy, trained on both logs, with the features that the study learned."""
    import topstory as ts
    from topstory.cli.output.saving import save_trained
    from topstory.evaluation.replays.warm_start import start_of
    from topstory.studies.logs.features import FILE_NAME
    from topstory.studies.logs.sources import is_raw

    policy, parameters = found.advised()
    both = [log for log in (logs["tuning"], logs["evaluation"]) if log is not None]
    exploration, features = logs["exploration"], None
    if all(is_raw(log) for log in both):
        features = found.folder / FILE_NAME
        builder = ts.FeatureBuilder.load(features)
        both = [builder.apply(log) for log in both]
        exploration = None if exploration is None else builder.apply(exploration)
    whole = ts.EventLog.concat(both)
    learned: Mapping[str, Any] = {}
    if (start := start_of([policy], whole, exploration)) is not None:
        whole, learned = start.log, start.argument(policy)
    return save_trained(path, policy, parameters, whole, learned, seed, features)


@contextmanager
def _resumable() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; run the same command again to continue") from None


def _show(report: "StudyReport", binary: bool) -> None:
    from topstory.cli.output.consoles import stdout_console
    from topstory.cli.output.numbers import number
    from topstory.cli.output.saving import saved_line
    from topstory.cli.output.tables import plain_table
    from topstory.cli.output.words import mean_payoff, paid_units
    from topstory.report.wording import share

    console = stdout_console()
    table = plain_table(
        f"deployment {mean_payoff(binary)}, lift",
        *(share(size) for size in report.table.sizes),
        *("total", "cost"),
        title="Relative to random",
    )
    for row in report.table.rows:
        most = max(row.cells, key=lambda cell: cell.size)
        table.add_row(row.name, *map(_cell, row.cells), number(most.total, 2), number(most.cost, 0))
    console.print(table)
    notes = "Lift over ε-greedy; dim: not significant among all that were compared."
    notes += (
        f" Total: both buckets with {share(report.learning_share)} of visits learning, at "
        f"{share(max(report.table.sizes))}; cost: {paid_units(binary)} in 100,000 visits that "
        "exploring loses there."
    )
    if any(cell.true_deploy is not None for row in report.table.rows for cell in row.cells):
        notes += " In brackets: the simulator's truth."
    console.print(notes, style="dim", soft_wrap=True)
    console.print()
    for place, sentence in enumerate(report.summary):
        console.print(sentence, style=None if place else "bold", markup=False, soft_wrap=True)
    console.print(
        f"\n{report.replays:,} replays in {report.seconds:.0f} s. Report: {report.report}",
        markup=False,
        soft_wrap=True,
    )
    if report.saved is not None:
        console.print(saved_line(report.saved), markup=False, soft_wrap=True)


def _cell(cell: "Cell") -> str:
    """The CTR, the simulator's truth if it is known, and the lift: dim if it is not sure."""
    from topstory.cli.output.numbers import number
    from topstory.report.wording import percent

    ctr = number(cell.deploy.value, 2)
    text = f"[bold]{ctr}[/]" if cell.best_deploy else ctr
    if cell.true_deploy is not None:
        text += f" ({number(cell.true_deploy, 2)})"
    lift = percent(cell.deploy_lift.value)
    return f"{text} {lift}" if cell.deploy_lift.sure else f"{text} [dim]{lift}[/]"
