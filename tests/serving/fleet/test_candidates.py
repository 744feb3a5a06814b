"""Who learns: a candidate takes over from a learner that is silent, and from no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.serving.fleet.test_pipeline import fleet_config, learning
from tests.serving.processes import eventually

from topstory.serving.config.schema import Config
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.fleet.learner import candidate, heartbeat
from topstory.serving.fleet.learner.candidate import (
    LOOK_SECONDS,
    OTHERS_SILENT_SECONDS,
    PATIENT_LOOKS,
    PATIENT_SECONDS,
    SILENT_SECONDS,
    LearnerCandidate,
    LearnerSign,
    Silence,
)
from topstory.serving.fleet.learner.heartbeat import BEAT_SECONDS, Heartbeat
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.journal import JournalError, JournalLost, JournalOwned
from topstory.serving.journal.postgres.journal import (
    JournalClaim,
    PostgresJournal,
    waiting_connection,
)
from topstory.serving.journal.records import Entry, Opened

QUICK = 0.01  # seconds that a look takes


class Looks:
    """A candidate's looks, by a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.silence = Silence(clock=lambda: self.now)

    def until(self, end: float, sign: Callable[[float], LearnerSign], took: float = QUICK) -> bool:
        """Look again and again; whether the last look said that the learner is gone."""
        over = False
        while self.now < end and not over:
            self.now += LOOK_SECONDS
            over = self.silence.heard(sign(self.now), took)
        return over


def beating(now: float) -> LearnerSign:
    return LearnerSign(1, 1 + int(now / BEAT_SECONDS), "renewed")


def test_a_learner_that_lives_is_never_silent() -> None:
    assert not Looks().until(60.0, beating)


def test_a_silent_learner_is_replaced_after_little_more_than_a_second() -> None:
    looks = Looks()
    looks.until(5.0, beating)
    assert looks.until(60.0, lambda _: beating(5.0))
    assert looks.now <= 5.0 + SILENT_SECONDS + 2 * LOOK_SECONDS + BEAT_SECONDS


def test_a_learner_without_a_heartbeat_has_time_to_write() -> None:
    looks = Looks()
    assert looks.until(60.0, lambda _: LearnerSign(1, 0, "renewed"))
    assert OTHERS_SILENT_SECONDS <= looks.now <= OTHERS_SILENT_SECONDS + 2 * LOOK_SECONDS
    assert not Looks().until(60.0, lambda _: LearnerSign(1, 0, None))  # of version 1: it gives none


def test_a_database_that_answers_slowly_makes_no_learner_look_dead() -> None:
    """Its beats do not arrive in time, but it commits, or shows that it could."""
    committing = [LearnerSign(1, 1, f"{second}") for second in range(0, 60, 6)]
    assert not Looks().until(59.0, lambda now: committing[int(now / 6)], took=0.5)


def test_a_database_that_answers_slowly_keeps_no_dead_learner() -> None:
    looks = Looks()
    looks.until(5.0, beating, took=0.5)
    assert looks.until(60.0, lambda _: beating(5.0), took=0.5)
    assert 5.0 + PATIENT_SECONDS <= looks.now <= 5.0 + PATIENT_SECONDS + 2 * LOOK_SECONDS


def test_a_silence_in_which_the_database_did_not_answer_says_nothing() -> None:
    """Looks that failed are none: the learner could give no sign either."""
    looks = Looks()
    looks.until(5.0, beating)
    looks.now += 60.0
    for _ in range(PATIENT_LOOKS - 1):
        looks.now += LOOK_SECONDS
        assert not looks.silence.heard(beating(5.0), took=0.5)


def test_a_candidate_that_stood_still_looks_again_before_it_takes_over() -> None:
    looks = Looks()
    looks.until(5.0, beating)
    looks.now += 30.0  # it was paused, and perhaps the learner too
    assert not looks.silence.heard(beating(5.0), QUICK)
    assert looks.until(60.0, lambda _: beating(5.0))


@contextmanager
def waiting(settings: Config) -> Iterator[list[PostgresJournal | None]]:
    """A candidate that waits in a thread: in the list, the journal once it has it."""
    stop, found = threading.Event(), []
    waits = LearnerCandidate(settings, stop)
    thread = threading.Thread(target=lambda: found.append(waits.wait()))
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()
        for each in found:
            if each is not None:
                each.close()


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[LearnerSign]:
    """What candidates see at each look, from now on."""
    seen: list[LearnerSign] = []
    heard = Silence.heard

    def counted(self: Silence, sign: LearnerSign, took: float) -> bool:
        seen.append(sign)
        return heard(self, sign, took)

    monkeypatch.setattr(Silence, "heard", counted)
    return seen


def beats(journal: PostgresJournal, url: str) -> Heartbeat:
    return Heartbeat(url, lambda: journal.epoch, lambda: None)


def test_a_learner_that_holds_the_lock_but_is_silent_is_replaced_and_fenced(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = count_looks(monkeypatch)
    with closing(PostgresJournal(url, 0.5)) as journal:
        epoch = journal.epoch
        with waiting(fleet_config(tmp_path, url)) as found:
            with beats(journal, url):
                eventually(lambda: seen and seen[-1].beat > 5)
                assert not found
            eventually(lambda: found)
            (other,) = found
            assert other is not None
            assert other.epoch > epoch
            with pytest.raises(JournalError):  # it has lost its connection
                journal.beat()
            with pytest.raises(JournalLost, match="taken over"):
                journal.beat()


def test_a_learner_that_writes_for_long_is_not_replaced(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is busy, and the row that its commits change is locked."""
    monkeypatch.setattr(candidate, "SILENT_SECONDS", 0.6)
    monkeypatch.setattr(candidate, "OTHERS_SILENT_SECONDS", 0.6)
    seen = count_looks(monkeypatch)
    with closing(PostgresJournal(url, 0.5)) as journal, beats(journal, url):
        with waiting(fleet_config(tmp_path, url)) as found, psycopg.connect(url) as writing:
            eventually(lambda: seen and seen[-1].beat > 0)
            writing.execute("UPDATE topstory.meta SET renewed = renewed")
            before = seen[-1].beat
            eventually(lambda: seen[-1].beat > before + 10)  # two seconds
            assert not found
            writing.rollback()
        journal.beat()


def test_an_event_loop_that_does_not_turn_gives_no_sign_of_life(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(heartbeat, "STUCK_SECONDS", 0.5)
    sent: list[int] = []
    give = Heartbeat._beat

    def counted(self: Heartbeat) -> bool:
        sent.append(1)
        return give(self)

    monkeypatch.setattr(Heartbeat, "_beat", counted)
    with closing(PostgresJournal(url, 0.5)) as journal, beats(journal, url) as alive:
        eventually(lambda: len(sent) > 3)
        alive.turned()
        eventually(lambda: is_silent(sent))
        alive.turned()
        before = len(sent)
        eventually(lambda: len(sent) > before)


def is_silent(sent: list[int]) -> bool:
    """Whether none was sent in the time of thirty."""
    before = len(sent)
    threading.Event().wait(0.3)
    return len(sent) == before


def test_a_learner_that_was_replaced_ends_its_term_though_nobody_writes(
    tmp_path: Path, url: str
) -> None:
    settings = fleet_config(tmp_path, url)
    ended = threading.Event()
    with learning(settings, ended.set) as journal:
        eventually(lambda: has_published(url))
        with closing(replacing(journal, url)) as other:
            assert ended.wait(20)
            assert other.epoch > journal.epoch
            other.beat()


def has_published(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        return bool(connection.execute("SELECT FROM topstory.model").fetchall())


def replacing(journal: PostgresJournal, url: str) -> PostgresJournal:
    """The journal, from an owner that lives: while it can, it makes its connection anew."""
    while True:
        claim = JournalClaim(waiting_connection(url, 0.5), silent=journal.epoch)
        with suppress(JournalOwned):
            return PostgresJournal(url, 0.5, claim=claim)


def test_a_candidate_follows_when_a_pool_is_new(tmp_path: Path, url: str) -> None:
    """The policy that the pool began with is in the database by then."""
    pools: dict[str, Any] = {"front": {}}
    with learning(fleet_config(tmp_path / "one", url, pools=pools)):
        pass
    follower = LearnerCandidate(fleet_config(tmp_path / "two", url), threading.Event())
    with closing(Inbox(url, 0.5)) as inbox, closing(journal_of(url)) as reader:
        follower._follow(inbox, reader)
        pools["sport"] = {}
        with learning(fleet_config(tmp_path / "one", url, pools=pools)):
            pass
        while follower.state is None or "sport" not in follower.state.pools:
            follower._follow(inbox, reader)
        assert follower.state.number == reader.last()[0]


def test_what_a_pool_began_with_is_shared_before_the_pool_is_recorded(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is lost in between leaves nothing that others cannot read."""
    shared: list[bool] = []
    append = PostgresJournal.append

    def appended(self: PostgresJournal, entries: Sequence[Entry]) -> None:
        if any(isinstance(entry.record, Opened) for entry in entries):
            with psycopg.connect(url, autocommit=True) as connection:
                found = connection.execute("SELECT name FROM topstory.shared").fetchall()
            shared.append(("file/start/front.safetensors",) in found)
        append(self, entries)

    monkeypatch.setattr(PostgresJournal, "append", appended)
    with learning(fleet_config(tmp_path, url)):
        pass
    assert shared == [True]
