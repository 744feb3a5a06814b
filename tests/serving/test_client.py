"""The client: it asks again where that is safe, and nothing happens twice."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.messages import ArticleRequest
from topstory.serving.refusals import Refused

USER = [0.2, 0.2, 0.2, 0.2, 0.2, 1.0]


def whole(connection: socket.socket) -> bytes:
    """A whole request or answer: its headers, and as much after them as they say."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = connection.recv(65_536)
        if not piece:
            return answer  # the other side hung up
        answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


@contextmanager
def losing_answers(demo: Served, lost: int) -> Iterator[str]:
    """A way to the service that forgets to bring back its first answers."""
    listening = socket.create_server(("127.0.0.1", 0))
    left = [lost]

    def carry() -> None:
        while True:
            try:
                near, _ = listening.accept()
            except OSError:
                return
            with near, socket.create_connection(demo.address, timeout=10) as far:
                while request := whole(near):
                    far.sendall(request)
                    answer = whole(far)
                    if left[0]:
                        left[0] -= 1
                        break
                    near.sendall(answer)

    thread = threading.Thread(target=carry)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def plainly(url: str, key: str) -> None:
    with ts.Client(url, key) as client:
        made = client.decide(USER)
        assert not client.feedback(made.decision, 1).repeated
        client.put_article("front", "new", ArticleRequest(features=(0.1,) * 5 + (1.0,)))
        client.remove_article("front", "new")


def asynchronously(url: str, key: str) -> None:
    async def work() -> None:
        async with ts.AsyncClient(url, key) as client:
            made = await client.decide(USER)
            assert not (await client.feedback(made.decision, 1)).repeated
            said = ArticleRequest(features=(0.1,) * 5 + (1.0,))
            await client.put_article("front", "new", said)
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
        client.put_article("front", "gone", ArticleRequest(features=(0.1,) * 5 + (1.0,)))
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
