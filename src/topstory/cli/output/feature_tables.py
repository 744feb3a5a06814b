"""A feature model as text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from topstory.cli.output.numbers import count, number
from topstory.cli.output.tables import plain_table
from topstory.features.description import FeatureReport, Liking, TriedMethod
from topstory.features.regression.early_stopping import HELD_OUT, LAST_BATCH

BAR_WIDTH = 40  # characters of the longest bar
MANY_SHARED = 400  # coefficients that hybrid shares: a trial moves a matrix of so many squared


def show_features(name: str, report: FeatureReport, console: Console) -> None:
    """Print the fit, the clusters in words, and the histogram."""

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    if report.tried:
        _show_tried(report.tried, console)
    console.print(name, style="bold", markup=False)
    how = f" ({report.distances} distances)" if report.clusters else ""
    say(
        f"{report.method}: {report.raw_user_features} × {report.raw_article_features} raw features "
        f"→ contexts of {count(report.dimension, 'number')}, article features of "
        f"{report.article_features}{how}"
    )
    if report.log_loss is not None:
        fit = f"log loss {number(report.log_loss, 5)}, AUC {number(report.auc, 4)}"
        say(f"{fit} on {_scored(report)}")
    own = report.event_numbers[: len(report.event_numbers) - len(report.event_features)]
    for where, names in (("each event", own), ("articles, by event", report.event_features)):
        if names:
            say(f"of {where}: {', '.join(names)}")
    say(f"identity {report.identity}\n")
    event = len(report.event_features)
    x, f = report.dimension - event, report.article_features + event
    if (shared := x * f) > MANY_SHARED:
        say(
            f"Hybrid policies share {x} × {f} = {shared:,} "
            "coefficients with such features, and each trial costs that many squared: to replay or "
            "serve them takes long. --method pca makes fewer.\n"
        )
    listed = (*report.user_fields, *report.article_fields)
    fields = plain_table("field", "kind", "encoding", "kept", "dropped", "support")
    for field in listed:
        fields.add_row(
            *(escape(field.field), field.kind, field.encoding, str(field.kept)),
            *(str(field.dropped), f"{field.threshold:g}"),
        )
    console.print(fields)
    for field in listed:
        if field.note:
            say(f"  {field.field}: {field.note}")
    for cluster in report.clusters:
        say(f"\nUser cluster {cluster.cluster} ({cluster.share:.0%} of users)")
        say(f"  likes     {_words(cluster.likes)}")
        say(f"  dislikes  {_words(cluster.dislikes)}")
        say(f"  traits    {_words(cluster.traits)}")
    if report.article_clusters:
        say("")
    for articles in report.article_clusters:
        say(f"Article cluster {articles.cluster}: {_words(articles.categories)}")
    if report.above_half is None or report.above_four_fifths is None:
        return
    say("\nUsers by largest membership")
    most, total = max(1, *report.histogram), max(1, sum(report.histogram))
    for i, users in enumerate(report.histogram):
        if users:
            low = i / len(report.histogram)
            bar = "█" * round(BAR_WIDTH * users / most)
            say(f"  {low:.2f}  {bar:<{BAR_WIDTH}}  {users / total:.1%}")
    say(
        f"{report.above_half:.0%} of users are above 0.5, {report.above_four_fifths:.0%} above 0.8 "
        "(the paper's Figure 5: 85 % and 40 %)"
    )


def _show_tried(tried: Sequence[TriedMethod], console: Console) -> None:
    table = plain_table("method", "policy", "payoff per visit", "lift over no features")
    for each in tried:
        if each.refused:
            continue
        ends = each.lift_interval
        between = "" if ends is None else f" [{ends[0]:+.1%}…{ends[1]:+.1%}]"
        lift = "" if each.lift is None else f"{each.lift:+.1%}{between}"
        table.add_row(each.method, each.policy, number(each.value, 5), lift)
    console.print(table)
    for each in tried:
        if each.refused:
            console.print(f"{each.method} does not suit this log: {escape(each.refused)}")
    console.print(
        "Each was fitted on the first half of the log and judged on the second, by "
        f"{tried[0].judged_by}, with the policy that made most of it.{_lead(tried)} "
        f"{tried[0].method} was fitted again on the whole log.\n",
        soft_wrap=True,
    )


def _lead(tried: Sequence[TriedMethod]) -> str:
    """By how much the best leads, and how sure that is."""
    best, ends = tried[0], tried[0].lead_interval
    if best.lead is None or ends is None:
        return ""
    sure = "it is better" if ends[0] > 0 else "that may be chance"
    return (
        f" {best.method} leads {tried[1].method} by {best.lead:+.1%} "
        f"[{ends[0]:+.1%}…{ends[1]:+.1%}]: {sure}."
    )


def _scored(report: FeatureReport) -> str:
    """Which events the log loss was measured on, and after how many steps."""
    steps = report.iterations
    if report.scored_on == LAST_BATCH:
        batches = "1 batch" if steps == 1 else f"{steps} batches"
        return f"the last batch, before learning from it, after {batches}"
    events = "held-out events" if report.scored_on == HELD_OUT else "the training events"
    return f"{events}, after {count(steps, 'iteration')}"


def _words(likings: Sequence[Liking]) -> str:
    return ", ".join(f"{liking.category} ({liking.by:+.2f})" for liking in likings) or "–"
