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
    article, those that are features of the article, and the constant 1.

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
    in_f: tuple[str, ...] = ()  # those that are features f of the article, not of the context x

    @classmethod
    def of(
        cls,
        names: Collection[str] | str,
        published: str | None = None,
        timezone: str = "UTC",
        in_f: Collection[str] | str = (),
    ) -> EventFeatures:
        """Checked, in their own order; ValueError names what is wrong."""
        for parameter, given in (("event", names), ("event_in_f", in_f)):
            if isinstance(given, str):
                raise ValueError(f"{parameter} must be a list of names, got the string {given!r}")
            for name in given:
                if name not in EVENT_FEATURES:
                    known = ", ".join(EVENT_FEATURES)
                    message = f"{parameter}: there is no feature {name!r}; choose from {known}"
                    raise ValueError(message)
        if both := [name for name in EVENT_FEATURES if name in names and name in in_f]:
            raise ValueError(
                f"event_in_f: {', '.join(both)} is in event, too; a feature enters x or f"
            )
        try:
            if timezone != "UTC":  # which needs no table of zones
                _zone(timezone)
        except (KeyError, OSError, ValueError, TypeError):
            raise ValueError(
                f"timezone must be a name such as UTC or Europe/Berlin, got {timezone!r}"
            ) from None
        kept, features = (
            tuple(name for name in EVENT_FEATURES if name in given) for given in (names, in_f)
        )
        return cls(kept, published, timezone, features)

    def __bool__(self) -> bool:
        return bool(self.used)

    @property
    def used(self) -> tuple[str, ...]:
        """The features of both."""
        return self.names + self.in_f

    @property
    def _features(self) -> list[EventFeature]:
        return [EVENT_FEATURES[name] for name in self.names]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the numbers: of the event, then of event and article, then those in f."""
        ordered = sorted(self._features, key=lambda feature: feature.of_article)
        return _columns(ordered) + self.feature_columns

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """Those that are features of the article."""
        return _columns([EVENT_FEATURES[name] for name in self.in_f])

    @property
    def per_article(self) -> int:
        """How many numbers a log or a service keeps for each article of a pool."""
        of_articles = [each for each in self._features if each.of_article]
        return len(_columns(of_articles)) + len(self.feature_columns)

    @property
    def per_event(self) -> int:
        """How many are the same for all of them."""
        return len(self.columns) - self.per_article

    @cached_property
    def _tables(self) -> dict[str, Numbers]:
        scale = MAX_LENGTH / math.sqrt(len(self.used))
        return {
            name: (scale * EVENT_FEATURES[name].table()).astype(np.float32) for name in self.used
        }

    # -- for many events --

    def of_events(self, at: Times | None, slot: npt.NDArray[np.int64] | None) -> Numbers:
        """(n, per_event) the numbers of events at these times, and for these slots."""
        return np.concatenate(self._of_events(self.names, at, slot), axis=1)

    def _of_events(
        self, names: tuple[str, ...], at: Times | None, slot: npt.NDArray[np.int64] | None
    ) -> list[Numbers]:
        parts = []
        if HOUR in names or WEEKDAY in names:
            assert at is not None
            minutes = at // MINUTE + self._offsets(at)
            if HOUR in names:
                parts.append(self._tables[HOUR][minutes % DAY_MINUTES])
            if WEEKDAY in names:
                parts.append(self._tables[WEEKDAY][(minutes // DAY_MINUTES + THURSDAY) % 7])
        if POSITION in names:
            assert slot is not None
            parts.append(self._tables[POSITION][np.clip(slot, 0, MAX_SLOT)])
        return parts

    def of_pairs(
        self,
        at: Times | None,
        published: Times | None,
        seen: npt.NDArray[np.int64] | None,
        slot: npt.NDArray[np.int64] | None = None,
    ) -> Numbers:
        """(n, per_article) the numbers of pairs of an event and an article, those in f last.

        Args:
            at: (n,) when the event was.
            published: (n,) when the article came out.
            seen: (n,) how often the visitor was shown it before.
            slot: (n,) the event's.
        """
        parts = self._of_pairs(self.names, at, published, seen)
        parts += self._of_events(self.in_f, at, slot)
        parts += self._of_pairs(self.in_f, at, published, seen)
        return np.concatenate(parts, axis=1)

    def _of_pairs(
        self,
        names: tuple[str, ...],
        at: Times | None,
        published: Times | None,
        seen: npt.NDArray[np.int64] | None,
    ) -> list[Numbers]:
        parts = []
        if AGE in names:
            assert at is not None
            assert published is not None
            minutes = np.clip((at - published) // MINUTE, 0, MAX_AGE_MINUTES)
            parts.append(self._tables[AGE][minutes])
        if SEEN in names:
            assert seen is not None
            parts.append(self._tables[SEEN][np.clip(seen, 0, MAX_SEEN)])
        return parts

    # -- for one --

    def of_event(self, at: int, slot: int = 0) -> Numbers:
        """(per_event,) the numbers of one event."""
        if not self.per_event:
            return np.empty(0, np.float32)
        found: Numbers = self.of_events(np.array([at]), np.array([slot]))[0]
        return found

    def of_articles(
        self, at: int, published: Sequence[int] | None, seen: Sequence[int] | None, slot: int = 0
    ) -> Numbers:
        """(K, per_article) the numbers of one event with each article of its pool."""
        given = published if seen is None else seen
        assert given is not None
        return self.of_pairs(
            np.full(len(given), at),
            None if published is None else np.array(published, np.int64),
            None if seen is None else np.array(seen, np.int64),
            np.full(len(given), slot),
        )

    def described(self) -> dict[str, Any]:
        """As JSON takes it; `EventFeatures.restored` reads it."""
        found: dict[str, Any] = {
            "names": list(self.names),
            "published": self.published,
            "timezone": self.timezone,
        }
        return found | ({"in_f": list(self.in_f)} if self.in_f else {})

    @classmethod
    def restored(cls, described: dict[str, Any]) -> EventFeatures:
        """What `described` told of."""
        known = (described["names"], described["published"], described["timezone"])
        return cls.of(*known, described.get("in_f", ()))

    def _offsets(self, at: Times) -> npt.NDArray[np.int64]:
        """(n,) minutes by which local time is ahead of UTC."""
        if self.timezone == "UTC":
            return np.zeros(len(at), np.int64)
        quarters, place = np.unique(at // _OFFSETS_FOR, return_inverse=True)
        ahead = [_offset(self.timezone, quarter) for quarter in quarters.tolist()]
        return np.array(ahead, np.int64)[place]


def _columns(features: list[EventFeature]) -> tuple[str, ...]:
    return tuple(
        f"{feature.name} {column}".strip() for feature in features for column in feature.columns
    )


@lru_cache(maxsize=4096)
def _offset(timezone: str, quarter: int) -> int:
    when = datetime.fromtimestamp(quarter * _OFFSETS_FOR / 1e6, UTC).astimezone(_zone(timezone))
    ahead = when.utcoffset()
    assert ahead is not None
    return round(ahead.total_seconds() / 60)


@lru_cache(maxsize=64)
def _zone(timezone: str) -> ZoneInfo:
    return ZoneInfo(timezone)
