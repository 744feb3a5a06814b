"""A decision: which article a bucket shows to a user, and how likely that was over the mix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topstory.kernels import mixture
from topstory.kernels.mixture import DEPLOYMENT, UNIFORM
from topstory.serving.pool import Listing, Pool
from topstory.serving.refusals import Refused
from topstory.serving.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Chosen:
    """The article for the story position, its propensity, and the ranking that it heads."""

    article: str
    propensity: float
    ranking: tuple[str, ...]


class Decider:
    """Decides for one pool; its randomness hangs on (seed, number of the decision, article) alone.

    The same state, user, bucket and number give the same decision.
    """

    def __init__(self, pool: Pool, traffic: Traffic) -> None:
        self.pool, self.traffic = pool, traffic
        self._room = pool.policy.model.room(pool.dimension)
        self._seed = np.uint64(pool.policy.seed)

    def decide(
        self,
        user: list[float],
        bucket: int,
        number: int,
        at: int,
        exclude: tuple[str, ...] = (),
        slots: int = 1,
    ) -> Chosen:
        """Choose an article, and fill as many more slots as there are articles for.

        Only the first is a choice that propensities and learning speak of; the others follow by
        the bucket's own order: scores, estimates, or chance.
        """
        listing = self.pool.listing(at)
        if exclude:
            listing = self.pool.without(listing, exclude)
        if not listing.ids:
            raise Refused(409, "no_article", f"pool {self.pool.name!r} has no article to show now")
        policy = self.pool.policy
        values = self._room.values
        values[:] = user
        place, propensity = mixture.decide(
            policy.model.state,
            self._room,
            policy.model.segment(values),
            listing.slots,
            policy.model.roster.keys,
            policy.explorer.bonus,
            policy.explorer.share,
            self.traffic.shares,
            bucket,
            self._seed,
            number,
            listing.estimates,
            listing.scores,
        )
        article = listing.ids[place]
        if slots == 1:
            return Chosen(article, propensity, (article,))
        return Chosen(article, propensity, self._rank(listing, bucket, number, place, slots))

    def _rank(
        self, listing: Listing, bucket: int, number: int, first: int, slots: int
    ) -> tuple[str, ...]:
        scores = listing.estimates if bucket == DEPLOYMENT else listing.scores
        places = np.empty(min(slots, len(listing.ids)), np.int32)
        mixture.rank(
            scores,
            self.pool.policy.model.roster.keys,
            listing.slots,
            bucket == UNIFORM,
            self._seed,
            number,
            first,
            places,
        )
        return tuple(listing.ids[place] for place in places)
