"""Measure the simulated world, and write the table of docs/concepts/simulator.md and its picture.

python -m docs.generate.draw_simulator
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np
import numpy.typing as npt

import topstory as ts

DOCS = Path(__file__).parents[1]
EVENTS, DAYS = 5_000_000, 10
WEEKS = ("2009-05-03", "2009-06-07", "2009-07-05", "2009-08-02")
WORLDS = 4
COLOUR, PALE, INK, QUIET = "#3949ab", "#9fa8da", "#24292f", "#6e7781"
WIDTH, HEIGHT = 370, 210


def main() -> None:
    """Measure, draw, write."""
    world = ts.TodayModule(seed=0)
    log = world.random_log(EVENTS, "2009-05-01", DAYS)
    ceilings = [
        asdict(ts.TodayModule(seed, users=20_000).ceilings(week, 7))
        for seed in range(WORLDS)
        for week in WEEKS
    ]
    table = properties(world, log, ceilings)
    page = DOCS / "concepts" / "simulator.md"
    text = re.sub(
        r"(?s)(<!-- begin facts -->\n).*(<!-- end facts -->)",
        lambda marks: f"{marks[1]}{table}{marks[2]}",
        page.read_text("utf-8"),
    )
    page.write_text(text, "utf-8")
    picture = draw(panels(world, log, ceilings))
    (DOCS / "images" / "simulator.svg").write_text(picture, "utf-8")


def properties(world: ts.TodayModule, log: ts.EventLog, ceilings: list[dict[str, float]]) -> str:
    """The table, in Markdown."""
    hours: Counter[str] = Counter()
    daily: list[set[str]] = [set() for _ in range(DAYS)]
    for pool, ids in enumerate(log.pools):
        hours.update(ids)
        daily[pool // 24].update(ids)
    fresh = [len(new - set().union(*daily[:day])) for day, new in enumerate(daily)][1:]
    lasting = [article for article in hours if article not in daily[0] | daily[-1]]
    rates, groups = article_rates(log), group_rates(world, log)
    low, high = np.quantile(rates, [0.05, 0.95])
    sizes = log.pool_sizes
    people, learned = world.population.groups.max(axis=1), memberships()
    mean = {name: np.mean([each[name] for each in ceilings]) for name in ceilings[0]}
    spread = np.std([each["omniscient"] for each in ceilings])
    rows = [
        ("CTR of random articles", "3–4 % (hidden in the paper)", f"{log.ctr:.2%}", "calibrated"),
        ("CTRs of articles, 5 % to 95 %", "1 % to 5 %", f"{low:.1%} to {high:.1%}", "by itself"),
        ("CTRs of user groups", "1 % to 6 %", f"{min(groups):.1%} to {max(groups):.1%}", "set"),
        ("articles in ten days", "271", f"{len(hours)}", "by itself"),
        ("articles a day", "39–51", f"{min(map(len, daily))}–{max(map(len, daily))}", "by itself"),
        ("new ones a day", "18–28", f"{min(fresh)}–{max(fresh)}", "set (births an hour)"),
        ("pool", "about 20", f"{sizes.min()}–{sizes.max()}", "set"),
        (
            "hours an article is on",
            "about 18",
            f"{np.mean([hours[a] for a in lasting]):.1f}",
            "by itself",
        ),
        (
            "users with a membership above 0.5 / 0.8, by features learned from 3,000,000 events",
            "85 % / 40 % (Figure 5)",
            f"{(learned > 0.5).mean():.0%} / {(learned > 0.8).mean():.0%}",
            "set (width) / calibrated",
        ),
        (
            "users with a true share above 0.5 / 0.8",
            "–",
            f"{(people > 0.5).mean():.0%} / {(people > 0.8).mean():.0%}",
            "set (mixing)",
        ),
        ("`omniscient`", "1.615", f"{mean['omniscient']:.2f} ± {spread:.2f}", "calibrated"),
        ("best context-free choice in every hour", "–", f"{mean['context_free']:.2f}", "by itself"),
        (
            "best choice for each segment in every hour",
            "ucb (seg) earned 1.78",
            f"{mean['segmented']:.2f}",
            "by itself",
        ),
        (
            "best linear model for each article",
            "linucb (disjoint) earned 1.80",
            f"{mean['disjoint']:.2f}",
            "calibrated",
        ),
        ("best shared linear model", "–", f"{mean['shared']:.2f}", "calibrated"),
        ("best article for each user", "–", f"{mean['oracle']:.2f}", "by itself"),
    ]
    lines = ["| | paper, or Yahoo's data | simulated | |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def memberships() -> npt.NDArray[np.float64]:
    """Each user's largest one, after the whole construction of features, in a smaller world."""
    world = ts.TodayModule(seed=0, users=20_000)
    explored = world.random_log(3_000_000, "2008-09-01", 10, raw=True)
    builder = ts.FeatureBuilder(support=0.01).fit(explored)
    return np.asarray(builder.largest_memberships(world.population.profiles))


def article_rates(log: ts.EventLog) -> npt.NDArray[np.float64]:
    """CTRs of articles with enough events to estimate them."""
    shown = np.bincount(log.shown_index, minlength=len(log.article_ids))
    earned = np.bincount(log.shown_index, log.payoff, len(log.article_ids))
    return np.asarray(earned[shown > 2000] / shown[shown > 2000])


def group_rates(world: ts.TodayModule, log: ts.EventLog) -> list[float]:
    """CTRs of users by their largest group."""
    assert log.visitors is not None
    group = world.population.groups.argmax(axis=1)[log.visitors.number]
    return list(np.bincount(group, log.payoff) / np.bincount(group))


def panels(
    world: ts.TodayModule, log: ts.EventLog, ceilings: list[dict[str, float]]
) -> list[tuple[str, list[str], list[float], str]]:
    """(title, labels, values, unit) of four bar charts."""
    counts, edges = np.histogram(article_rates(log), bins=np.arange(0, 0.105, 0.01))
    rates = group_rates(world, log)
    hour = (log.timestamps.astype("M8[h]").astype(int) % 24) if log.timestamps is not None else 0
    by_hour = np.bincount(hour, log.payoff) / np.bincount(hour)
    mean = {name: float(np.mean([each[name] for each in ceilings])) for name in ceilings[0]}
    names = ("omniscient", "shared", "segmented", "disjoint", "oracle")
    return [
        ("CTRs of articles", [f"{e:.0%}" for e in edges[:-1]], counts.tolist(), "articles"),
        ("CTR by user group", [f"group {g + 1}" for g in range(5)], [100 * r for r in rates], "%"),
        ("CTR by hour of day, UTC", [str(h) for h in range(24)], (100 * by_hour).tolist(), "%"),
        ("Ceilings: relative CTR", list(names), [mean[n] for n in names], "× random"),
    ]


def draw(charts: list[tuple[str, list[str], list[float], str]]) -> str:
    """Two by two."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH + 20} {2 * HEIGHT + 50}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for number, chart in enumerate(charts):
        x, y = 10 + (number % 2) * WIDTH, 8 + (number // 2) * (HEIGHT + 10)
        parts.append(f'<g transform="translate({x} {y})">{bars(*chart)}</g>')
    parts.append(
        f'<text x="20" y="{2 * HEIGHT + 40}" fill="{QUIET}">Simulated. '
        "python -m docs.generate.draw_simulator</text></svg>"
    )
    return "\n".join(parts) + "\n"


def bars(title: str, labels: list[str], values: list[float], unit: str) -> str:
    """One chart."""
    top, bottom, left, right = 44, HEIGHT - 34, 14, WIDTH - 14
    step, most = (right - left) / len(values), max(values)
    few = len(values) <= 10
    out = [
        f'<text x="14" y="20" font-size="14" font-weight="600" fill="{INK}">{title}</text>',
        f'<text x="{right}" y="20" text-anchor="end" fill="{QUIET}">{unit}</text>',
        f'<path d="M{left} {bottom}H{right}" stroke="{QUIET}"/>',
    ]
    for i, (label, value) in enumerate(zip(labels, values, strict=True)):
        x, height = left + i * step, (bottom - top) * value / most
        middle = x + step / 2
        out.append(
            f'<rect x="{x + step * 0.12:.1f}" y="{bottom - height:.1f}" width="{step * 0.76:.1f}" '
            f'height="{height:.1f}" fill="{COLOUR if few else PALE}"/>'
        )
        if few or i % 6 == 0:
            out.append(
                f'<text x="{middle:.1f}" y="{bottom + 16}" text-anchor="middle" fill="{INK}">'
                f"{label}</text>"
            )
        if few:
            shown = f"{value:.2f}" if value < 10 and value % 1 else f"{value:.0f}"
            out.append(
                f'<text x="{middle:.1f}" y="{bottom - height - 5:.1f}" text-anchor="middle" '
                f'fill="{INK}">{shown}</text>'
            )
    return "".join(out)


if __name__ == "__main__":
    main()
