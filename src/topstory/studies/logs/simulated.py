"""The logs of a simulated study, laid out as the paper's (§5.2).

Features are learned from random exploration in September 2008, parameters chosen on 1 May 2009,
policies judged on the week from 3 May.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from topstory.engines import Engine
from topstory.events.simulator import TodayModule, WorldSettings
from topstory.studies.logs.features import (
    SIMULATED_SUPPORT,
    Support,
    builder,
    described,
    learned,
    support_options,
)
from topstory.studies.logs.sources import Logs
from topstory.studies.logs.summaries import FEATURE_MODEL

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder


@dataclass(frozen=True)
class Scale:
    """How many events the logs have, over how many days, and of how many users."""

    exploration: int
    tuning: int
    evaluation: int
    tuning_days: float = 1
    evaluation_days: float = 7
    users: int = 1_000_000
    repeats: int | None = None  # seeds averaged, unless told; None: as sizes ask for


SCALES = {
    # A few hours and a day: spread over a week, so few visits would teach too little of an article.
    # A tenth of the users: encoding and clustering them is most of what learning features takes,
    # and three million events of random exploration tell as much of them (docs/guides/study.md).
    # Three seeds at every size: its 30 % teach no more than 5 % of the paper's day.
    "demo": Scale(3_000_000, 500_000, 3_000_000, 0.25, 1, users=100_000, repeats=3),
    "paper": Scale(8_000_000, 4_700_000, 36_000_000),
}
SEPTEMBER, MAY_1, MAY_3 = "2008-09-01", "2009-05-01", "2009-05-03"
MONTH = 30  # days


@dataclass(frozen=True)
class Simulated:
    """Logs of one simulated world; the fitted features are kept in the study's folder."""

    scale: Scale
    seed: int
    folder: Path
    engine: Engine
    support: Support | None = None

    @property
    def known_by(self) -> dict[str, str]:
        """Scale, seed and the world's numbers: it is the same each time it is made."""
        # Under the class's first name: studies begun by earlier versions must go on.
        world = repr(WorldSettings(users=self.scale.users)).removeprefix("World")
        told = blake2b(world.encode(), digest_size=4).hexdigest()
        known = {
            role: f"{events:,} simulated events in {days:g} {'day' if days == 1 else 'days'} from "
            f"{start}; world {told}, "
            f"seed {self.seed}"
            for role, events, start, days in (
                ("tuning", self.scale.tuning, MAY_1, self.scale.tuning_days),
                ("evaluation", self.scale.evaluation, MAY_3, self.scale.evaluation_days),
                ("exploration", self.scale.exploration, SEPTEMBER, MONTH),
            )
        }
        return {**known, FEATURE_MODEL: described(self._builder)}

    @property
    def _builder(self) -> FeatureBuilder:
        least = SIMULATED_SUPPORT if self.support is None else self.support
        return builder(self.engine, self.seed, least)

    @property
    def options(self) -> tuple[str, ...]:
        """The scale, and the features' support if it was chosen."""
        scale = next(name for name, scale in SCALES.items() if scale == self.scale)
        return ("--scale", scale, *(() if self.support is None else support_options(self.support)))

    @cached_property
    def logs(self) -> Logs:
        """Made anew, the same each time."""
        scale = self.scale
        world = TodayModule(self.seed, users=scale.users)
        raw = world.random_log(scale.exploration, SEPTEMBER, MONTH, seed=1, raw=True)
        features = learned(self._builder, raw, self.folder)
        tuning, evaluation = (
            world.random_log(events, start, days, seed=seed, features=features)
            for events, start, days, seed in (
                (scale.tuning, MAY_1, scale.tuning_days, 2),
                (scale.evaluation, MAY_3, scale.evaluation_days, 3),
            )
        )
        return Logs(tuning, evaluation, features.apply(raw))
