"""What survives a restart: crashes, damaged snapshots, another configuration."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.models.making_priors import some_prior
from tests.serving.making import D, M, Made, add_articles, config, folded, run, visits

import topstory as ts
from topstory.kernels.models.tally import TRIALS
from topstory.models import HybridLinear
from topstory.serving.api.errors import Unavailable
from topstory.serving.api.messages import DecideRequest
from topstory.serving.config.loading import BadConfig, check_files, read_config
from topstory.serving.config.schema import Config
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state_copy import StateCopy
from topstory.serving.upkeep.keeper import Keeper

USER = (0.2, 0.3, 0.5, 1.0)


def fingerprint(settings: Config) -> str:
    """Of the state that a start recovers."""
    made = Made(settings)
    found = made.service.state.fingerprint()
    made.crash()
    return found


async def with_snapshots(service: Service) -> str:
    """Traffic, with a snapshot after each third of it."""
    keeper = Keeper(service, Snapshots(Path(service.config.data) / "snapshots"))
    await add_articles(service)
    for seed in range(3):
        await visits(service, 30, seed)
        await keeper.snapshot()
        await visits(service, 10, seed + 10)
    await service.remove_article("front", "article-3")
    return service.state.fingerprint()


def test_a_snapshot_and_the_journal_after_it_make_the_exact_state(tmp_path: Path) -> None:
    settings = config(tmp_path)
    before = run(settings, with_snapshots)
    kept = Snapshots(tmp_path / "snapshots").numbers()
    assert len(kept) == 2
    assert fingerprint(settings) == before == folded(settings).fingerprint()


def test_recovery_goes_on_as_if_the_service_had_never_stopped(tmp_path: Path) -> None:
    """Decisions included: the same numbers and state give the same choices."""
    settings, whole = config(tmp_path / "one"), config(tmp_path / "other")

    async def first(service: Service) -> None:
        await with_snapshots(service)

    async def second(service: Service) -> list[tuple[str, float]]:
        made = await visits(service, 60, seed=99)
        return [(each.article, each.propensity) for each in made]

    async def both(service: Service) -> list[tuple[str, float]]:
        await first(service)
        return await second(service)

    run(settings, first)
    assert run(settings, second) == run(whole, both)


@pytest.mark.parametrize("name", ["state.json", "front.safetensors"])
@pytest.mark.parametrize("harm", ["flip", "cut", "gone"])
def test_a_damaged_snapshot_falls_back_to_the_one_before(
    tmp_path: Path, name: str, harm: str
) -> None:
    settings = config(tmp_path)
    before = run(settings, with_snapshots)
    newest, older = Snapshots(tmp_path / "snapshots").numbers()
    path = tmp_path / "snapshots" / f"{newest:012d}" / name
    content = bytearray(path.read_bytes())
    if harm == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()
    found = [state.number for state in Snapshots(tmp_path / "snapshots").newest()]
    assert found == [older]
    assert fingerprint(settings) == before


def test_without_any_snapshot_the_whole_journal_is_folded(tmp_path: Path) -> None:
    settings = config(tmp_path)
    before = run(settings, with_snapshots)
    shutil.rmtree(tmp_path / "snapshots")
    assert fingerprint(settings) == before


def test_a_snapshot_that_was_being_written_does_not_count(tmp_path: Path) -> None:
    settings = config(tmp_path)
    before = run(settings, with_snapshots)
    newest = Snapshots(tmp_path / "snapshots").numbers()[0]
    half = tmp_path / "snapshots" / f".{newest + 5:012d}.writing-0"
    shutil.copytree(tmp_path / "snapshots" / f"{newest:012d}", half)
    (half / "state.json").unlink()
    assert fingerprint(settings) == before


def test_a_state_that_cannot_follow_the_journal_is_neither_served_nor_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service)
        keeper = Keeper(service, Snapshots(tmp_path / "snapshots"))
        with monkeypatch.context() as broken:
            broken.setattr(service.state, "apply", lambda *_: 1 / 0)
            with pytest.raises(Unavailable, match="restart the service"):
                await service.decide(DecideRequest(user=USER))
        with pytest.raises(Unavailable, match="restart the service"):
            await service.decide(DecideRequest(user=USER))
        assert service.commits.failing is not None
        await keeper.snapshot()
        assert Snapshots(tmp_path / "snapshots").numbers() == []

    run(settings, work)
    made = Made(settings)  # and a restart has what the journal has
    assert sum(map(sum, made.service.state.pools["front"].tally.shows)) == 1
    made.crash()


def test_the_same_snapshot_written_twice_at_once_is_there_once(tmp_path: Path) -> None:
    """As when a service ends while it takes a snapshot: the end must not spoil it."""
    made = Made(config(tmp_path))
    copy = StateCopy.of(made.service.state)
    made.crash()
    snapshots = Snapshots(tmp_path / "twice")
    for _ in range(20):
        with ThreadPoolExecutor(2) as threads:
            one, other = threads.map(snapshots.write, [copy, copy])
        assert one == other
        assert one.is_dir()
        shutil.rmtree(one)


def test_a_feature_model_that_cannot_be_loaded_is_reported_at_the_start(tmp_path: Path) -> None:
    with pytest.raises((ValueError, OSError), match="nowhere"):
        Made(config(tmp_path, features="nowhere"))
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"no model")
    with pytest.raises(BadConfig, match=r"^features: .*damaged.safetensors: not a safetensors"):
        Made(config(tmp_path, features=str(damaged)))
    Made(config(tmp_path)).crash()  # and nothing is held


def test_a_policy_to_start_from_that_cannot_be_loaded_is_reported_by_its_key(
    tmp_path: Path,
) -> None:
    path = tmp_path / "policy.safetensors"
    with pytest.raises(BadConfig, match=r"^policy.start: .*policy.safetensors"):
        Made(config(tmp_path, policy={"start": str(path)}))
    path.write_bytes(b"no policy")
    with pytest.raises(BadConfig, match=r"^policy.start: .*not a safetensors"):
        Made(config(tmp_path, policy={"start": str(path)}))
    Made(config(tmp_path)).crash()  # and nothing is held


def test_two_services_cannot_share_a_folder(tmp_path: Path) -> None:
    made = Made(config(tmp_path))
    with pytest.raises(BlockingIOError, match="another process serves"):
        Made(config(tmp_path))
    made.crash()


def test_exploration_may_change_at_a_restart_and_the_model_may_not(tmp_path: Path) -> None:
    run(config(tmp_path), with_snapshots)
    made = Made(config(tmp_path, policy={"name": "linucb-hybrid", "alpha": 0.9}))
    assert made.service.state.pools["front"].policy.explorer.bonus == 0.9
    made.crash()
    with pytest.raises(BadConfig, match=r"policy: pool 'front' was begun with hybrid"):
        Made(config(tmp_path, policy={"name": "linucb-hybrid", "ridge": 9.0}))
    with pytest.raises(BadConfig, match=r"context: .* was begun with 4, not 6"):
        Made(config(tmp_path, context=6))


def test_another_context_is_refused_without_a_snapshot_too(tmp_path: Path) -> None:
    async def work(service: Service) -> None:
        await add_articles(service, 2)
        await visits(service, 3)

    run(config(tmp_path), work)
    for context in (3, 6):
        with pytest.raises(
            BadConfig, match=f"context: the journal was begun with 4, not {context}"
        ):
            Made(config(tmp_path, context=context))


def test_a_prior_changes_at_a_record_and_a_restart_comes_to_the_same_state(tmp_path: Path) -> None:
    """120 visits: a wrong prior is weighed after 64 trials, and loses its weight."""
    path = tmp_path / "prior.safetensors"
    prior = some_prior(D, M)
    replace(prior, b0=10 * prior.b0).save(path)
    policy = {"name": "linucb-hybrid-prior", "prior": str(path)}
    settings = config(
        tmp_path / "data", policy=policy, traffic={"learning": 1, "deployment": 0, "uniform": 0}
    )
    before = run(settings, with_snapshots)
    path.unlink()  # it is read when the pool is first opened, and kept
    assert fingerprint(settings) == before == folded(settings).fingerprint()
    model = folded(settings).pools["front"].policy.model
    assert isinstance(model, HybridLinear)
    assert model.weight < 1.0
    assert model.state.tally[TRIALS] == 120
    with pytest.raises(BadConfig, match="policy: pool 'front' was begun with hybrid"):
        Made(config(tmp_path / "data", policy={"name": "linucb-hybrid"}))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            {"name": "linucb-hybrid-prior"},
            r"policy\.prior: .* set a file written by topstory prior",
        ),
        ({"name": "linucb-hybrid", "prior": "p"}, r"policy\.prior: .* does not end in -prior"),
        ({"name": "linucb-hybrid-prior", "prior": "none"}, r"policy\.prior: .*none"),
        ({"name": "linucb-hybrid-prior", "prior": "p", "alpha": -1}, r"policy: alpha must be"),
    ],
)
def test_a_prior_that_cannot_be_used_is_reported_with_its_key(
    tmp_path: Path, policy: dict[str, object], message: str
) -> None:
    settings = tmp_path / "topstory.toml"
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in policy.items())
    settings.write_text(f"[policy]\n{lines}\n", "utf-8")
    with pytest.raises(BadConfig, match=message):
        check_files(read_config(settings, {}))


@pytest.mark.parametrize(
    ("beside", "refused"),
    [
        ({"name": "linucb-hybrid"}, r"policy\.name: linucb-hybrid has the model hybrid, but the "),
        ({"name": "egreedy-disjoint"}, r"policy\.name: egreedy-disjoint has the explorer "),
        ({"ridge": 2.0}, r"policy\.ridge: 2, but the policy that `start` names has 1: leave it "),
        ({"epsilon": 0.1}, r"policy\.epsilon: the policy that `start` names is disjoint × upper-"),
    ],
)
def test_a_key_beside_start_that_contradicts_it_is_refused_by_name(
    beside: dict[str, object], refused: str, tmp_path: Path
) -> None:
    start = str(tmp_path / "trained.safetensors")
    ts.policy("linucb-disjoint", alpha=0.5).save(start)
    Made(config(tmp_path / "fine", policy={"start": start, "alpha": 0.1})).crash()
    for folder in ("new", "fine"):  # a folder that has begun, too
        with pytest.raises(BadConfig, match=refused):
            Made(config(tmp_path / folder, policy={"start": start, **beside}))
