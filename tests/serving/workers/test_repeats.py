"""A repeated request gets the same answer from any worker, even if nothing is left to show."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.serving.processes import Served
from tests.serving.workers.test_workers import USER, everywhere

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import ArticleRequest


@pytest.mark.parametrize("workers", [1, 2])
def test_a_request_is_repeated_when_nothing_is_left_to_show(workers: int, tmp_path: Path) -> None:
    with (
        Served(tmp_path, workers=workers) as served,
        ts.Client(served.url, served.key, timeout=60) as client,
    ):
        client.put_article("front", "only", ArticleRequest())
        made = client.decide(USER, request="one")
        client.remove_article("front", "only")
        again = asyncio.run(everywhere(served, lambda each: each.decide(USER, request="one")))
        assert again == [made] * len(again)
        for request in ("another", None):
            with pytest.raises(ApiError) as refused:
                client.decide(USER, request=request)
            assert (refused.value.status, refused.value.reason) == (409, "no_article")
        with pytest.raises(ApiError) as refused:
            client.decide([0.3, 0.3, 0.4, 1.0], request="one")
        assert refused.value.reason == "request_conflict"
        assert not client.feedback(made.decision, 1.0).repeated
