"""How old a pool's model is: since the last record that taught it, whatever was read since."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import msgspec
import pytest
from tests.serving.making import D, Made, add_articles, config, folded, run

from topstory.serving.api.messages import DecideRequest, Decision, FeedbackRequest
from topstory.serving.config.schema import Config
from topstory.serving.http.prometheus import Metrics
from topstory.serving.http.request_counts import RequestCounts
from topstory.serving.journal.clock import SECOND, Clock
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.upkeep.keeper import Keeper

USER = (*[0.0] * (D - 1), 1.0)
LEARNING = {"learning": 1.0, "deployment": 0.0, "uniform": 0.0}
DEPLOYED = {"learning": 0.0, "deployment": 1.0, "uniform": 0.0}


def two_pools(folder: Path) -> Config:
    """One that is taught by whoever comes, one that is not."""
    pools = {"front": {"traffic": LEARNING}, "other": {"traffic": DEPLOYED}}
    return config(folder, pools=pools)


async def ages(service: Service) -> dict[str, float]:
    keeper = Keeper(service, Snapshots(Path(service.config.data) / "snapshots"))
    page = (await Metrics(service, keeper, RequestCounts()).page()).decode()
    lines = [line for line in page.splitlines() if line.startswith("topstory_model_age_seconds{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in lines}


def later(service: Service, seconds: int) -> None:
    service.ledger.clock = Clock(service.clock.now() + seconds * SECOND)


def test_the_model_is_as_old_as_the_last_record_that_taught_it(tmp_path: Path) -> None:
    settings = two_pools(tmp_path)

    async def visit(service: Service, pool: str) -> Decision:
        return await service.decide(DecideRequest(user=USER, pool=pool))

    async def work(service: Service) -> dict[str, int]:
        later(service, 100)  # since the pools were opened
        for pool in settings.pools:
            await add_articles(service, 2, pool)
        assert await ages(service) == pytest.approx({"front": 100, "other": 100}, abs=5)
        made, unclicked = await visit(service, "front"), await visit(service, "front")
        await visit(service, "other")
        later(service, 1_000)
        assert await ages(service) == pytest.approx({"front": 1_000, "other": 1_100}, abs=5)
        await service.feedback(FeedbackRequest(decision=made.decision, payoff=1.0))
        assert await ages(service) == pytest.approx({"front": 0, "other": 1_100}, abs=5)
        later(service, 500)
        # What changes no estimate makes no model younger: no click, nor deployment.
        await service.feedback(FeedbackRequest(decision=unclicked.decision, payoff=0.0))
        await service.feedback(
            FeedbackRequest(decision=(await visit(service, "other")).decision, payoff=1.0)
        )
        assert await ages(service) == pytest.approx({"front": 500, "other": 1_600}, abs=5)
        await Keeper(service, Snapshots(tmp_path / "snapshots")).snapshot()
        return {name: pool.taught for name, pool in service.state.pools.items()}

    taught = run(settings, work)
    # From the snapshot, and from the journal alone.
    made = Made(settings)
    assert {name: pool.taught for name, pool in made.service.state.pools.items()} == taught
    made.crash()
    assert {name: pool.taught for name, pool in folded(settings).pools.items()} == taught


def test_a_snapshot_without_that_time_makes_no_model_older_than_itself(tmp_path: Path) -> None:
    settings = two_pools(tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await Keeper(service, Snapshots(tmp_path / "snapshots")).snapshot()

    run(settings, work)
    snapshots = Snapshots(tmp_path / "snapshots")
    (number,) = snapshots.numbers()
    without_taught(snapshots.path(number) / "state.json")
    state = snapshots.read(number)
    assert {pool.taught for pool in state.pools.values()} == {state.at}


def without_taught(path: Path) -> None:
    """As it was written before that was kept."""
    contents = msgspec.json.decode(path.read_bytes())["contents"]
    for facts in contents["pools"].values():
        del facts["taught"]
    raw = msgspec.json.encode(contents)
    sealed = {"checksum": blake2b(raw, digest_size=16).hexdigest(), "contents": msgspec.Raw(raw)}
    path.write_bytes(msgspec.json.encode(sealed))
