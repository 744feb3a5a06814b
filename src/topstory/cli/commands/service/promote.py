"""`topstory promote`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topstory.cli.arguments import AsJson

if TYPE_CHECKING:
    from topstory.serving.api.messages import OffPolicyValue, PolicyComparison
    from topstory.serving.config.schema import Config
    from topstory.serving.upkeep.offline_promotion import PromotionReport


def promote(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="TOML file of the service.")],
    policy: Annotated[
        Path | None,
        typer.Argument(metavar="[POLICY]", help="File of `topstory train` or `Policy.save`."),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Feature model to change to as well. The policy must be trained with it, and the "
            "service stopped.",
        ),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Pool to change; may be given several times. Default: front.",
            show_default=False,
        ),
    ] = None,
    revert: Annotated[
        bool, typer.Option("--revert", help="Go back to the policy before, instead of POLICY.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and compare, and change nothing.")
    ] = False,
    key_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with an API key of the role promote: change it while the service runs.",
        ),
    ] = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the history.")] = None,
    json: AsJson = False,
) -> None:
    """Give a pool of a service another policy, from one record of its journal on.

    It is checked first, and compared with the present policy on the last decisions: how often both
    would show the same article, and what each would earn (off-policy, by the recorded
    propensities). A refused policy changes nothing.

    Without --key-file the service must be stopped; it has the policy at its next start. All pools
    change then, or none.
    """
    import msgspec

    from topstory.cli.output.consoles import print_json, print_line
    from topstory.serving.config.loading import read_config
    from topstory.serving.upkeep.offline_promotion import promote_stopped

    if (policy is None) != revert:
        raise typer.BadParameter("give a POLICY, or --revert", param_hint="POLICY")
    if features is not None and key_file is not None:
        raise typer.BadParameter(
            "a feature model is changed while the service is stopped: stop it, and leave out "
            "--key-file",
            param_hint="--features",
        )
    settings = read_config(config)
    content, note = None if policy is None else policy.read_bytes(), note or ""
    pools = list(dict.fromkeys(pool or ["front"]))
    if key_file is None:
        reports = promote_stopped(settings, pools, content, features, note, dry_run)
    else:
        reports = [
            _promote_running(settings, key_file, each, content, note, dry_run) for each in pools
        ]
    if json:
        found = msgspec.to_builtins(reports)
        print_json(found if len(found) > 1 else found[0])
        return
    for report in reports:
        if report.comparison is not None:
            _print_comparison(report.comparison)
        if report.record is None:
            print_line(f"Nothing was changed in pool {report.pool!r}.")
        else:
            print_line(f"Pool {report.pool!r} has its new policy from record {report.record:,} on.")
    if features is not None and not dry_run:
        print_line(f"Set `features` in {config} to {features} before you start the service.")


def _promote_running(
    settings: "Config",
    key_file: Path,
    pool: str,
    content: bytes | None,
    note: str,
    dry_run: bool,
) -> "PromotionReport":
    """Ask the service itself; ValueError if it refuses."""
    from topstory.cli.running_service import running_service
    from topstory.serving.upkeep.offline_promotion import PromotionReport

    body = {"policy": content, "note": note}
    with running_service(settings, key_file) as client:
        if content is None:
            changed = None if dry_run else client.call("revert_policy", pool=pool)
        elif dry_run:
            compared = client.call("compare_policy", body, pool=pool)
            return PromotionReport(pool, None, None, compared)
        else:
            changed = client.call("promote_policy", body, pool=pool)
    if changed is None:
        return PromotionReport(pool, None, None, None)
    return PromotionReport(pool, changed.record, None, changed.comparison)


def _print_comparison(compared: "PolicyComparison") -> None:
    from topstory.cli.output.consoles import print_line

    if compared.agreement is None:
        print_line("There are no decisions to compare the policies on.")
        return
    print_line(
        f"On the last {compared.agreed_on:,} decisions both would show the same article in "
        f"{compared.agreement:.1%}."
    )
    for what, value in (("present", compared.current), ("new", compared.candidate)):
        print_line(f"The {what} policy would earn {_earned(value)}.")
    print_line(
        f"(Off-policy, on {compared.decisions:,} decisions; {compared.left_out:,} were left out, "
        "which could have shown articles that are gone.)"
    )


def _earned(value: "OffPolicyValue | None") -> str:
    if value is None:
        return "nobody knows what: nothing that it would show was shown"
    return (
        f"{value.value:.4f} ± {1.96 * value.standard_error:.4f} per decision "
        f"(as from {value.effective_events:,.0f} events)"
    )
