"""The client: it asks again where that is safe, and nothing happens twice."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import psutil
import pytest
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import Refused
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.client import async_client, endpoints, retries
from topstory.serving.client.retries import Asking, Heard, Patience

USER = [0.2, 0.2, 0.2, 0.2, 0.2, 1.0]
AN_ARTICLE = ArticleRequest(features=(0.1,) * 5 + (1.0,))


def whole(connection: socket.socket) -> bytes:
    """A whole request or answer: its headers, and as much after them as they say."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = connection.recv(65_536)
        if not piece:
            return answer  # the other side hung up
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    told = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
    while len(body) < int(told or b"0"):
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """An address where connections are talked to, one after the other."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                talk(connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


@contextmanager
def losing_answers(demo: Served, lost: int, after: int = 0) -> Iterator[str]:
    """A way to the service that forgets to bring back some of its first answers."""
    fates = iter([True] * after + [False] * lost)

    def carry(near: socket.socket) -> None:
        with socket.create_connection(demo.address, timeout=60) as far:
            while request := whole(near):
                far.sendall(request)
                answer = whole(far)
                if not next(fates, True):
                    break
                near.sendall(answer)

    with serving(carry) as url:
        yield url


def plainly(url: str, key: str) -> None:
    with ts.Client(url, key) as client:
        made = client.decide(USER)
        assert not client.feedback(made.decision, 1).repeated
        client.put_article("front", "new", AN_ARTICLE)
        client.remove_article("front", "new")


def asynchronously(url: str, key: str) -> None:
    async def work() -> None:
        async with ts.AsyncClient(url, key) as client:
            made = await client.decide(USER)
            assert not (await client.feedback(made.decision, 1)).repeated
            await client.put_article("front", "new", AN_ARTICLE)
            await client.remove_article("front", "new")
            assert len(await client.articles("front")) == 20
            assert (await client.article("front", made.article)).shows >= 1

    asyncio.run(work())


@pytest.mark.parametrize("use", [plainly, asynchronously])
def test_a_lost_answer_is_asked_for_again_and_nothing_happens_twice(
    demo: Served, use: Callable[[str, str], None]
) -> None:
    with ts.Client(demo.url, demo.key) as client:
        before = client.stats().pools["front"]
        with losing_answers(demo, lost=1) as url:
            use(url, demo.key)
        after = client.stats().pools["front"]
    assert after.shows == before.shows + 1
    assert after.payoff == before.payoff + 1


def test_a_removal_whose_answer_was_lost_is_a_removal(demo: Served) -> None:
    with ts.Client(demo.url, demo.key) as client:
        client.put_article("front", "gone", AN_ARTICLE)
        with losing_answers(demo, lost=1) as url, ts.Client(url, demo.key) as other:
            other.remove_article("front", "gone")
        with pytest.raises(Refused, match="has no article"):
            client.remove_article("front", "gone")


def test_what_is_refused_is_raised_with_its_reason(demo: Served) -> None:
    with ts.Client(demo.url, "ts_wrong") as client, pytest.raises(Refused) as caught:
        client.decide(USER)
    assert (caught.value.status, caught.value.reason) == (401, "unknown_key")


def test_a_service_that_is_not_there_is_a_connection_error(tmp_path: Path) -> None:
    with ts.Client("http://127.0.0.1:9", "k", retries=1) as client, pytest.raises(ConnectionError):
        client.stats()
    with pytest.raises(ValueError, match="address is like"):
        ts.Client("localhost:8000", "k")


def test_threads_may_share_a_client(demo: Served) -> None:
    with ts.Client(demo.url, demo.key) as client:
        found: list[str] = []

        def visit() -> None:
            found.extend(client.decide(USER).article for _ in range(5))
            client.close()

        threads = [threading.Thread(target=visit) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 20


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that closes connections which are silent for a moment."""
    limits, policy = {"idle_seconds": 1}, {"name": "ucb"}
    folder = tmp_path_factory.mktemp("forgetful")
    with Served(folder, limits=limits, policy=policy, context=6) as service:
        with ts.Client(service.url, service.key) as client:
            client.put_article("front", "only", ArticleRequest())
        yield service
    assert "Traceback" not in service.errors()


def wait_until_closed(served: Served) -> None:
    """The service has let all its connections go, and nothing else ran here meanwhile."""
    assert served.process is not None
    process = psutil.Process(served.process.pid)
    eventually(lambda: all(c.status != "ESTABLISHED" for c in process.net_connections("tcp")))


@pytest.mark.parametrize("told", [True, False], ids=["the loop knows", "the loop does not know"])
def test_many_connections_that_were_closed_while_idle_cost_no_try(
    forgetful: Served, told: bool
) -> None:
    async def work() -> None:
        async with ts.AsyncClient(forgetful.url, forgetful.key, retries=0) as client:
            await asyncio.gather(*(client.decide(USER) for _ in range(10)))
            assert len(client._idle) == 10
            wait_until_closed(forgetful)
            if told:
                await asyncio.sleep(0.01)
            await client.decide(USER)
            assert len(client._idle) == 1  # its brothers were as old

    asyncio.run(work())


def test_a_connection_that_was_closed_while_idle_costs_no_try(forgetful: Served) -> None:
    with ts.Client(forgetful.url, forgetful.key, retries=0) as client:
        client.decide(USER)
        wait_until_closed(forgetful)
        client.decide(USER)


def test_idle_connections_are_so_many_and_no_more(
    demo: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_client, "KEPT", 3)

    async def work() -> None:
        async with ts.AsyncClient(demo.url, demo.key) as client:
            await asyncio.gather(*(client.stats() for _ in range(8)))
            assert len(client._idle) == 3

    asyncio.run(work())


def test_calls_that_are_cancelled_end_and_leave_no_connection_open(demo: Served) -> None:
    random = Random(0)

    async def busy() -> None:
        async with ts.AsyncClient(demo.url, demo.key) as client:
            while True:
                await client.decide(USER)

    async def work() -> None:
        for _ in range(60):
            tasks = [asyncio.create_task(busy()) for _ in range(4)]
            for _ in range(random.randrange(40)):
                await asyncio.sleep(0.0003)
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks, timeout=30)
            assert all(each.cancelled() for each in tasks)
        gc.collect()  # warns of what was left open

    asyncio.run(work())


@pytest.mark.parametrize("kind", ["plain", "asynchronous"])
def test_a_removal_by_a_connection_that_then_died_is_a_removal(demo: Served, kind: str) -> None:
    """Even without retries: the call went out twice."""
    with ts.Client(demo.url, demo.key) as client:
        client.put_article("front", "gone", AN_ARTICLE)
    with losing_answers(demo, lost=1, after=1) as url:
        if kind == "plain":
            with ts.Client(url, demo.key, retries=0) as client:
                client.stats()
                client.remove_article("front", "gone")
            return

        async def work() -> None:
            async with ts.AsyncClient(url, demo.key, retries=0) as client:
                await client.stats()
                await client.remove_article("front", "gone")

        asyncio.run(work())


def test_a_removal_that_never_went_out_before_is_no_removal() -> None:
    asking = Asking(endpoints.remove_article("front", "none"), Patience(None, retries=1))
    asking.lost(ConnectionRefusedError("refused"), "http://a")
    asking.sent += 1
    unknown = b'{"error": {"reason": "unknown_article", "message": "pool has no article"}}'
    with pytest.raises(Refused, match="has no article"):
        asking.heard(Heard(404, unknown))


def test_retries_outlast_a_service_that_tries_after_a_second_whether_it_can_write() -> None:
    for seed in range(200):
        waiting = Patience(None, retries=4, random=Random(seed))
        pauses = [waiting.pause(tried) for tried in range(4)]
        assert 1.5 <= sum(pauses) <= 4.5
        assert waiting.pause(100) <= 1.5 * retries.LONGEST_WAIT
        # Not sooner than the service says, but for what nobody would wait for.
        assert 1.0 <= waiting.pause(0, wished=1.0) <= 1.5
        assert waiting.pause(0, wished=1e9) <= 1.5 * retries.LONGEST_WAIT


def test_clients_that_were_refused_together_come_back_one_by_one() -> None:
    pauses = [Patience(None, retries=4).pause(0, wished=1.0) for _ in range(1_000)]
    # In any tenth of the half second over which they are spread there are a hundred on average;
    # as many as 170 come about once in 10^10 runs.
    assert max(sum(low <= each < low + 0.05 for each in pauses) for low in (1, 1.1, 1.2, 1.4)) < 170


@pytest.mark.parametrize("header", ["", "Tue, 17 Nov 2026 06:00:00 GMT", "-1", "nan", "1.5"])
def test_a_retry_after_that_is_no_number_of_seconds_is_passed_over(header: str) -> None:
    assert Heard(503, b"", header).wished == 0


REFUSED = b'{"error": {"reason": "later", "message": "not now"}}'


def plain_put(url: str) -> None:
    with ts.Client(url, "k", retries=1) as client:
        client.put_article("front", "new", AN_ARTICLE)


def asynchronous_put(url: str) -> None:
    async def work() -> None:
        async with ts.AsyncClient(url, "k", retries=1) as client:
            await client.put_article("front", "new", AN_ARTICLE)

    asyncio.run(work())


@contextmanager
def scripted(head: bytes, pause: float = 0.0) -> Iterator[str]:
    """A service that answers edits, after a while, and nothing else."""
    answer = head + b"content-length: %d\r\n\r\n" % len(REFUSED) + REFUSED

    def talk(connection: socket.socket) -> None:
        while request := whole(connection):
            if request.startswith(b"PUT"):
                time.sleep(pause)
                connection.sendall(answer)

    with serving(talk) as url:
        yield url


@pytest.mark.parametrize("status", [408, 429, 503])
@pytest.mark.parametrize("put", [plain_put, asynchronous_put])
def test_a_client_comes_back_when_the_service_says(
    status: int, put: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wishes: list[float] = []

    def pause(_: Patience, tried: int, wished: float) -> float:
        wishes.append(wished)
        return 0.0

    monkeypatch.setattr(Patience, "pause", pause)
    with (
        scripted(b"HTTP/1.1 %d Later\r\nRetry-After: 7\r\n" % status) as url,
        pytest.raises(Refused, match="not now"),
    ):
        put(url)
    assert wishes[0] == 7


@pytest.mark.parametrize("put", [plain_put, asynchronous_put])
def test_an_edit_may_wait_for_the_compiler(
    put: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (Patience(None, 0).answering(endpoints.stats()), retries.EDIT) == (5, 120)
    assert Patience(3, 0).answering(endpoints.put_article("front", "new", AN_ARTICLE)) == 3
    monkeypatch.setattr(retries, "ANSWER", 0.4)
    with scripted(b"HTTP/1.1 409 No\r\n", pause=0.5) as url:
        with pytest.raises(Refused, match="not now"):
            put(url)
        with (
            ts.Client(url, "k", retries=0) as client,
            pytest.raises(ConnectionError, match="timed out"),
        ):
            client.stats()
