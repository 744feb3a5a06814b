"""The clients retry where that is safe, and nothing happens twice."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx
import psutil
import pytest
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.endpoints import PUT_ARTICLE, REMOVE_ARTICLE, STATS, Endpoint
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest
from topstory.serving.client import connection, retries
from topstory.serving.client.calls import call
from topstory.serving.client.retries import RetriedCall, RetryPolicy, retry_after

USER = [0.2, 0.2, 0.2, 0.2, 0.2, 1.0]
AN_ARTICLE = ArticleRequest(features=(0.1,) * 5 + (1.0,))


def whole(connection: socket.socket) -> bytes:
    """A whole request or answer: its headers, and as much after them as they say."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = connection.recv(65_536)
        if not piece:
            return answer  # the other side closed the connection
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
    while len(body) < int(length or b"0"):
        body += connection.recv(65_536)
    if b"transfer-encoding: chunked" in head.lower():
        while not body.endswith(b"0\r\n\r\n"):
            body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """An address where `talk` handles connections one after the other."""
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
    """A proxy to the service that loses some of its answers."""
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
def test_a_call_whose_answer_was_lost_is_repeated_and_nothing_happens_twice(
    demo: Served, use: Callable[[str, str], None]
) -> None:
    with ts.Client(demo.url, demo.key) as client:
        before = client.stats().pools["front"]
        with losing_answers(demo, lost=1) as url:
            use(url, demo.key)
        after = client.stats().pools["front"]
    assert after.shows == before.shows + 1
    assert after.payoff == before.payoff + 1


def test_a_removal_whose_answer_was_lost_succeeds(demo: Served) -> None:
    with ts.Client(demo.url, demo.key) as client:
        client.put_article("front", "gone", AN_ARTICLE)
        with losing_answers(demo, lost=1) as url, ts.Client(url, demo.key) as other:
            other.remove_article("front", "gone")
        with pytest.raises(ApiError, match="has no article"):
            client.remove_article("front", "gone")


def test_a_copy_of_an_edit_that_was_delayed_brings_no_article_back(demo: Served) -> None:
    held: list[bytes] = []

    def carry(near: socket.socket) -> None:
        with socket.create_connection(demo.address, timeout=60) as far:
            while request := whole(near):
                if not held:
                    held.append(request)  # it is on its way for a while
                    return
                far.sendall(request)
                near.sendall(whole(far))

    with serving(carry) as url, ts.Client(url, demo.key) as client:
        client.put_article("front", "zombie", AN_ARTICLE)
        client.remove_article("front", "zombie")
        with socket.create_connection(demo.address, timeout=60) as late:
            late.sendall(held[0])
            assert b" 409 " in whole(late).splitlines()[0]
        with pytest.raises(ApiError, match="has no article"):
            client.article("front", "zombie")


def test_an_api_error_is_raised_with_its_reason(demo: Served) -> None:
    with ts.Client(demo.url, "ts_wrong") as client, pytest.raises(ApiError) as caught:
        client.decide(USER)
    assert (caught.value.status, caught.value.reason) == (401, "unknown_key")


def test_a_service_that_is_not_there_is_a_connection_error(tmp_path: Path) -> None:
    with ts.Client("http://127.0.0.1:9", "k", retries=1) as client, pytest.raises(ConnectionError):
        client.stats()
    with pytest.raises(ValueError, match="address must be like"):
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
    """A service that soon closes idle connections."""
    limits, policy = {"idle_seconds": 1}, {"name": "ucb"}
    folder = tmp_path_factory.mktemp("forgetful")
    with Served(folder, limits=limits, policy=policy, context=6) as service:
        with ts.Client(service.url, service.key) as client:
            client.put_article("front", "only", ArticleRequest())
        yield service
    assert "Traceback" not in service.errors()


def wait_until_closed(served: Served) -> None:
    """Block until the service has closed all its connections."""
    assert served.process is not None
    process = psutil.Process(served.process.pid)
    eventually(lambda: all(c.status != "ESTABLISHED" for c in process.net_connections("tcp")))


def kept(served: Served) -> int:
    """Connections to the service that this process has open."""
    port = served.address[1]
    found = psutil.Process().net_connections("tcp")
    return sum(getattr(each.raddr, "port", None) == port for each in found)


@pytest.mark.parametrize(
    "notified", [True, False], ids=["the loop knows", "the loop does not know"]
)
def test_many_connections_that_were_closed_while_idle_cost_no_try(
    forgetful: Served, notified: bool
) -> None:
    async def work() -> None:
        async with ts.AsyncClient(forgetful.url, forgetful.key, retries=0) as client:
            await asyncio.gather(*(client.decide(USER) for _ in range(10)))
            assert kept(forgetful) == 10
            wait_until_closed(forgetful)
            if notified:
                await asyncio.sleep(0.01)
            await client.decide(USER)
            assert kept(forgetful) == 1  # the others were as old

    asyncio.run(work())


def test_a_connection_that_was_closed_while_idle_costs_no_try(forgetful: Served) -> None:
    with ts.Client(forgetful.url, forgetful.key, retries=0) as client:
        client.decide(USER)
        wait_until_closed(forgetful)
        client.decide(USER)


def test_idle_connections_above_the_limit_are_closed(
    demo: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_IDLE_CONNECTIONS", 3)
    before = kept(demo)

    async def work() -> None:
        async with ts.AsyncClient(demo.url, demo.key) as client:
            await asyncio.gather(*(client.stats() for _ in range(8)))
            assert kept(demo) == before + 3

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
def test_a_removal_over_a_connection_that_then_died_succeeds(demo: Served, kind: str) -> None:
    """Even without retries: the call was sent twice."""
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


def test_an_unknown_article_is_an_error_if_the_removal_was_not_sent_before() -> None:
    removal = call(REMOVE_ARTICLE, pool="front", article="none")
    retried = RetriedCall(removal, RetryPolicy(None, retries=1))
    retried.fail(httpx.ConnectError("refused"), "http://a")
    retried.sent += 1
    unknown = b'{"error": {"reason": "unknown_article", "message": "pool has no article"}}'
    with pytest.raises(ApiError, match="has no article"):
        retried.receive(httpx.Response(404, content=unknown))


def test_retries_outlast_a_service_that_cannot_write_for_a_second() -> None:
    for seed in range(200):
        policy = RetryPolicy(None, retries=4, random=Random(seed))
        pauses = [policy.pause(tries) for tries in range(4)]
        assert 1.5 <= sum(pauses) <= 4.5
        assert policy.pause(100) <= 1.5 * retries.LONGEST_PAUSE
        # Not sooner than the service says, unless that is unreasonably long.
        assert 1.0 <= policy.pause(0, requested=1.0) <= 1.5
        assert policy.pause(0, requested=1e9) <= 1.5 * retries.LONGEST_PAUSE


def test_clients_that_failed_together_do_not_retry_together() -> None:
    pauses = [RetryPolicy(None, retries=4).pause(0, requested=1.0) for _ in range(1_000)]
    # In any tenth of the half second over which they are spread there are a hundred on average;
    # as many as 170 come about once in 10^10 runs.
    assert max(sum(low <= each < low + 0.05 for each in pauses) for low in (1, 1.1, 1.2, 1.4)) < 170


@pytest.mark.parametrize("header", ["", "Tue, 17 Nov 2026 06:00:00 GMT", "-1", "nan", "1.5"])
def test_a_retry_after_that_is_not_a_number_of_seconds_is_ignored(header: str) -> None:
    assert retry_after(httpx.Response(503, headers={"Retry-After": header})) == 0


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
def test_a_client_waits_as_long_as_retry_after_says(
    status: int, put: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[float] = []

    def pause(_: RetryPolicy, tries: int, requested: float) -> float:
        requests.append(requested)
        return 0.0

    monkeypatch.setattr(RetryPolicy, "pause", pause)
    with (
        scripted(b"HTTP/1.1 %d Later\r\nRetry-After: 7\r\n" % status) as url,
        pytest.raises(ApiError, match="not now"),
    ):
        put(url)
    assert requests[0] == 7


@pytest.mark.parametrize("put", [plain_put, asynchronous_put])
def test_an_edit_may_wait_for_the_compiler(
    put: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RetryPolicy(None, 0).answer_seconds(STATS) == 5
    assert RetryPolicy(None, 0).answer_seconds(PUT_ARTICLE) == 120
    assert RetryPolicy(3, 0).answer_seconds(PUT_ARTICLE) == 3
    monkeypatch.setattr(retries, "ANSWER_SECONDS", 0.4)
    with scripted(b"HTTP/1.1 409 No\r\n", pause=0.5) as url:
        with pytest.raises(ApiError, match="not now"):
            put(url)
        with (
            ts.Client(url, "k", retries=0) as client,
            pytest.raises(ConnectionError, match="timed out"),
        ):
            client.stats()


def test_any_endpoint_can_be_called_by_its_name(demo: Served) -> None:
    with ts.Client(demo.url, demo.key) as client:
        assert client.call("live").status == "live"
        assert "topstory_journal_commits_total" in client.call("metrics")
        assert "/v1/decide" in client.call("openapi")["paths"]
        made, wrong = client.call("decide", [{"user": USER}, {"user": [1]}])
        assert wrong.error.reason == "bad_context"
        made = client.call("decide", {"user": USER})
        assert client.call("article", pool="front", article=made.article).shows >= 1
        with pytest.raises(ValueError, match="no endpoint 'dance'; choose one of decide, "):
            client.call("dance")
        with pytest.raises(TypeError, match="article takes the parameters pool, article"):
            client.call("article", pool="front")

    async def work() -> None:
        async with ts.AsyncClient(demo.url, demo.key) as other:
            assert (await other.call("stats")).records > 0

    asyncio.run(work())


def test_a_decision_that_is_called_by_name_is_made_once(demo: Served) -> None:
    with ts.Client(demo.url, demo.key) as client:
        before = client.stats().pools["front"].shows
        with losing_answers(demo, lost=1) as url, ts.Client(url, demo.key) as other:
            other.call("decide", {"user": USER})
        assert client.stats().pools["front"].shows == before + 1


@pytest.mark.parametrize(("idempotent", "tries"), [(True, 3), (False, 1)])
def test_a_post_is_repeated_after_a_lost_answer_only_if_that_has_no_further_effect(
    idempotent: bool, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetryPolicy, "pause", lambda *_: 0.0)
    endpoint = Endpoint(
        name="new",
        method="POST",
        path="/v1/new",
        role=None,
        summary="",
        response=str,
        idempotent=idempotent,
    )
    received: list[bytes] = []
    with serving(lambda connection: received.append(whole(connection))) as url:
        with ts.Client(url, "k", retries=2) as client, pytest.raises(ConnectionError):
            client._send(call(endpoint))
        assert len(received) == tries


@pytest.mark.parametrize("article", ["..", ".", "a/../b", "50%", "%2e", "ä ö?#", "a//b"])
def test_an_article_may_have_any_id(demo: Served, article: str) -> None:
    with ts.Client(demo.url, demo.key) as client:
        assert client.put_article("front", article, AN_ARTICLE).id == article
        assert client.article("front", article).id == article
        client.remove_article("front", article)


def test_a_slow_answer_is_given_up_as_a_whole() -> None:
    """Bytes that trickle in do not extend the time."""
    done = threading.Event()

    def trickle(connection: socket.socket) -> None:
        whole(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
        while not done.wait(0.05):
            try:
                connection.sendall(b" ")
            except OSError:
                return

    async def work(url: str) -> None:
        async with ts.AsyncClient(url, "k", timeout=0.3, retries=0) as client:
            with pytest.raises(ConnectionError, match="timed out"):
                await client.stats()

    with serving(trickle) as url:
        try:
            asyncio.run(asyncio.wait_for(work(url), 30))
        finally:
            done.set()


def test_without_httpx_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    hidden = "import sys; sys.modules['httpx'] = None; import topstory; topstory.Client"
    done = subprocess.run(
        [sys.executable, "-c", hidden], capture_output=True, text=True, env=os.environ
    )
    last = done.stderr.splitlines()[-1]
    sentence = "the service's client needs the extra 'client': pip install 'topstory[client]'"
    assert last == f"topstory.extras.MissingExtra: {sentence}"
