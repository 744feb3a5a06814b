"""Another policy for a live pool: checked, compared, switched at one record, and reverted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.making import Made, add_articles, config, folded, refused, run, visitor, visits
from tests.serving.processes import Served

import topstory as ts
from topstory.serving.api.errors import ApiError
from topstory.serving.api.messages import (
    ArticleRequest,
    DecideRequest,
    FeedbackRequest,
    PolicyChanged,
    PolicyRequest,
)
from topstory.serving.config.schema import Config
from topstory.serving.service.service import Service
from topstory.serving.state.recovery.snapshots import Snapshots
from topstory.serving.state.state import State
from topstory.serving.state.state_copy import StateCopy
from topstory.serving.upkeep.excluding import exclude
from topstory.serving.upkeep.policy_comparison import snips
from topstory.serving.upkeep.promotion import Promotion

USER = (0.2, 0.3, 0.5, 1.0)


def file_of(policy: ts.Policy, folder: Path) -> bytes:
    path = folder / "candidate.safetensors"
    policy.save(path)
    return path.read_bytes()


def trained(seed: int = 1, **changes: Any) -> ts.Policy:
    """A disjoint policy that likes article-1; the service has a hybrid one."""
    policy = ts.policy("linucb-disjoint", alpha=0.2, **changes)
    random = np.random.default_rng(seed)
    for _ in range(50):
        user = visitor(random)
        policy.learn(user, "article-1", 1.0)
        policy.learn(user, "article-0", 0.0)
    return policy


def learned(state: State) -> dict[str, Any]:
    return {name: array.tobytes() for name, array in learned_arrays(state).items()}


def learned_arrays(state: State) -> dict[str, Any]:
    return dict(state.pools["front"].policy.model.learned())


def recovered(settings: Config) -> State:
    """From the newest snapshot, and the journal after it."""
    made = Made(settings)
    made.crash()
    return made.folder.state


def test_a_promoted_policy_decides_from_one_record_on(tmp_path: Path) -> None:
    content = file_of(trained(), tmp_path)

    async def work(service: Service) -> tuple[str, int]:
        await add_articles(service, 3)
        await visits(service, 40)
        before = service.state.pools["front"].policy
        open_decision = await service.decide(DecideRequest(user=USER))
        promotion = Promotion(service)
        number = service.state.number
        changed = await promotion.promote("front", PolicyRequest(content, "trained"), key="ops")
        assert changed.record == number + 1 == service.state.number
        assert changed.now.policy.model == "disjoint"
        (change,) = changed.now.changes
        assert (change.kind, change.key, change.note) == ("promoted", "ops", "trained")
        pool = service.state.pools["front"]
        assert pool.previous is before
        # The deployment bucket shows what the new policy likes; all articles are known to it.
        made = [await service.decide(DecideRequest(user=USER, visitor=f"{i}")) for i in range(40)]
        shown = {each.article for each in made if each.bucket == "deployment"}
        assert shown == {"article-1"}
        # A payoff of a decision of the old one is counted, but teaches the new one nothing.
        held = learned(service.state)
        await service.feedback(FeedbackRequest(decision=open_decision.decision, payoff=1.0))
        assert learned(service.state) == held
        await visits(service, 40, seed=2)
        assert learned(service.state) != held
        return service.state.fingerprint(), changed.record

    settings = config(tmp_path / "data")
    fingerprint, record = run(settings, work)
    assert folded(settings).fingerprint() == fingerprint
    state = recovered(settings)
    assert state.fingerprint() == fingerprint
    assert state.pools["front"].promoted == record


def test_a_revert_gives_back_the_policy_as_it_was(tmp_path: Path) -> None:
    content = file_of(trained(), tmp_path)

    async def work(service: Service) -> str:
        await add_articles(service, 3)
        await visits(service, 40)
        promotion, pool = Promotion(service), service.state.pools["front"]
        with pytest.raises(ApiError) as caught:
            await promotion.revert("front")
        assert refused(caught) == (409, "nothing_to_revert")
        before = pool.policy.model.copy()
        await promotion.promote("front", PolicyRequest(content))
        await visits(service, 30, seed=5)
        await service.remove_article("front", "article-2")
        await service.put_article("front", "new", ArticleRequest(features=(0.5, 0.5, 1.0)))
        changed = await promotion.revert("front")
        assert (changed.now.policy.model, changed.comparison) == ("hybrid", None)
        assert [each.kind for each in changed.now.changes] == ["reverted", "promoted"]
        slots = [pool.policy.model.roster.slot(f"article-{i}") for i in range(2)]
        was = [before.roster.slot(f"article-{i}") for i in range(2)]
        arrays, old = pool.policy.model.learned(), before.learned()
        np.testing.assert_array_equal(arrays["A"][slots], old["A"][was])
        np.testing.assert_array_equal(arrays["A0"], old["A0"])
        assert "article-2" not in pool.policy.model.roster
        await visits(service, 30, seed=6)
        # And back again: what was promoted has what it had learned.
        await promotion.revert("front")
        assert pool.policy.model.name == "disjoint"
        return service.state.fingerprint()

    settings = config(tmp_path / "data")
    fingerprint = run(settings, work)
    assert folded(settings).fingerprint() == fingerprint


def test_a_snapshot_has_the_previous_policy_and_the_history(tmp_path: Path) -> None:
    content, settings = file_of(trained(), tmp_path), config(tmp_path / "data")

    async def promote(service: Service) -> None:
        await add_articles(service, 3)
        await visits(service, 20)
        await Promotion(service).promote("front", PolicyRequest(content))
        await visits(service, 20, seed=3)
        snapshots = Snapshots(Path(settings.data) / "snapshots")
        snapshots.write(StateCopy.of(service.state))
        await visits(service, 20, seed=4)

    async def revert(service: Service) -> str:
        assert service.state.pools["front"].previous is not None
        assert len(service.state.pools["front"].changes) == 1
        await Promotion(service).revert("front")
        await visits(service, 20, seed=5)
        return service.state.fingerprint()

    run(settings, promote)
    fingerprint = run(settings, revert)
    assert folded(settings).fingerprint() == recovered(settings).fingerprint() == fingerprint


def test_an_exclusion_reaches_behind_a_promotion(tmp_path: Path) -> None:
    content, settings = file_of(trained(), tmp_path), config(tmp_path / "data")

    async def work(service: Service) -> None:
        await add_articles(service, 3)
        for seed in range(3):
            await asyncio.gather(
                *(
                    service.decide(DecideRequest(user=USER, visitor=f"v{seed % 2}"))
                    for _ in range(10)
                )
            )
            if seed == 1:
                await Promotion(service).promote("front", PolicyRequest(content))

    run(settings, work)
    assert exclude(settings, visitor="v0").decisions == 20
    state = recovered(settings)
    assert sum(map(sum, state.pools["front"].tally.shows)) == 10
    assert state.pools["front"].policy.model.name == "disjoint"
    assert folded(settings).fingerprint() == state.fingerprint()


def test_the_same_promotion_is_made_once(tmp_path: Path) -> None:
    content = file_of(trained(), tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        promotion = Promotion(service)
        first = await promotion.promote("front", PolicyRequest(content), edit="a")
        again = await promotion.promote("front", PolicyRequest(content), edit="a")
        assert first.record == again.record == service.state.number
        with pytest.raises(ApiError) as caught:
            await promotion.revert("front", edit="a")
        assert refused(caught) == (409, "edit_conflict")

    run(config(tmp_path / "data"), work)


BAD: dict[str, tuple[Callable[[Path], bytes], tuple[int, str], str]] = {
    "no policy": (lambda _: b"no such file", (422, "bad_policy"), "the policy: not a safetensors"),
    "contexts of another length": (
        lambda folder: file_of(_other_length(), folder),
        (409, "context_conflict"),
        "contexts of 2 numbers, but the service has 4",
    ),
    "articles with fewer features": (
        lambda folder: file_of(_other_features(), folder),
        (409, "features_conflict"),
        "article-0",
    ),
}


def _other_length() -> ts.Policy:
    policy = ts.policy("linucb-disjoint")
    policy.learn((0.5, 1.0), "article-0", 1.0)
    return policy


def _other_features() -> ts.Policy:
    policy = ts.policy("linucb-hybrid")
    policy.add_article("article-0", (0.4, 1.0))
    policy.learn(USER, "article-0", 1.0)
    return policy


@pytest.mark.parametrize("what", BAD)
def test_a_policy_that_does_not_fit_is_refused_and_changes_nothing(
    what: str, tmp_path: Path
) -> None:
    content, status, message = BAD[what]

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        number, policy = service.state.number, service.state.pools["front"].policy
        for call in (Promotion(service).compare, Promotion(service).promote):
            with pytest.raises(ApiError, match=message) as caught:
                await call("front", PolicyRequest(content(tmp_path)))
            assert refused(caught) == status
        assert service.state.number == number
        assert service.state.pools["front"].policy is policy

    run(config(tmp_path / "data"), work)


def test_another_feature_model_is_named_before_what_follows_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its contexts may be longer, too: the error says why."""
    monkeypatch.setattr(Promotion, "_feature_model", "04e1b7aa")
    policy = _other_length()
    policy.feature_model = "9f2c61d0"
    content = file_of(policy, tmp_path)

    async def work(service: Service) -> None:
        await add_articles(service, 2)
        both = "the policy was made with feature model 9f2c61d0, but the service with 04e1b7aa"
        with pytest.raises(ApiError, match=both) as caught:
            await Promotion(service).promote("front", PolicyRequest(content))
        assert refused(caught) == (409, "feature_model_conflict")

    run(config(tmp_path / "data"), work)


def test_a_comparison_is_snips_on_the_recorded_propensities(tmp_path: Path) -> None:
    """As by hand, for a policy that always shows article-1."""
    content = file_of(trained(), tmp_path)
    traffic = {"learning": 0.2, "deployment": 0.2, "uniform": 0.6}

    async def work(service: Service) -> None:
        await add_articles(service, 3)
        made = await visits(service, 300, paid=0.0)
        weights: list[float] = []
        payoffs: list[float] = []
        for each in made:
            payoff = float(each.article == "article-1" and len(payoffs) % 3 > 0)
            await service.feedback(FeedbackRequest(decision=each.decision, payoff=payoff))
            weights.append((each.article == "article-1") / each.propensity)
            payoffs.append(payoff)
        found = await Promotion(service).compare("front", PolicyRequest(content))
        assert (found.decisions, found.left_out, found.agreed_on) == (300, 0, 300)
        assert found.candidate == snips(np.array(weights), np.array(payoffs))
        assert found.candidate is not None
        assert 0.5 < found.candidate.value < 0.8
        same = file_of(service.state.pools["front"].policy, tmp_path)
        itself = await Promotion(service).compare("front", PolicyRequest(same))
        assert itself.agreement == 1.0
        assert itself.current == itself.candidate
        # Decisions that could have shown what is gone are left out.
        await service.remove_article("front", "article-2")
        assert (await Promotion(service).compare("front", PolicyRequest(same))).left_out == 300

    run(config(tmp_path / "data", traffic=traffic), work)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_policy_is_promoted_over_http(workers: int, tmp_path: Path) -> None:
    content = file_of(trained(), tmp_path)
    limits = {"body_bytes": 1_000}
    with Served(tmp_path / "served", workers=workers, limits=limits) as served:
        with ts.Client(served.url, served.key, timeout=60) as client:
            for number in range(3):
                features = (number / 3, 1 - number / 3, 1.0)
                client.put_article("front", f"article-{number}", ArticleRequest(features=features))
            assert len(content) > 1_000
            body = {"policy": content, "note": "from the log"}
            assert client.call("compare_policy", body, pool="front").decisions == 0
            changed = client.call("promote_policy", body, pool="front")
            assert isinstance(changed, PolicyChanged)
            assert changed.now.changes[0].key == "all"
            view = client.call("policy", pool="front")
            assert view == changed.now
            decided = [client.decide(USER, visitor=f"{i}") for i in range(30)]
            assert {each.article for each in decided if each.bucket == "deployment"} == {
                "article-1"
            }
            assert client.call("revert_policy", pool="front").now.policy.model == "hybrid"
            stats = client.stats()
        with ts.Client(served.url, served.reader, retries=0) as reader:
            assert reader.call("policy", pool="front").policy.model == "hybrid"
            with pytest.raises(ApiError, match="promote"):
                reader.call("promote_policy", body, pool="front")
        assert served.end() == 0
        served.start()
        with ts.Client(served.url, served.key, timeout=60) as client:
            assert client.stats().fingerprint == stats.fingerprint
    assert folded(config(served.data)).fingerprint() == stats.fingerprint
    assert "Traceback" not in served.errors()
