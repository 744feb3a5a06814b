"""Answers in parts, and answers as a whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from topstory.serving.api.errors import ApiError
from topstory.serving.http.asgi import (
    PART_BYTES,
    LargeBodies,
    answer_of,
    json_array,
    send_error,
)


@pytest.mark.parametrize("sizes", [[], [1], [2, 3], [64, 64, 1]])
def test_an_array_is_encoded_as_it_is_made_and_never_whole_in_memory(sizes: list[int]) -> None:
    made = 0

    async def parts() -> AsyncIterator[list[int]]:
        nonlocal made
        for size in sizes:
            made += size
            yield list(range(made - size, made))

    async def sent() -> bytes:
        whole = b""
        async for piece in json_array(parts()):
            whole += piece
            assert whole.count(b",") + 1 >= made  # nothing is made before what is there was sent
        return whole

    assert json.loads(asyncio.run(sent())) == list(range(sum(sizes)))


def test_the_whole_of_an_answer_in_parts_can_be_had() -> None:
    """Who sends parts watches for the client to leave meanwhile."""

    async def parts() -> AsyncIterator[bytes]:
        for part in (b"one ", b"two"):
            await asyncio.sleep(0)
            yield part

    async def whole() -> tuple[int, bytes]:
        scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        status, _, body = await answer_of(StreamingResponse(parts()), scope)
        return status, body

    assert asyncio.run(asyncio.wait_for(whole(), 10)) == (200, b"one two")


def test_a_few_long_answers_are_in_memory_at_a_time() -> None:
    """A list of 10,000 articles has megabytes: a key could ask for a thousand of them at once."""
    over = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def parts() -> AsyncIterator[bytes]:
            for _ in range(3):
                yield b"x" * (PART_BYTES // 2)
            await over.wait()

        try:
            await StreamingResponse(parts())(scope, receive, send)
        except ApiError as error:
            await send_error(send, error)

    async def work() -> None:
        scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        room = LargeBodies(1, "others")
        first = asyncio.create_task(answer_of(app, scope, b"", room))
        while len(asyncio.all_tasks()) < 3:  # until it waits for the rest of its answer
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        status, _, body = await answer_of(app, scope, b"", room)
        assert (status, json.loads(body)["error"]["reason"]) == (503, "busy")  # nothing before it
        over.set()
        assert len((await first)[2]) == 3 * (PART_BYTES // 2)
        assert (await answer_of(app, scope, b"", room))[0] == 200

    asyncio.run(asyncio.wait_for(work(), 60))
