"""A pool of articles and its policy, as the journal made them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from struct import Struct
from typing import Any, NamedTuple, Protocol

import msgspec
import numpy as np

from topstory.kernels.compilation import Floats, Slots
from topstory.policies import Policy
from topstory.serving.journal.records import (
    ArticleFacts,
    Decided,
    Edit,
    Levers,
    Paid,
    Placed,
    Removed,
)
from topstory.serving.state.levers import LeverPlan, plan_of
from topstory.serving.state.policy_file import PolicyChange, content_name
from topstory.serving.state.tally import Tally, segment_of
from topstory.serving.state.update_batch import SHOWN, UpdateBatch

FOREVER = 2**63 - 1
MAX_EDITS = 10_000  # whose ids are remembered
MAX_CHANGES = 100  # of the policy that are listed
MAX_EARLIER = 64  # features of an article that payoffs may still be for; older ones count as these


class EarlierFeatures(msgspec.Struct, frozen=True, array_like=True):
    """Features that an article had, up to the record by which it was edited."""

    until: int
    features: tuple[float, ...]


class Article(msgspec.Struct):
    """An article in a pool: its description, since which record it is there, and how it did."""

    facts: ArticleFacts
    since: int
    tally: Tally
    added: int = 0  # when; 0: in a snapshot of an earlier version
    earlier: tuple[EarlierFeatures, ...] = ()  # the last ones, in order

    def features_then(self, version: int) -> tuple[float, ...] | None:
        """The features by which the state of this record scored it, unless it has them still."""
        return next((each.features for each in self.earlier if version < each.until), None)

    @property
    def levers(self) -> Levers | None:
        """What an editor set."""
        return self.facts.levers

    @property
    def exhausted(self) -> bool:
        """Whether it was shown as often as it may be."""
        levers = self.facts.levers
        limit = None if levers is None else levers.shows
        return limit is not None and self.shows >= limit

    @property
    def shows(self) -> int:
        """How often it was shown, in all buckets."""
        return sum(map(sum, self.tally.shows))

    def showable(self, at: int) -> bool:
        """Whether it may be shown at this time: begins <= at < ends, and not too often before."""
        facts = self.facts
        return (
            not self.exhausted
            and (facts.begins is None or facts.begins <= at)
            and (facts.ends is None or at < facts.ends)
        )


@dataclass(frozen=True, eq=False)
class Listing:
    """The articles that can be shown, and arrays for their estimates and scores."""

    ids: tuple[str, ...]
    slots: Slots
    begins: int  # the times for which it holds
    ends: int
    estimates: Floats
    scores: Floats
    plan: LeverPlan | None = None  # the levers that hold; None: none does


SEEN = "seen_before"
PER_ARTICLE = ("age_hours", SEEN)  # features of events that differ between articles, by name
SeenByVisitor = tuple[tuple[str, tuple[str, ...]], ...]  # pseudonyms in hex, and articles


class EventNumbers(NamedTuple):
    """The numbers of contexts that are of the event, as a journal's configuration tells of them."""

    names: tuple[str, ...] = ()  # of the features
    varying: int = 0  # how many numbers differ between articles
    features: int = 0  # how many of those, the last ones, are features of the article

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> EventNumbers:
        """None, if contexts have none."""
        event = config.get("event")
        if not isinstance(event, dict):
            return cls()
        names = (*event["names"], *event.get("in_f", ()))
        # Version 0.1.0 did not record how many vary: those in x, one number each.
        varying = config.get("event_varying", sum(name in names for name in PER_ARTICLE))
        return cls(names, varying, config.get("event_features", 0))


class SeenArticles(Protocol):
    """The last articles that each visitor was shown."""

    def note(self, visitor: Hashable, article: str) -> None:
        """The visitor was shown the article."""
        ...

    def counts(self, visitor: Hashable) -> Mapping[str, int]:
        """How often, of those remembered."""
        ...

    def __iter__(self) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Visitors with what they were shown, those who came last at the end."""
        ...


class Sketch(Protocol):
    """Somebody who reads the model as it was: told of an article before that changes."""

    def keep(self, slots: Iterable[int]) -> None:
        """The articles in these slots are about to change."""
        ...


class Pool:
    """Articles that come and go, the policy that chooses among them, and what they paid."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        dimension: int,
        at: int = 0,
        event: EventNumbers | None = None,
    ) -> None:
        self.name, self.policy, self.dimension = name, policy, dimension
        self.event = event or EventNumbers()  # of contexts
        if event is not None:
            policy.model.use_event_features(event.features)
        self.taught = at  # the time of the last record that taught its policy, or opened it
        self.articles: dict[str, Article] = {}
        self.tally = Tally.empty(self.segments)
        if len(policy.model.roster):
            policy.model.see(dimension)
        self.previous: Policy | None = None  # the one before, as it was at the last change
        self.changes: list[PolicyChange] = []  # of the policy, the last ones
        self.promoted = 0  # the record that gave it this policy; 0: it began with it
        self.seen: SeenArticles | None = None  # by visitors, if contexts depend on it
        self.edits: dict[str, str] = {}  # by the client's id: what was done
        self.sketches: list[Sketch] = []
        self.limited = False  # an article may be shown so often only
        self.ran_out = False  # and one was, since somebody set this back
        self._listing: Listing | None = None
        self._unpack = Struct(f"<{dimension}d").unpack
        self._updates = self._new_batch()

    @property
    def segments(self) -> int:
        """How many segments users are in."""
        return max(1, self.dimension - 1)

    def check(self, facts: ArticleFacts) -> None:
        """Raise ValueError if `place` could not take this article."""
        self.policy.model.check_article(facts.id, facts.features)
        for name, article in self.articles.items():
            if name != facts.id and _count(article.facts) != _count(facts):
                raise ValueError(
                    f"article {facts.id!r} comes with {_count(facts)} features, but {name!r} has "
                    f"{_count(article.facts)}: give all the same number, or none"
                )

    def check_policy(self, policy: Policy) -> None:
        """Raise ValueError if `promote` could not take this policy."""
        # A list: it may be called by a thread, while articles come and go.
        _adopt(policy.copy(), list(self.articles.values()), self.dimension, self.event.features)

    # -- records, applied --

    def place(self, facts: ArticleFacts, number: int, at: int = 0) -> None:
        """Add an article at this time, or change it."""
        self.learn()
        known, roster = self.articles.get(facts.id), self.policy.model.roster
        if facts.id in roster:
            self._announce([roster.slot(facts.id)])
        model = self.policy.model
        before = model.features_of(facts.id) if facts.id in roster else None
        self.policy.edit_article(facts.id, facts.features)
        if known is not None and before is not None:
            now = model.features_of(facts.id)
            if now is not None and not np.array_equal(before, now):
                had = EarlierFeatures(number, tuple(before.tolist()))
                known.earlier = (*known.earlier, had)[-MAX_EARLIER:]
        if known is None:
            self.policy.model.see(self.dimension)
            self.articles[facts.id] = Article(facts, number, Tally.empty(self.segments), at)
        else:
            known.facts = facts
        self.find_limits()
        self._listing = None

    def find_limits(self) -> None:
        """Find out whether shows must be counted: after an edit, or all at once from a file."""
        levers = (article.facts.levers for article in self.articles.values())
        self.limited = any(each is not None and each.shows is not None for each in levers)

    def remove(self, article: str) -> None:
        """Forget an article."""
        self.learn()
        if self.articles.pop(article, None) is not None:
            self._announce([self.policy.model.roster.slot(article)])  # the slot is used again
            self.policy.remove_article(article)
            if self.previous is not None and article in self.previous.model.roster:
                self.previous.remove_article(article)
        self.find_limits()
        self._listing = None

    def promote(
        self, policy: Policy, change: PolicyChange, articles: Iterable[ArticleFacts] = ()
    ) -> None:
        """Decide by another policy from now on; the present one is kept, as it is.

        `articles`: those that have other features from now on.
        """
        self.learn()
        for facts in articles:
            self.articles[facts.id].facts = facts
        for article in self.articles.values():
            article.earlier = ()  # what was decided before teaches the other policy
        _adopt(policy, self.articles.values(), self.dimension, self.event.features)
        self.previous, self.policy = self.policy, policy
        self.promoted = change.record
        self.changes = [*self.changes, change][-MAX_CHANGES:]
        self._updates, self._listing = self._new_batch(), None

    def use_event_features(self, event: EventNumbers, before: SeenByVisitor = ()) -> None:
        """From now on contexts have these features of events.

        If they need it, what visitors see is remembered, beginning with what they saw `before`.
        """
        self.learn()
        self.event = event
        self.policy.model.use_event_features(event.features)
        self._updates = self._new_batch()
        if SEEN not in event.names:
            self.seen = None
        elif self.seen is None:
            self.seen = import_module("topstory.features.event.seen_articles").SeenArticles()
            for visitor, articles in before:
                for article in articles:
                    self.seen.note(bytes.fromhex(visitor), article)

    def seen_by_visitor(self) -> SeenByVisitor:
        """What visitors saw, in the form in which a snapshot keeps it."""
        if self.seen is None:
            return ()
        return tuple((visitor.hex(), articles) for visitor, articles in self.seen)

    def remember_edit(self, edit: str | None, what: str) -> None:
        """Keep the client's id of an edit: the same edit that comes again changes nothing."""
        if edit is not None:
            self.edits[edit] = what
            if len(self.edits) > MAX_EDITS:
                del self.edits[next(iter(self.edits))]

    def show(self, decided: Decided) -> bool:
        """Count an impression, the first half of a trial. Returns whether the policy learns of it.

        It does so at the next `learn`.
        """
        if self.seen is not None and decided.visitor:
            self.seen.note(decided.visitor, decided.article)
        segment = segment_of(self._unpack(decided.user))
        self.tally.shows[decided.bucket][segment] += 1
        article = self.articles.get(decided.article)
        if article is None:
            return False
        article.tally.shows[decided.bucket][segment] += 1
        if self.limited and article.exhausted:
            self._listing, self.ran_out = None, True
        if decided.teaches:
            slot = self.policy.model.roster.slots[decided.article]
            then = article.features_then(decided.model_version)
            self._updates.add(slot, decided.user, SHOWN, decided.teaches, then)
            self.policy.decisions += 1
        return bool(decided.teaches)

    def pay(self, decided: Decided, paid: Paid) -> bool:
        """Count a payoff, the second half of a trial. Returns whether the policy learns of it.

        It does not if the article was removed after the decision, or another policy came since:
        that one has not learned that the article was shown.
        """
        segment, payoff = segment_of(self._unpack(decided.user)), paid.payoff
        self.tally.payoff[decided.bucket][segment] += payoff
        article = self.articles.get(decided.article)
        if article is None or article.since > paid.decision:
            return False
        article.tally.payoff[decided.bucket][segment] += payoff
        teaches = (
            decided.teaches and paid.teaches and payoff != 0.0 and paid.decision > self.promoted
        )
        if teaches:
            slot = self.policy.model.roster.slots[decided.article]
            then = article.features_then(decided.model_version)
            self._updates.add(slot, decided.user, payoff, decided.teaches, then)
        return bool(teaches)

    def _new_batch(self) -> UpdateBatch:
        return UpdateBatch(self.dimension, self.policy.model.event_features)

    def learn(self) -> None:
        """Teach the policy what was shown and paid since the last time."""
        if self._updates.slots:
            if self.sketches:
                self._announce(self._updates.slots)
            self._updates.apply(self.policy.model, self._announce_all)

    def _announce_all(self) -> None:
        self._announce(range(len(self.policy.model.roster.ids)))

    def _announce(self, slots: Iterable[int]) -> None:
        for sketch in self.sketches:
            sketch.keep(slots)

    # -- articles that can be shown --

    def listing(self, at: int) -> Listing:
        """The articles that can be shown at this time."""
        held = self._listing
        if held is None or not held.begins <= at < held.ends:
            held = self._listing = self._list(at)
        return held

    def known(self, exclude: tuple[str, ...], at: int) -> tuple[str, ...]:
        """Those of the ids that belong to articles which could be shown; others have no effect."""
        wanted = set(exclude)
        return tuple(article for article in self.listing(at).ids if article in wanted)

    def without(self, listing: Listing, exclude: tuple[str, ...]) -> Listing:
        """The same listing without some articles."""
        left_out = set(exclude)
        kept = tuple(article for article in listing.ids if article not in left_out)
        return self._ready(kept, listing.begins, listing.ends, listing.plan)

    def _list(self, at: int) -> Listing:
        ids = tuple(name for name, article in self.articles.items() if article.showable(at))
        edges = [
            edge
            for article in self.articles.values()
            for edge in (article.facts.begins, article.facts.ends, _unpinned(article.facts))
            if edge is not None
        ]
        begins = max((edge for edge in edges if edge <= at), default=0)
        ends = min((edge for edge in edges if edge > at), default=FOREVER)
        return self._ready(ids, begins, ends, plan_of(self.articles, at))

    def _ready(
        self, ids: tuple[str, ...], begins: int, ends: int, plan: LeverPlan | None
    ) -> Listing:
        roster = self.policy.model.roster
        slots = np.array([roster.slot(article) for article in ids], np.int32)
        return Listing(ids, slots, begins, ends, np.empty(len(ids)), np.empty(len(ids)), plan)


def edit_of(record: Edit) -> str:
    """What an edit does: to be compared with one that has the same id."""
    if isinstance(record, Placed):
        return f"put {record.article.id}"
    if isinstance(record, Removed):
        return f"remove {record.article}"
    return "revert" if record.policy is None else f"promote {content_name(record.policy)}"


def _adopt(policy: Policy, articles: Iterable[Article], dimension: int, event: int) -> None:
    """Let a policy know the articles of a pool, as that has them; ValueError if it cannot."""
    policy.model.use_event_features(event)
    for article in articles:
        policy.edit_article(article.facts.id, article.facts.features)
    if len(policy.model.roster):
        policy.model.see(dimension)


def _unpinned(facts: ArticleFacts) -> int | None:
    """When its pin ends."""
    return None if facts.levers is None else facts.levers.pin_until


def _count(facts: ArticleFacts) -> int:
    return len(facts.features or ())


def context(user: bytes) -> Floats:
    """(d,) the numbers of a context, as a record holds them."""
    return np.frombuffer(user, "<f8")
