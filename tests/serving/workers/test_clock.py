"""A machine whose clock is set back under several workers: the journal's time goes on."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from tests.serving.making import config, folded
from tests.serving.processes import Served, eventually
from tests.serving.workers.test_workers import everywhere

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest, Decision
from topstory.serving.journal.clock import SECOND
from topstory.serving.journal.records import Decided
from topstory.serving.journal.sqlite import SqliteJournal
from topstory.serving.security.secret_files import signer_of

USER = [0.2, 0.3, 0.5, 1.0]
HOUR = 3_600
WINDOW = 600  # seconds
# Python imports this first, in every process: all have the same clock, as on a real machine.
CUSTOMIZE = """
import os, time
true = time.time_ns
time.time_ns = lambda: true() - {back} * os.path.exists({sign!r})
"""


def test_workers_go_on_when_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign, first = tmp_path / "set-back", tmp_path / "first"
    first.mkdir()
    module = CUSTOMIZE.format(back=HOUR * 10**9, sign=str(sign))
    (first / "sitecustomize.py").write_text(module)
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{first}{os.pathsep}{path}".rstrip(os.pathsep))
    with Served(tmp_path, workers=2, window_seconds=WINDOW, policy={"name": "ucb"}) as served:
        with ts.Client(served.url, served.key) as client:
            client.put_article("front", "only", ArticleRequest())
        before = decided(served)
        late = expired(served, before[0])
        sign.touch()
        # At once, while workers may not know of it yet,
        after = decided(served)
        assert paid(served, after) == ["paid"] * len(after)
        assert paid(served, [late]) == ["expired_decision"]
        with ts.Client(served.url, served.key) as client:
            eventually(lambda: client.stats().clock_ahead_seconds > HOUR - WINDOW, 60)
        # and when they do.
        later = decided(served)
        assert paid(served, later) == ["paid"] * len(later)
        assert paid(served, before) == ["paid"] * len(before)
        assert paid(served, [late]) == ["expired_decision"]
        with ts.Client(served.url, served.key) as client:
            stats = client.stats()
        assert served.end() == 0
    journal = SqliteJournal(served.data / "journal.sqlite")
    entries = [entry for entry, _ in journal.read()]
    journal.close()
    times = [entry.at for entry in entries]
    assert times == sorted(times)
    assert abs(times[-1] - time.time_ns() // 1000) < WINDOW * SECOND  # this clock was not set back
    made = [entry for entry in entries if isinstance(entry.record, Decided)]
    assert len(made) == len(before) + len(after) + len(later)
    for entry in made:
        assert isinstance(entry.record, Decided)
        assert entry.at < entry.record.expires <= entry.at + WINDOW * SECOND
    assert stats.pools["front"].payoff == len(made)
    assert folded(config(served.data)).fingerprint() == stats.fingerprint
    assert "Traceback" not in served.errors()


def decided(served: Served) -> list[str]:
    """By every worker."""
    made: list[Decision] = asyncio.run(everywhere(served, lambda each: each.decide(USER)))
    return [each.decision for each in made]


def expired(served: Served, decision: str) -> str:
    """The same decision, if its window had ended a minute ago."""
    signer = signer_of(config(served.data))
    number, expires = signer.check(decision)
    return signer.sign(number, expires - (WINDOW + 60) * SECOND)


def paid(served: Served, decisions: list[str]) -> list[str]:
    """What came of a payoff for each, by whichever worker."""

    async def pay(client: ts.AsyncClient, decision: str) -> str:
        try:
            assert not (await client.feedback(decision, 1.0)).repeated
        except ApiError as refused:
            return refused.reason
        return "paid"

    async def work() -> list[str]:
        async with ts.AsyncClient(served.url, served.key, timeout=60) as client:
            return list(await asyncio.gather(*(pay(client, each) for each in decisions)))

    return asyncio.run(work())
