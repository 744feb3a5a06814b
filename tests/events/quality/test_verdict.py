"""A log is called fit for a method only if it is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from topstory.events import EventLog, inspect
from topstory.events.formats.importing import import_log
from topstory.events.quality import verdict

TEN = [f"a{i}" for i in range(10)]


def shown_with(chances: Any, events: int = 10_000, recorded: Any = None, seed: int = 0) -> EventLog:
    """Articles of one pool shown with these chances, and recorded ones that may be others."""
    random = np.random.default_rng(seed)
    chances = np.asarray(chances)
    shown = random.choice(len(chances), events, p=chances)
    return EventLog.from_arrays(
        np.ones((events, 1)),
        [TEN[: len(chances)]],
        np.zeros(events, int),
        np.array(TEN)[shown],
        random.random(events) < 0.1,
        timestamps=np.arange(events),
        propensity=np.asarray(chances if recorded is None else recorded)[shown],
    )


def half_blank(folder: Path, biased: bool) -> EventLog:
    """A CSV log of which every second row has no propensity, imported."""
    random = np.random.default_rng(0)
    first = random.random(4000) < 0.8
    if not biased:  # the blank half is uniform in truth, but nothing says so
        first[1::2] = random.random(2000) < 0.5
    rows = [
        f"1,a|b,{'a' if a else 'b'},0,{'' if i % 2 else 0.8 if a else 0.2}"
        for i, a in enumerate(first.tolist())
    ]
    (folder / "log.csv").write_text("\n".join(["user_x,pool,shown,payoff,propensity", *rows]))
    import_log("csv", folder / "log.csv", folder / "log", constant="yes")
    return EventLog.read(folder / "log")


class TestFalseFits:
    @pytest.mark.parametrize(("rare", "events"), [(1e-4, 40_000), (1e-5, 300_000)])
    def test_of_a_log_that_rejection_sampling_empties(self, rare: float, events: int) -> None:
        """One of 1,000 events survives, or one of 10,000."""
        log = shown_with([1 - 9 * rare] + [rare] * 9, events)
        found = inspect(log)
        assert found.rejection is not None
        assert found.rejection.survivors == pytest.approx(10 * rare * events, rel=0.3)
        assert (found.method, found.fit) == ("off-policy", False)
        assert "rejection sampling leaves" in found.verdict[0]
        assert "export obp" in found.verdict[0]

    def test_propensities_that_the_log_cannot_show_are_not_said_to_agree_with_it(self) -> None:
        rare = inspect(shown_with([1 - 9e-4] + [1e-4] * 9, 10_000, seed=1))
        assert rare.method == "off-policy"
        assert "propensities are hardly tested by the log" in rare.verdict[0]
        uneven = inspect(
            shown_with([0.5, 0.2, 0.1, 0.1, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01], 4_000)
        )
        assert uneven.method == "off-policy"
        assert "propensities agree with the log" in uneven.verdict[0]

    def test_of_a_log_whose_propensities_are_too_small(self) -> None:
        found = inspect(shown_with([0.1] * 10, recorded=[0.1 / 9.3] * 10))
        assert (found.method, found.fit) == ("none", False)
        assert "the mean of 1/(K p) is 9.3 [9.3, 9.3], where right ones give 1" in found.verdict[0]

    def test_of_a_log_whose_propensities_are_too_large(self) -> None:
        found = inspect(shown_with([0.1] * 10, recorded=[0.15] * 10))
        assert (found.method, found.fit) == ("none", False)
        assert "They are too large, or some articles were shown so rarely" in found.verdict[0]

    @pytest.mark.parametrize("biased", [True, False])
    def test_of_a_log_of_which_half_the_rows_lack_propensities(
        self, tmp_path: Path, biased: bool
    ) -> None:
        found = inspect(half_blank(tmp_path, biased))
        assert found.propensities_recorded == 2000
        assert (found.method, found.fit) == ("none", False)
        assert "2,000 of 4,000 events lack a propensity" in found.verdict[0]

    def test_of_a_log_whose_survivors_are_not_uniform(self) -> None:
        """The two propensities are exchanged: the mean weight is right, by construction."""
        chances = np.array([0.4, 0.3, 0.2, 0.1])
        wrong = np.array([0.4, 0.2, 0.3, 0.1])
        # 1 = sum chances / (4 wrong) needs the others to make up for it.
        wrong[0] = 0.4 / (4 - (0.3 / 0.2 + 0.2 / 0.3 + 1))
        found = inspect(shown_with(chances, events=40_000, recorded=wrong))
        assert found.rejection is not None
        assert found.rejection.honest
        assert (found.method, found.fit) == ("none", False)
        assert "leaves events whose articles are not uniformly random" in found.verdict[0]


class TestTrueFits:
    def test_honest_propensities_pass_in_all_but_one_of_a_thousand_logs(self) -> None:
        """Two tests of level 0.001: more than 3 of 200 has a probability below 0.001."""
        chances = np.linspace(1, 3, 10) / 20
        methods = [inspect(shown_with(chances, 4000, seed=seed)).method for seed in range(200)]
        assert 200 - methods.count("rejection") <= 3

    def test_a_few_rows_without_a_propensity_are_remarked_only(self, tmp_path: Path) -> None:
        log = shown_with([0.6, 0.4], 1000)
        part = EventLog.concat([log, shown_with([0.5, 0.5], 5)])
        assert part.propensities_recorded == 1005  # given, though uniform
        blank = EventLog.from_arrays(
            np.ones((5, 1)),
            [TEN[:2]],
            [0] * 5,
            ["a0", "a1", "a0", "a1", "a0"],
            [0] * 5,
            timestamps=np.arange(5),
        )
        both = EventLog.concat([log, blank])
        both.write(tmp_path / "log")
        for each in (both, EventLog.read(tmp_path / "log")):
            found = inspect(each)
            assert found.method == "rejection"
            assert "5 events lack a propensity, taken to be 1 / the pool's size." in found.verdict
            assert inspect(each[:1000]).propensities_recorded == 1000
            assert inspect(each[990:]).propensities_recorded == 10

    def test_uniform_propensities_count_as_recorded(self, tmp_path: Path) -> None:
        log = shown_with([0.1] * 10)
        log.write(tmp_path / "log")
        for each in (log, EventLog.read(tmp_path / "log"), log[:500]):
            found = inspect(each)
            assert found.propensities_recorded == len(each)
            assert found.method == "replay"

    def test_capped_events_are_remarked_with_a_bound(self) -> None:
        log = shown_with([0.6, 0.4], 4000)
        recorded = log.propensity.copy()
        recorded[17] = 1e-6
        found = inspect(
            EventLog.from_arrays(
                log.users, log.pools, log.pool, log.shown, log.payoff, propensity=recorded
            )
        )
        assert found.method == "rejection"
        assert "1 event has a propensity far below all others." in found.verdict[1]

    def test_too_few_matches_make_it_off_policy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        log = shown_with([0.6, 0.4], 400)
        assert inspect(log).method == "rejection"
        monkeypatch.setattr(verdict, "MIN_MATCHES", 200)
        found = inspect(log)
        assert found.method == "off-policy"
        assert "match about 1" in found.verdict[0]
