"""Decides: which article a bucket shows to a user, and how likely that was over the mix."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from topstory.explorers.explorer import WORK
from topstory.kernels import mixture
from topstory.kernels.buckets import DEPLOYMENT, UNIFORM
from topstory.kernels.compilation import Floats
from topstory.kernels.explorers.bounds import Bounds
from topstory.models.input_range import NotFiniteError
from topstory.models.model import ONE_SEGMENT
from topstory.policies import Policy
from topstory.serving.api.errors import ApiError
from topstory.serving.state.pool import Listing, Pool
from topstory.serving.state.traffic import Traffic


class Chosen(msgspec.Struct, frozen=True, gc=False):
    """The article for the story position, its propensities, and the ranking that it heads."""

    article: str
    propensity: float  # over the whole traffic mix
    own: float  # in its bucket
    ranking: tuple[str, ...] = ()  # empty: the article alone


class Decider:
    """Decides for one pool.

    Its randomness depends on (seed, number of the decision, article) alone: the same state, user,
    bucket and number give the same decision.
    """

    def __init__(self, pool: Pool, traffic: Traffic) -> None:
        self.pool, self.traffic = pool, traffic
        self._use(pool.policy)

    def _use(self, policy: Policy) -> None:
        """Decide by this policy. Its exploration is configured before, and stays as it is."""
        self._policy = policy
        self._room = policy.model.room(self.pool.dimension)
        self._seed = np.uint64(policy.seed)
        self._bonus, self._share = policy.explorer.bonus, policy.explorer.share
        self._rule = policy.explorer.rule
        self._randomises = not isinstance(self._rule, Bounds) or self._rule.decay > 0

    def decide(
        self,
        user: Sequence[float],
        bucket: int,
        number: int,
        at: int,
        exclude: tuple[str, ...] = (),
        slots: int = 1,
    ) -> Chosen:
        """Choose an article, and fill as many more slots as there are articles for.

        Propensities and learning are about the first one only. The others follow in the bucket's
        own order: by score, by estimate, or at random.
        """
        if self.pool.policy is not self._policy:
            self._use(self.pool.policy)
        listing = self.pool.listing(at)
        if exclude:
            listing = self.pool.without(listing, exclude)
        if not listing.ids:
            raise self._no_article()
        values = self._room.values
        values[:] = user
        decide = self._randomised if self._randomises else self._bounded
        place, propensity, own = decide(values, listing, bucket, number)
        if place < 0:
            raise self._not_finite(listing.ids[-1 - place])
        article = listing.ids[place]
        if slots == 1:
            return Chosen(article, propensity, own)
        return Chosen(article, propensity, own, self._rank(listing, bucket, number, place, slots))

    def _bounded(
        self, values: Floats, listing: Listing, bucket: int, number: int
    ) -> tuple[int, float, float]:
        policy = self.pool.policy
        return mixture.decide(
            policy.model.state,
            self._room,
            policy.model.segment(values),
            listing.slots,
            policy.model.roster.keys,
            self._bonus,
            self._share,
            self.traffic.shares,
            bucket,
            self._seed,
            number,
            listing.estimates,
            listing.scores,
        )

    def _randomised(
        self, values: Floats, listing: Listing, bucket: int, number: int
    ) -> tuple[int, float, float]:
        """By any explorer; those that explore less with time count decisions."""
        policy = self.pool.policy
        return mixture.decide_randomised(
            policy.model.state,
            self._room,
            policy.model.segment(values),
            listing.slots,
            policy.model.roster.keys[listing.slots],
            self._rule,
            self.traffic.shares,
            bucket,
            self._seed,
            number,
            listing.estimates,
            listing.scores,
            np.empty((2 + WORK) * len(listing.slots)),
        )

    def decide_all(
        self, users: Sequence[tuple[float, ...]], buckets: Sequence[int], first: int, at: int
    ) -> list[Chosen]:
        """The decisions first, first + 1, … by one kernel call: the same as one by one."""
        if self.pool.policy is not self._policy:
            self._use(self.pool.policy)
        if self._randomises:
            return [
                self.decide(user, bucket, first + i, at)
                for i, (user, bucket) in enumerate(zip(users, buckets, strict=True))
            ]
        listing = self.pool.listing(at)
        if not listing.ids:
            raise self._no_article()
        model = self.pool.policy.model
        contexts = np.array(users)
        places = np.empty(len(users), np.int32)
        propensities, own = np.empty(len(users)), np.empty(len(users))
        mixture.decide_all(
            model.state,
            self._room,
            contexts,
            model.segments(contexts, 0, len(users)) if model.segmented else ONE_SEGMENT,
            listing.slots,
            model.roster.keys,
            self._bonus,
            self._share,
            self.traffic.shares,
            np.array(buckets, np.int64),
            self._seed,
            first,
            listing.estimates,
            listing.scores,
            places,
            propensities,
            own,
        )
        ids, found = listing.ids, places.tolist()
        if (least := min(found)) < 0:
            raise self._not_finite(ids[-1 - least])
        return [
            Chosen(ids[place], propensity, each)
            for place, propensity, each in zip(
                found, propensities.tolist(), own.tolist(), strict=True
            )
        ]

    def _no_article(self) -> ApiError:
        return ApiError(409, "no_article", f"pool {self.pool.name!r} has no article to show now")

    def _not_finite(self, article: str) -> ApiError:
        error = NotFiniteError(f"pool {self.pool.name!r}", article)
        return ApiError(422, "not_finite", str(error))

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
