"""Writes the export of a made-up news site, not quite clean: impressions.csv and articles.csv.

    python -m examples.news_site.export FOLDER --events 300000

Nothing in it is real. Each event shows one of the articles that are live, drawn uniformly at
random; whether a visitor clicks depends on their affinity for its section. As in real exports,
some values are missing or written in several ways, some rows come twice or out of order, and some
are broken.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow
import pyarrow.compute

SECTIONS = ("politics", "sports", "culture", "business")
TAGS = {
    "politics": ("election", "parliament", "climate", "europe"),
    "sports": ("football", "tennis", "olympics", "cycling"),
    "culture": ("film", "music", "books", "theatre"),
    "business": ("markets", "energy", "startups", "jobs"),
}
COUNTRIES = ("DE", "FR", "US", "GB", "PL", "ES")
DEVICES = ("phone", "desktop", "tablet")
AUTHORS = ("Ada Berg", "Jo Klein", "Mia Duarte", "Sam Okoro", "Lin Tao")
WORDS = ("new", "old", "quiet", "great", "long", "early", "late", "hidden", "open", "last")
DAY, HOUR = 86_400, 3_600
START = 1_772_323_200  # 2026-03-01
LIVE_ARTICLES, LIVE_HOURS, DAYS = 12, 24, 3
DUPLICATES, LATE = 0.005, 0.01  # shares of the rows

Floats = npt.NDArray[np.float64]
Texts = Any  # an Arrow array of strings
pa: Any = pyarrow
pc: Any = pyarrow.compute


def main() -> None:
    """Write the files that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--bad", type=float, default=0.005, help="share of broken rows")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    files = write_export(given.folder, given.events, given.bad, given.seed)
    print("wrote " + " and ".join(map(str, files)))


def write_export(folder: Path, events: int, bad: float = 0.005, seed: int = 0) -> tuple[Path, Path]:
    """The two files."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    articles = _Articles(random)
    impressions, listed = folder / "impressions.csv", folder / "articles.csv"
    listed.write_text(articles.csv(random), "utf-8")
    impressions.write_bytes(_impressions(events, bad, articles, random))
    return impressions, listed


class _Articles:
    """New articles come all day; each is live for LIVE_HOURS."""

    def __init__(self, random: np.random.Generator) -> None:
        count = LIVE_ARTICLES * (DAYS * 24 + LIVE_HOURS) // LIVE_HOURS
        self.published = START + (np.arange(count) + 1) * LIVE_HOURS * HOUR // LIVE_ARTICLES
        self.published -= LIVE_HOURS * HOUR
        self.withdrawn = self.published + LIVE_HOURS * HOUR
        self.ids = np.array([f"a{1000 + i}" for i in range(count)])
        self.section = random.integers(len(SECTIONS), size=count)
        self.appeal = random.normal(0, 0.3, count)

    def csv(self, random: np.random.Generator) -> str:
        rows = ["article_id,section,tags,author,published_at,withdrawn_at,headline"]
        for i, key in enumerate(self.ids):
            section = SECTIONS[self.section[i]]
            tags = ";".join(sorted(random.choice(TAGS[section], random.integers(1, 4), False)))
            first, second = random.choice(WORDS, 2, False)
            headline = f"The {first} {section} story, and the {second} one"
            if i % 7 == 0:
                headline = f'"A {first} day": {second} news from {section}'
            author = "" if i % 9 == 4 else AUTHORS[i % len(AUTHORS)]
            when = [_iso(self.published[i]), _iso(self.withdrawn[i])]
            written = "" if i % 11 == 3 else section  # an editor forgot it
            quoted = '"' + headline.replace('"', '""') + '"'
            rows.append(",".join([key, written, tags, author, *when, quoted]))
        return "\n".join(rows) + "\n"

    def live(self, times: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], list[Any]]:
        """Which stretch of time each event is in, and the articles that are live in each."""
        edges = np.unique(np.concatenate((self.published, self.withdrawn)))
        stretch = np.searchsorted(edges, times, side="right")
        used, which = np.unique(stretch, return_inverse=True)
        begun = edges[used - 1]
        return which, [
            np.flatnonzero((self.published <= time) & (time < self.withdrawn)) for time in begun
        ]


def _impressions(
    events: int, bad: float, articles: _Articles, random: np.random.Generator
) -> bytes:
    times = START + np.sort(random.integers(0, DAYS * DAY, events))
    which, pools = articles.live(times)
    sizes = np.array([len(pool) for pool in pools])
    place = (random.random(events) * sizes[which]).astype(np.int64)
    flat, starts = np.concatenate(pools), np.concatenate(([0], np.cumsum(sizes)[:-1]))
    shown = flat[starts[which] + place]
    users = max(10, events // 8)
    # Some visitors come often: their numbers are drawn with unequal chances.
    user = (users * random.random(events) ** 2).astype(np.int64)
    affinity = np.round(random.dirichlet(np.full(len(SECTIONS), 0.5), users), 3)
    device = random.choice(len(DEVICES), users, p=(0.6, 0.3, 0.1))
    country = random.choice(len(COUNTRIES), users, p=(0.4, 0.2, 0.15, 0.1, 0.1, 0.05))
    subscriber = random.random(users) < 0.2
    score = -2.6 + 2.5 * affinity[user, articles.section[shown]] + articles.appeal[shown]
    score += 0.4 * subscriber[user] - 0.3 * (device[user] == 0)
    clicked = random.random(events) < 1 / (1 + np.exp(-score))
    dwell = np.round(random.lognormal(3.2, 0.8, events), 1)

    lists = ["|".join(articles.ids[pool]) for pool in pools]
    columns = [
        _labels("imp-", np.arange(events)),
        _times(times, random),
        _missing(_labels("u", user), random, 0.01, "NULL"),
        _spelt(pa.array(COUNTRIES).take(pa.array(country[user])), random),
        _missing(pa.array(DEVICES).take(pa.array(device[user])), random, 0.02, "N/A"),
        *(_missing(_numbers(affinity[user, i]), random, 0.03, "") for i in range(len(SECTIONS))),
        _truths(subscriber[user], random),
        pa.array(articles.ids).take(pa.array(shown)),
        pa.array(lists).take(pa.array(which)),
        pa.array(["0", "1"]).take(pa.array(clicked.astype(np.int64))),
        pc.if_else(pa.array(clicked), _numbers(dwell), ""),
    ]
    rows: Texts = pc.binary_join_element_wise(*columns, ",")
    rows = _broken(rows, bad, random)
    late = (random.random(events) < LATE) * random.integers(0, 500, events)
    order = np.argsort(np.arange(events) + late, kind="stable")
    twice = random.integers(0, events, int(events * DUPLICATES))
    rows = rows.take(pa.array(order[np.sort(np.concatenate((np.arange(events), twice)))]))
    header = ",".join(
        [
            *("impression_id", "time", "user_id", "country", "device"),
            *(f"affinity_{section}" for section in SECTIONS),
            *("is_subscriber", "shown_article", "candidates", "clicked", "dwell_seconds"),
        ]
    )
    text: str = pc.binary_join(pa.array([rows.to_pylist()]), "\n")[0].as_py()
    return f"{header}\n{text}\n".encode()


def _labels(prefix: str, numbers: npt.NDArray[np.int64]) -> Texts:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _numbers(values: Floats) -> Texts:
    return pa.array(values).cast(pa.string())


def _times(times: npt.NDArray[np.int64], random: np.random.Generator) -> Texts:
    """ISO text; one in a hundred is in milliseconds since 1970."""
    iso = pc.strftime(pa.array(times, pa.timestamp("s")), "%Y-%m-%d %H:%M:%S")
    millis = pa.array(times * 1000).cast(pa.string())
    return pc.if_else(pa.array(random.random(len(times)) < 0.01), millis, iso)


def _missing(column: Texts, random: np.random.Generator, share: float, word: str) -> Texts:
    return pc.if_else(pa.array(random.random(len(column)) < share), word, column)


def _spelt(column: Texts, random: np.random.Generator) -> Texts:
    """A blank before some, and some are missing."""
    padded = pc.binary_join_element_wise(" ", column, "")
    column = pc.if_else(pa.array(random.random(len(column)) < 0.01), padded, column)
    return _missing(column, random, 0.04, "")


def _truths(values: npt.NDArray[np.bool_], random: np.random.Generator) -> Texts:
    """True and false as one system writes them, or yes and no as another does."""
    plain = pa.array(["false", "true"]).take(pa.array(values.astype(np.int64)))
    other = pa.array(["no", "yes"]).take(pa.array(values.astype(np.int64)))
    return pc.if_else(pa.array(random.random(len(values)) < 0.1), other, plain)


def _broken(rows: Texts, share: float, random: np.random.Generator) -> Texts:
    """Rows that break off, that lack a time, or that show an article that nobody knows."""
    kind = random.integers(3, size=len(rows))
    fault = random.random(len(rows)) < share
    cut = pc.utf8_slice_codeunits(rows, 0, 40)
    undated = pc.replace_substring_regex(rows, r"^([^,]*),[^,]*,", r"\1,soon,")
    strange = pc.replace_substring_regex(rows, r",a[0-9]+,([a|0-9]*),", r",gone,\1,")
    for i, changed in enumerate((cut, undated, strange)):
        rows = pc.if_else(pa.array(fault & (kind == i)), changed, rows)
    return rows


def _iso(seconds: int) -> str:
    return str(np.datetime64(int(seconds), "s")) + "Z"


if __name__ == "__main__":
    main()
