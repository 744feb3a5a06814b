"""`topstory inspect`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from topstory.cli.arguments import AsJson, LogFolder

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from topstory.events import Inspection, Uniformity
    from topstory.events.quality.fields import FieldSummary

MAX_VALUE = 20  # characters of a value
MAX_ROWS = 10  # of a table; --json has all of them


def inspect(
    log: LogFolder,
    json: AsJson = False,
) -> None:
    """Show what is in a log, and whether it is fit for replay."""
    import topstory as ts
    from topstory.cli.output.consoles import print_json, stdout_console

    found = ts.inspect(ts.EventLog.read(log))
    if json:
        print_json(found)
    else:
        _show(str(log), found, stdout_console())


def _show(name: str, found: "Inspection", console: "Console") -> None:
    from rich.markup import escape
    from rich.table import Table

    properties = Table(box=None, show_header=False, pad_edge=False, title=escape(name))
    properties.title_justify, properties.title_style = "left", "bold"
    for label, value in _properties(found):
        properties.add_row(label, value)
    console.print(properties)
    for table in _tables(found):
        console.print()
        console.print(table)
    if found.checks:
        console.print("\nShown at random?", style="bold")
    for check in found.checks:
        p_value = "not tested" if check.adjusted_p is None else f"p = {check.adjusted_p:.2g}"
        console.print(f"{check.name}: {p_value}: {check.text}", markup=False, soft_wrap=True)
    for sentence in found.warnings:
        console.print(f"\nMind: {sentence}", style="yellow", markup=False, soft_wrap=True)
    console.print()
    for i, sentence in enumerate(found.verdict):
        style = ("bold green" if found.fit else "bold red") if i == 0 else None
        console.print(sentence, style=style, markup=False, soft_wrap=True)


def _properties(found: "Inspection") -> Iterator[tuple[str, str]]:
    from topstory.cli.output.numbers import NO_VALUE, count

    yield "events", f"{found.events:,}"
    yield (
        _rate_name(found),
        "none: every payoff is 0" if _no_rate(found) else _some(found.ctr, found),
    )
    if not found.events:
        yield "payoff", NO_VALUE
    elif found.binary:
        yield "payoff", "0 or 1"
    elif found.lowest_payoff is not None:
        yield "payoff", f"{found.lowest_payoff:g} to {found.highest_payoff:g}"
    yield (
        "context",
        count(found.dimension, "feature")
        + (", zeros and ones" if found.sparse else "")
        + f"; {found.duplicate_contexts:.1%} of events repeat an earlier context",
    )
    features = found.article_features
    yield (
        "articles",
        f"{found.articles:,}, "
        + ("no features" if features is None else f"{count(features, 'feature')} each"),
    )
    if found.median_pool is not None:
        yield (
            "pools",
            f"{found.pools:,}, of {found.largest_pool} articles"
            if found.smallest_pool == found.largest_pool
            else f"{found.pools:,}, of {found.smallest_pool} to {found.largest_pool} articles "
            f"(median {found.median_pool:g})",
        )
    if found.visitors is not None:
        lacking = f"; {count(found.unidentified, 'event')} of unknown ones"
        yield "visitors", f"{found.visitors:,}{lacking if found.unidentified else ''}"
    if found.repeats is not None:
        yield (
            "repeats",
            f"{found.repeats:,} events equal an earlier one" if found.repeats else "none",
        )
    yield "propensities", _propensities(found)
    yield "uniformity", _test(found.uniformity)
    if found.rejection is not None and found.survivor_uniformity is not None:
        low, high = found.rejection.interval
        yield (
            "mean of 1/(K p)",
            f"{found.rejection.mean_weight:.4g}, 99.9 % interval [{low:.4g}, {high:.4g}]; "
            "1 if propensities are right",
        )
        survivors = f"{found.rejection.survivors:,.0f} events, {found.survivors:.2%} of the log"
        yield "survivors", f"{survivors}; {_test(found.survivor_uniformity)}"


def _rate_name(found: "Inspection") -> str:
    return "CTR" if found.binary else "mean payoff"


def _no_rate(found: "Inspection") -> bool:
    """Whether nothing paid anything: a rate of 0.0000 would look like a measured one."""
    return bool(found.events) and found.lowest_payoff == 0 == found.highest_payoff


def _some(rate: float | None, found: "Inspection") -> str:
    from topstory.cli.output.numbers import number

    return number(None if _no_rate(found) else rate, 4)


def _propensities(found: "Inspection") -> str:
    recorded, lacking = found.propensities_recorded, found.events - found.propensities_recorded
    if not recorded:
        return "not recorded; assumed to be 1 / pool size"
    ends = "1 / pool size"
    if found.lowest_propensity is not None:
        ends = f"{found.lowest_propensity:.4g} to {found.highest_propensity:.4g}"
    if found.propensity_estimate is not None:
        return f"estimated, {ends}: {found.propensity_estimate}"
    if lacking:
        return f"recorded for {recorded:,} events, {ends}; {lacking:,} lack one"
    return f"recorded, {ends}"


def _test(tested: "Uniformity") -> str:
    if tested.not_tested is not None:
        return f"not tested: {tested.not_tested}"
    return (
        f"chi-square {tested.statistic:.1f}, {tested.degrees_of_freedom} degrees of freedom, "
        f"p = {tested.p_value:.2g}"
    )


def _values(field: "FieldSummary") -> str:
    """The ends of numbers and dates, or the most frequent values."""
    if field.lowest is not None:
        return f"{field.lowest:g} to {field.highest:g}, median {field.median:g}"
    if field.earliest is not None and field.latest is not None:
        return f"{field.earliest[:16]} to {field.latest[:16]}"
    return ", ".join(f"{_short(each.value)} {each.share:.0%}" for each in field.common)


def _short(text: str) -> str:
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def _tables(found: "Inspection") -> Iterator["Table"]:
    from rich.markup import escape

    from topstory.cli.output.tables import plain_table

    rate = _rate_name(found)
    if found.fields:
        fields = plain_table("field", "kind", "missing", "different", "values")
        for field in found.fields:
            fields.add_row(
                escape(f"{field.side}.{field.name}"),
                field.kind,
                f"{field.missing:.1%}" if field.missing else "none",
                f"{field.distinct:,}",
                escape(_values(field)),
            )
        yield fields
    if found.days:
        days = plain_table("day (UTC)", "events", rate)
        for day in found.days:
            days.add_row(day.date.isoformat(), f"{day.events:,}", _some(day.ctr, found))
        yield days
    if found.buckets:
        buckets = plain_table("bucket", "events", "share", rate)
        for one in found.buckets:
            name = "not recorded" if one.bucket is None else escape(one.bucket)
            buckets.add_row(name, f"{one.events:,}", f"{one.share:.1%}", _some(one.ctr, found))
        yield buckets
    if found.by_article:
        shown = plain_table("most shown", "times", rate, "first shown", "last shown")
        for article in found.by_article[:MAX_ROWS]:
            times = (article.first_shown, article.last_shown)
            shown.add_row(
                escape(article.article),
                f"{article.shown:,}",
                _some(article.ctr, found),
                *(f"{time:%Y-%m-%d %H:%M}" if time else "–" for time in times),
            )
        yield shown
    if found.uniformity.standouts:
        standouts = plain_table("not as expected", "shown", "expected", "z")
        for each in found.uniformity.standouts[:MAX_ROWS]:
            standouts.add_row(
                escape(each.article), f"{each.shown:,}", f"{each.expected:,.1f}", f"{each.z:+.1f}"
            )
        yield standouts
    if found.uniformity.never_shown:
        never = plain_table("in a pool, never shown", "pools", "events")
        for listed in found.uniformity.never_shown[:MAX_ROWS]:
            never.add_row(escape(listed.article), f"{listed.pools:,}", f"{listed.events:,}")
        yield never
