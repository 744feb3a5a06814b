"""Models that average payoffs in cells, one for each article and user segment."""

from typing import Any, Self

import numpy as np

from topstory.events import EventLog
from topstory.kernels.compilation import Floats
from topstory.kernels.contexts import Dense
from topstory.kernels.models.averages import Averages
from topstory.models.model import Model
from topstory.models.priors.sums import ArticleSums
from topstory.models.roster import Roster


class AverageModel(Model):
    """The mean payoff of a cell's trials, and 1/√n as its width: infinite before the first.

    A prior counts as trials that were seen before: so many, with such a mean.
    """

    per_article: tuple[str, ...] = ("shows", "total", "mean", "spread")
    scored: tuple[str, ...] = ("mean", "spread")

    def parameters(self) -> dict[str, Any]:
        """None."""
        return {}

    def room(self, dimension: int) -> Dense:
        """Not unrolled: features hardly matter here, and one compilation then serves every d."""
        return Dense(np.zeros(dimension), (), np.zeros(0))

    def _segment_count(self, dimension: int) -> int:
        return 1

    def _start(self, segments: int) -> tuple[Floats, Floats]:
        """(segments,) trials and payoff of an article that was never shown."""
        if self.prior is None:
            return np.zeros(segments), np.zeros(segments)
        known = self.prior.averages
        # Its segments are those of the default assignment; others start like all users.
        rows = known[1:] if self._segments_of_prior(segments) else np.tile(known[0], (segments, 1))
        return rows[:, 1], rows[:, 0] * rows[:, 1]

    def _segments_of_prior(self, segments: int) -> bool:
        return False

    def _fresh(self, capacity: int, dimension: int) -> Averages:
        shape = (capacity, self._segment_count(dimension))
        shows, total = (np.tile(start, (capacity, 1)) for start in self._start(shape[1]))
        known = shows > 0
        counted = np.where(known, shows, 1.0)
        return Averages(
            shows=shows,
            total=total,
            mean=np.where(known, total / counted, 0.0),
            spread=np.where(known, 1.0 / np.sqrt(counted), np.inf),
            offset=np.zeros((0, 0)),
            bonus=np.zeros(0),
            learns=self.learns,
            residual=False,
        )

    # -- what was learned, without the prior --

    def restarted(self, **changes: Any) -> Self:
        """A model without trials, with another prior."""
        if set(changes) - {"prior"}:
            raise TypeError(f"the {self.name} model takes no {', '.join(set(changes) - {'prior'})}")
        if type(self).__init__ is AverageModel.__init__ or "offset" in self.parameters():
            raise TypeError(f"the {self.name} model has no prior to change")
        twin = self.copy()
        twin.prior = changes.get("prior")
        twin.roster, twin.dimension, twin.state = Roster(), None, None
        return twin

    def sums(self) -> ArticleSums:
        """What was learned, without the prior: trials and payoffs in each cell."""
        slots = [slot for slot, article in enumerate(self.roster.ids) if article is not None]
        ids = tuple(article for article in self.roster.ids if article is not None)
        state, start = self.state, self._blank
        shows, total = state.shows[slots] - start.shows, state.total[slots] - start.total
        return ArticleSums(ids, shows, total, np.ones((len(ids), 1)))

    def sums_of(self, log: EventLog, weights: Floats | None = None) -> ArticleSums:
        """What a log teaches: trials and payoffs in each cell."""
        if "offset" in (*self.parameters(), *self.callables()):
            return super().sums_of(log, weights)  # refused: each payoff has an offset of its own
        segments, count = self._segment_count(log.dimension), len(log.article_ids)
        own = self.segments(log.users, 0, len(log))
        cell = log.shown_index * segments + (own if len(own) else 0)
        w = np.ones(len(log)) if weights is None else weights
        r = (log.payoff if log.exact is None else log.exact.payoff).astype(np.float64)
        shows, total = (
            np.asarray(np.bincount(cell, each, count * segments), np.float64).reshape(count, -1)
            for each in (w, w * r)
        )
        return ArticleSums(log.article_ids, shows, total, np.ones((count, 1)))

    def take(self, sums: ArticleSums) -> None:
        """Know this instead of what was learned before; the articles in it must be known."""
        assert self.dimension is not None
        self._begin(self.dimension)
        for slot, article in enumerate(self.roster.ids):
            if article is not None:
                self._place(slot, article)
        state = self.state
        slots = [self.roster.slot(article) for article in sums.ids]
        state.shows[slots] += sums.S
        state.total[slots] += sums.b
        known = state.shows > 0
        counted = np.where(known, state.shows, 1.0)
        state.mean[:] = np.where(known, state.total / counted, 0.0)
        state.spread[:] = np.where(known, 1.0 / np.sqrt(counted), np.inf)
