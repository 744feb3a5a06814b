"""What callers without a key can do to a real process: to its memory, and to other callers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.serving.http.test_http import ask, raw
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.messages import ArticleRequest

USER = [0.2, 0.3, 0.5, 1.0]
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("strange")) as service:
        with ts.Client(service.url, service.key, timeout=60) as client:
            client.put_article("front", "only", ArticleRequest(features=(0.5, 1.0)))
            client.decide(USER)
        yield service
    assert "Traceback" not in service.errors()


def request(served: Served, path: str, body: str, *headers: str) -> bytes:
    lines = (f"POST {path} HTTP/1.1", "host: a", f"authorization: Bearer {served.key}", *headers)
    return "\r\n".join((*lines, f"content-length: {len(body)}", "", body)).encode()


CHUNKED = b"POST /v1/decide HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("begin", "again"),
    [
        (b"1\r\nx\r\n0\r\n", b"a: b\r\n"),  # trailers
        (b"1\r\nx\r\n0\r\na: ", b"b"),  # one that never ends
        (b"1;", b"x"),  # an extension of a chunk
        (b"", b"1;" + b"x" * 100 + b"\r\nx\r\n"),  # of all chunks
    ],
    ids=["many", "long", "extension", "extensions"],
)
def test_what_surrounds_a_chunked_body_is_limited(
    served: Served, begin: bytes, again: bytes
) -> None:
    before = served.memory()
    answer = raw(served, CHUNKED + begin, again * (8 * MEGABYTE // len(again)))
    assert answer.startswith(b"HTTP/1.1 431")  # and it arrived, whatever was sent meanwhile
    assert served.memory() - before < 4 * MEGABYTE


def test_requests_in_advance_wait_in_the_senders_memory(served: Served) -> None:
    one = b"GET /openapi.json HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 5_000 + b"\r\n\r\n"
    before, sent = served.memory(), 0
    data = one * (20 * MEGABYTE // len(one))
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)  # few answers fit
        connection.connect(served.address)
        connection.settimeout(0.5)
        with suppress(TimeoutError):  # the service reads no more
            while sent < len(data):
                sent += connection.send(data[sent : sent + 65_536])
        assert sent < len(data)
        assert served.memory() - before < 4 * MEGABYTE
        assert ask(served, "GET", "/health/live")[0] == 200
        # Nothing is lost: what was sent is answered once answers are read.
        connection.settimeout(60)
        got, tail = 0, b""
        while got < sent // len(one):
            piece = connection.recv(1 << 20)
            got += (tail + piece).count(b"HTTP/1.1 200")
            tail = (tail + piece)[-11:]
    assert served.memory() - before < 4 * MEGABYTE


def test_an_upgrade_is_answered_as_http_1(served: Served) -> None:
    body = json.dumps({"user": USER})
    wishes = ("connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMA")
    first = request(served, "/v1/decide", body, *wishes)
    last = request(served, "/v1/decide", body, "connection: close")
    for parts in ((first + last,), (first[:-5], first[-5:] + last)):
        answer = raw(served, *parts, pause=0.05)
        assert answer.count(b"HTTP/1.1 200") == 2, answer
        assert answer.count(b'"decision"') == 2
    live = b"GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    stats = b"GET /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    answer = raw(served, live + stats)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 404" in answer
    assert raw(served, b"CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n").startswith(b"HTTP/1.1 405")


@pytest.mark.parametrize("garbage", [b"\x00garbage", b"\x00garbage\r\n\r\n", b"GET / HTTP/9\r\n"])
def test_garbage_after_a_request_does_not_take_its_answer(served: Served, garbage: bytes) -> None:
    made = ask(served, "POST", "/v1/decide", {"user": USER})[1]
    body = json.dumps({"decision": made["decision"], "payoff": 1})
    answer = raw(served, request(served, "/v1/feedback", body) + garbage)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"repeated":false' in answer
    assert b"HTTP/1.1 400" in answer


def test_a_request_has_one_host(served: Served) -> None:
    for path in (b"/v1/decide", b"/health/live"):
        for hosts in (b"", b"host: a\r\nHost: b\r\n"):
            answer = raw(served, b"GET " + path + b" HTTP/1.1\r\n" + hosts + b"\r\n")
            assert answer.startswith(b"HTTP/1.1 400")
            assert b"bad_host" in answer
    assert b" 200 " in raw(served, b"GET /health/live HTTP/1.0\r\n\r\n")


def test_a_wrong_method_is_told_the_right_ones(served: Served) -> None:
    for method, path, allowed in (
        ("GET", "/v1/decide", "POST"),
        ("POST", "/v1/pools/front/articles/a", "GET, HEAD, PUT, DELETE"),
        ("DELETE", "/health/live", "GET, HEAD"),
    ):
        status, _, headers = ask(served, method, path)
        assert (status, headers["allow"]) == (405, allowed)
