"""The logs of a simulated study: random exploration long before, a tuning day, and a week."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from topstory.studies.logs import Logs


@dataclass(frozen=True)
class Scale:
    """How many events the logs have."""

    exploration: int
    tuning: int
    evaluation: int


SCALES = {
    "demo": Scale(200_000, 500_000, 3_000_000),
    "paper": Scale(2_000_000, 4_700_000, 36_000_000),
}


@dataclass(frozen=True)
class Simulated:
    """Logs of one simulated world."""

    scale: Scale
    seed: int

    @property
    def known_by(self) -> dict[str, str]:
        """Scale and seed: a world is the same each time it is made."""
        return {
            "tuning": f"{self.scale.tuning:,} simulated events, seed {self.seed}",
            "evaluation": f"{self.scale.evaluation:,} simulated events, seed {self.seed}",
            "exploration": f"{self.scale.exploration:,} simulated events, seed {self.seed}",
        }

    @cached_property
    def logs(self) -> Logs:
        """Made anew, the same each time."""
        from topstory.cli.demo_log import simulated_log

        explored, both = simulated_log(
            self.scale.tuning + self.scale.evaluation, self.scale.exploration, self.seed
        )
        return Logs(both[: self.scale.tuning], both[self.scale.tuning :], explored)
