"""How much of what could be shown was left to chance: overlap, surprises and runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topstory.events import EventLog
from topstory.events.columns.array_record import blocks as pieces
from topstory.kernels.compilation import Counters, Floats

ALIKE = 1e-9  # relative: chances that differ by less are as large as each other
RARE = 0.01


class ArticleOverlap(NamedTuple):
    """How one article was shown."""

    article: str
    offered: int  # visits whose pool had it
    shown: int
    mean_chance: float  # over the visits it was offered to
    smallest: float  # of those chances
    mean_weight: float  # Σ 1/p over the visits it was shown to / offered: 1 if p is right


class Overlap:
    """Sums over all pairs of a visit and an article of its pool."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        count = len(log.article_ids)
        self._offered, self._shown, self._chance = (np.zeros(count) for _ in range(3))
        self._smallest, self._weight = np.ones(count), np.zeros(count)
        self._rare, self._pairs, self._surprises = 0, 0, 0.0
        self._weights, self._squares = 0.0, 0.0
        self._repeats, self._expected, self._noise = 0.0, 0.0, 0.0
        self._last: tuple[int, int, Floats] | None = None

    def add(self, start: int, begins: Counters, chances: Floats) -> None:
        """The chances of the events from `start` on."""
        log, stop = self._log, start + len(begins)
        pool, position = log.pool[start:stop], log.position[start:stop].astype(np.int64)
        sizes = log.pool_sizes[pool]
        within = np.arange(len(chances)) - np.repeat(begins, sizes)
        member = log.pool_members[np.repeat(log.pool_offsets[pool], sizes) + within]
        place = begins + position
        p, article = chances[place], member[place]
        count = len(self._offered)
        self._offered += np.bincount(member, minlength=count)
        self._chance += np.bincount(member, chances, minlength=count)
        np.minimum.at(self._smallest, member, chances)
        self._shown += np.bincount(article, minlength=count)
        self._weight += np.bincount(article, 1 / p, minlength=count)
        self._pairs += len(chances)
        self._rare += int((chances < RARE).sum())
        # Of articles that are alike the likeliest, one is foretold by chance alone.
        largest = np.maximum.reduceat(chances, begins) * (1 - ALIKE)
        alike = np.add.reduceat((chances >= np.repeat(largest, sizes)).astype(np.int64), begins)
        self._surprises += float(np.where(p < largest, 1.0, 1 - 1 / alike).sum())
        weight = 1 / (sizes * p)
        self._weights += float(weight.sum())
        self._squares += float(weight @ weight)
        self._follow(pool.astype(np.int64), position, begins, chances)

    def _follow(self, pool: Counters, position: Counters, begins: Counters, p: Floats) -> None:
        """Compare each event with the one before it, if that had the same pool."""
        if self._last is not None:
            last, place, before = self._last
            p, begins = np.concatenate([before, p]), np.append(0, begins + len(before))
            pool, position = np.append(last, pool), np.append(place, position)
        ends = np.append(begins[1:], len(p))
        self._last = (int(pool[-1]), int(position[-1]), p[begins[-1] : ends[-1]].copy())
        same = np.flatnonzero(pool[1:] == pool[:-1])
        if not len(same):
            return
        sizes = (ends - begins)[same]
        starts = np.cumsum(sizes) - sizes
        within = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
        one = p[np.repeat(begins[same], sizes) + within]
        other = p[np.repeat(begins[same + 1], sizes) + within]
        alike = np.add.reduceat(one * other, starts)
        self._repeats += float((position[same] == position[same + 1]).sum())
        self._expected += float(alike.sum())
        self._noise += float((alike * (1 - alike)).sum())

    @property
    def surprises(self) -> float:
        """The share of events that did not show the article with the largest chance."""
        return self._surprises / max(1, len(self._log))

    @property
    def hardly_shown(self) -> float:
        """The share of pairs whose chance is below 1 %."""
        return self._rare / max(1, self._pairs)

    @property
    def effective_events(self) -> float:
        """What the log is worth for a policy that shows all articles alike."""
        return self._weights**2 / self._squares if self._squares else 0.0

    @property
    def runs(self) -> tuple[float, float, float]:
        """Of 1: how often an event repeats the one before; how often by chance; and the z of it."""
        steps = self._noise**0.5
        excess = (self._repeats - self._expected) / steps if steps else 0.0
        n = max(1, len(self._log) - 1)
        return self._repeats / n, self._expected / n, excess

    def articles(self) -> tuple[ArticleOverlap, ...]:
        """Those that were offered, the most often shown first."""
        order = np.argsort(-self._shown, kind="stable")
        return tuple(
            ArticleOverlap(
                self._log.article_ids[a],
                int(self._offered[a]),
                int(self._shown[a]),
                float(self._chance[a] / self._offered[a]),
                float(self._smallest[a]),
                float(self._weight[a] / self._offered[a]),
            )
            for a in order.tolist()
            if self._offered[a]
        )


def shown_places(log: EventLog, start: int, stop: int, begins: Counters, size: int) -> Floats:
    """(size,) 1 at the places of the articles that were shown, end to end."""
    found = np.zeros(size)
    found[begins + log.position[start:stop]] = 1.0
    return found


def log_pieces(log: EventLog) -> list[tuple[int, int]]:
    """The log in pieces whose pools, end to end, fit into memory."""
    mean_size = max(1, int(log.pool_sizes[log.pool].mean())) if len(log) else 1
    return list(pieces(len(log), max(1_000, (1 << 20) // mean_size)))
