"""What workers see of the state: the same decisions as from the state itself, in any policy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from tests.serving.making import D, M, config

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.config.schema import Config, TrafficConfig
from topstory.serving.journal.clock import Clock
from topstory.serving.journal.records import ArticleFacts
from topstory.serving.state.decider import Decider
from topstory.serving.state.pool import EventNumbers, Listing, Pool
from topstory.serving.state.state import State
from topstory.serving.state.traffic import Traffic
from topstory.serving.workers.shared_memory.double_buffer import Reader, Writer
from topstory.serving.workers.shared_memory.layout import LISTED_AHEAD
from topstory.serving.workers.shared_memory.mapped_view import MappedView
from topstory.serving.workers.shared_memory.publisher import Publisher

TOLD: Config = config(Path("nowhere"))
POLICIES = {
    "linucb-hybrid": ts.policy("linucb-hybrid", alpha=0.4, ridge=3.0),
    "linucb-disjoint": ts.policy("linucb-disjoint", seed=5),
    "egreedy-hybrid": ts.policy("egreedy-hybrid", epsilon=0.3),
    "ucb-seg": ts.policy("ucb-seg"),
    "egreedy": ts.policy("egreedy"),
    "random": ts.policy("random"),
    "ucb-warm": ts.policy("ucb-warm", offset={"a-1": [0.1, 0.2, 0.3, 0.0]}),
}


class Wall:
    """A clock that stands where it is put."""

    def __init__(self, at: int = 1_000_000) -> None:
        self.at = at

    def clock(self) -> Clock:
        return Clock(wall=lambda: self.at, steady=lambda: self.at)


def made(policy: ts.Policy, wall: Wall) -> tuple[State, Publisher, MappedView]:
    """A state of one pool without articles, published."""
    state = State(D)
    state.pools["front"] = Pool("front", policy, D)
    writer = Writer()
    publisher = Publisher(state, ("front",), wall.clock(), 0.02, writer)
    publisher.publish()
    return state, publisher, MappedView(TOLD, Reader(writer.descriptors))


def place(state: State, publisher: Publisher, *facts: ArticleFacts) -> None:
    for each in facts:
        state.number += 1
        state.pools["front"].place(each, state.number)
    publisher.changed("front")


def users(count: int, seed: int) -> list[list[float]]:
    rows = np.random.default_rng(seed).dirichlet(np.full(D - 1, 0.4), count)
    return [[*row, 1.0] for row in rows.tolist()]


@pytest.mark.parametrize("name", POLICIES)
def test_a_mirror_decides_as_the_state_itself_does(name: str) -> None:
    state, publisher, view = made(POLICIES[name].copy(), Wall())
    random = np.random.default_rng(1)
    features = random.dirichlet(np.ones(M), 30).tolist()
    own = name.endswith("hybrid")
    facts = [ArticleFacts(f"a-{i}", tuple(features[i]) if own else None) for i in range(30)]
    place(state, publisher, *facts)
    state.pools["front"].remove("a-7")  # so that rows and slots are not the same
    publisher.changed("front")
    pool, traffic = state.pools["front"], Traffic(TrafficConfig(), "front")
    itself = Decider(pool, traffic)
    for number, user in enumerate(users(300, seed=2)):
        if number >= 250 and name.startswith("linucb"):  # so large that the state changes its form
            user = [1e6 * each for each in user]
        exclude = ("a-3", "a-4") if number % 5 == 0 else ()
        seen = view.latest()
        found = seen.deciders["front"].decide(user, number % 3, number, 0, exclude, 4)
        assert view.holds(seen.turn)
        assert found == itself.decide(user, number % 3, number, 0, exclude, 4)
        pool.policy.learn(user, found.article, float(random.random() < 0.3))
        state.number += 1
        for _ in range(1 + number % 2):  # so that both buffers are read after either
            publisher.publish()
        assert view.latest().number == state.number
    if name.startswith("linucb"):
        assert "L" in pool.policy.model.scored


@pytest.mark.parametrize("event", [0, 1])
def test_a_mirror_decides_by_features_that_change_as_the_state_itself_does(event: int) -> None:
    """Articles are edited again and again; with `event`, f has a number of the event, too."""
    state, publisher, view = made(ts.policy("linucb-hybrid", alpha=0.4), Wall())
    pool, traffic = state.pools["front"], Traffic(TrafficConfig(), "front")
    pool.use_event_features(EventNumbers(("age_hours",) * event, event, event))
    random = np.random.default_rng(1)
    features = random.dirichlet(np.ones(M), 40)
    place(state, publisher, *(ArticleFacts(f"a-{i}", tuple(features[i])) for i in range(20)))
    itself = Decider(pool, traffic)
    ages = random.random((20, 1)).astype(np.float32) / 3

    def numbers(listing: Listing) -> npt.NDArray[np.float32]:
        return np.array([ages[int(article[2:])] for article in listing.ids], np.float32)

    for number, user in enumerate(users(200, seed=2)):
        if number >= 150:  # so large that the state changes its form
            user = [1e4 * each for each in user]
        if number % 10 == 0:
            article = int(random.integers(20))
            place(state, publisher, ArticleFacts(f"a-{article}", tuple(features[20 + article])))
        seen = view.latest()
        asked = (user, number % 3, number, 0, (), 4, numbers if event else None)
        found = seen.deciders["front"].decide(*asked)
        assert view.holds(seen.turn)
        assert found == itself.decide(*asked)
        context = np.array(user)
        context[D - 1 - event : -1] = found.numbers
        then = tuple(features[0]) if number % 7 == 0 else None
        pool.policy.shown(context, found.article, features=then)
        pool.policy.paid(context, found.article, float(random.random() < 0.3), features=then)
        state.number += 1
        publisher.publish()
    assert "K" in pool.policy.model.scored


def test_a_mirror_sees_an_edit_at_once_and_other_changes_when_they_are_published() -> None:
    state, publisher, view = made(ts.policy("linucb-disjoint"), Wall())
    user = users(1, seed=3)[0]
    with pytest.raises(ApiError, match="no article"):
        view.latest().deciders["front"].decide(user, 0, 1, 0)
    place(state, publisher, ArticleFacts("rain"))
    seen = view.latest()
    assert seen.deciders["front"].decide(user, 0, 1, 0).article == "rain"
    assert seen.editions == {"front": state.number} == {"front": seen.number}
    state.number += 5
    publisher.changed()
    assert publisher.behind == 5
    assert view.latest().number == state.number - 5
    publisher.publish()
    assert publisher.behind == 0
    assert view.latest().number == state.number


def test_articles_come_and_go_by_the_clock() -> None:
    wall = Wall()
    state, publisher, view = made(ts.policy("linucb-disjoint"), wall)
    begins, ends = wall.at + 10 * LISTED_AHEAD, wall.at + 2 * LISTED_AHEAD
    place(state, publisher, ArticleFacts("now", ends=ends), ArticleFacts("later", begins=begins))
    user = users(1, seed=3)[0]

    def shown() -> set[str]:
        publisher.publish()
        try:
            chosen = view.latest().deciders["front"].decide(user, 2, 1, wall.at, slots=5)
        except ApiError:
            return set()
        return set(chosen.ranking)

    assert shown() == {"now"}
    wall.at = ends
    assert shown() == set()
    wall.at = begins - 1
    assert shown() == set()
    wall.at = begins
    # Laid out beforehand: it is there on time, whether or not anything is published then.
    assert view.latest().deciders["front"].decide(user, 2, 1, wall.at).article == "later"


def test_a_mirror_follows_a_pool_that_grows_past_its_buffers() -> None:
    state, publisher, view = made(ts.policy("linucb-hybrid"), Wall())
    user = users(1, seed=4)[0]
    for count in (3, 40, 400):
        known = len(state.pools["front"].articles)
        place(state, publisher, *(ArticleFacts(f"a-{i}", (1.0,)) for i in range(known, count)))
        for _ in range(3):
            listed = view.latest().deciders["front"].decide(user, 0, 1, 0, slots=100).ranking
            assert len(listed) == min(count, 100)
            publisher.publish()


def test_a_state_that_could_not_be_shown_is_shown_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topstory.serving.workers.shared_memory.publisher.MAX_PAUSE_SECONDS", 0.01)
    state, publisher, view = made(ts.policy("linucb-disjoint"), Wall())
    state.number += 5

    async def work() -> None:
        publisher.start()
        state.number += 1
        with monkeypatch.context() as broken:
            broken.setattr(publisher.writer, "begin", lambda _: 1 / 0)
            publisher.changed()
            await asyncio.sleep(0.05)
            assert view.latest().number == state.number - 1
        async with asyncio.timeout(10):
            while view.latest().number < state.number:
                await asyncio.sleep(0.01)
        publisher.stop()

    asyncio.run(work())
