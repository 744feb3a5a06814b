"""Files that a promote key uploads, whatever they say: an error of the caller, at bounded cost."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import add_articles, config, refused, run, stopped
from tests.serving.upkeep.test_promotion import file_of, trained

import topstory as ts
from topstory.policies.storage import _SEAL
from topstory.sealed import _checksum, _header
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import PolicyRequest
from topstory.serving.journal.clock import SECOND
from topstory.serving.service.service import Service
from topstory.serving.upkeep.promotion import Promotion

HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0.5, 10**6, 10**18, 10**400, float("nan"), float("inf")),
    *("", "x" * 1_000, [], {}, [None], [["a"]], {"a": 1}, ["a", "a"], [1, 2]),
    *(["\ud800"], ["a" * 1_000], [f"{n}" for n in range(30_000)]),
)


LIMITS = {"decision_seconds": 1e-3}  # 62,500 articles with contexts of four numbers


def sealed(text: str, arrays: Mapping[str, Any]) -> bytes:
    """A file whose checksum is right."""
    metadata = {
        **{"format": _SEAL.format, "version": "1", "policy": text},
        "checksum": _checksum(text, arrays),
    }
    content = b"".join(arrays[name].tobytes() for name in arrays)
    return _header(arrays, metadata) + content


def places(described: Any) -> Iterator[tuple[str, ...]]:
    """The way to every value of a description."""
    for key, value in described.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *rest) for rest in places(value))


def changed(described: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    found = inner = deepcopy(described)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return found


def described_by(policy: ts.Policy, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    from safetensors import safe_open

    file_of(policy, folder)
    with safe_open(folder / "candidate.safetensors", "numpy") as file:
        described = json.loads(file.metadata()["policy"])
        return described, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


async def is_accepted(promotion: Promotion, content: bytes) -> bool:
    try:
        await promotion.compare("front", PolicyRequest(content))
    except ApiError as error:
        if not 400 <= error.status < 500:
            raise
        return False
    return True


def test_a_hostile_policy_is_refused_as_the_callers_mistake(tmp_path: Path) -> None:
    """And what is not refused can be served."""

    async def work(service: Service) -> None:
        await add_articles(service, 3)
        promotion, accepted = Promotion(service), 0
        for policy in (trained(), ts.policy("ucb"), ts.policy("linucb-hybrid")):
            described, arrays = described_by(policy, tmp_path)
            texts = [
                json.dumps(changed(described, place, value))
                for place in places(described)
                for value in HOSTILE
            ]
            texts += [
                "[" * 100_000,
                '{"a":' * 100_000,
                "",
                "null",
                "[]",
                "7",
                json.dumps(described),
            ]
            for text in texts:
                accepted += await is_accepted(promotion, sealed(text, arrays))
        assert accepted > 10

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(config(tmp_path / "data"), work)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_a_small_file_that_asks_for_much_memory_is_refused_first(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 3)
        promotion = Promotion(service)
        described, arrays = described_by(trained(), tmp_path)
        ids = [f"{number}" for number in range(100_000)]
        asked = {
            "context_conflict": ({**described, "dimension": 20_000}, arrays),  # 3.2 GB an article
            "too_many_articles": ({**described, "dimension": None, "articles": ids}, {}),
            "bad_article": (described, {**arrays, "features": np.zeros((2, 100_000))}),
        }
        for reason, (text, own) in asked.items():
            with pytest.raises(ApiError) as caught:
                await promotion.compare("front", PolicyRequest(sealed(json.dumps(text), own)))
            assert caught.value.reason == reason

    run(config(tmp_path / "data", limits=LIMITS), work)


def test_a_pool_is_given_so_many_policies_in_an_hour(tmp_path: Path) -> None:
    """The journal keeps each of them: tens of megabytes."""
    content = file_of(trained(), tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service, 3)
        promotion = Promotion(service)
        time = stopped(service)
        for _ in range(2):
            await promotion.promote("front", PolicyRequest(content))
        record = service.state.number
        with pytest.raises(ApiError) as caught:
            await promotion.promote("front", PolicyRequest(content))
        assert refused(caught) == (429, "too_many_promotions")
        await promotion.compare("front", PolicyRequest(content))
        assert service.state.number == record
        time[0] += 3_600 * SECOND
        await promotion.promote("front", PolicyRequest(content))

    run(config(tmp_path / "data", limits={"promotions": 2}), work)
