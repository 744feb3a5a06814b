"""The service over HTTP: routes, keys, limits; a real process on loopback."""

from __future__ import annotations

import http.client
import json
import math
import os
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.serving.processes import Served, eventually

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest

USER = [0.2, 0.3, 0.5, 1.0]
LIMITS: dict[str, Any] = {
    "body_bytes": 20_000,
    "header_bytes": 2_000,
    "connections": 30,
    "batch": 50,
    "articles": 6,
    "request_seconds": 60,  # as long as any test waits: only those of slowness have short ones
    "idle_seconds": 60,
}
HASTY: dict[str, Any] = {"request_seconds": 0.4, "idle_seconds": 1}


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """One service for the whole file, with small limits."""
    folder = tmp_path_factory.mktemp("served")
    settings = {"limits": LIMITS, "window_seconds": 60, "workers": request.param}
    with Served(folder, **settings) as service:
        with ts.Client(service.url, service.key, timeout=60) as client:
            for number in range(3):
                article = ArticleRequest(features=(number / 3, 1.0), title=f"Story {number}")
                client.put_article("front", f"article-{number}", article)
        yield service
    assert "Traceback" not in service.errors()


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that pages of another site may call: there the hot routes may go by ASGI."""
    folder = tmp_path_factory.mktemp("ordinary")
    settings: dict[str, Any] = {"limits": LIMITS, "cors_origins": ["https://news.example"]}
    with Served(folder, **settings) as service:
        with ts.Client(service.url, service.key, timeout=60) as client:
            client.put_article("front", "only", ArticleRequest(features=(0.5, 1.0)))
        yield service
    assert "Traceback" not in service.errors()


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two workers"])
def hasty(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """One with very short time limits."""
    settings: dict[str, Any] = {
        "limits": HASTY,
        "workers": request.param,
        "policy": {"name": "ucb"},
    }
    with Served(tmp_path_factory.mktemp("hasty"), **settings) as service:
        yield service
    assert "Traceback" not in service.errors()


@pytest.fixture
def client(served: Served) -> Iterator[ts.Client]:
    with ts.Client(served.url, served.key, timeout=60, retries=0) as made:
        yield made


def ask(
    served: Served,
    method: str,
    path: str,
    body: Any = None,
    key: str | None = "all",
    headers: dict[str, str] | None = None,
) -> tuple[int, Any, dict[str, str]]:
    """One request on a connection of its own: status, JSON, headers."""
    # The first decision with article features may wait for a compiler that has no cache yet.
    connection = http.client.HTTPConnection(*served.address, timeout=60)
    sent = dict(headers or {})
    if key is not None:
        sent["Authorization"] = f"Bearer {served.key if key == 'all' else key}"
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    try:
        connection.request(method, path, content, sent)
        response = connection.getresponse()
        text = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
    finally:
        connection.close()
    return response.status, json.loads(text) if text[:1] in b"[{" and text else text, found


def reason(answer: tuple[int, Any, dict[str, str]]) -> tuple[int, str]:
    assert set(answer[1]) == {"error"}, answer
    assert set(answer[1]["error"]) == {"reason", "message"}
    return answer[0], answer[1]["error"]["reason"]


def test_decide_then_pay(client: ts.Client) -> None:
    made = client.decide(USER, slots=3)
    assert made.article == made.ranking[0]
    assert sorted(made.ranking) == ["article-0", "article-1", "article-2"]
    assert 0 < made.propensity <= 1
    assert not client.feedback(made.decision, 1).repeated
    assert client.feedback(made.decision, 1).repeated
    with pytest.raises(ApiError, match=r"payoff is 1\.0, not 0\.5"):
        client.feedback(made.decision, 0.5)


def test_arrays_are_answered_one_by_one(served: Served) -> None:
    status, made, _ = ask(
        served, "POST", "/v1/decide", [{"user": USER}, {"user": [1]}, {"user": USER, "slots": 2}]
    )
    assert status == 200
    assert made[1]["error"]["reason"] == "bad_context"
    given = [
        {"decision": made[0]["decision"], "payoff": 1},
        {"decision": made[2]["decision"], "payoff": 0},
        {"decision": "k1.no", "payoff": 1},
        {"decision": made[0]["decision"], "payoff": 1},
    ]
    status, answers, _ = ask(served, "POST", "/v1/feedback", given)
    assert status == 200
    assert [each.get("repeated") for each in answers] == [False, False, None, True]
    assert answers[2]["error"]["reason"] == "forged_decision"


def test_editors_see_what_articles_do_and_edits_are_effective_at_once(
    served: Served, client: ts.Client
) -> None:
    made = client.decide(USER, visitor="editor")
    client.feedback(made.decision, 1)
    view = client.article("front", made.article)
    assert view.shows == sum(bucket.shows for bucket in view.buckets.values()) >= 1
    assert view.buckets[made.bucket].payoff >= 1
    assert view.segments[2].shows >= 1  # the largest of the user's features is the third
    assert view.segments[2].interval is not None
    low, high = view.segments[2].interval
    assert low <= (view.segments[2].estimate or 0) <= high
    client.put_article("front", "ä/b c", ArticleRequest(features=(0.5, 1.0), title="Odd id"))
    assert client.article("front", "ä/b c").title == "Odd id"
    assert "ä/b c" in client.decide(USER, slots=9).ranking
    client.remove_article("front", "ä/b c")
    assert "ä/b c" not in client.decide(USER, slots=9).ranking
    with pytest.raises(ApiError, match="has no article"):
        client.article("front", "ä/b c")
    assert {view.id for view in client.articles("front")} == {f"article-{n}" for n in range(3)}
    status, answer, _ = ask(
        *(served, "PUT", "/v1/pools/front/articles/later"),
        {"features": [0.1, 1], "from": "2100-01-01T00:00:00Z", "until": "2100-01-02T00:00:00Z"},
    )
    assert (status, answer["showable"], answer["from"]) == (200, False, "2100-01-01T00:00:00Z")
    assert "later" not in client.decide(USER, slots=9).ranking
    client.remove_article("front", "later")


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/v1/decide", b"{", (400, "bad_json")),
        ("POST", "/v1/decide", b"", (400, "bad_json")),
        ("POST", "/v1/decide", b"\xff\xfe", (400, "bad_json")),
        ("POST", "/v1/decide", b'"x"', (422, "bad_request")),
        ("POST", "/v1/decide", b"[" * 5000, (422, "bad_request")),
        ("POST", "/v1/decide", {"user": USER, "colour": 1}, (422, "bad_request")),
        ("POST", "/v1/decide", b'{"user": [1e999]}', (422, "bad_request")),
        ("POST", "/v1/decide", {"user": [1e9, 0, 0, 1]}, (422, "bad_context")),
        ("POST", "/v1/decide", {"user": {"age": 3}}, (422, "no_feature_model")),
        ("POST", "/v1/decide", {"user": USER, "pool": "none"}, (404, "unknown_pool")),
        ("POST", "/v1/decide", {"user": USER, "slots": 101}, (422, "bad_request")),
        ("POST", "/v1/decide", {"user": USER, "request": "r" * 201}, (422, "bad_request")),
        ("GET", "/v1/decide", None, (405, "wrong_method")),
        ("POST", "/v1/feedback", {"decision": "x", "payoff": 1}, (403, "forged_decision")),
        ("POST", "/v1/feedback", {"decision": "x" * 101, "payoff": 1}, (422, "bad_request")),
        ("GET", "/v1/nothing", None, (404, "unknown_path")),
        ("DELETE", "/v1/stats", None, (405, "wrong_method")),
        ("GET", "/v1/pools/none/articles", None, (404, "unknown_pool")),
        ("GET", "/v1/pools/front/articles/none", None, (404, "unknown_article")),
        ("GET", f"/v1/pools/front/articles/{'x' * 201}", None, (422, "bad_request")),
        ("PUT", "/v1/pools/front/articles/a", {"features": [1]}, (409, "features_conflict")),
        ("PUT", "/v1/pools/front/articles/a", {"from": "noon"}, (422, "bad_request")),
        (
            "PUT",
            "/v1/pools/front/articles/a",
            {"from": "2020-01-01T00:00"},
            (422, "bad_request"),
        ),
        ("PUT", "/v1/pools/front/articles/a", {"title": "t" * 501}, (422, "bad_request")),
        ("PUT", "/v1/pools/../articles/a", {}, (404, "unknown_pool")),
    ],
)
def test_a_request_that_fails_gets_its_status_and_reason(
    served: Served, method: str, path: str, body: Any, expected: tuple[int, str]
) -> None:
    assert reason(ask(served, method, path, body)) == expected


def test_a_key_may_do_what_its_roles_say_and_nothing_else(served: Served) -> None:
    for key, expected in {
        None: (401, "no_key"),
        "ts_wrong": (401, "unknown_key"),
        served.reader: (403, "wrong_role"),
    }.items():
        response = ask(served, "POST", "/v1/decide", {"user": USER}, key=key)
        assert reason(response) == expected
        assert reason(ask(served, "PUT", "/v1/pools/front/articles/a", {}, key=key)) == expected
    assert ask(served, "GET", "/v1/stats", key=served.reader)[0] == 200
    assert reason(ask(served, "GET", "/v1/stats", key=None)) == (401, "no_key")
    assert reason(ask(served, "GET", "/metrics", key=None)) == (401, "no_key")
    for path in ("/health/live", "/health/ready", "/openapi.json"):
        assert ask(served, "GET", path, key=None)[0] == 200
    assert served.key not in served.errors()
    for kept in served.data.rglob("*"):
        assert not kept.is_file() or served.key.encode() not in kept.read_bytes()


def test_secrets_can_be_read_by_their_owner_only(served: Served) -> None:
    for name in ("signing.toml", "journal.sqlite", "journal.sqlite-wal"):
        assert (served.data / name).stat().st_mode & 0o077 == 0


def test_a_body_above_the_limit_is_rejected(served: Served) -> None:
    limit = LIMITS["body_bytes"]
    padded = json.dumps({"user": USER}).encode()
    fits = padded + b" " * (limit - len(padded))
    assert ask(served, "POST", "/v1/decide", fits)[0] == 200
    assert reason(ask(served, "POST", "/v1/decide", fits + b" ")) == (413, "body_too_long")
    # The same without telling the length beforehand.
    # The first decision with article features may wait for a compiler that has no cache yet.
    connection = http.client.HTTPConnection(*served.address, timeout=60)
    settings = {"Authorization": f"Bearer {served.key}"}
    connection.request("POST", "/v1/decide", iter([b" " * 15_000, b" " * 15_000]), settings)
    answer = connection.getresponse()
    assert answer.status == 413
    connection.close()
    assert reason(ask(served, "PUT", "/v1/pools/front/articles/a", fits + b" ")) == (
        413,
        "body_too_long",
    )


def test_an_array_above_the_limit_is_rejected(served: Served) -> None:
    many = [{"user": USER}] * int(LIMITS["batch"])
    assert ask(served, "POST", "/v1/decide", many)[0] == 200
    response = ask(served, "POST", "/v1/decide", [*many, {"user": USER}])
    assert reason(response) == (413, "batch_too_long")


def raw(served: Served, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send raw bytes; returns everything that comes back."""
    with socket.create_connection(served.address, timeout=60) as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:
                break  # it closed the connection
            if pause and select.select([connection], [], [], pause)[0]:
                break  # it has answered already
        answer = b""
        try:
            while piece := connection.recv(65_536):
                answer += piece
        except ConnectionResetError:
            pass
    return answer


def test_headers_above_the_limit_are_rejected(served: Served) -> None:
    head = b"GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
    assert b" 200 " in raw(served, head + b"x: " + b"y" * 1_500 + b"\r\n\r\n")
    for long in (
        head + b"x: " + b"y" * 2_000 + b"\r\n\r\n",  # one long
        head + b"x: y\r\n" * 400 + b"\r\n",  # many short
        b"GET /" + b"a" * 2_500 + b" HTTP/1.1\r\n\r\n",
        head + b"x: " + b"y" * 100_000,  # endless
    ):
        answer = raw(served, long)
        assert answer.startswith(b"HTTP/1.1 431"), answer[:100]
        assert b"headers_too_long" in answer


def test_many_requests_at_once_are_not_taken_for_one_with_long_headers(served: Served) -> None:
    live = b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n"
    with socket.create_connection(served.address, timeout=60) as connection:
        connection.sendall(live * 100 + live[:20])
        time.sleep(0.02)
        connection.sendall(live[20:])
        assert [_answer(connection)[0] for _ in range(101)] == [200] * 101


def test_a_request_that_is_never_complete_times_out(hasty: Served) -> None:
    head = b"POST /v1/decide HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n"
    key = f"authorization: Bearer {hasty.key}\r\n".encode()
    letters = [b"%c" % letter for letter in b"POST /v1/decide HTTP/1.1"]

    def late(*parts: bytes) -> bytes:
        began = time.monotonic()
        answer = raw(hasty, *parts, pause=0.1 if len(parts) > 1 else 0.0)
        assert time.monotonic() - began > 0.3
        return answer

    halves = ((b"",), (b"POST /v1/dec",), (head,), (head + key + b"\r\n" + b'{"user":',))
    # A byte now and then does not help, and neither do empty lines,
    slow = (*halves, letters, [b"\r\n"] * 12)
    with ThreadPoolExecutor(len(slow)) as threads:
        for parts, answer in zip(slow, threads.map(lambda each: late(*each), slow), strict=True):
            assert answer.startswith(b"HTTP/1.1 408"), (parts, answer)
            assert b"too_slow" in answer
            assert b"within 0.4 seconds" in answer
    # nor does a whole one before it.
    whole = b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n"
    answer = late(whole + b"POST /v1/dec")
    assert (b" 200 " in answer, b" 408 " in answer) == (True, True)


def test_a_silent_connection_is_closed(hasty: Served) -> None:
    body = json.dumps({"decision": "none", "payoff": 1})
    rest = f"authorization: Bearer {hasty.key}\r\ncontent-length: {len(body)}\r\n\r\n{body}"

    def silent(path: str) -> float:
        first = f"{path} HTTP/1.1\r\nhost: a\r\n{rest}".encode()
        with socket.create_connection(hasty.address, timeout=60) as connection:
            connection.sendall(first)
            _answer(connection)
            connection.sendall(first)
            began = time.monotonic()
            while connection.recv(65_536):
                pass  # until it closes the connection
            return time.monotonic() - began

    paths = ["GET /health/live", "POST /v1/feedback"]
    with ThreadPoolExecutor(len(paths)) as threads:
        assert min(threads.map(silent, paths)) > 0.8


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_that_neither_sends_nor_reads_does_not_delay_the_shutdown(
    tmp_path: Path, workers: int
) -> None:
    limits = {"request_seconds": 300, "idle_seconds": 300, "shutdown_seconds": 1}
    settings = {"limits": limits, "workers": workers, "policy": {"name": "ucb"}}
    with (
        Served(tmp_path, "", **settings) as service,
        socket.create_connection(service.address, timeout=20) as half,
        socket.create_connection(service.address, timeout=0.2) as deaf,
    ):
        half.sendall(b"POST /v1/decide HTTP/1.1\r\ncontent-length: 9\r\n\r\n{")
        with suppress(TimeoutError):  # once no more is taken, for no answer is read
            while True:
                deaf.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n" * 100)
        assert service.end() == 0  # in far less than those 300 seconds, or this raises


def test_input_that_is_not_http_is_rejected(served: Served) -> None:
    answer = raw(served, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"bad_http" in answer


def test_idle_connections_are_closed_when_there_are_too_many(served: Served) -> None:
    eventually(lambda: not connections(served), 60)  # those of earlier tests are gone
    # With workers, one that has fewer than its share takes more.
    held = [socket.create_connection(served.address) for _ in range(2 * int(LIMITS["connections"]))]
    try:
        for each in held[::2]:  # the others are silent
            with suppress(OSError):
                each.sendall(b"GET /health/live HTTP/1.1\r\nhost: a\r\n")  # never complete
        for _ in range(5):
            assert ask(served, "GET", "/health/live")[0] == 200
            assert ask(served, "POST", "/v1/decide", {"user": USER})[0] == 200
        assert connections(served) <= 1.5 * LIMITS["connections"] + 2
    finally:
        for each in held:
            each.close()
    eventually(lambda: not connections(served), 60)
    assert ask(served, "GET", "/health/live")[0] == 200


def connections(served: Served) -> int:
    """That the service has open."""
    assert served.process is not None
    main = psutil.Process(served.process.pid)
    port = served.address[1]
    return sum(
        each.laddr.port == port and each.status != "LISTEN"
        for process in (main, *main.children())
        for each in process.net_connections("tcp")
    )


def test_articles_above_the_limit_are_rejected(served: Served, client: ts.Client) -> None:
    for number in range(3, 6):
        client.put_article("front", f"article-{number}", ArticleRequest(features=(0.1, 1.0)))
    with pytest.raises(ApiError, match="holds 6 articles"):
        client.put_article("front", "one-more", ArticleRequest(features=(0.1, 1.0)))
    client.put_article("front", "article-5", ArticleRequest(features=(0.1, 1.0), title="New"))
    for number in range(3, 6):
        client.remove_article("front", f"article-{number}")


def test_pages_of_listed_sites_may_call_and_others_may_not(
    served: Served, ordinary: Served
) -> None:
    preflight = {
        "Origin": "https://news.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    status, _, headers = ask(ordinary, "OPTIONS", "/v1/decide", headers=preflight, key=None)
    assert (status, headers["access-control-allow-origin"]) == (200, "https://news.example")
    asked = {"user": USER}
    listed, stranger = {"Origin": "https://news.example"}, {"Origin": "https://evil.example"}
    response = ask(ordinary, "POST", "/v1/decide", asked, headers=listed)
    assert response[0] == 200
    assert response[2]["access-control-allow-origin"] == "https://news.example"
    status, _, headers = ask(ordinary, "OPTIONS", "/v1/decide", headers={**preflight, **stranger})
    assert status == 400
    assert "access-control-allow-origin" not in headers
    for service in (served, ordinary):
        response = ask(service, "POST", "/v1/decide", asked, headers=stranger)
        assert "access-control-allow-origin" not in response[2]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/decide", {"user": USER}),
        ("/v1/decide", [{"user": USER}, {"user": []}]),
        ("/v1/decide", []),
        ("/v1/decide", b" [" + b'{"user": [0, 0, 1, 1]}' + b"]"),
        ("/v1/decide", b"{"),
        ("/v1/decide", b""),
        ("/v1/decide", {"user": [1]}),
        ("/v1/decide", b" " * 20_001),
        ("/v1/decide?x=1", {"user": USER}),
        ("/v1/feedback", {"decision": "x", "payoff": 1}),
        ("/v1/feedback", b"[" * 5_000),
    ],
)
@pytest.mark.parametrize("key", ["all", None, "ts_wrong"])
def test_the_fast_path_and_asgi_answer_alike(
    served: Served, ordinary: Served, path: str, body: Any, key: str | None
) -> None:
    fast, slow = (ask(service, "POST", path, body, key=key) for service in (served, ordinary))
    assert fast[0] == slow[0]
    assert shape(fast[1]) == shape(slow[1])
    ignored = {"date", "vary", "content-length"}
    if fast[0] == 401:
        ignored.add("connection")  # the fast path alone closes it
    assert set(fast[2]) - ignored == set(slow[2]) - ignored


def shape(answer: Any) -> Any:
    """An answer without what differs from decision to decision."""
    if isinstance(answer, list):
        return [shape(each) for each in answer]
    return answer.get("error") or sorted(answer)


def test_requests_may_come_one_after_the_other_without_waiting(served: Served) -> None:
    key = f"authorization: Bearer {served.key}\r\n"
    body = json.dumps({"user": USER})
    decide = (
        f"POST /v1/decide HTTP/1.1\r\nhost: a\r\n{key}content-length: {len(body)}\r\n\r\n{body}"
    )
    live = "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n"
    last = live.replace("host: a", "host: a\r\nconnection: close")
    answer = raw(served, (decide + live + decide + decide + last).encode())
    assert answer.count(b"HTTP/1.1 200") == 5
    order = [answer.index(b'"decision"'), answer.index(b'"live"'), answer.rindex(b'"decision"')]
    assert order == sorted(order)
    assert answer.rindex(b'"live"') > order[-1]


def test_a_head_that_was_sent_before_means_the_same_again(served: Served) -> None:
    body = json.dumps({"user": USER}).encode()
    other = json.dumps({"user": [0.9, *USER[1:]]}).encode()
    assert len(other) == len(body)
    head = f"POST /v1/decide HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {served.key}\r\n"
    whole = f"{head}content-length: {len(body)}\r\n\r\n".encode()
    stranger = whole.replace(served.key.encode(), served.key[::-1].encode())
    live = b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n"
    wrong = b"{" * len(body)
    with socket.create_connection(served.address, timeout=60) as connection:
        for sent, statuses in (
            ([whole + body], [200]),
            ([whole + other], [200]),  # cached by now
            ([whole + wrong], [400]),
            ([whole + body[:9], body[9:]], [200]),  # in pieces
            ([whole + body + whole + other], [200, 200]),  # two at once
            ([whole + body + whole[:30], whole[30:] + other], [200, 200]),
            ([live], [200]),
            ([whole + body], [200]),
            ([stranger + body], [401]),
            ([whole + body], [200]),
        ):
            for part in sent:
                connection.sendall(part)
                time.sleep(0.02)
            answers = [_answer(connection) for _ in statuses]
            assert [status for status, _ in answers] == statuses, sent
    # The cache is per connection: another one must send the key itself.
    assert b" 401 " in raw(
        served, stranger.replace(b"host: a", b"host: a\r\nconnection: close") + body
    )
    closing = whole.replace(b"host: a", b"host: a\r\nconnection: close")
    assert b" 200 " in raw(served, closing + body)


def _answer(connection: socket.socket) -> tuple[int, Any]:
    """The next answer on a connection, and no byte more."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0])
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return int(head.split()[1]), json.loads(body)


def test_a_body_may_come_in_pieces(served: Served) -> None:
    head = f"POST /v1/decide HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {served.key}\r\n"
    body = json.dumps({"user": USER}).encode()
    whole = f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    assert b" 200 " in raw(served, whole + body[:7], body[7:20], body[20:], pause=0.02)
    chunked = f"{head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:5], body[5:]))
    assert b" 200 " in raw(served, chunked + pieces + b"0\r\n\r\n")
    expecting = f"{head}expect: 100-continue\r\nconnection: close\r\ncontent-length: {len(body)}"
    answer = raw(served, f"{expecting}\r\n\r\n".encode() + body)
    assert answer.startswith(b"HTTP/1.1 100")
    assert b" 200 " in answer


def test_metrics_count_what_happened(served: Served, client: ts.Client) -> None:
    for _ in range(3):
        client.feedback(client.decide(USER).decision, 1)
    page = ask(served, "GET", "/metrics", key=served.reader)[1].decode()
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    stats = client.stats()
    pool = stats.pools["front"]
    uniform = pool.buckets["uniform"]
    for bucket, counts in pool.buckets.items():
        assert counts.interval == ts.anytime_rate(counts.shows, counts.payoff)
        if counts is uniform:
            assert counts.lift is None
        else:
            counted = (counts.shows, counts.payoff, uniform.shows, uniform.payoff)
            low, high = ts.anytime_lift(*counted)
            assert counts.lift == (low, high if math.isfinite(high) else None)
        name = f'topstory_shows_total{{bucket="{bucket}",pool="front"}}'
        assert float(values[name]) == counts.shows
    assert float(values["topstory_journal_failing"]) == 0
    assert float(values["topstory_model_record"]) == stats.records
    assert float(values['topstory_requests_total{route="/v1/feedback",status="200"}']) >= 3
    assert float(values['topstory_request_seconds_count{route="/v1/decide"}']) >= 3
    assert 0 <= pool.drift < 1e-6
    for name in (
        *("journal_waiting", "journal_commit_seconds", "snapshot_age_seconds"),
        *("snapshot_lag_records", "clock_ahead_seconds", "remembered_decisions"),
    ):
        assert f"topstory_{name}" in values


def test_requests_above_the_rate_of_a_key_are_rejected(tmp_path: Path) -> None:
    with Served(tmp_path, limits={"rate": 0.01, "burst": 5}, demo=True, context=6) as service:
        user = {"user": [0.2, 0.2, 0.2, 0.2, 0.2, 1.0]}
        statuses = [ask(service, "POST", "/v1/decide", user)[0] for _ in range(7)]
        assert statuses == [200] * 5 + [429] * 2
        response = ask(service, "POST", "/v1/decide", user)
        assert reason(response) == (429, "rate_limit")
        assert response[2]["retry-after"] == "1"
        assert ask(service, "GET", "/v1/stats", key=service.reader)[0] == 200  # a key of its own
        assert ask(service, "POST", "/v1/decide", [user] * 9)[0] == 429


def test_plain_serve_works_at_once_with_the_key_that_it_prints(tmp_path: Path) -> None:
    import signal
    import subprocess

    from tests.serving.processes import COMMAND

    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOPSTORY_")}
    process = subprocess.Popen(
        [*COMMAND, "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    key = process.stdout.readline().split()[-1]  # before it is kept
    url = process.stdout.readline().split()[3].rstrip(",")
    with ts.Client(url, key, timeout=60) as client:
        made = client.decide([0.1, 0.2, 0.3, 0.2, 0.2, 1.0], slots=4)
        assert len(made.ranking) == 4
        client.feedback(made.decision, 1)
        assert len(client.articles("front")) == 20
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert key not in errors
    assert (tmp_path / "topstory-data" / "journal.sqlite").exists()
