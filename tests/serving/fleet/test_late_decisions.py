"""Without its database a front end may decide from the last model, and hand in later."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.serving.fleet.proxy import Proxy
from tests.serving.fleet.test_inbox import Node, decision, payoff
from tests.serving.fleet.test_pipeline import decide, fleet_config, fold_is_done, learning, pay

from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import DecideRequest
from topstory.serving.fleet.front.process import Front
from topstory.serving.fleet.front.spool import Spool
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.fleet.origins import origin_of
from topstory.serving.journal.connect import journal_of
from topstory.serving.journal.postgres.fleet_tables import COMING, MADE, UNKNOWN
from topstory.serving.journal.postgres.journal import PostgresJournal
from topstory.serving.journal.records import Decided, Paid

USER = (0.2, 0.3, 0.5, 1.0)


async def until_it_fails(front: Front) -> None:
    async with asyncio.timeout(30):
        while front.transport.failing is None:
            await asyncio.sleep(0.01)


async def until_it_works(front: Front) -> None:
    async with asyncio.timeout(30):
        while front.transport.failing is not None:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("degraded", ["serve", "refuse"])
def test_decisions_go_on_from_the_last_model_or_are_refused(
    tmp_path: Path, url: str, degraded: str
) -> None:
    settings = fleet_config(tmp_path / "learner", url)
    tokens: list[str] = []

    async def visit(front: Front, proxy: Proxy) -> None:
        async with front.background():
            tokens.append((await decide(front, DecideRequest(USER))).decision)
            proxy.cut()
            await until_it_fails(front)
            if degraded == "serve":
                assert front.transport.serves_late
                made = await asyncio.gather(*[decide(front, DecideRequest(USER)) for _ in range(5)])
                tokens.extend(each.decision for each in made)
            else:
                with pytest.raises(ApiError) as refused:
                    await decide(front, DecideRequest(USER))
                assert refused.value.status == 503
            with pytest.raises(ApiError) as refused:
                await pay(front, tokens[-1], 1.0)
            assert refused.value.status == 503
            proxy.mend()
            await until_it_works(front)
            for token in tokens:
                assert not (await pay(front, token, 1.0)).repeated

    with learning(settings), Proxy(url) as proxy:
        journal = replace(settings.journal, url=proxy.url, degraded=degraded)
        front = Front(replace(settings, data=str(tmp_path / "front"), journal=journal))
        asyncio.run(visit(front, proxy))
        fold_is_done(url, len(tokens))
        front.close()
    assert not list((tmp_path / "front").glob("late/*"))
    with closing(journal_of(url)) as reading:
        records = [entry.record for entry, _ in reading.read()]
    late = [each.late for each in records if isinstance(each, Decided)]
    assert late == [False, *[True] * (len(tokens) - 1)]
    assert sum(isinstance(each, Paid) for each in records) == len(tokens)


def test_what_a_process_left_behind_is_handed_in_by_the_next(tmp_path: Path, url: str) -> None:
    with closing(PostgresJournal(url)):
        node = Node(url)
        spool = Spool(tmp_path)
        spool.prepare(node.inbox)
        made = decision("r").decided
        assert made is not None
        first, (marked,) = spool.write([made])
        again, _ = spool.write([made, made])
        assert marked == replace(made, late=True)
        assert again == first + 1
        # Until it is handed in, a payoff is asked to come again; an unknown decision is not.
        paid = node.hand_in(payoff(first), payoff(origin_of(node.id, 99)))
        assert [*paid.codes] == [COMING, UNKNOWN]
        with closing(Spool(tmp_path)) as other:  # the file is locked by a process that is alive
            other.prepare(node.inbox)
        assert node.inbox.new({}, 10, 10).rows == []
        assert spool._file is not None
        spool._file.write(b"\x10\0\0\0torn")  # the process dies while it writes
        spool._file.close()
        after = Spool(tmp_path)
        after.prepare(node.inbox)
        rows = node.inbox.new({}, 10, 10).rows
        assert [origin for origin, _ in rows] == [first, first + 1, first + 2]
        assert [*node.hand_in(payoff(first)).codes] == [MADE]
        after.close()
        node.inbox.close()


def test_a_hand_in_that_was_interrupted_goes_on_where_it_ended(tmp_path: Path, url: str) -> None:
    with closing(PostgresJournal(url)), closing(Inbox(url, 1.0)) as inbox:
        spool = Spool(tmp_path)
        spool.prepare(inbox)
        made = decision().decided
        assert made is not None
        spool.write([made] * 5)
        copy = {each: each.read_bytes() for each in (tmp_path / "late").iterdir()}
        spool.prepare(inbox)
        for path, content in copy.items():  # as if it had died before the file was gone
            path.write_bytes(content)
        another = Spool(tmp_path)
        another.prepare(inbox)
        assert len(inbox.new({}, 10, 10).rows) == 5
        another.close()
        spool.close()
