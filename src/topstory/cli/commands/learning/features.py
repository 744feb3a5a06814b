"""`topstory features`: fit, apply, show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topstory.cli.arguments import AsJson, Support
from topstory.cli.errors import reports_errors

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder
    from topstory.features.description import FeatureReport, TriedMethod

features = typer.Typer(
    name="features",
    help="Make contexts and article features from raw profiles (paper, §5.2.2).",
    no_args_is_help=True,
)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File of the feature model.")]
RawLog = Annotated[
    str, typer.Argument(metavar="RAWLOG", help="Folder of a log with raw profiles, or its URL.")
]


def fit(
    rawlog: RawLog,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File to write.")],
    method: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="How profiles become numbers: clusters (the paper's), direct (one-hot categories "
            "and scaled numbers, for small profiles), pca (principal components), bilinear "
            "(expected liking of each cluster of articles), or auto: the one whose features are "
            "worth most on the second half of the log.",
        ),
    ] = "clusters",
    clusters: Annotated[int, typer.Option(metavar="K", help="Number of user clusters.")] = 5,
    article_clusters: Annotated[
        int | None,
        typer.Option(metavar="K", help="Number of article clusters. Default: as many as of users."),
    ] = None,
    support: Support = None,
    article_support: Annotated[
        list[str] | None,
        typer.Option(metavar="S", help="The same as --support, of articles. Default: 0."),
    ] = None,
    numbers: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="How numbers and dates are encoded: scaled, bins or splines. Default: scaled with "
            "direct, otherwise bins.",
        ),
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Features that change with the event, with commas: hour_of_day, weekday, "
            "position, age_hours (of the article), seen_before (by this visitor).",
        ),
    ] = None,
    event_in_f: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Others of these that enter the articles' features f instead of the context x: "
            "hybrid policies then share between articles how much they matter, and to whom.",
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="For age_hours: the field that says when an article was published. Default: the "
            "only date of the articles.",
        ),
    ] = None,
    timezone: Annotated[
        str,
        typer.Option(metavar="ZONE", help="Whose hours and weekdays count: UTC, Europe/Berlin …"),
    ] = "UTC",
    distances: Annotated[
        str,
        typer.Option(
            metavar="D", help="Distances for clustering: weighted, or plain as in the paper."
        ),
    ] = "weighted",
    components: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of principal components: of pca (default 10), or beside the memberships.",
        ),
    ] = 0,
    ridge: Annotated[float, typer.Option(metavar="R", help="L2 penalty of the regression.")] = 15.0,
    engine: Annotated[
        str, typer.Option(metavar="E", help="Where to run: serial, local (all cores) or ray.")
    ] = "local",
    in_memory: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Keep up to this many events in memory, at 8 bytes each. A longer log is read "
            "again for each iteration, and gives the same model.",
        ),
    ] = 200_000_000,
    passes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Learn from mini-batches, in this many passes over the log. Reads a log that does "
            "not fit into memory less often, and finds a W that is only close to the best one.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="With auto: the policy that judges the features. Default: linucb-disjoint and "
            "linucb-hybrid, whichever makes more of them.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed. The same seed gives the same model.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Learn features from a log with raw profiles, of any kinds.

    The method clusters needs a log of random exploration: it fits a bilinear logistic regression of
    clicks on raw features, clusters the projected users and articles by k-means, and computes
    memberships by a Gaussian kernel, by default six numbers for each. The workers of the engine
    read the events themselves, so the log may exceed memory. The method bilinear needs the same;
    direct and pca take any log. The method auto needs a uniform log, or one with propensities,
    and reads it into memory.
    """
    import topstory as ts
    from topstory.cli.arguments import parse_support
    from topstory.cli.output.consoles import stderr_console
    from topstory.cli.output.progress import fit_status
    from topstory.features.methods.registry import METHODS
    from topstory.sealed import check_place

    check_place(model)
    if policy is not None and method != "auto":
        raise typer.BadParameter("it is for --method auto", param_hint="--policy")
    minimum = parse_support(support, "--support")
    builder = ts.FeatureBuilder(
        clusters=clusters,
        article_clusters=article_clusters,
        support=minimum,
        article_support=parse_support(article_support, "--article-support") or 0.0,
        numbers=numbers,
        event=_names(event),
        event_in_f=_names(event_in_f),
        published=published,
        timezone=timezone,
        distances=distances,
        components=components,
        ridge=ridge,
        engine=engine,
        seed=seed,
    )
    tried: tuple[TriedMethod, ...] = ()
    if method == "auto":
        builder, tried = _chosen(builder, rawlog, policy)
    else:
        if method not in METHODS:
            raise typer.BadParameter(
                f"expected {', '.join(METHODS)} or auto, got {method!r}", param_hint="--method"
            )
        builder.set_params(method=method)
        with fit_status(stderr_console()) as follow:
            builder.fit_folder(rawlog, passes=passes, in_memory=in_memory, progress=follow)
    builder.save(model)
    _show(model, None, json, tried)


def _names(listed: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in listed.split(",")) if listed else ()


def apply(
    rawlog: RawLog,
    model: Model,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write the log to.")],
    keep_profiles: Annotated[
        bool, typer.Option("--keep-profiles", help="Also write the raw profiles to OUT.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write a raw log again, with contexts and article features made by a feature model."""
    import topstory as ts
    from topstory.cli.output.consoles import print_json, print_line
    from topstory.cli.output.numbers import count
    from topstory.cli.reports.features import AppliedReport

    if not keep_profiles and out.exists() and out.samefile(rawlog):
        raise ValueError(
            f"{out} is the raw log itself, and would lose its raw profiles; choose another folder, "
            "or add --keep-profiles"
        )
    builder = ts.FeatureBuilder.load(model)
    log = ts.EventLog.read(rawlog)
    built = builder.apply(log, keep_profiles=keep_profiles)
    built.write(out)
    articles = 0 if built.features is None else built.features.shape[1]
    report = AppliedReport(
        events=len(built),
        users=0 if log.visitors is None else len(log.visitors.contexts),
        articles=len(built.article_ids),
        dimension=built.dimension,
        article_features=articles,
        unknown=dict(builder.unknown),
    )
    if json:
        print_json(report)
        return
    print_line(
        f"Wrote {count(report.events, 'event')} to {out}: {report.dimension} features per context, "
        f"{report.article_features} per article"
    )
    for field, times in report.unknown.items():
        print_line(f"Ignored {count(times, 'value')} of {field} that the model does not know")


def show(
    model: Model,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the histogram of largest memberships as SVG."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show a feature model: its clusters in words, its fit, and how close users are to them."""
    from topstory.extras import require

    if picture is not None and picture.suffix.lower() not in ("", ".svg"):
        raise typer.BadParameter(
            f"the picture is SVG; call it {picture.with_suffix('.svg').name}",
            param_hint="--picture",
        )
    if picture is not None:
        require("report")
    _show(model, picture, json)


for command in (fit, apply, show):
    features.command(command.__name__)(reports_errors(command))


def _chosen(
    template: "FeatureBuilder", rawlog: str, policy: str | None
) -> tuple["FeatureBuilder", tuple["TriedMethod", ...]]:
    """The best method's builder, and what was tried."""
    import topstory as ts
    from topstory.cli.output.consoles import stderr_console
    from topstory.cli.output.progress import work_bar
    from topstory.cli.reports.finite import finite, finite_ends
    from topstory.evaluation.feature_choice import POLICIES, choose_features
    from topstory.features.description import TriedMethod

    with work_bar(stderr_console(), "auto") as follow:
        found = choose_features(
            ts.EventLog.read(rawlog),
            policy=policy or POLICIES,
            template=template,
            progress=follow,
        )
    lead = found.lead
    values = tuple(
        TriedMethod(
            method=name,
            value=finite(each.value.value),
            lift=finite(each.lift.value),
            lift_interval=finite_ends(each.lift.best_interval),
            policy=found.policies[name],
            lead=None if lead is None or name != found.method else finite(lead.value),
            lead_interval=None
            if lead is None or name != found.method
            else finite_ends(lead.best_interval),
            judged_by=found.judged_by,
        )
        for name, each in found.values.items()
    )
    refused = tuple(TriedMethod(name, None, None, None, why) for name, why in found.refused.items())
    return found.builder, values + refused


def _show(
    model: Path, picture: Path | None, json: bool, tried: tuple["TriedMethod", ...] = ()
) -> None:
    import topstory as ts
    from topstory.cli.output.consoles import print_json, stdout_console
    from topstory.cli.output.feature_tables import show_features
    from topstory.features.description import describe

    report: FeatureReport = describe(ts.FeatureBuilder.load(model), tried)
    if picture is not None:
        if report.above_half is None or report.above_four_fifths is None:
            raise ValueError(f"method {report.method} makes no clusters, so there is no histogram")
        from topstory.report.drawing import draw
        from topstory.report.figures.largest_membership import membership_figure
        from topstory.report.records import Histogram

        bins, users = len(report.histogram), max(1, sum(report.histogram))
        histogram = Histogram(
            tuple(edge / bins for edge in range(bins + 1)),
            tuple(count / users for count in report.histogram),
            report.above_half,
            report.above_four_fifths,
        )
        picture.write_bytes(draw(membership_figure(histogram))["svg"])
    if json:
        print_json(report)
    else:
        show_features(str(model), report, stdout_console())
