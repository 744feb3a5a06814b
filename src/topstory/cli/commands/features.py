"""`topstory features`: fit, apply, show."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topstory.cli.arguments import AsJson, Support
from topstory.cli.errors import reports_errors

if TYPE_CHECKING:
    from topstory.features.description import FeatureReport

features = typer.Typer(
    name="features",
    help="Make contexts and article features from raw profiles (paper, §5.2.2).",
    no_args_is_help=True,
)

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="File of the feature model.")]
RawLog = Annotated[
    Path, typer.Argument(metavar="RAWLOG", help="Folder of a log with raw profiles.")
]


def fit(
    rawlog: RawLog,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File to write.")],
    method: Annotated[
        str,
        typer.Option(
            metavar="M",
            help="How profiles become numbers: clusters (the paper's), or direct (one-hot "
            "categories and scaled numbers, for small profiles).",
        ),
    ] = "clusters",
    clusters: Annotated[int, typer.Option(metavar="K", help="Number of user clusters.")] = 5,
    article_clusters: Annotated[
        int | None,
        typer.Option(metavar="K", help="Number of article clusters. Default: as many as of users."),
    ] = None,
    support: Support = None,
    distances: Annotated[
        str,
        typer.Option(
            metavar="D", help="Distances for clustering: weighted, or plain as in the paper."
        ),
    ] = "weighted",
    components: Annotated[
        int,
        typer.Option(metavar="N", help="Number of principal components to add to the memberships."),
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
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed. The same seed gives the same model.")
    ] = 0,
    json: AsJson = False,
) -> None:
    """Learn features from a log with raw profiles, of any kinds.

    The method clusters needs a log of random exploration: it fits a bilinear logistic regression of
    clicks on raw features, clusters the projected users and articles by k-means, and computes
    memberships by a Gaussian kernel, by default six numbers for each. The workers of the engine
    read the events themselves, so the log may exceed memory. The method direct takes any log.
    """
    import topstory as ts
    from topstory.cli.arguments import parse_support
    from topstory.cli.output.consoles import stderr_console
    from topstory.cli.output.progress import fit_status
    from topstory.sealed import check_place

    check_place(model)
    minimum = parse_support(support, "--support")
    builder = ts.FeatureBuilder(
        clusters=clusters,
        article_clusters=article_clusters,
        support=minimum,
        distances=distances,
        components=components,
        ridge=ridge,
        engine=engine,
        seed=seed,
        method=method,
    )
    with fit_status(stderr_console()) as follow:
        builder.fit_folder(rawlog, passes=passes, in_memory=in_memory, progress=follow)
    builder.save(model)
    _show(model, None, json)


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
        users=0 if built.visitors is None else len(built.visitors.contexts),
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


def _show(model: Path, picture: Path | None, json: bool) -> None:
    import topstory as ts
    from topstory.cli.output.consoles import print_json, stdout_console
    from topstory.cli.output.feature_tables import show_features
    from topstory.features.description import describe

    report: FeatureReport = describe(ts.FeatureBuilder.load(model))
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
