"""The logs of a simulated study, laid out as the paper's (§5.2).

Features are learned from random exploration in September 2008, parameters chosen on 1 May 2009,
policies judged on the week from 3 May.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from topstory.engines import Engine
from topstory.events.simulator import TodayModule
from topstory.features import FeatureBuilder
from topstory.studies.logs import Logs


@dataclass(frozen=True)
class Scale:
    """How many events the logs have, and over how many days."""

    exploration: int
    tuning: int
    evaluation: int
    tuning_days: float = 1
    evaluation_days: float = 7


SCALES = {
    # A few hours and a day: spread over a week, so few visits would teach too little of an article.
    "demo": Scale(300_000, 500_000, 3_000_000, 0.25, 1),
    "paper": Scale(8_000_000, 4_700_000, 36_000_000),
}
SEPTEMBER, MAY_1, MAY_3 = "2008-09-01", "2009-05-01", "2009-05-03"
MONTH = 30  # days
FEATURES = "features.safetensors"


@dataclass(frozen=True)
class Simulated:
    """Logs of one simulated world; the fitted features are kept in the study's folder."""

    scale: Scale
    seed: int
    folder: Path
    engine: Engine

    @property
    def known_by(self) -> dict[str, str]:
        """Scale and seed: a world is the same each time it is made."""
        return {
            role: f"{events:,} simulated events, seed {self.seed}"
            for role, events in (
                ("tuning", self.scale.tuning),
                ("evaluation", self.scale.evaluation),
                ("exploration", self.scale.exploration),
            )
        }

    @cached_property
    def logs(self) -> Logs:
        """Made anew, the same each time."""
        world = TodayModule(self.seed)
        raw = world.random_log(self.scale.exploration, SEPTEMBER, MONTH, seed=1, raw=True)
        kept = self.folder / FEATURES
        if kept.exists():
            features = FeatureBuilder.load(kept)
        else:
            features = FeatureBuilder(engine=self.engine, seed=self.seed).fit(raw)
            features.save(kept)
        tuning, evaluation = (
            world.random_log(events, start, days, seed=seed, features=features)
            for events, start, days, seed in (
                (self.scale.tuning, MAY_1, self.scale.tuning_days, 2),
                (self.scale.evaluation, MAY_3, self.scale.evaluation_days, 3),
            )
        )
        return Logs(tuning, evaluation, features.apply(raw))
