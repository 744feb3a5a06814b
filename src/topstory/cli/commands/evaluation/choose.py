"""`topstory choose`."""

from pathlib import Path
from typing import Annotated

import typer

from topstory.cli.arguments import AsJson, LogFolder, ReportFile, Seed
from topstory.extras import require


def choose(
    log: LogFolder,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="Folder for policy.safetensors, the winner, and choice.json."
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Policies to compare, separated by commas. Default: the best article for "
            "everyone; with contexts, also for each segment and LinUCB's disjoint model; with "
            "article features, its hybrid model.",
        ),
    ] = None,
    train_share: Annotated[
        float,
        typer.Option(metavar="S", help="First part of LOG, to learn from; the rest judges."),
    ] = 0.6,
    seed: Seed = 0,
    report: ReportFile = None,
    json: AsJson = False,
) -> None:
    """Find the policy to run, from whatever log there is, and write it to a file.

    It looks at the log, says which question it can answer and by which method, trains policies on
    the first part, and judges them on the rest. The intervals allow for the number of policies
    compared. The winner is then trained on the whole log, ready for `topstory serve`.

    If the log cannot say what another policy would earn, the command says why, and what to do.
    """
    # Imported here: these need compiled kernels, and --help does not.
    import msgspec

    import topstory as ts
    from topstory.cli.arguments import parse_names
    from topstory.cli.output.choice_table import show_choice
    from topstory.cli.output.consoles import print_json, stderr_console, stdout_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.warnings import printed_warnings, warn_if_raw
    from topstory.cli.reports.choose import choice_report
    from topstory.files import replaced_file

    if report is not None:
        require("report")
    names = None
    if policy is not None:
        names = [name for text in policy for name in parse_names(text) or ()]
    events = ts.EventLog.read(log)
    console = stderr_console()
    if names is None:
        warn_if_raw(log, console)
    with printed_warnings(console) as warnings, work_bar(console, "reading", events=True) as follow:
        found = ts.choose(
            events,
            policies=names,
            train_share=train_share,
            seed=seed,
            examine=report is not None,
            progress=follow,
        )
    out.mkdir(parents=True, exist_ok=True)
    file = out / "policy.safetensors"
    found.policy.save(file)
    printed = choice_report(str(log), str(file), found, warnings)
    with replaced_file(out / "choice.json") as written:
        written.write(msgspec.json.format(msgspec.json.encode(printed), indent=2))
    if report is not None:
        from topstory.report.folder import write_answer
        from topstory.studies.report.judged import selection_page

        write_answer(selection_page(found, str(log), str(out), warnings), report)
    if json:
        print_json(printed)
    else:
        show_choice(printed, stdout_console())
