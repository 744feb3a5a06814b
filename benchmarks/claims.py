"""How often a study is right: many small studies of made-up worlds whose truth is known.

In three kinds of worlds: nothing differs; articles differ but users do not; users differ. Counted
are differences claimed where there is none, sure differences with the wrong sign, how often the
interval of the recommended policy covers its true value, and what the chosen parameters lose. The
true value of a policy is over learning paths: its mean over other logs of the same world.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from benchmarks.measuring import say
from benchmarks.tables import Section, Table
from topstory.engines import engine
from topstory.evaluation import Run, mean_lift, mean_relative_ctr, play_all
from topstory.evaluation.replays.truth import ExpectedPayoffs
from topstory.evaluation.uncertainty.run_errors import RANDOM
from topstory.events import EventLog
from topstory.studies import Study, study
from topstory.studies.plan import tuning_runs
from topstory.studies.report.candidates import (
    DEPLOYMENT,
    LEARNING,
    OMNISCIENT,
    Candidates,
    Key,
    best,
    without_luck,
)

Floats = npt.NDArray[np.float64]

KINDS = {
    "equal": "nothing differs",
    "articles": "articles differ",
    "users": "users differ too",
}
WAYS = ("one by one", "study")
POLICIES = ("egreedy", "ucb", "ucb-seg", "egreedy-disjoint", "linucb-disjoint")
SIZES = (1.0, 0.2)
EPSILONS, ALPHAS = (0.05, 0.1, 0.2, 0.4), (0.1, 0.25, 0.5, 1.0)
ARTICLES, GROUPS, CTR = 6, 3, 0.1
TUNING, EVALUATION = 10_000, 30_000  # events
MOST_CLAIMED, MOST_WRONG, LEAST_COVERED, MOST_LOST = 0.05, 0.025, 0.92, 0.03  # targets


@dataclass(frozen=True)
class SmallWorld:
    """Users of three groups, six articles, and the chance of a click of each pair."""

    kind: str
    seed: int

    @cached_property
    def chances(self) -> Floats:
        """(groups, articles)."""
        random = np.random.default_rng([self.seed, list(KINDS).index(self.kind)])
        odds = np.zeros((GROUPS, ARTICLES))
        if self.kind != "equal":
            odds += random.normal(0, 0.35, ARTICLES)
        if self.kind == "users":
            odds += random.normal(0, 0.5, (GROUPS, ARTICLES))
        return np.asarray(CTR * np.exp(odds) / np.exp(odds).mean())

    def log(self, events: int, seed: int) -> tuple[EventLog, ExpectedPayoffs]:
        """A log of articles shown at random, and what its events pay on average."""
        random = np.random.default_rng([self.seed, list(KINDS).index(self.kind), seed])
        members = random.dirichlet([0.3] * GROUPS, events)
        shown = random.integers(ARTICLES, size=events)
        expected = (members * self.chances[:, shown].T).sum(axis=1)
        names = np.array([f"article-{number}" for number in range(ARTICLES)])
        log = EventLog.from_arrays(
            np.column_stack([members, np.ones(events)]),
            [list(names)],
            np.zeros(events, int),
            names[shown],
            random.random(events) < expected,
        )
        return log, ExpectedPayoffs.of(expected, log)

    def study(self, number: int) -> Study:
        """A small study: other logs for every number."""
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # articles have no features: no policy here uses them
            return study(
                Path(folder) / "out",
                tuning=self.log(TUNING, 2 * number)[0],
                evaluation=self.log(EVALUATION, 2 * number + 1)[0],
                policies=POLICIES,
                sizes=SIZES,
                epsilons=EPSILONS,
                alphas=ALPHAS,
                seed=7 * number,
                engine="serial",
            )

    def truths(self, found: Study, paths: int) -> dict[Run, dict[str, Floats]]:
        """The true relative CTRs of every policy, size and parameter on other logs: (paths,)."""
        wanted = [run for run in tuning_runs(found.settings) if run.policy in POLICIES]
        if self.kind == "equal":  # whatever is shown pays the same
            same = dict.fromkeys((DEPLOYMENT, LEARNING), np.ones(2))
            return {Run(r.policy, r.parameters, r.size, 0): same for r in wanted}
        values: dict[Run, dict[str, list[float]]] = {}
        for path in range(paths):
            log, expected = self.log(EVALUATION, 1_000_000 + path)
            runs = [Run(r.policy, r.parameters, r.size, 1_000 + path) for r in wanted]
            for outcome in play_all(runs, log, engine("serial"), expected=expected):
                assert outcome.truth is not None
                key = Run(outcome.run.policy, outcome.run.parameters, outcome.run.size, 0)
                for bucket, true in outcome.truth.items():
                    values.setdefault(key, {}).setdefault(bucket, []).append(true or math.nan)
        return {
            run: {bucket: np.array(each) for bucket, each in by_bucket.items()}
            for run, by_bucket in values.items()
        }


@dataclass
class Counted:
    """What one way of claiming got right, over all studies of a kind."""

    studies: int = 0
    claiming: int = 0  # studies with a sure difference
    sure: int = 0
    wrong: int = 0  # sure differences of the wrong sign
    covered: int = 0  # studies whose interval of the best covers its true value
    surplus: float = 0.0  # of the best's reported over its true value
    lost: float = 0.0  # by the chosen parameters, summed over choices
    choices: int = 0


def run(quick: bool) -> Section:
    """Count."""
    worlds, studies, paths = (2, 2, 6) if quick else (8, 9, 40)
    counts = {kind: count(kind, worlds, studies, paths) for kind in KINDS}
    rows = [
        (f"{words}: {label}", *(measure(counts[kind][way]) for way in WAYS), target)
        for label, measure, target in MEASURES
        for kind, words in KINDS.items()
        if measure is not _claimed or kind == "equal"
        if measure is _claimed or measure is _covered or kind != "equal"
    ]
    total = worlds * studies
    covered = sum(ways["study"].covered for ways in counts.values())
    return Section(
        [
            Table(
                f"{len(KINDS) * total} small studies of worlds whose truth is known",
                ("", "one path, one by one, largest point", "as the study says", "target"),
                rows,
            )
        ],
        {kind: {way: vars(each) for way, each in ways.items()} for kind, ways in counts.items()},
        [
            f"{worlds} worlds of each kind, {studies} studies of each, {TUNING:,} events to tune "
            f"on and {EVALUATION:,} to evaluate on, {len(POLICIES)} policies at {len(SIZES)} data "
            f"sizes. True values are means over {paths} other logs and seeds.",
            f"Over all kinds, the study's interval covers in {covered} of {len(KINDS) * total} "
            f"studies ({covered / (len(KINDS) * total):.1%}).",
        ],
    )


def count(kind: str, worlds: int, studies: int, paths: int) -> dict[str, Counted]:
    """Run the studies of one kind of world, and count by both ways of claiming."""
    ways = {way: Counted() for way in WAYS}
    for seed in range(worlds):
        world = SmallWorld(kind, seed)
        say(f"claims: {kind}, world {seed}")
        truths: dict[Run, dict[str, Floats]] = {}
        for number in range(studies):
            found = world.study(number)
            truths = truths or world.truths(found, paths)
            _count_study(found, truths, ways)
    return ways


def _count_study(
    found: Study, truths: Mapping[Run, Mapping[str, Floats]], ways: Mapping[str, Counted]
) -> None:
    candidates = Candidates.of(found)
    truth = {
        (policy, size, bucket): float(
            truths[Run.of(policy, each.parameters, size, 0)][bucket].mean()
        )
        for (policy, size), each in candidates.tuned.items()
        for bucket in (DEPLOYMENT, LEARNING)
    }
    all_data = candidates.at(max(SIZES))
    for way, counted in ways.items():
        counted.studies += 1
        signs = dict(_signs(candidates, way))
        counted.claiming += bool(signs)
        counted.sure += len(signs)
        counted.wrong += sum(
            sign * math.log(truth[ours] / (1.0 if theirs is RANDOM else truth[theirs])) < 0
            for (ours, theirs), sign in signs.items()
        )
        if way == "study":
            top = candidates.advised()
            number = without_luck(all_data)[top]
            value, low, high = number.value, number.low, number.high
        else:
            top = best(all_data)
            value, (low, high) = mean_relative_ctr(top.buckets[DEPLOYMENT][:1])
        true = truth[top.key(DEPLOYMENT)]
        counted.covered += (low or math.nan) <= true <= (high or math.nan)
        counted.surplus += (value or math.nan) / true - 1
        for lost in _losses(found, truths, way):
            counted.lost += lost
            counted.choices += 1


def _signs(candidates: Candidates, way: str) -> Iterator[tuple[tuple[Key, Key | None], int]]:
    """The differences that are called sure, and their signs."""
    any_candidate = next(iter(candidates.tuned.values()))
    for pair, claim in any_candidate.claims.items():
        ours, theirs = pair
        if theirs is not RANDOM and theirs[0] == OMNISCIENT:
            continue
        sure, value = claim.sure, claim.value
        if way == "one by one":  # of the first path alone
            buckets = candidates.tuned[ours[:2]].buckets[ours[2]][:1]
            if theirs is RANDOM:
                value, (low, high) = mean_relative_ctr(buckets)
                value, low, high = value - 1, low - 1, high - 1
            else:
                other = candidates.tuned[theirs[:2]].buckets[theirs[2]][:1]
                value, (low, high) = mean_lift(buckets, other)
            sure = low > 0 or high < 0
        if sure:
            yield pair, 1 if value > 0 else -1


def _losses(found: Study, truths: Mapping[Run, Mapping[str, Floats]], way: str) -> Iterator[float]:
    """What each choice of parameters loses in relative CTR: half of the paths say which is best."""
    share = found.settings.learning_share
    for policy in POLICIES:
        for size in SIZES:
            totals = {
                run: share * each[LEARNING] + (1 - share) * each[DEPLOYMENT]
                for run, each in truths.items()
                if (run.policy, run.size) == (policy, size)
            }
            half = len(next(iter(totals.values()))) // 2
            top = max(totals, key=lambda run: totals[run][:half].mean())
            if way == "study":
                parameters = found.chosen(policy, size)
            else:
                points = [
                    point
                    for point in found.tunings[policy].curve(size)
                    if "ridge" not in point.parameters
                ]
                parameters = max(points, key=lambda point: point.deployment.value).parameters
            chosen = totals[Run.of(policy, parameters, size, 0)]
            yield float(totals[top][half:].mean() - chosen[half:].mean())


def _claimed(counted: Counted) -> str:
    return f"{counted.claiming / counted.studies:.1%}"


def _wrong(counted: Counted) -> str:
    return f"{counted.wrong / max(1, counted.sure):.1%} of {counted.sure:,}"


def _covered(counted: Counted) -> str:
    return f"{counted.covered / counted.studies:.1%}"


def _surplus(counted: Counted) -> str:
    return f"{counted.surplus / counted.studies:+.1%}"


def _lost(counted: Counted) -> str:
    return f"{counted.lost / max(1, counted.choices):.4f}"


MEASURES: tuple[tuple[str, Callable[[Counted], str], str], ...] = (
    ("a difference is claimed", _claimed, f"≤ {MOST_CLAIMED:.0%}"),
    ("of the sure differences, the wrong sign", _wrong, f"≤ {MOST_WRONG:.1%}"),
    ("the best's interval covers its true value", _covered, f"≥ {LEAST_COVERED:.0%}"),
    ("the best's CTR, above its true one", _surplus, ""),
    ("relative CTR lost by the chosen parameters", _lost, f"≤ {MOST_LOST}"),
)
