"""The rate of rejection sampling, and the bias of capping a few events."""

import numpy as np
import pytest

from topstory.events import EventLog
from topstory.events.quality import rejection as rules
from topstory.events.quality.rejection import Rejection, rejection, survivors

POOL = [f"a{i}" for i in range(4)]


def logged(propensities: list[float], events: int, seed: int) -> EventLog:
    """A log whose four articles are shown with these probabilities, honestly recorded."""
    random = np.random.default_rng(seed)
    shown = random.choice(4, events, p=propensities)
    return EventLog.from_arrays(
        np.ones((events, 1)),
        [POOL],
        np.zeros(events, int),
        np.array(POOL)[shown],
        random.random(events) < 0.1,
        propensity=np.array(propensities)[shown],
    )


def found_in(log: EventLog) -> Rejection:
    found = rejection(log)
    assert found is not None
    return found


def plainly(log: EventLog) -> tuple[float, int]:
    """The rule, transcribed: try every number of capped events."""
    ratio = np.sort(4 * log.propensity.astype(float))
    most = max(len(log) // 1000, 1 if len(log) >= 100 else 0)

    def left(rate: float) -> float:
        return float(np.minimum(1, rate / ratio).sum())

    rates = ratio[: most + 1]
    allowed = [r for r in rates if r == rates[0] or (1 / np.maximum(ratio, r)).mean() >= 0.95]
    enough = max(map(left, allowed)) / 2
    rate = next(rate for rate in rates if left(rate) >= enough)
    return float(rate), int((ratio < rate).sum())


def test_a_uniform_log_has_none() -> None:
    assert rejection(logged([0.25] * 4, 100, 0)) is None
    assert rejection(EventLog.from_arrays(np.empty((0, 1)), [], [], [], [])) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_the_rule_is_its_plain_transcription(
    seed: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(seed)
    events = int(random.choice([1, 50, 99, 100, 3000]))
    log = logged([0.4, 0.3, 0.2, 0.1], events, seed)
    recorded = np.exp(-random.exponential(3, events)).clip(1e-6, 1)
    recorded[random.integers(events, size=2)] *= 10.0 ** -random.integers(0, 6)
    log = EventLog.from_arrays(
        log.users, log.pools, log.pool, log.shown, log.payoff, propensity=recorded
    )
    monkeypatch.setattr(
        rules, "blocks", lambda n: ((i, min(i + block, n)) for i in range(0, n, block))
    )
    found = found_in(log)
    assert (found.rate, found.capped) == plainly(log)
    ratio = 4 * log.propensity.astype(float)
    assert found.survivors == pytest.approx(np.minimum(1, found.rate / ratio).sum())
    assert found.mean_weight == pytest.approx(np.minimum(1 / ratio, 1 / found.rate).mean())


def test_where_no_propensity_is_an_outlier_nothing_is_capped() -> None:
    for propensities in ([0.7, 0.1, 0.1, 0.1], [0.94, 0.02, 0.02, 0.02], [0.4, 0.3, 0.2, 0.1]):
        found = found_in(logged(propensities, 5000, 1))
        assert found.capped == 0
        assert found.rate == pytest.approx(4 * min(propensities))
        assert found.missing == found.bias_bound == 0


def test_an_article_that_is_rarely_shown_is_no_outlier() -> None:
    """Capping it would leave many survivors, and almost none of it among them."""
    found = found_in(logged([0.999 / 3] * 3 + [0.001], 20_000, 1))
    assert found.capped == 0
    assert found.rate == pytest.approx(0.004)


def test_honest_propensities_are_called_honest_but_once_in_a_thousand() -> None:
    # Stated error rate 0.001 a log: more than 3 of 400 has a probability below 0.001, even where
    # the rarest article is expected ten times a log only.
    for propensities in ([0.7, 0.1, 0.1, 0.1], [0.98, 0.01, 0.005, 0.005]):
        logs = (logged(propensities, 2000, seed) for seed in range(400))
        assert sum(not found_in(log).honest for log in logs) <= 3


@pytest.mark.parametrize("wrong", [[0.25, 0.25, 0.25, 0.2], [0.1] * 4, [0.9] * 4])
def test_wrong_propensities_are_found(wrong: list[float]) -> None:
    random = np.random.default_rng(0)
    shown = random.choice(4, 4000, p=[0.1, 0.2, 0.3, 0.4])
    log = EventLog.from_arrays(
        np.ones((4000, 1)),
        [POOL],
        np.zeros(4000, int),
        np.array(POOL)[shown],
        np.zeros(4000),
        propensity=np.array(wrong)[shown],
    )
    assert not found_in(log).honest


def test_the_bias_of_capping_stays_below_its_bound() -> None:
    """The rare article pays 1, all others 0: capping it takes away as much as it can."""
    random = np.random.default_rng(0)
    capped = exceeded = 0
    for _ in range(100):
        # Article 3 is shown with p = 0.02 to most users, and 0.002 to the rest.
        rare = np.where(random.random(20_000) < 0.97, 0.02, 0.002)
        last = random.random(20_000) < rare
        shown = np.where(last, 3, random.integers(3, size=20_000))
        log = EventLog.from_arrays(
            np.ones((20_000, 1)),
            [POOL],
            np.zeros(20_000, int),
            np.array(POOL)[shown],
            shown == 3,
            propensity=np.where(last, rare, (1 - rare) / 3),
        )
        found = found_in(log)
        capped += bool(found.capped)
        ratio = 4 * log.propensity.astype(float)
        kept = np.minimum(1, found.rate / ratio)
        share = float((kept * log.payoff).sum() / kept.sum())  # of uniform traffic it is 1/4
        exceeded += bool(found.capped) and 0.25 - share > found.missing
    assert capped > 50
    assert exceeded <= 12  # a 95 % limit: more than 12 of 100 has a probability below 0.002


def test_one_draw_of_survivors_is_uniform() -> None:
    log = logged([0.7, 0.1, 0.1, 0.1], 20_000, 2)
    found = found_in(log)
    keep = survivors(log, found.rate)
    assert keep.sum() == pytest.approx(found.survivors, rel=0.05)
    assert log.uniformity(keep).p_value > 0.001
    assert log.uniformity().p_value < 1e-9
