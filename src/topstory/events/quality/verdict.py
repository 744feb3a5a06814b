"""Which method of evaluation a log is fit for, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from topstory.events.quality.checks import THINNED, Check, randomness_checks
from topstory.events.quality.independence import evenly_spaced
from topstory.events.quality.rejection import MAX_MISSING, Rejection, rejection, survivors
from topstory.events.quality.uniformity import Uniformity

if TYPE_CHECKING:
    from topstory.events.log import EventLog

MAX_UNRECORDED = 0.01  # events without a propensity, among events that have one
MAX_SURVIVORS = 1_000_000  # whose randomness is tested, of more evenly spaced ones
MAX_VAGUE = 1.0  # width of the interval of the mean weight, beyond which it says little
MIN_MATCHES = 100  # survivors that show a policy's choice: with fewer, intervals say nothing

# replay: articles were shown uniformly at random. rejection: they become so by rejection sampling.
# off-policy: propensities are right, but too uneven for it; estimators that weight events by them
# can use the log. none: what is recorded contradicts itself, or there is nothing.
Method = Literal["replay", "rejection", "off-policy", "none"]


class Verdict(msgspec.Struct, frozen=True):
    """What a log is fit for, why, and what else to know before trusting a replay."""

    method: Method
    sentences: tuple[str, ...]
    rejection: Rejection | None = None  # None: not needed
    survivor_uniformity: Uniformity | None = None  # the test, over one draw of survivors
    checks: tuple[Check, ...] = ()  # all tests; of the survivors, where events are rejected

    @property
    def fit(self) -> bool:
        """Whether `topstory replay` gives numbers to rely on."""
        return self.method in ("replay", "rejection")


def judge(log: EventLog, found: Uniformity) -> Verdict:
    """The verdict on a log, given its uniformity test.

    >>> from topstory.events import EventLog
    >>> shown = ["a"] * 500 + ["b"] * 500
    >>> log = EventLog.from_arrays(
    ...     np.ones((1000, 1)), [["a", "b"]], [0] * 1000, shown, np.arange(1000) % 2
    ... )
    >>> print(judge(log, log.uniformity()).sentences[0])
    Not fit for replay: what was shown is not uniformly random (sequence: ... repeat the article \
998 times where 500 are expected (p = ...
    """
    if not len(log):
        return Verdict("none", ("Not fit for replay: the log has no events.",))
    rejected = rejection(log)
    if rejected is None:
        checks = randomness_checks(log, found)
        method, reason = _of_uniform(log, checks)
        remarks = _remarks(log, found, checks, None)
        return Verdict(method, (reason, *remarks), None, None, checks)
    keep = survivors(log, rejected.rate)
    tested, rows = log.uniformity(keep), np.flatnonzero(keep)
    rows = rows[evenly_spaced(len(rows), MAX_SURVIVORS)]
    checks = randomness_checks(log[rows], tested)
    method, reason = _of_recorded(log, rejected, checks)
    if log.propensity_estimate is not None:
        reason = reason.replace("recorded", "estimated")
    remarks = _remarks(log, found, checks, rejected)
    return Verdict(method, (reason, *remarks), rejected, tested, checks)


def _of_uniform(log: EventLog, checks: tuple[Check, ...]) -> tuple[Method, str]:
    """A log whose propensities are 1/K, as recorded or as assumed."""
    tested = [check.adjusted_p for check in checks if check.adjusted_p is not None]
    if not tested:
        return "replay", (
            f"Whether articles were shown uniformly was not tested: {checks[0].text}; "
            "replay takes it on trust."
        )
    if failure := failure_text(checks):
        recorded = log.propensities_recorded
        return "none", (
            f"Not fit for replay: what was shown is not uniformly random{failure}. "
            + ("The recorded propensities are wrong. " if recorded else "")
            + "Replaying the log gives biased numbers. Record the probability of each choice, "
            "or log a share of the traffic with uniformly random choices. `topstory propensities` "
            "estimates what was not recorded."
        )
    tests = "the test" if len(tested) == 1 else f"{len(tested)} tests"
    return "replay", (
        "Fit for replay: articles were shown uniformly at random, as far as "
        f"{tests} can tell (p = {min(tested):.2g})."
    )


def failure_text(checks: tuple[Check, ...]) -> str:
    """What the failed tests found, as the end of a sentence; nothing if none failed."""
    failed = [check for check in checks if check.failed]
    told = [f"{check.name}: {check.text} (p = {check.adjusted_p:.2g})" for check in failed]
    return f" ({'; '.join(told)})" if told else ""


def _of_recorded(log: EventLog, found: Rejection, checks: tuple[Check, ...]) -> tuple[Method, str]:
    """A log whose recorded propensities are not uniform."""
    lacking = len(log) - log.propensities_recorded
    low, high = found.interval
    mean = f"the mean of 1/(K p) is {found.mean_weight:.3g} [{low:.3g}, {high:.3g}]"
    if lacking > MAX_UNRECORDED * len(log):
        return "none", (
            f"Not fit for replay: {lacking:,} of {len(log):,} events lack a propensity, where the "
            "others have one. They were taken to be uniform, which nothing says they are. Record "
            "the probability of each choice, or leave these events out."
        )
    if not found.honest:
        return "none", (
            f"Not fit for replay: with the recorded propensities p and pools of K articles {mean}, "
            "where right ones give 1. "
            + (
                "They are too small."
                if found.mean_weight > 1
                else "They are too large, or some articles were shown so rarely that the log has "
                "too few of them."
            )
        )
    if failure := failure_text(checks):
        return "none", (
            "Not fit for replay: rejection sampling by the recorded propensities leaves events "
            f"whose articles are not uniformly random, so the propensities are wrong{failure}."
        )
    left = f"{found.survivors:,.0f} of {len(log):,} events ({found.survivors / len(log):.2%})"
    matches = found.survivors * _match_chance(log)
    if matches < MIN_MATCHES or found.missing > MAX_MISSING:
        why = f"a policy's choices would match about {matches:,.0f} of them"
        if found.missing > MAX_MISSING:
            why = f"up to {found.missing:.1%} of uniform traffic is missing from them"
        agree = "agree with the log" if high - low < MAX_VAGUE else "are hardly tested by the log"
        return "off-policy", (
            f"Fit for off-policy estimators, not for replay: the recorded propensities {agree} "
            f"({mean}), {'but' if high - low < MAX_VAGUE else 'and'} rejection sampling leaves "
            f"{left}, and {why}. "
            "`topstory evaluate` and `topstory choose` weight events by their propensities; "
            "`topstory export obp` writes the log for other such estimators."
        )
    return "rejection", (
        "Fit for replay by rejection sampling: propensities are recorded and not uniform; "
        f"about {left} survive, and {mean}, as it should be."
    )


def _match_chance(log: EventLog) -> float:
    """The chance that a uniformly shown article is a policy's choice: the mean of 1/K."""
    events = np.bincount(log.pool, minlength=len(log.pool_sizes))
    return float((events / log.pool_sizes).sum() / len(log))


def _remarks(
    log: EventLog, found: Uniformity, checks: tuple[Check, ...], rejected: Rejection | None
) -> list[str]:
    remarks = [
        f"{check.text[0].upper()}{check.text[1:]}. Such events tell less than independent ones."
        for check in checks
        if THINNED in check.text and not check.failed
    ]
    if log.propensity_estimate is not None:
        remarks.append(
            f"The propensities were estimated, not recorded ({log.propensity_estimate}): they are "
            "right only if nothing else than user, pool and time decided what was shown."
        )
    lacking = len(log) - log.propensities_recorded
    if log.propensities_recorded and lacking:
        remarks.append(
            f"{_count(lacking, 'event lacks', 'events lack')} a propensity, "
            "taken to be 1 / the pool's size."
        )
    if rejected is not None and rejected.capped:
        remarks.append(
            f"{_count(rejected.capped, 'event has', 'events have')} a propensity far below all "
            "others. Rejection sampling keeps each of them once instead of rejecting nearly all "
            f"other events; that biases a CTR by at most {rejected.bias_bound:.2g}."
        )
    if log.recorded_propensity is None and found.standouts:
        worst = found.standouts[0]
        remarks.append(
            f"{_count(len(found.standouts), 'article stands', 'articles stand')} out; "
            f"most of all {worst.article!r}, shown {worst.shown:,} times where "
            f"{worst.expected:,.0f} were expected."
        )
    if found.never_shown:
        worst_case = found.never_shown[0]
        remarks.append(
            f"{_count(len(found.never_shown), 'article was', 'articles were')} never shown from "
            f"pools that list them: {worst_case.article!r} in {worst_case.events:,} events, say. "
            "In a change-over interval a pool may list what cannot be shown yet: "
            "take such articles out of those pools."
        )
    alone = len(log) - found.events
    if alone == len(log):
        remarks.append("Every pool holds a single article: there is nothing to choose.")
    elif alone:
        remarks.append(
            f"{_count(alone, 'event', 'events')} had a pool of a single article, "
            "which every policy gets right."
        )
    lowest, highest = float(log.payoff.min()), float(log.payoff.max())
    if lowest == highest:
        remarks.append(f"Every payoff is {lowest:g}: no policy can differ from another.")
    if log.times is None:
        remarks.append(
            "The log has no timestamps: intervals are computed over blocks of events, "
            "not of an hour."
        )
    return remarks


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
