"""The features of events that a feature model declares, computed alike for logs and live."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from topstory.features.event.tables import (
    DAY_MINUTES,
    EVENT_FEATURES,
    MAX_AGE_MINUTES,
    MAX_SEEN,
    MAX_SLOT,
    MINUTE,
    EventFeature,
)

AGE, SEEN, HOUR, WEEKDAY, POSITION = (
    *("age_hours", "seen_before"),
    *("hour_of_day", "weekday", "position"),
)
# The numbers of an event are at most this long together. A profile's are at most 1, and so is the
# constant: a context stays below 1.5, which is what a service accepts (`limits.context_norm`).
MAX_LENGTH = 0.499
THURSDAY = 3  # 1970-01-01 was one; Monday is 0
_OFFSETS_FOR = 15 * MINUTE  # no time zone changes its offset at another minute

Numbers = npt.NDArray[np.float32]
Times = npt.NDArray[np.int64]  # microseconds since 1970


@dataclass(frozen=True)
class EventFeatures:
    """Which features of events a context has, and what they are.

    A context is the numbers of the user's profile, those of the event, those of the event and the
    article, and the constant 1.

    >>> declared = EventFeatures(("age_hours", "hour_of_day"), published="date")
    >>> declared.columns
    ('hour_of_day sine', 'hour_of_day cosine', 'age_hours')
    >>> six = 6 * 3_600_000_000
    >>> declared.of_event(six).round(3), declared.of_articles(six, [0, six], None).round(3)
    (array([0.353, 0.   ], dtype=float32), array([[0.118],
           [0.   ]], dtype=float32))
    """

    names: tuple[str, ...]
    published: str | None = None  # the field of an article's profile that says when it came out
    timezone: str = "UTC"  # whose hours and weekdays count

    @classmethod
    def of(
        cls, names: Collection[str] | str, published: str | None = None, timezone: str = "UTC"
    ) -> EventFeatures:
        """Checked, in their own order; ValueError names what is wrong."""
        if isinstance(names, str):
            raise ValueError(f"event must be a list of names, got the string {names!r}")
        for name in names:
            if name not in EVENT_FEATURES:
                known = ", ".join(EVENT_FEATURES)
                raise ValueError(f"event: there is no feature {name!r}; choose from {known}")
        try:
            if timezone != "UTC":  # which needs no table of zones
                _zone(timezone)
        except (KeyError, OSError, ValueError, TypeError):
            raise ValueError(
                f"timezone must be a name such as UTC or Europe/Berlin, got {timezone!r}"
            ) from None
        return cls(tuple(name for name in EVENT_FEATURES if name in names), published, timezone)

    def __bool__(self) -> bool:
        return bool(self.names)

    @property
    def _features(self) -> list[EventFeature]:
        return [EVENT_FEATURES[name] for name in self.names]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numbers: those of the event first, then those of the article, too."""
        return tuple(
            f"{feature.name} {column}".strip()
            for feature in sorted(self._features, key=lambda feature: feature.of_article)
            for column in feature.columns
        )

    @property
    def per_article(self) -> int:
        """How many numbers differ between the articles of a pool."""
        return sum(len(each.columns) for each in self._features if each.of_article)

    @property
    def per_event(self) -> int:
        """How many are the same for all of them."""
        return len(self.columns) - self.per_article

    @cached_property
    def _tables(self) -> dict[str, Numbers]:
        scale = MAX_LENGTH / math.sqrt(len(self.names))
        return {each.name: (scale * each.table()).astype(np.float32) for each in self._features}

    # -- for many events --

    def of_events(self, at: Times | None, slot: npt.NDArray[np.int64] | None) -> Numbers:
        """(n, per_event) the numbers of events at these times, and for these slots."""
        parts = []
        if HOUR in self.names or WEEKDAY in self.names:
            assert at is not None
            minutes = at // MINUTE + self._offsets(at)
            if HOUR in self.names:
                parts.append(self._tables[HOUR][minutes % DAY_MINUTES])
            if WEEKDAY in self.names:
                parts.append(self._tables[WEEKDAY][(minutes // DAY_MINUTES + THURSDAY) % 7])
        if POSITION in self.names:
            assert slot is not None
            parts.append(self._tables[POSITION][np.clip(slot, 0, MAX_SLOT)])
        return np.concatenate(parts, axis=1)

    def of_pairs(
        self, at: Times | None, published: Times | None, seen: npt.NDArray[np.int64] | None
    ) -> Numbers:
        """(n, per_article) the numbers of pairs of an event and an article.

        Args:
            at: (n,) when the event was.
            published: (n,) when the article came out.
            seen: (n,) how often the visitor was shown it before.
        """
        parts = []
        if AGE in self.names:
            assert at is not None
            assert published is not None
            minutes = np.clip((at - published) // MINUTE, 0, MAX_AGE_MINUTES)
            parts.append(self._tables[AGE][minutes])
        if SEEN in self.names:
            assert seen is not None
            parts.append(self._tables[SEEN][np.clip(seen, 0, MAX_SEEN)])
        return np.concatenate(parts, axis=1)

    # -- for one --

    def of_event(self, at: int, slot: int = 0) -> Numbers:
        """(per_event,) the numbers of one event."""
        if not self.per_event:
            return np.empty(0, np.float32)
        found: Numbers = self.of_events(np.array([at]), np.array([slot]))[0]
        return found

    def of_articles(
        self, at: int, published: Sequence[int] | None, seen: Sequence[int] | None
    ) -> Numbers:
        """(K, per_article) the numbers of one event with each article of its pool."""
        given = published if seen is None else seen
        assert given is not None
        return self.of_pairs(
            np.full(len(given), at),
            None if published is None else np.array(published, np.int64),
            None if seen is None else np.array(seen, np.int64),
        )

    def described(self) -> dict[str, Any]:
        """As JSON takes it; `EventFeatures.restored` reads it."""
        return {
            "names": list(self.names),
            "published": self.published,
            "timezone": self.timezone,
        }

    @classmethod
    def restored(cls, described: dict[str, Any]) -> EventFeatures:
        """What `described` told of."""
        return cls.of(described["names"], described["published"], described["timezone"])

    def _offsets(self, at: Times) -> npt.NDArray[np.int64]:
        """(n,) minutes by which local time is ahead of UTC."""
        if self.timezone == "UTC":
            return np.zeros(len(at), np.int64)
        quarters, place = np.unique(at // _OFFSETS_FOR, return_inverse=True)
        ahead = [_offset(self.timezone, quarter) for quarter in quarters.tolist()]
        return np.array(ahead, np.int64)[place]


@lru_cache(maxsize=4096)
def _offset(timezone: str, quarter: int) -> int:
    when = datetime.fromtimestamp(quarter * _OFFSETS_FOR / 1e6, UTC).astimezone(_zone(timezone))
    ahead = when.utcoffset()
    assert ahead is not None
    return round(ahead.total_seconds() / 60)


@lru_cache(maxsize=64)
def _zone(timezone: str) -> ZoneInfo:
    return ZoneInfo(timezone)
