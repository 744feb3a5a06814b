"""All parameters of the simulated world."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

GROUPS = 5  # of users, by what they like; and topics of articles: one for each group


@dataclass(frozen=True)
class WorldSettings:
    """The distributions behind `TodayModule`; log-odds are natural logarithms.

    The defaults have the ceilings that the paper's Table 1 suggests; they were set on sixteen
    simulated weeks, not on the noise of one (docs/concepts/simulator.md shows both).

    >>> WorldSettings(users=1000, ctr=0.05).ctr
    0.05
    >>> WorldSettings(ctr=5)
    Traceback (most recent call last):
    ...
    ValueError: ctr must lie between 0 and 1, got 5
    """

    # -- users: soft members of five groups --
    users: int = 1_000_000
    group_shares: tuple[float, ...] = (0.27, 0.23, 0.20, 0.17, 0.13)
    group_mixing: float = 0.35  # of the Dirichlet: near 0 everyone is of one group, 10 hardly
    loyalty: float = (
        2.0  # visitor = users · u^loyalty: at 2 the keenest 1 % make 10 % of the visits
    )

    # -- what is known of them: raw profiles (paper, §5.2.2) --
    unknown: float = 0.10  # of genders and of ages
    female: tuple[float, ...] = (0.30, 0.70, 0.45, 0.62, 0.38)  # share in each group
    ages: int = 10  # segments
    age_centres: tuple[float, ...] = (2.0, 3.5, 5.0, 6.5, 8.0)  # a bell curve for each group
    age_width: float = 1.8
    locations: int = 200
    location_tilt: float = 0.5  # deviation of a group's log-share of a location
    behaviours: int = 980
    behaviour_support: tuple[float, float] = (0.002, 0.12)  # log-uniform between them
    telling: float = 0.80  # share of behaviours that differ between groups
    behaviour_tilt: float = 2.0  # deviation of their log-odds
    activity: tuple[float, float] = (0.20, 0.15)  # lognormal: how much of a user was recorded

    # -- articles --
    births: float = 1.0  # new ones an hour on average; at most twice as many, rounded up
    pool: tuple[int, int] = (18, 23)  # its size by night and by day
    staying: float = 8.0  # hours: the luck in an article's life; 0: the oldest always leaves first
    topic_mixing: float = 0.10  # of the Dirichlet, for each topic
    url_categories: int = 42
    editor_categories: int = 40
    fidelity: float = 0.97  # chance that a category is of one of the article's topics

    # -- clicks --
    ctr: float = 0.035  # of articles shown at random
    group_rates: tuple[float, ...] = (0.60, -0.85, 0.35, -0.20, -0.10)  # groups that click more
    popularity: float = 0.05  # deviation between articles of one topic
    topic_popularity: tuple[float, ...] = (0.05, 0.38, -0.20, 0.0, -0.90)  # log-odds of topics
    decay: float = 0.01  # an hour: each article's is uniform between 0 and this
    # What a fresh article has above an old one. Profiles then say when an article was published.
    novelty: float = 0.0
    novelty_hours: float = 6.0  # after which half of it is left
    daily: float = 0.10  # how much more is clicked in the evening than on average
    preference: float = 0.50  # how much a group prefers its topics
    affinity: float = 3.0  # of a group to its own topic, against the noise of the others
    own_appeal: float = 0.02  # deviation of an article's appeal to a group, beyond its topics
    taste_turn: float = 0.0  # radians a day: how fast groups come to like other topics
    popularity_drift: float = 0.0  # an hour: deviation of the steps of each article's log-odds

    # -- traffic --
    busy_hours: float = 0.5  # how far visits an hour swing around their mean

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            for number in value if isinstance(value, tuple) else (value,):
                _check(field.name, number)
            if isinstance(value, tuple) and field.name not in PAIRS and len(value) != GROUPS:
                raise ValueError(f"{field.name} must have {GROUPS} numbers, got {value!r}")
        if self.pool[0] > self.pool[1] or self.pool[0] < 2:
            raise ValueError(f"pool must be two sizes of at least 2, the lower first: {self.pool}")


PAIRS = ("behaviour_support", "activity", "pool")
MAX_COUNT = 2**31 - 1  # users and categories are numbered with 32 bits
COUNTS = ("users", "ages", "locations", "behaviours", "url_categories", "editor_categories")
SHARES = ("ctr", "behaviour_support", "unknown", "female", "telling", "fidelity", "group_shares")
SIGNED = ("group_rates", "topic_popularity", "age_centres", "activity", "affinity")


def _check(name: str, value: Any) -> None:
    if name in COUNTS and (not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
    if name in COUNTS and value > MAX_COUNT:
        raise ValueError(f"{name} must be at most {MAX_COUNT}, got {value!r}")
    if not isinstance(value, int | float) or not -1e9 < value < 1e10:
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if (name in SHARES and not 0 <= value <= 1) or (name == "ctr" and not 0 < value < 1):
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    if name == "novelty_hours" and not value > 0:
        raise ValueError(f"novelty_hours must be > 0, got {value!r}")
    if name not in SIGNED and value < 0:
        raise ValueError(f"{name} must be >= 0, got {value!r}")
