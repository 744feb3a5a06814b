"""Decides: which article a bucket shows to a user, and how likely that was over the mix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from topstory.explorers.explorer import WORK
from topstory.kernels import mixture
from topstory.kernels.buckets import DEPLOYMENT, LEARNING, UNIFORM
from topstory.kernels.choice import score
from topstory.kernels.compilation import Floats
from topstory.kernels.contexts import PerArticle
from topstory.kernels.event_features import Context, FeaturedPerArticle, among, fill
from topstory.kernels.explorers.bounds import Bounds
from topstory.models.input_range import NotFiniteError
from topstory.models.model import ONE_SEGMENT
from topstory.policies import Policy
from topstory.serving.api.errors import ApiError
from topstory.serving.state.levers import STORY, LeverPlan, chance
from topstory.serving.state.pool import Listing, Pool
from topstory.serving.state.traffic import Traffic

Varying = Callable[[Listing], npt.NDArray[np.float32]]
Aimed = Context | PerArticle | FeaturedPerArticle


class Chosen(msgspec.Struct, frozen=True, gc=False):
    """The article for the story position, its propensities, and the ranking that it heads."""

    article: str
    propensity: float  # over the whole traffic mix
    own: float  # in its bucket
    ranking: tuple[str, ...] = ()  # empty: the article alone
    withheld: tuple[str, ...] = ()  # articles that a lever kept from this visit
    pinned: bool = False  # by an editor's pin
    numbers: tuple[float, ...] = ()  # of its context: those that differ between articles


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
        self._randomises = not (isinstance(self._rule, Bounds) and self._rule.steady)

    def decide(
        self,
        user: Sequence[float],
        bucket: int,
        number: int,
        at: int,
        exclude: tuple[str, ...] = (),
        slots: int = 1,
        varying: Varying | None = None,
    ) -> Chosen:
        """Choose an article, and fill as many more slots as there are articles for.

        Propensities and learning are about the first one only. The others follow in the bucket's
        own order: by score, by estimate, or at random. `varying` gives the last numbers of the
        context before the constant, for each article of a listing.
        """
        if self.pool.policy is not self._policy:
            self._use(self.pool.policy)
        listing = self.pool.listing(at)
        if exclude:
            listing = self.pool.without(listing, exclude)
        if not listing.ids:
            raise self._no_article()
        values = self._room.values
        fill(self._room, user)
        if listing.plan is not None:
            return self._levered(user, listing, listing.plan, bucket, number, slots, varying)
        x, table = self._aimed(listing, varying)
        decide = self._randomised if self._randomises else self._bounded
        place, propensity, own = decide(x, values, listing, bucket, number)
        if place < 0:
            raise self._not_finite(listing.ids[-1 - place])
        article = listing.ids[place]
        numbers = () if table is None else _row(table, place)
        ranking = () if slots == 1 else self._rank(listing, bucket, number, place, slots)
        return Chosen(article, propensity, own, ranking, numbers=numbers)

    def _bounded(
        self, x: Aimed, values: Floats, listing: Listing, bucket: int, number: int
    ) -> tuple[int, float, float]:
        policy = self.pool.policy
        return mixture.decide(
            policy.model.kernel_state,
            x,
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
        self, x: Aimed, values: Floats, listing: Listing, bucket: int, number: int
    ) -> tuple[int, float, float]:
        """By any explorer; those that explore less with time count decisions."""
        policy = self.pool.policy
        return mixture.decide_randomised(
            policy.model.kernel_state,
            x,
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
        listing = self.pool.listing(at)
        if self._randomises or listing.plan is not None:
            return [
                self.decide(user, bucket, first + i, at)
                for i, (user, bucket) in enumerate(zip(users, buckets, strict=True))
            ]
        if not listing.ids:
            raise self._no_article()
        model = self.pool.policy.model
        contexts = np.array(users)
        places = np.empty(len(users), np.int32)
        propensities, own = np.empty(len(users)), np.empty(len(users))
        mixture.decide_all(
            model.kernel_state,
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

    def _aimed(
        self, listing: Listing, varying: Varying | None
    ) -> tuple[Aimed, npt.NDArray[np.float32] | None]:
        """The context in the room, with each article's own numbers, if they differ."""
        if varying is None:
            return self._room, None
        table = varying(listing)
        places = np.zeros(int(listing.slots.max()) + 1, np.int32)
        places[listing.slots] = np.arange(len(listing.slots))
        return among(self._room, table, 0, places), table

    def _levered(
        self,
        user: Sequence[float],
        listing: Listing,
        plan: LeverPlan,
        bucket: int,
        number: int,
        slots: int,
        varying: Varying | None = None,
    ) -> Chosen:
        """Decide with levers: a draw from chances that are written down, whatever made them."""
        seed = int(self._seed)
        withheld = plan.thinned(listing.ids, seed, number)
        left = self.pool.without(listing, withheld) if withheld else listing
        estimates, widths = self.scored(user, left, varying)
        estimates = plan.boosted(left.ids, estimates)
        explorer, chances = self._policy.explorer, np.zeros((3, len(left.ids)))
        pin = left.ids.index(plan.pins[STORY]) if plan.pins.get(STORY) in left.ids else None
        if pin is None:
            best = estimates == estimates.max()
            chances[DEPLOYMENT] = best / best.sum()
            chances[LEARNING] = explorer.probabilities(estimates, widths, number)
        else:
            chances[[DEPLOYMENT, LEARNING], pin] = 1.0
        chances[UNIFORM] = 1.0 / len(left.ids)
        upto = np.cumsum(chances[bucket])
        drawn = chance(seed, number, "choice") * upto[-1]
        place = int(np.searchsorted(upto, drawn, side="right"))
        ranking: tuple[str, ...] = ()
        if slots > 1:
            order = estimates if bucket == DEPLOYMENT else explorer.scores(estimates, widths)
            ranking = self._levered_ranking(left, plan, order, bucket, number, place)[:slots]
        return Chosen(
            *(left.ids[place], min(float(self.traffic.shares @ chances[:, place]), 1.0)),
            own=float(chances[bucket, place]),
            ranking=ranking,
            withheld=(*plan.exhausted, *withheld),
            pinned=pin is not None and bucket != UNIFORM,
            numbers=() if varying is None else _row(varying(left), place),
        )

    def scored(
        self, user: Sequence[float] | Floats, listing: Listing, varying: Varying | None = None
    ) -> tuple[Floats, Floats]:
        """What is expected of each article for this context, and how unsure that is."""
        model = self.pool.policy.model
        estimates, widths = np.empty(len(listing.ids)), np.empty(len(listing.ids))
        fill(self._room, user)
        segment = model.segment(self._room.values)
        x, _ = self._aimed(listing, varying)
        unusable = score(model.state, x, segment, listing.slots, estimates, widths)
        if unusable >= 0:
            raise self._not_finite(listing.ids[unusable])
        return estimates, widths

    def _levered_ranking(
        self, listing: Listing, plan: LeverPlan, order: Floats, bucket: int, number: int, first: int
    ) -> tuple[str, ...]:
        """The story, then the others in the bucket's order; pins have their slots."""
        seed = int(self._seed)
        draws = [chance(seed, number, f"rank {article}") for article in listing.ids]
        uniform = bucket == UNIFORM
        places = sorted(
            (place for place in range(len(listing.ids)) if place != first),
            key=lambda place: (0.0 if uniform else -order[place], draws[place]),
        )
        ranking = [listing.ids[place] for place in (first, *places)]
        for slot, article in sorted(() if uniform else plan.pins.items()):
            if slot > STORY and article in ranking[1:]:
                ranking.remove(article)
                ranking.insert(slot - 1, article)
        return tuple(ranking)

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


def _row(table: npt.NDArray[np.float32], place: int) -> tuple[float, ...]:
    return tuple(table[place].astype(np.float64).tolist())
