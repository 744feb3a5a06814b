"""The simulated visitors of `topstory demo --live`: how many come, and what is true of them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from topstory.serving.pages.studio.history import Ring

FIRST_RATE = 400
RATES = (0, 20, 50, 100, 200, 400, 800)  # visitors a second that the page offers


class TruthReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sums since the demo began, by those who simulate the visitors."""

    visits: Annotated[float, Meta(ge=0)]
    best: Annotated[float, Meta(ge=0)]  # of the true chances of a click on the best article
    random: Annotated[float, Meta(ge=0)]  # the same on an article at random
    shown: dict[str, tuple[float, float]]  # by bucket: visits, and the same on what was shown


class Simulation:
    """What the page wants and what the visitors report, in memory only."""

    def __init__(self, rate: int = FIRST_RATE) -> None:
        self.rate = rate
        self._ring = Ring(1, 901)

    def report(self, now: float, truth: TruthReport) -> None:
        """Take a report."""
        shown = truth.shown.get("deployment", (0.0, 0.0))
        self._ring.add(now, (truth.visits, truth.best, truth.random, *shown))

    def series(self, start: float) -> list[tuple[int, tuple[float, ...]]]:
        """Samples since then: visits, best, random, deployment's visits and chances."""
        return [each for each in self._ring.samples if each[0] >= start]
