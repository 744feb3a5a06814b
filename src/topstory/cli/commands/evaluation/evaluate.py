"""`topstory evaluate`."""

from typing import Annotated

import typer

from topstory.cli.arguments import Address, AsJson, Bucket, LogFolder, ReportFile, Seed
from topstory.cli.policy_options import with_policy_numbers
from topstory.extras import require
from topstory.policies.entries import Setting


@with_policy_numbers
def evaluate(
    log: LogFolder,
    policy: Annotated[
        list[str],
        typer.Option(
            metavar="POLICY",
            help="A file that `topstory train` or the service wrote, or the name of a policy, "
            "which is then trained on the first part of LOG. Several are separated by commas, or "
            "the option is repeated.",
        ),
    ],
    estimator: Annotated[
        str, typer.Option(metavar="NAME", help="snips, ips, dr, dr-shrunk, switch or dm.")
    ] = "snips",
    baseline: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What lifts are over: logged, or one of the policies as given."
        ),
    ] = "logged",
    bucket: Bucket = "deployment",
    train_share: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="First part of LOG, that policies given by name learn from. All are judged on the "
            "rest.",
        ),
    ] = 0.5,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Read and sum parts of LOG on serial, local (all cores) or ray, so that LOG may "
            "be larger than memory: the same numbers to 1e-9. Not for switch, dr-shrunk and "
            "--report. Default: read LOG into memory.",
        ),
    ] = None,
    address: Address = None,
    seed: Seed = 0,
    report: ReportFile = None,
    json: AsJson = False,
    **numbers: Setting | None,
) -> None:
    """Estimate what trained policies would earn, from a log that any other policy wrote.

    The log need not be uniform: each event is weighted by how much more likely the policy is to
    show its article than whoever wrote the log. So every event counts, where replay keeps one in K.
    The log must have recorded propensities, or be uniform. The policies do not learn from it.

    Beside each value stands how much of the log speaks about the policy: the effective number of
    events, the mean weight (1 if all is well), and the smallest lift that this log could show.
    """
    # Imported here: these need compiled kernels, and --help does not.
    import topstory as ts
    from topstory.cli.output.consoles import print_json, stderr_console, stdout_console
    from topstory.cli.output.evaluation_table import show_evaluation
    from topstory.cli.output.progress import work_bar
    from topstory.cli.output.warnings import printed_warnings
    from topstory.cli.policy_files import given_policies
    from topstory.cli.reports.evaluate import evaluation_report
    from topstory.engines import engine as named_engine

    if report is not None:
        require("report")
        if engine is not None:
            raise typer.BadParameter(
                "a report needs the log in memory: leave out --engine", param_hint="--report"
            )
    if address is not None and engine is None:
        raise typer.BadParameter("it is that of --engine ray", param_hint="--address")
    where = None if engine is None else named_engine(engine, address=address)
    given = given_policies(policy, numbers, seed)
    events = ts.EventLog.read(log) if where is None else log
    console = stderr_console()
    with printed_warnings(console) as warnings, work_bar(console, "reading", events=True) as follow:
        found = ts.evaluate(
            given,
            events,
            estimator=estimator,
            baseline=baseline,
            bucket=bucket,
            train_share=train_share,
            seed=seed,
            examine=report is not None,
            engine=where,
            progress=follow,
            **numbers,
        )
    printed = evaluation_report(str(log), found, warnings)
    if report is not None:
        from topstory.report.folder import write_answer
        from topstory.studies.report.judged import evaluation_page

        write_answer(evaluation_page(found, str(log), warnings), report)
    if json:
        print_json(printed)
    else:
        show_evaluation(printed, stdout_console())
