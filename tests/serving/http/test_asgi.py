"""Answers in parts, and answers as a whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from starlette.responses import StreamingResponse
from starlette.types import Scope

from topstory.serving.http.asgi import answer_of, json_array


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
