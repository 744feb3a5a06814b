"""The logs of a simulated study, with the dates of the paper (§5.2).

Features are learned from random exploration in September 2008, parameters are tuned on 1 May 2009,
and policies are evaluated on the week from 3 May.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from topstory.engines import Engine
from topstory.evaluation.replays.truth import ExpectedPayoffs
from topstory.evaluation.tuning.grids import SIZES
from topstory.evaluation.uncertainty.paths import REPEATS
from topstory.events.simulator import TodayModule, WorldSettings
from topstory.studies.logs.features import (
    SIMULATED_SUPPORT,
    Support,
    fit_or_load,
    new_builder,
    parameters_text,
    support_options,
)
from topstory.studies.logs.sources import Logs
from topstory.studies.logs.summaries import FEATURE_MODEL
from topstory.studies.settings import LEARNERS

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder


@dataclass(frozen=True)
class Scale:
    """The number of events in each log, and over how many days and users."""

    exploration: int
    tuning: int
    evaluation: int
    tuning_days: float = 1
    evaluation_days: float = 7
    users: int = 1_000_000
    sizes: tuple[float, ...] = SIZES  # data sizes by default
    repeats: int = REPEATS  # learning paths by default
    policies: tuple[str, ...] = LEARNERS  # compared by default: the paper's


SCALES = {
    # One day and three days: over a week, so few visits would teach too little about an article.
    # Tuning has as many events an hour as the evaluation. Days differ, so one would not do.
    # A tenth of the users: encoding and clustering users takes most of the time to learn features,
    # and three million events of random exploration are as informative (docs/guides/study.md).
    # Of the policies that start from a prior only the one that uses article features: the others
    # earn no more here than without one, and it is to be a matter of a minute or two.
    "demo": Scale(
        *(3_000_000, 2_000_000, 6_000_000, 1, 3),
        users=100_000,
        sizes=(1.0, 0.2, 0.05),
        repeats=4,
        policies=(*LEARNERS, "linucb-hybrid-prior"),
    ),
    "paper": Scale(8_000_000, 4_700_000, 36_000_000),
}
SEPTEMBER, MAY_1, MAY_3 = "2008-09-01", "2009-05-01", "2009-05-03"
EXPLORATION_DAYS = 30


@dataclass(frozen=True)
class SimulatedLogs:
    """Logs of one simulated world; the folder of the study keeps the fitted features."""

    scale: Scale
    seed: int
    folder: Path
    engine: Engine
    support: Support | None = None

    @property
    def identities(self) -> dict[str, str]:
        """Scale, seed and a hash of the world's settings: they determine the logs."""
        # Under the first name of the class: studies begun by earlier versions must go on.
        world = repr(WorldSettings(users=self.scale.users)).removeprefix("World")
        digest = blake2b(world.encode(), digest_size=4).hexdigest()
        logs = {
            role: f"{events:,} simulated events in {days:g} {'day' if days == 1 else 'days'} from "
            f"{start}; world {digest}, "
            f"seed {self.seed}"
            for role, events, start, days in (
                ("tuning", self.scale.tuning, MAY_1, self.scale.tuning_days),
                ("evaluation", self.scale.evaluation, MAY_3, self.scale.evaluation_days),
                ("exploration", self.scale.exploration, SEPTEMBER, EXPLORATION_DAYS),
            )
        }
        return {**logs, FEATURE_MODEL: parameters_text(self._builder)}

    @property
    def _builder(self) -> FeatureBuilder:
        minimum = SIMULATED_SUPPORT if self.support is None else self.support
        return new_builder(self.engine, self.seed, minimum)

    @property
    def options(self) -> tuple[str, ...]:
        """The scale, and the support if it was given."""
        scale = next(name for name, scale in SCALES.items() if scale == self.scale)
        return ("--scale", scale, *(() if self.support is None else support_options(self.support)))

    @cached_property
    def logs(self) -> Logs:
        """Simulated again in each session, with the same events."""
        scale = self.scale
        world = TodayModule(self.seed, users=scale.users)
        raw = world.random_log(scale.exploration, SEPTEMBER, EXPLORATION_DAYS, seed=1, raw=True)
        features = fit_or_load(self._builder, raw, self.folder)
        tuning, evaluation = (
            world.random_log(events, start, days, seed=seed, features=features)
            for events, start, days, seed in (
                (scale.tuning, MAY_1, scale.tuning_days, 2),
                (scale.evaluation, MAY_3, scale.evaluation_days, 3),
            )
        )
        expected = ExpectedPayoffs.of(world.expected_payoffs(evaluation), evaluation)
        return Logs(tuning, evaluation, features.apply(raw), expected)
