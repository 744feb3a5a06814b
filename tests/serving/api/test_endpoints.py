"""The table of endpoints is the only place that describes an endpoint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api import endpoints
from topstory.serving.api.endpoints import BY_NAME, ENDPOINTS
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import FeedbackRequest
from topstory.serving.http.admin_routes import AdminRoutes

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "http-api.md"

# What a change that adds an endpoint consists of: an entry, and a handler of the same name.
ENTRY = """
from topstory.serving.api import endpoints
from topstory.serving.api.messages import FeedbackRequest

endpoints.ENDPOINTS += (
    endpoints.Endpoint(
        name="rename",
        method="POST",
        path="/v1/pools/{pool}/rename/{article}",
        role="edit",
        summary="Rename an article",
        request=FeedbackRequest,
        response=dict[str, str],
    ),
)
"""
HANDLER = """
from topstory.serving.http.admin_routes import AdminRoutes

async def rename(self, pool, article, body):
    return {"pool": pool, "article": article, "decision": body.decision}

AdminRoutes.rename = rename
"""


def test_names_and_routes_are_unique() -> None:
    assert len(BY_NAME) == len(ENDPOINTS)
    assert len({(each.method, each.path) for each in ENDPOINTS}) == len(ENDPOINTS)


def test_every_entry_but_the_hot_ones_has_a_handler() -> None:
    for endpoint in ENDPOINTS:
        assert endpoint.batch or callable(getattr(AdminRoutes, endpoint.name))


def test_the_documentation_lists_every_route_with_its_role() -> None:
    rows = re.findall(r"^\| `([A-Z]+ /\S+)` \| (\S+) \|", PAGE.read_text("utf-8"), re.M)
    table = {
        f"{each.method} {each.path}": f"`{each.role}`" if each.role else "–" for each in ENDPOINTS
    }
    assert dict(rows) == table
    assert len(rows) == len(table)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_endpoint_is_an_entry_and_a_handler(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Route, role, decoding, OpenAPI, client and forwarding follow."""
    monkeypatch.setattr(endpoints, "ENDPOINTS", ENDPOINTS)  # so that it is restored at the end
    exec(ENTRY)
    entry = endpoints.ENDPOINTS[-1]
    monkeypatch.setitem(BY_NAME, entry.name, entry)
    settings = {"workers": workers, "policy": {"name": "ucb"}}
    with Served(tmp_path, ENTRY + HANDLER, **settings) as served:
        place = {"pool": "front", "article": "a/b"}
        body = FeedbackRequest(decision="x", payoff=1.0)
        with ts.Client(served.url, served.key, timeout=60) as client:
            assert client.call("rename", body, **place) == {**place, "decision": "x"}
            with pytest.raises(ApiError, match="missing required field `decision`"):
                client.call("rename", {"payoff": 1}, **place)
            paths = client.call("openapi")["paths"]
            assert paths[entry.path]["post"]["summary"] == "Rename an article"
        with (
            ts.Client(served.url, served.reader, timeout=60) as reader,
            pytest.raises(ApiError, match="does not have the role 'edit'"),
        ):
            reader.call("rename", body, **place)
    assert "Traceback" not in served.errors()
