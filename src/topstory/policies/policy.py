"""A policy: a model and an explorer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from topstory.events import EventLog
from topstory.events.columns.times import TimeLike
from topstory.explorers import Explorer, Greedy
from topstory.explorers.explorer import WORK
from topstory.feature_identity import FeatureModelMismatch, same_feature_model
from topstory.kernels import choice as kernel
from topstory.kernels.compilation import Floats, Slots
from topstory.kernels.event_features import Context, fill
from topstory.kernels.models.model import learn, learn_paid, learn_shown
from topstory.models import Model
from topstory.models.input_range import (
    MAX_MAGNITUDE,
    NotFiniteError,
    in_range,
    payoff_in_range,
)
from topstory.policies.batches import as_users, blocks, choose_all, score_all
from topstory.policies.half_life import check_half_life, faded, tick_of


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision: the article to show, and the probability with which it was chosen.

    >>> Choice("rain", 0.5).article
    'rain'
    """

    article: str
    propensity: float


class Policy:
    """Chooses an article for each user, and learns from the payoff.

    A decision's randomness depends on (seed, number of the decision, article) alone: the same seed
    gives the same choices, one event at a time or in `ts.replay`.

    Args:
        model: estimates an article's payoff for a user.
        explorer: chooses, given the model's estimates and widths.
        seed: a whole number >= 0.
        half_life: hours after which a trial counts half; None: all count alike for ever. Such a
            policy has a clock, which `advance` moves; replay and training move it by the log's
            times.

    >>> import topstory as ts
    >>> policy = Policy(ts.DisjointLinear(), ts.UpperConfidence(0.5), seed=0)
    >>> user, pool = [0.8, 0.2, 1.0], ["rain", "sun"]
    >>> policy.learn(user, "rain", payoff=1)
    >>> policy.choose(user, pool)
    Choice(article='rain', propensity=1.0)
    >>> policy.estimates(user, pool).round(3), policy.widths(user, pool).round(3)
    (array([0.627, 0.   ]), array([0.792, 1.296]))
    """

    def __init__(
        self, model: Model, explorer: Explorer, seed: int = 0, half_life: float | None = None
    ) -> None:
        check_seed(seed)
        if half_life is not None and not model.learns:
            raise ValueError(f"the {model.name} model learns nothing, so it has no half-life")
        self.half_life = None if half_life is None else check_half_life(half_life)
        self.tick: int | None = None  # of its clock, if it has a half-life
        self.model = model
        self.explorer = explorer
        self.seed = index(seed)
        self.decisions = 0  # made so far: the number of the next one
        self.trials = 0  # learned from so far: some explorers explore less as they grow
        # That made the contexts it learned, or its prior's; None: unknown.
        self.feature_model = None if model.prior is None else model.prior.feature_model
        self._room: Context | None = None
        self._form: type | None = None  # of the model's state that the room is for

    def __repr__(self) -> str:
        prior = {} if self.model.prior is None else {"prior": self.model.prior}
        numbers = self.model.parameters() | prior | self.explorer.parameters()
        numbers |= {} if self.half_life is None else {"half_life": self.half_life}
        numbers |= {"seed": self.seed}
        listed = ", ".join(f"{k}={v!r}" for k, v in numbers.items() if not isinstance(v, dict))
        return f"<Policy: {self.model.name} × {self.explorer.name}, {listed}>"

    # -- deciding --

    def choose(self, user: npt.ArrayLike, pool: Sequence[str]) -> Choice:
        """Which article to show to this user: a decision.

        Args:
            user: (d,) the context; or (len(pool), d), one for each article, where some numbers
                depend on the article, such as its age. All methods that score a pool take both.
            pool: article ids.
        """
        chosen = self._choose(user, pool, self.explorer)
        self.decisions += 1
        return chosen

    def choose_all(self, users: npt.ArrayLike, pool: Sequence[str]) -> list[Choice]:
        """A decision for each of several users (n, d), in order; the same as one by one.

        >>> import topstory as ts
        >>> [choice.article for choice in ts.policy("ucb").choose_all([[1.0], [1.0]], ["a"])]
        ['a', 'a']
        """
        rows, chosen = as_users(users), list[Choice]()
        if self.model.callables():  # a function that must be asked for each user
            return [self.choose(user, pool) for user in rows]
        names = _named(pool)
        slots = self.model.slots(names)
        for part in blocks(rows, len(slots)):
            scored = score_all(self, part, slots, names)
            places, propensities = choose_all(self, slots, *scored)
            self.decisions += len(part)
            chosen += map(Choice, [pool[i] for i in places.tolist()], propensities.tolist())
        return chosen

    def estimates_all(self, users: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(n, len(pool)) the payoff to expect of each article for each of several users (n, d).

        >>> import topstory as ts
        >>> ts.policy("linucb-disjoint").estimates_all([[1.0], [1.0]], ["a", "b", "c"]).shape
        (2, 3)
        """
        rows, names = as_users(users), _named(pool)
        if self.model.callables():
            return np.array([self.estimates(user, pool) for user in rows]).reshape(-1, len(pool))
        slots = self.model.slots(names)
        parts = [
            self.model.expected(*score_all(self, part, slots, names))[0]
            for part in blocks(rows, len(slots))
        ]
        return np.concatenate([np.empty((0, len(slots))), *parts])

    def greedy(self, user: npt.ArrayLike, pool: Sequence[str]) -> Choice:
        """What the deployment bucket would show: the best estimate. Not counted as a decision."""
        return self._choose(user, pool, Greedy())

    def _choose(self, user: npt.ArrayLike, pool: Sequence[str], explorer: Explorer) -> Choice:
        slots, estimates, widths = self._scored(user, pool)
        place, propensity = kernel.choose(
            explorer.rule,
            estimates,
            widths,
            self.model.roster.keys[slots],
            np.uint64(self.seed),
            self.decisions,
            self.trials,
            np.empty(len(slots)),
            np.empty(WORK * len(slots)),
        )
        return Choice(pool[place], propensity)

    def estimates(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(len(pool),) the payoff to expect of each article."""
        return self.model.expected(*self._scored(user, pool)[1:])[0]

    def widths(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(len(pool),) how unsure each estimate is; infinite if nothing is known."""
        return self.model.expected(*self._scored(user, pool)[1:])[1]

    def scores(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(len(pool),) what the explorer compares: for an upper confidence bound, the bound.

        Of a logistic model: log-odds.
        """
        return self.explorer.scores(*self._scored(user, pool)[1:])

    def probabilities(self, user: npt.ArrayLike, pool: Sequence[str]) -> Floats:
        """(len(pool),) how likely `choose` is to choose each article, now."""
        return self.explorer.probabilities(*self._scored(user, pool)[1:], self.trials)

    def _scored(self, user: npt.ArrayLike, pool: Sequence[str]) -> tuple[Slots, Floats, Floats]:
        pool = _named(pool)
        if np.ndim(user) == 2:
            return self._scored_apart(user, pool)
        x = self._context(user)
        slots = self.model.slots(pool)
        self.model.prepare(x.values, pool)
        estimates, widths = np.empty(len(slots)), np.empty(len(slots))
        segment = self.model.segment(x.values)
        unusable = kernel.score(self.model.kernel_state, x, segment, slots, estimates, widths)
        if unusable >= 0:
            raise NotFiniteError(self, pool[unusable])
        return slots, estimates, widths

    def _scored_apart(
        self, contexts: npt.ArrayLike, pool: Sequence[str]
    ) -> tuple[Slots, Floats, Floats]:
        """The same with a context for each article."""
        rows = np.asarray(contexts, np.float64)
        if len(rows) != len(pool):
            raise ValueError(
                f"a pool of {len(pool)} articles needs as many contexts, or one for all; "
                f"got {len(rows)}"
            )
        slots = self.model.slots(pool)
        apart = [self._scored(row, [article]) for row, article in zip(rows, pool, strict=True)]
        estimates = np.concatenate([each[1] for each in apart])
        return slots, estimates, np.concatenate([each[2] for each in apart])

    # -- learning --

    def advance(self, at: TimeLike) -> None:
        """Move the clock of a policy with a half-life; it never goes back.

        Args:
            at: unix seconds, a datetime, or text such as `2009-05-01T12:00`.

        >>> import topstory as ts
        >>> policy = ts.policy("egreedy-disjoint", half_life=6)
        >>> policy.advance("2009-05-01T00:00")
        >>> policy.learn([1.0], "rain", payoff=1)
        >>> policy.advance("2009-05-01T06:00")
        >>> policy.estimates([1.0], ["rain"]).round(3)  # 0.5/(1 + 0.5)
        array([0.333])
        """
        if self.half_life is not None:
            self.advance_to(tick_of(at, self.half_life))

    def advance_to(self, tick: int) -> None:
        """The same by the number of the tick."""
        if self.tick is not None and tick > self.tick:
            self.model.fade(faded(tick - self.tick))
            self._room = None  # the model may have changed its form
        self.tick = tick if self.tick is None else max(tick, self.tick)

    def learn(self, user: npt.ArrayLike, article: str, payoff: float) -> None:
        """Learn from a whole trial: the same as `shown`, then `paid`."""
        amount, article = payoff_in_range(payoff), _name(article)
        self.model.check_payoffs(amount, amount)
        x, slot = self._context(user), self.model.add_if_new(article)
        self.model.prepare_trial(x.values, article)
        while not learn(self.model.kernel_state, slot, x, self.model.segment(x.values), amount):
            self.model.renew()
            x = self._context(user)
        self.trials += 1

    def shown(
        self, user: npt.ArrayLike, article: str, features: npt.ArrayLike | None = None
    ) -> None:
        """The first half of a trial: the article was shown to the user.

        Args:
            user: (d,) the context.
            article: its id.
            features: those that the article had then, if it was edited since.
        """
        article = _name(article)
        slot = self.model.add_if_new(article)
        x = self._context_then(user, article, features)
        self.model.prepare_trial(x.values, article)
        while not learn_shown(self.model.kernel_state, slot, x, self.model.segment(x.values)):
            self.model.renew()
            x = self._context_then(user, article, features)
        self.trials += 1

    def paid(
        self,
        user: npt.ArrayLike,
        article: str,
        payoff: float,
        shown_at: TimeLike | None = None,
        features: npt.ArrayLike | None = None,
    ) -> None:
        """The second half: a payoff. It may come late, in parts, and in any order.

        With a half-life it counts as much as an impression of `shown_at` does by now; by default
        of now. `features` are those that the article had when it was shown, if it was edited since.
        KeyError if the article is not known, or no longer known.
        """
        amount, article = payoff_in_range(payoff), _name(article)
        self.model.check_payoffs(amount, amount)
        if shown_at is not None and self.half_life is not None and self.tick is not None:
            amount *= faded(max(0, self.tick - tick_of(shown_at, self.half_life)))
        if article not in self.model.roster:
            raise KeyError(f"article {article!r} is not known to this policy")
        x, slot = self._context_then(user, article, features), self.model.roster.slot(article)
        learn_paid(self.model.kernel_state, slot, x, self.model.segment(x.values), amount)

    def add_article(self, article: str, features: npt.ArrayLike | None = None) -> None:
        """Add an article, with its features if it has any (m numbers, the constant included)."""
        self.model.add(_name(article), features)

    def edit_article(self, article: str, features: npt.ArrayLike | None) -> None:
        """Give an article other features: they count from now on, and what was learned stays.

        Its trials stay what they were: they were of the features that it had then. An article that
        is not known is added.
        """
        self.model.edit(article, features)

    def remove_article(self, article: str) -> None:
        """Forget an article. One that only leaves the pool for a while need not be removed."""
        self.model.remove(_name(article))

    # -- as sums --

    def merge(self, other: Policy) -> Policy:
        """A policy that knows what both learned, as if it had learned all of it itself.

        It has this policy's prior, explorer and seed. Of articles that one of them removed, hybrid
        keeps what they left in the shared part.

        >>> import topstory as ts
        >>> one, two = ts.policy("linucb-disjoint"), ts.policy("linucb-disjoint")
        >>> one.learn([1.0], "rain", payoff=1)
        >>> two.learn([1.0], "rain", payoff=0)
        >>> one.merge(two).estimates([1.0], ["rain"]).round(3)
        array([0.333])
        """
        from topstory.policies.additivity import merged

        return merged(self, other)

    def with_prior(self, **changes: Any) -> Policy:
        """The same policy, as if it had had another prior or ridge from the start.

        Args:
            changes: `prior` (a `ts.Prior`, or None), whose ridges then hold; or `ridge`,
                `shared_ridge`, as its model takes them.

        >>> import topstory as ts
        >>> policy = ts.policy("linucb-disjoint")
        >>> policy.learn([1.0], "rain", payoff=1)
        >>> policy.with_prior(ridge=3).estimates([1.0], ["rain"])
        array([0.25])
        """
        from topstory.policies.additivity import with_prior

        return with_prior(self, changes)

    # -- storing --

    def copy(self) -> Self:
        """An independent copy."""
        twin = type(self)(self.model.copy(), self.explorer, self.seed, self.half_life)
        twin.tick = self.tick
        twin.decisions, twin.trials = self.decisions, self.trials
        twin.feature_model = self.feature_model
        return twin

    def use_feature_model(self, identity: str | None, what: str) -> None:
        """Take contexts of this feature model; FeatureModelMismatch if it learned another's.

        A policy that has learned nothing yet belongs to the model from now on.

        Args:
            identity: of the model that made the contexts; None: unknown, which is not checked.
            what: brings them, for the error: "the log".
        """
        same_feature_model([("the policy", self.feature_model), (what, identity)])
        if not self.trials and identity is not None:
            self.feature_model = identity

    def use_contexts_of(self, log: EventLog) -> None:
        """Take a log's contexts, as `use_feature_model` does; a raw log has none yet."""
        known, raw = self.feature_model, log.profiles is not None and log.dimension == 1
        if known is not None and log.feature_model is None and raw:
            raise FeatureModelMismatch(
                f"the policy was made with feature model {known}, but the log has raw profiles and "
                "no contexts yet: make them with that model, by `topstory features apply` or "
                "FeatureBuilder.apply"
            )
        self.use_feature_model(log.feature_model, "the log")

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one safetensors file, whole or not at all."""
        from topstory.policies.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str], **callables: Any) -> Policy:
        """The policy that `save` wrote, exact to the bit.

        Functions are not stored: pass an `assignment` or `offset` that was a function again.
        """
        from topstory.policies.storage import load

        return load(path, callables)

    def _context_then(
        self, user: npt.ArrayLike, article: str, features: npt.ArrayLike | None
    ) -> Context:
        """The context of a trial in which the article had these features; None: as it has."""
        x = self._context(user)
        return x if features is None else self.model.as_shown(x, article, features)

    def _context(self, user: npt.ArrayLike) -> Context:
        values = np.asarray(user, np.float64)
        if values.ndim != 1 or not in_range(values):
            raise ValueError(
                f"a user is a vector of finite numbers, at most {MAX_MAGNITUDE:g}, got {user!r}"
            )
        self.model.see(len(values))
        if self._room is None or self._form is not type(self.model.state):
            self._room, self._form = self.model.room(len(values)), type(self.model.state)
        fill(self._room, values)
        return self._room


def _named(pool: Sequence[str]) -> Sequence[str]:
    """The pool's ids as text, where they are whole numbers."""
    if len(pool) and not isinstance(pool[0], str):
        return [_name(article) for article in pool]
    return pool


def _name(article: str) -> str:
    """An id as text: whole numbers may be ids, too."""
    given: Any = article
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return str(int(given))
    return article


def check_seed(seed: Any) -> None:
    """Raise ValueError for what is not a seed."""
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ValueError(f"seed must be a whole number from 0 to 2**64 - 1, got {seed!r}")
