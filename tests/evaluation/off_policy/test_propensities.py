"""Propensities that were not recorded: estimated, never from the event itself, and said so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import topstory as ts
from topstory.evaluation.off_policy.propensities.calibration import CalibrationTable, Curves
from topstory.evaluation.off_policy.propensities.counts import CountedShares
from topstory.evaluation.off_policy.propensities.logistic import LogisticShares
from topstory.evaluation.off_policy.propensities.show_model import Parts, parts_of
from topstory.evaluation.off_policy.weighting.targets import plain_room
from topstory.events.folder.append import Appender
from topstory.kernels.compilation import Floats
from topstory.kernels.scans.propensities import Scores, Shows, fit_shows

ARTICLES, SIZE = 6, 4
POOLS = [[f"a{i}" for i in range(start, start + SIZE)] for start in range(ARTICLES - SIZE + 1)]


class Site:
    """A log that somebody wrote who shows what each user likes, and the chances by which."""

    def __init__(self, events: int, seed: int = 0, strength: float = 1.0) -> None:
        random = np.random.default_rng(seed)
        self.users = np.column_stack([random.random((events, 2)), np.ones(events)])
        self.pool = random.integers(len(POOLS), size=events)
        members = self.pool[:, None] + np.arange(SIZE)
        taste = np.random.default_rng(3).normal(size=(ARTICLES, 3)) * strength
        scores = np.einsum("nd,nkd->nk", self.users, taste[members])
        chances = np.exp(scores)
        self.chances: Floats = chances / chances.sum(axis=1, keepdims=True)
        drawn = random.random(events)[:, None] > np.cumsum(self.chances, axis=1)
        self.position = drawn.sum(axis=1).clip(0, SIZE - 1)
        self.clicks: Floats = 0.1 + 0.3 * self.users[:, :1] * (members % 2)
        payoff = random.random(events) < self.clicks[np.arange(events), self.position]
        self.log = ts.EventLog.from_arrays(
            self.users,
            POOLS,
            self.pool,
            [POOLS[p][i] for p, i in zip(self.pool, self.position, strict=True)],
            payoff,
            timestamps=1_241_136_000 + np.sort(random.random(events)) * 86_400,
        )

    @property
    def true(self) -> Floats:
        return np.asarray(self.chances[np.arange(len(self.pool)), self.position])


class Uniform:
    def probabilities(self, user: Floats, pool: list[str]) -> list[float]:
        return [1 / len(pool)] * len(pool)


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(8_000)


@pytest.fixture(scope="module")
def estimate(site: Site) -> ts.evaluation.PropensityEstimate:
    return ts.estimate_propensities(site.log)


def test_who_is_shown_what_is_found_out(
    site: Site, estimate: ts.evaluation.PropensityEstimate
) -> None:
    """The regression foretells better than counts, nearly as well as the truth itself."""
    assert estimate.method == "logistic"
    best = -np.log(site.true).mean()
    assert min(estimate.losses.values()) == pytest.approx(best, abs=0.01)
    assert estimate.losses["counts within pool"] > best + 0.02
    assert np.corrcoef(np.log(site.true), np.log(estimate.log.propensity))[0, 1] > 0.98
    assert estimate.cautions == ()


def test_chances_are_calibrated_and_weights_by_article_are_1(
    estimate: ts.evaluation.PropensityEstimate,
) -> None:
    """Over 4 standard errors would happen once in 16,000, in each of some 15 numbers."""
    assert estimate.calibration_error < 0.03
    for each in estimate.calibration:
        error = np.sqrt(each.said * (1 - each.said) / each.pairs)
        assert abs(each.said - each.shown) < 4 * error + 0.01
    assert len(estimate.articles) == ARTICLES
    for article in estimate.articles:
        assert article.mean_weight == pytest.approx(1.0, abs=0.12)
    assert sum(article.shown for article in estimate.articles) == len(estimate.log)


def test_a_policy_is_judged_as_with_the_recorded_propensities(
    site: Site, estimate: ts.evaluation.PropensityEstimate
) -> None:
    truth = float(site.clicks.mean())
    assert abs(site.log.ctr - truth) > 0.01  # so the log alone misleads
    with pytest.warns(ts.EstimatedPropensityWarning, match="estimated, not recorded"):
        found = ts.evaluate({"uniform": Uniform()}, estimate.log)
    recorded = replace(site.log, recorded_propensity=site.true.astype(np.float32))
    other = ts.evaluate({"uniform": Uniform()}, recorded)
    low, high = found["uniform"].value.interval
    assert low < truth < high
    assert found["uniform"].value.value == pytest.approx(other["uniform"].value.value, abs=0.015)
    assert found.propensities.startswith("estimated, not recorded: multinomial")
    assert "estimated, not recorded" in found["uniform"].cautions[-1]
    assert other.propensities == "as recorded"
    assert other["uniform"].robust_to is None


def test_counts_follow_shares_that_change_by_the_hour() -> None:
    random = np.random.default_rng(2)
    events = 12_000
    hours = np.sort(random.random(events)) * 12
    chance = np.where(hours < 6, 0.8, 0.3)
    first = random.random(events) < chance
    log = ts.EventLog.from_arrays(
        np.ones((events, 1)),
        [["a", "b"]],
        np.zeros(events, int),
        np.where(first, "a", "b"),
        np.zeros(events),
        timestamps=1_241_136_000 + hours * 3_600,
    )
    found = ts.estimate_propensities(log, method="counts")
    assert (found.method, found.log.propensity_estimate) == (
        "counts",
        "counts within pool and hour" + (", calibrated" if found.calibrated else ""),
    )
    true = np.where(first, chance, 1 - chance)
    assert np.abs(found.log.propensity - true).mean() < 0.02


@pytest.mark.parametrize("model", [CountedShares, LogisticShares])
def test_an_estimate_never_comes_from_the_event_itself(
    model: type[CountedShares | LogisticShares],
) -> None:
    """Whatever the events of a fold showed, their chances are the same."""
    log = Site(400).log
    parts = parts_of(log, 4)
    mine = parts.fold == 1
    other = replace(log, position=np.where(mine, 3 - log.position, log.position).astype(np.uint16))
    (begins, before), (_, after) = (model(each, parts).all(0, 400) for each in (log, other))
    chosen = np.repeat(mine, SIZE)
    np.testing.assert_array_equal(before[chosen], after[chosen])
    assert not np.allclose(before[~chosen], after[~chosen])
    np.testing.assert_allclose(np.add.reduceat(before, begins), 1.0)


def test_events_of_one_visitor_are_in_one_fold() -> None:
    log = ts.EventLog.from_arrays(
        np.ones((2, 1)), [["a", "b"]], [0] * 6, ["a", "b"] * 3, [0] * 6, visitor=[0, 1, 0, 0, 1, 1]
    )
    assert parts_of(log, 5).fold.tolist() == [0, 1, 0, 0, 1, 1]


def test_counts_equal_their_plain_twin() -> None:
    log = Site(300).log
    parts = Parts((np.arange(300) // 100).astype(np.int32), 3, (np.arange(300) % 5).astype("u1"), 5)
    begins, found = CountedShares(log, parts).all(0, 300)
    for t in (0, 137, 299):
        others = (log.pool == log.pool[t]) & (parts.fold != parts.fold[t])
        usual = np.array([1 + (log.position[others] == i).sum() for i in range(SIZE)], float)
        here = others & (parts.block == parts.block[t])
        counts = np.array([(log.position[here] == i).sum() for i in range(SIZE)])
        twin = (counts + SIZE * usual / usual.sum()) / (counts.sum() + SIZE)
        np.testing.assert_allclose(found[begins[t] : begins[t] + SIZE], twin)


def test_the_regressions_loss_and_gradient_equal_their_plain_twins() -> None:
    site, random = Site(60), np.random.default_rng(1)
    log, users = site.log, site.users.astype(np.float32)
    block = (np.arange(60) // 20).astype(np.int32)
    shows = Shows(users, log.pool, log.position, block, log.pool_offsets, log.pool_members)
    scores = Scores(random.normal(size=(ARTICLES, 3)), random.normal(size=(ARTICLES, 4)))
    which = random.random(60) < 0.7

    def twin(scores: Scores) -> float:
        loss = 0.0
        for t in np.flatnonzero(which):
            articles = log.pool[t] + np.arange(SIZE)
            own = scores.by_block[articles, block[t]] + scores.by_block[articles, 3]
            own = own + scores.by_user[articles] @ users[t].astype(float)
            loss -= own[log.position[t]] - np.log(np.exp(own).sum())
        return float(loss)

    gradient = Scores(np.zeros((ARTICLES, 3)), np.zeros((ARTICLES, 4)))
    loss = fit_shows(shows, which, scores, plain_room(3), np.empty(3), np.empty(SIZE), gradient)
    assert loss == pytest.approx(twin(scores), rel=1e-9)
    for part, change in ((0, (2, 1)), (1, (3, 0)), (1, (1, 3))):
        up, down = (Scores(scores.by_user.copy(), scores.by_block.copy()) for _ in range(2))
        up[part][change] += 1e-5
        down[part][change] -= 1e-5
        slope = (twin(up) - twin(down)) / 2e-5
        assert gradient[part][change] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_calibration_mends_chances_that_are_too_bold() -> None:
    random = np.random.default_rng(0)
    true = random.uniform(0.1, 0.9, 40_000)
    bold = true**3 / (true**3 + (1 - true) ** 3)
    first = random.random(40_000) < true
    chances = np.column_stack([bold, 1 - bold]).ravel()
    shown = np.column_stack([first, ~first]).ravel()
    begins, fold = np.arange(40_000) * 2, np.repeat(np.arange(40_000) % 4, 2).astype(np.uint8)
    curves, before, after = Curves(4), CalibrationTable(), CalibrationTable()
    curves.add(fold, chances, shown)
    curves.finish()
    mended = curves.apply(fold, chances, begins)
    before.add(chances, shown)
    after.add(mended, shown)
    assert before.error() > 0.1
    assert after.error() < 0.02
    np.testing.assert_allclose(mended[::2], true, atol=0.06)
    np.testing.assert_allclose(mended[::2] + mended[1::2], 1.0)


class TestNothingLeftToChance:
    def refused(self, log: ts.EventLog) -> str:
        with pytest.raises(ts.NotAnswerable, match="left nothing to chance") as refused:
            ts.estimate_propensities(log)
        assert "topstory plan" in str(refused.value)
        return str(refused.value)

    def test_one_article_for_each_pool(self, site: Site) -> None:
        log = replace(site.log, position=np.zeros(len(site.log), np.uint16))
        assert "each pool always shows the same article" in self.refused(log)

    def test_a_rule_by_the_user(self) -> None:
        random = np.random.default_rng(0)
        women = random.random(3_000) < 0.4
        log = ts.EventLog.from_arrays(
            np.column_stack([women, np.ones(3_000)]),
            [["a", "b"]],
            np.zeros(3_000, int),
            np.where(women, "a", "b"),
            random.random(3_000) < 0.1,
        )
        assert "can be foretold from user, pool and time" in self.refused(log)

    def test_an_editor_who_switches_every_few_minutes(self) -> None:
        turn = np.arange(6_000) // 50
        shown = np.random.default_rng(0).integers(3, size=turn.max() + 1)[turn]
        log = ts.EventLog.from_arrays(
            np.ones((6_000, 1)),
            [["a", "b", "c"]],
            np.zeros(6_000, int),
            np.array(["a", "b", "c"])[shown],
            np.zeros(6_000),
            timestamps=1_241_136_000 + np.arange(6_000) * 10,
        )
        assert "somebody switches" in self.refused(log)


class TestTheMark:
    def test_it_stays_with_the_log(
        self, estimate: ts.evaluation.PropensityEstimate, tmp_path: Path
    ) -> None:
        log, mark = estimate.log, estimate.log.propensity_estimate
        assert mark is not None
        log.write(tmp_path / "log")
        assert json.loads((tmp_path / "log/log.json").read_text())["propensity_estimate"] == mark
        again = ts.EventLog.read(tmp_path / "log")
        np.testing.assert_array_equal(again.propensity, log.propensity)
        plain = replace(log, recorded_propensity=None, propensity_estimate=None)
        folder = tmp_path / "appended"
        folder.mkdir()
        with Appender(folder) as appender:
            appender.append(plain[:10])
            appender.append(log[10:20])
            appender.finish()
        kept = (again, log[5:9], log[log.payoff > 0], ts.EventLog.read(folder))
        for each in (*kept, ts.EventLog.concat([plain, log]), log.split(0.5)[1]):
            assert each.propensity_estimate == mark
        assert plain.propensity_estimate is None

    def test_a_log_without_it_was_not_estimated(self) -> None:
        old = Path(__file__).parents[2] / "events/folder/written-by-version-1"
        folders = [path.parent for path in old.rglob("log.json")]
        assert folders
        assert all(ts.EventLog.read(path).propensity_estimate is None for path in folders)

    def test_every_result_says_so(self, estimate: ts.evaluation.PropensityEstimate) -> None:
        log, policy = estimate.log[:2_000], ts.policy("egreedy-disjoint", epsilon=0.1)
        with pytest.warns(ts.EstimatedPropensityWarning):
            ts.dr_ns(policy, log)
        with (
            pytest.warns(ts.EstimatedPropensityWarning),
            pytest.warns(ts.NotUniformWarning, match="rejection sampling keeps only"),
        ):
            ts.replay(policy, log)
        with pytest.warns(ts.EstimatedPropensityWarning):
            ts.train(ts.policy("egreedy"), log, weights="propensity", held_out=0)
        with pytest.warns(ts.EstimatedPropensityWarning):
            found = ts.choose(log, policies=["egreedy"])
        assert "they were estimated" in found.why
        said = ts.inspect(log)
        assert said.propensity_estimate == log.propensity_estimate
        assert any("estimated, not recorded" in each for each in said.verdict)


def test_recorded_propensities_are_not_replaced_unasked(site: Site) -> None:
    log = replace(site.log, recorded_propensity=site.true.astype(np.float32))
    with pytest.raises(ValueError, match="better than any estimate"):
        ts.estimate_propensities(log)
    found = ts.estimate_propensities(log[:600], method="counts", replace_recorded=True)
    assert found.log.propensity_estimate is not None


@pytest.mark.parametrize(
    ("given", "wrong"),
    [({"method": "magic"}, "method must be"), ({"folds": 1}, "folds must be from 2")],
)
def test_bad_arguments_are_named(given: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        ts.estimate_propensities(Site(300).log, **given)  # type: ignore[arg-type]


def test_a_short_log_is_refused() -> None:
    with pytest.raises(ValueError, match="estimating takes 200"):
        ts.estimate_propensities(Site(100).log)


@pytest.mark.parametrize("contexts", [False, True])
@pytest.mark.parametrize("times", [False, True])
def test_a_log_shown_uniformly_left_much_to_chance(contexts: bool, times: bool) -> None:
    """All chances may be estimated as exactly alike: then the likeliest is one of three."""
    random = np.random.default_rng(0)
    kinds = random.random((6_000, 1)) < 0.5 if contexts else np.zeros((6_000, 0))
    log = ts.EventLog.from_arrays(
        np.column_stack([kinds, np.ones(6_000)]),
        [["a", "b", "c"]],
        np.zeros(6_000, int),
        random.choice(["a", "b", "c"], 6_000),
        random.random(6_000) < 0.1,
        timestamps=np.arange(6_000) * 60 if times else None,
    )
    found = ts.estimate_propensities(log)
    assert found.surprises == pytest.approx(2 / 3, abs=0.05)
    assert found.log.recorded_propensity is not None
    np.testing.assert_allclose(found.log.recorded_propensity, 1 / 3, atol=0.05)
