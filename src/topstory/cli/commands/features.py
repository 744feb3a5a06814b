"""`topstory features`: fit, apply, show."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topstory.cli.errors import told
from topstory.cli.options import Support

if TYPE_CHECKING:
    from rich.console import Console

    from topstory.features.description import FeatureReport
    from topstory.features.regression.early_stopping import Step

features = typer.Typer(
    name="features",
    help="Make contexts and article features of raw profiles (paper, §5.2.2).",
    no_args_is_help=True,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The file of the feature model.")]
RawLog = Annotated[
    Path, typer.Argument(metavar="RAWLOG", help="The folder of a log with raw profiles.")
]


def fit(
    rawlog: RawLog,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The file to write.")],
    clusters: Annotated[int, typer.Option(metavar="K", help="Clusters of users.")] = 5,
    article_clusters: Annotated[
        int | None, typer.Option(metavar="K", help="Clusters of articles; as many as of users.")
    ] = None,
    support: Support = None,
    distances: Annotated[
        str, typer.Option(metavar="D", help="weighted, or plain as in the paper.")
    ] = "weighted",
    components: Annotated[
        int, typer.Option(metavar="N", help="Principal components beside the memberships.")
    ] = 0,
    ridge: Annotated[float, typer.Option(metavar="R", help="The regression's L2 penalty.")] = 15.0,
    engine: Annotated[
        str, typer.Option(metavar="E", help="serial, local (all cores) or ray.")
    ] = "local",
    in_memory: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="A log of more events is read again for each iteration instead of being kept in "
            "memory, where an event takes 8 bytes; the model is the same.",
        ),
    ] = 200_000_000,
    passes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Learn by mini-batches, going so many times through the log: fewer readings of "
            "a log that is not kept in memory, and a W that is near the best one only.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed, the same model.")] = 0,
    json: Json = False,
) -> None:
    """Learn features from a log of random exploration with raw profiles.

    A bilinear logistic regression of clicks on raw features, k-means of what it projects users and
    articles to, and memberships by a Gaussian kernel: by default six numbers for each. The
    engine's workers read the events themselves, so the log may be larger than memory.
    """
    import topstory as ts
    from topstory.cli.lists import shares
    from topstory.cli.output.consoles import remarks
    from topstory.sealed import check_place

    check_place(model)
    least = shares(support, "--support")
    builder = ts.FeatureBuilder(
        clusters=clusters,
        article_clusters=article_clusters,
        support=0.1 if least is None else least,
        distances=distances,
        components=components,
        ridge=ridge,
        engine=engine,
        seed=seed,
    )
    with _following(remarks()) as follow:
        builder.fit_folder(rawlog, passes=passes, in_memory=in_memory, progress=follow)
    builder.save(model)
    _tell(model, None, json)


def apply(
    rawlog: RawLog,
    model: Model,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write the log to.")],
    keep_profiles: Annotated[
        bool, typer.Option("--keep-profiles", help="Keep the raw profiles in OUT too.")
    ] = False,
    json: Json = False,
) -> None:
    """Write the same log with these features in place of contexts and article features."""
    import topstory as ts
    from topstory.cli.output.consoles import answers
    from topstory.cli.output.feature_tables import AppliedReport
    from topstory.cli.output.numbers import count
    from topstory.cli.output.printing import print_json

    if not keep_profiles and out.exists() and out.samefile(rawlog):
        raise ValueError(
            f"{out} is the raw log itself, and would lose its raw profiles; name another folder "
            "for OUT, or add --keep-profiles"
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
    answers().print(
        f"{count(report.events, 'event')} into {out}: contexts of {report.dimension} numbers, "
        f"article features of {report.article_features}",
        markup=False,
        soft_wrap=True,
    )
    for field, times in report.unknown.items():
        answers().print(
            f"Ignored: {times:,} times a category of {field} that the model does not know",
            markup=False,
        )


def show(
    model: Model,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the histogram of largest memberships, as SVG."),
    ] = None,
    json: Json = False,
) -> None:
    """What a feature model is: its clusters in words, its fit, how close users are to clusters."""
    if picture is not None and picture.suffix.lower() not in ("", ".svg"):
        raise typer.BadParameter(
            f"the picture is drawn as SVG; name it {picture.with_suffix('.svg').name}",
            param_hint="--picture",
        )
    _tell(model, picture, json)


for command in (fit, apply, show):
    features.command(command.__name__)(told(command))


def _tell(model: Path, picture: Path | None, json: bool) -> None:
    import topstory as ts
    from topstory.cli.output.consoles import answers
    from topstory.cli.output.feature_tables import show_features
    from topstory.cli.output.printing import print_json
    from topstory.features.description import describe

    report: FeatureReport = describe(ts.FeatureBuilder.load(model))
    if picture is not None:
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
        show_features(str(model), report, answers())


@contextmanager
def _following(console: "Console") -> Iterator[Callable[["Step"], None]]:
    """The last iteration on standard error, where that is a terminal."""
    with console.status("reading") as status:

        def follow(step: "Step") -> None:
            held_out = step.held_out_loss  # or the batch's, which is not learned from yet
            known = "" if held_out is None else f", log loss {held_out:.5f}"
            ranked = "" if step.auc is None else f", AUC {step.auc:.4f}"
            status.update(f"iteration {step.iteration}{known}{ranked}")

        yield follow
