"""What a worker forwards to the learner: the request as it was sent, whatever its method."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from topstory.serving.api.errors import ApiError
from topstory.serving.config.limits import LimitsConfig
from topstory.serving.config.schema import KeyConfig
from topstory.serving.http.asgi import PART_BYTES
from topstory.serving.security.api_keys import Keys, new_key
from topstory.serving.workers.forwarding import MAX_LONG_ANSWERS, Forwarding, answered
from topstory.serving.workers.wire import Answered, Forwarded

KEY, DIGEST = new_key()
MAX_BODY_BYTES = 100


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """The learner's application: it answers with the body that it received."""
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def forwarded(
    method: str, *parts: bytes, key: str | None = KEY, headers: list[tuple[bytes, bytes]]
) -> tuple[bytes, int]:
    """What the learner received of a request, and how many parts of its body were read."""
    messages = [
        {"type": "http.request", "body": part, "more_body": place < len(parts)}
        for place, part in enumerate(parts, start=1)
    ]
    unread = list(messages)

    async def work() -> bytes:
        tasks: set[asyncio.Task[None]] = set()

        async def learner(message: Forwarded) -> None:
            forwarding.received(await answered(echo, message))

        def say(message: Any) -> None:
            tasks.add(asyncio.create_task(learner(message)))

        keys = Keys([KeyConfig(name="all", sha256=DIGEST)], rate=1e6, burst=1_000_000)
        forwarding = Forwarding(say, keys, LimitsConfig(body_bytes=MAX_BODY_BYTES))
        sent: list[Any] = []

        async def receive() -> Any:
            return unread.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        known = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
        scope = {"type": "http", "method": method, "path": "/v1/new", "query_string": b""}
        await forwarding({**scope, "headers": [*known, *headers]}, receive, send)
        body: bytes = sent[1]["body"]
        return body

    return asyncio.run(work()), len(messages) - len(unread)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
def test_the_body_of_any_method_reaches_the_learner(method: str) -> None:
    length = [(b"content-length", b"10")]
    assert forwarded(method, b'{"a": ', b"123}", headers=length)[0] == b'{"a": 123}'
    chunked = [(b"transfer-encoding", b"chunked")]
    assert forwarded(method, b'{"a": 123}', headers=chunked)[0] == b'{"a": 123}'


@pytest.mark.parametrize("key", [None, "ts_wrong"])
def test_the_body_of_an_unknown_client_is_never_read(key: str | None) -> None:
    """The learner sees the headers, and answers as it would to any request without a key."""
    length = [(b"content-length", b"10")]
    assert forwarded("POST", b'{"a": 123}', key=key, headers=length) == (b"", 0)


def test_a_request_without_a_body_is_forwarded_at_once() -> None:
    for headers in ([], [(b"content-length", b"0")]):
        assert forwarded("GET", b"", headers=headers) == (b"", 0)


def test_a_body_that_is_too_long_is_not_forwarded() -> None:
    with pytest.raises(ApiError, match="at most 100 bytes"):
        forwarded("POST", b"x" * 101, headers=[(b"transfer-encoding", b"chunked")])


def test_an_answer_for_a_client_that_has_left_is_dropped() -> None:
    async def work() -> None:
        keys = Keys([KeyConfig(name="all", sha256=DIGEST)], rate=1e6, burst=1_000_000)
        sent: list[Any] = []
        forwarding = Forwarding(sent.append, keys, LimitsConfig(body_bytes=MAX_BODY_BYTES))
        scope = {"method": "GET", "path": "/", "query_string": b"", "headers": []}

        async def nothing(_: Any = None) -> Any:
            raise AssertionError("nothing is read or sent")

        task = asyncio.create_task(forwarding({"type": "http", **scope}, nothing, nothing))
        while not sent:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        forwarding.received(Answered(sent[0].first, 200, [], b""))

    asyncio.run(work())


def test_two_large_bodies_are_read_at_a_time() -> None:
    async def work() -> None:
        keys = Keys(
            [KeyConfig(name="all", sha256=DIGEST, roles=("promote",))], rate=1e6, burst=1_000_000
        )
        forwarding = Forwarding(lambda message: None, keys, LimitsConfig())
        headers = [(b"authorization", f"Bearer {KEY}".encode()), (b"content-length", b"10")]
        scope = {
            **{"type": "http", "method": "PUT", "path": "/v1/pools/front/policy"},
            **{"query_string": b"", "headers": headers},
        }

        async def never(_: Any = None) -> Any:
            await asyncio.Event().wait()

        two = [asyncio.create_task(forwarding(scope, never, never)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ApiError, match="try again later") as caught:
            await forwarding(scope, never, never)
        assert caught.value.status == 503
        two[0].cancel()
        await asyncio.wait([two[0]])
        third = asyncio.create_task(forwarding(scope, never, never))
        await asyncio.sleep(0)
        assert not third.done()
        for each in (two[1], third):
            each.cancel()
            await asyncio.wait([each])

    asyncio.run(work())


def test_a_few_long_answers_wait_for_clients_that_do_not_read() -> None:
    """Each may be of a hundred megabytes, and takes them until its client has it, or is gone."""

    async def work() -> None:
        asked: list[Any] = []
        forwarding = Forwarding(asked.append, Keys([], rate=1e6, burst=1_000_000), LimitsConfig())
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
        reading, parts = asyncio.Event(), list[bytes]()

        async def nothing() -> Any:
            raise AssertionError("nothing is read")

        async def send(message: Any) -> None:
            await reading.wait()
            parts.append(message.get("body", b""))

        async def ask(body: bytes) -> None:
            task = asyncio.create_task(forwarding(scope, nothing, send))
            await asyncio.sleep(0)
            forwarding.received(Answered(asked[-1].first, 200, [], body))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            tasks.append(task)

        tasks: list[asyncio.Task[None]] = []
        long = b"x" * (2 * PART_BYTES + 1)
        for _ in range(MAX_LONG_ANSWERS + 1):
            await ask(long)
        await ask(b"short")
        refused = tasks.pop(MAX_LONG_ANSWERS)
        with pytest.raises(ApiError, match="try again later") as caught:
            await refused
        assert caught.value.status == 503
        reading.set()
        await asyncio.gather(*tasks)
        assert max(map(len, parts)) == PART_BYTES
        assert sum(map(len, parts)) == MAX_LONG_ANSWERS * len(long) + len(b"short")
        await ask(long)  # there is room again
        await tasks[-1]

    asyncio.run(work())
