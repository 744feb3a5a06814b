"""A sketch is the state at one moment, whatever happens to the state meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from tests.serving.making import add_articles, config, run, visits

from topstory.serving.http import inspection
from topstory.serving.http.inspection import Inspector
from topstory.serving.service.service import Service
from topstory.serving.state.sketch import PoolSketch, StateSketch

POLICIES = ("linucb-hybrid", "linucb-disjoint", "ucb")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_sketch_stays_as_it_was_while_the_state_goes_on(tmp_path: Path, policy: str) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 8)
        await visits(service, 60)
        model = service.state.pools["front"].policy.model
        before, drift = service.state.fingerprint(), model.drift()
        with service.state.sketch() as sketch:
            await visits(service, 40, seed=1)
            await service.remove_article("front", "article-3")
            await add_articles(service, 20)  # in the free slot, and in larger arrays
            await visits(service, 40, seed=2)
            assert service.state.fingerprint() != before
            assert sketch.fingerprint() == before
            assert sketch.drift() == {"front": drift}
        assert service.state.pools["front"].sketches == []

    run(config(tmp_path, policy={"name": policy}), work)


def test_drift_is_that_of_the_model(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service)
        await visits(service, 60)
        model = service.state.pools["front"].policy.model
        model.state.P[0, 1, 2] += 1e-3
        assert model.drift() > 1e-4
        assert service.state.sketch().drift() == {"front": model.drift()}
        model.state.A_inverse[2, 0, 0] = np.nan
        assert np.isnan(model.drift())
        assert np.isnan(service.state.sketch().drift()["front"])

    run(config(tmp_path), work)


def test_only_the_matrices_of_articles_that_change_are_copied(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 8)
        await visits(service, 20)
        pool = service.state.pools["front"]
        sketch = PoolSketch(pool)
        pool.sketches.append(sketch)
        (made,) = await visits(service, 1, seed=1, paid=1.0)
        assert list(sketch._kept) == [pool.policy.model.roster.slot(made.article)]
        for field, array in sketch._matrices.items():
            assert np.shares_memory(array, getattr(pool.policy.model.state, field))

    run(config(tmp_path, traffic={"learning": 1.0}, policy={"name": "linucb-disjoint"}), work)


def test_one_inspection_at_a_time_and_none_if_nothing_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    read = inspection._read

    def counted(sketch: StateSketch) -> inspection.StateInspection:
        begun.append(sketch.number)
        return read(sketch)

    monkeypatch.setattr(inspection, "_read", counted)

    async def work(service: Service) -> None:
        await add_articles(service)
        inspector = Inspector(service.state)
        assert await inspector.recent(0.0) is None  # it takes longer: there is no earlier one
        many = await asyncio.gather(*(inspector.inspect() for _ in range(10)))
        assert len(begun) == 1
        assert {each.fingerprint for each in many} == {service.state.fingerprint()}
        await inspector.inspect()
        assert len(begun) == 1
        await visits(service, 1)
        assert (await inspector.inspect()).fingerprint == service.state.fingerprint()
        assert begun == [many[0].number, service.state.number]
        await visits(service, 1)
        assert await inspector.recent(0.0) == inspector.last is not None  # the earlier one
        assert await inspector.recent(60.0) == await inspector.inspect()
        assert len(begun) == 3

    run(config(tmp_path), work)
