"""Estimating the propensities that a log did not record.

Models of what was shown are fitted, with chances that change by the hour and with steady ones. The
one that best foretells what it has not seen is taken: each event's chances come from the folds that
it is not in. They are calibrated if that foretells better still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from topstory.evaluation.off_policy.propensities.calibration import (
    CalibrationBin,
    CalibrationTable,
    Curves,
)
from topstory.evaluation.off_policy.propensities.counts import CountedShares
from topstory.evaluation.off_policy.propensities.logistic import LogisticShares
from topstory.evaluation.off_policy.propensities.overlap import (
    ArticleOverlap,
    Overlap,
    log_pieces,
    shown_places,
)
from topstory.evaluation.off_policy.propensities.show_model import Parts, ShowModel, parts_of
from topstory.evaluation.off_policy.question import (
    NotAnswerable,
    check_choice,
)
from topstory.evaluation.replays.prepared_log import check_range
from topstory.events import EventLog
from topstory.events.quality.chance import SETTLED, no_chance
from topstory.kernels.compilation import Floats

AUTO = "auto"
METHODS: Mapping[str, Callable[[EventLog, Parts], ShowModel]] = {
    "logistic": LogisticShares,
    "counts": CountedShares,
}
FOLDS = 5
MIN_EVENTS = 200
RUNS = 4.0  # standard deviations
SWITCHED = 0.97  # of consecutive visits to a pool show the same: somebody switches, no chance
MIN_EFFECTIVE = 0.01

Progress = Callable[[str, float, float], object]


@dataclass(frozen=True)
class PropensityEstimate:
    """A log with estimated propensities, and how far they can be believed."""

    log: EventLog = field(repr=False)  # marked: log.propensity_estimate
    method: str
    calibrated: bool
    losses: Mapping[str, float]  # mean −ln p of what was shown, unseen, of all that were tried
    calibration: tuple[CalibrationBin, ...] = field(repr=False)
    calibration_error: float  # mean |said − shown|, as a share of what was shown
    articles: tuple[ArticleOverlap, ...] = field(repr=False)
    hardly_shown: float  # share of pairs of visit and article with a chance below 1 %
    surprises: float  # share of events that did not show the likeliest article
    effective_events: float  # for a policy that shows all articles alike
    cautions: tuple[str, ...]
    seconds: float = field(compare=False)


def estimate_propensities(
    log: EventLog,
    *,
    method: str = AUTO,
    folds: int = FOLDS,
    replace_recorded: bool = False,
    progress: Progress | None = None,
) -> PropensityEstimate:
    """Estimate with what probability a log showed its articles, given user, pool and time.

    The log that comes back is marked as estimated, and so is whatever is computed from it. An
    estimate cannot replace the record: it is right only if nothing else decided what was shown,
    that also decides what is clicked. `evaluate` says how wrong it may be.

    Args:
        log: without propensities.
        method: `logistic`: a multinomial regression over article, user and time; `counts`: shares
            within pool and hour, whoever came; `auto`: the one that foretells better.
        folds: an event's estimate comes from a model of the other folds.
        replace_recorded: estimate although the log recorded propensities.
        progress: called with (what is being done, steps done, steps in all), now and then.

    Raises:
        NotAnswerable: a ValueError, if nothing was left to chance, so nothing can be concluded.

    >>> import numpy as np, topstory as ts
    >>> random = np.random.default_rng(0)
    >>> sun = random.random(4000) < 0.2  # what the log shows: mostly rain
    >>> log = ts.EventLog.from_arrays(
    ...     np.ones((4000, 1)), [["rain", "sun"]], np.zeros(4000, int),
    ...     np.where(sun, "sun", "rain"), random.random(4000) < np.where(sun, 0.4, 0.1))
    >>> found = ts.estimate_propensities(log)
    >>> bool(abs(found.log.propensity[sun].mean() - 0.2) < 0.01)
    True
    """
    if method not in (AUTO, *METHODS):
        raise ValueError(f"method must be auto, {' or '.join(METHODS)}, got {method!r}")
    if not 2 <= folds <= 20:
        raise ValueError(f"folds must be from 2 to 20, got {folds!r}")
    if log.recorded_propensity is not None and not (replace_recorded or log.propensity_estimate):
        raise ValueError(
            "the log recorded its propensities, which are better than any estimate; to replace "
            "them all the same, say so (--replace, replace_recorded=True)"
        )
    check_choice(log)
    check_range(log)
    if len(log) < MIN_EVENTS:
        raise ValueError(f"the log has {len(log):,} events; estimating takes {MIN_EVENTS} or more")
    began = perf_counter()
    by_hour = parts_of(log, folds)
    steady = Parts(np.zeros(len(log), np.int32), 1, by_hour.fold, folds)
    names = list(METHODS) if method == AUTO else [method]
    options = [(name, by_hour) for name in names]
    options += [(name, steady) for name in names] if by_hour.blocks > 1 else []
    say = progress or (lambda *_: None)
    tried = []
    for number, (name, parts) in enumerate(options):
        say(f"estimating by {name}", number, len(options) + 1)
        tried.append(_Calibrated(log, parts, METHODS[name](log, parts)))
    best = min(tried, key=lambda each: each.loss)
    say("judging", len(options), len(options) + 1)
    found = best.read()
    _check_chance(found.overlap)
    say("judging", len(options) + 1, len(options) + 1)
    losses = {each.words: each.loss for each in tried}
    losses["uniform"] = float(np.log(log.pool_sizes[log.pool]).mean())
    return PropensityEstimate(
        log=replace(
            log,
            recorded_propensity=found.shown.astype(np.float32),
            recorded_count=None,
            propensity_estimate=best.words + (", calibrated" if best.calibrated else ""),
        ),
        method=best.model.name,
        calibrated=best.calibrated,
        losses=losses,
        calibration=found.table.bins(),
        calibration_error=found.table.error(),
        articles=found.overlap.articles(),
        hardly_shown=found.overlap.hardly_shown,
        surprises=found.overlap.surprises,
        effective_events=found.overlap.effective_events,
        cautions=tuple(_cautions(found.overlap, len(log))),
        seconds=perf_counter() - began,
    )


@dataclass(frozen=True)
class _Read:
    """What one pass over all pairs finds."""

    shown: Floats  # (n,) the chance of what was shown
    overlap: Overlap
    table: CalibrationTable


class _Calibrated:
    """A model with its calibration, if that foretells better."""

    def __init__(self, log: EventLog, parts: Parts, model: ShowModel) -> None:
        self.model, self._log, self._parts = model, log, parts
        self._curves = Curves(parts.folds)
        raw = 0.0
        for start, stop in log_pieces(log):
            begins, chances = model.all(start, stop)
            shown = shown_places(log, start, stop, begins, len(chances)) > 0
            self._curves.add(self._folds(start, stop), chances, shown)
            raw -= float(np.log(chances[shown]).sum())
        self._curves.finish()
        better = 0.0
        for start, stop in log_pieces(log):
            begins, chances = self._adjusted(start, stop)
            better -= float(np.log(chances[begins + log.position[start:stop]]).sum())
        self.calibrated = better < raw
        self.loss = min(better, raw) / len(log)

    @property
    def words(self) -> str:
        """How it estimates."""
        return self.model.words if self._parts.blocks > 1 else self.model.words_steady

    def read(self) -> _Read:
        """All chances once more."""
        log = self._log
        found, overlap, table = np.empty(len(log)), Overlap(log), CalibrationTable()
        for start, stop in log_pieces(log):
            read = self._adjusted if self.calibrated else self.model.all
            begins, chances = read(start, stop)
            found[start:stop] = chances[begins + log.position[start:stop]]
            overlap.add(start, begins, chances)
            table.add(chances, shown_places(log, start, stop, begins, len(chances)) > 0)
        return _Read(found, overlap, table)

    def _adjusted(self, start: int, stop: int) -> tuple[np.ndarray, Floats]:
        begins, chances = self.model.all(start, stop)
        return begins, self._curves.apply(self._folds(start, stop), chances, begins)

    def _folds(self, start: int, stop: int) -> np.ndarray:
        return np.repeat(
            self._parts.fold[start:stop], self._log.pool_sizes[self._log.pool[start:stop]]
        )


def _check_chance(overlap: Overlap) -> None:
    """NotAnswerable if what was shown could be foretold, or was switched."""
    if overlap.surprises < 1 - SETTLED:
        raise NotAnswerable(
            no_chance(
                f"what it shows can be foretold from user, pool and time in all but "
                f"{overlap.surprises:.2%} of visits"
            )
        )
    repeats, expected, excess = overlap.runs
    if repeats > SWITCHED and excess > RUNS and expected < repeats - 0.02:
        raise NotAnswerable(
            no_chance(
                f"{repeats:.1%} of visits show what the visit before showed, where chance alone "
                f"would repeat {expected:.1%}: somebody switches from one article to the next"
            )
        )


def _cautions(overlap: Overlap, events: int) -> list[str]:
    """Sentences, the most serious first."""
    found = []
    repeats, expected, excess = overlap.runs
    if excess > RUNS:
        found.append(
            f"{repeats:.1%} of visits show what the visit before showed, where chance alone would "
            f"repeat {expected:.1%}: something else than user, pool and hour decides, too"
        )
    if overlap.effective_events < MIN_EFFECTIVE * events:
        found.append(
            f"for a policy that shows all articles alike the log is worth "
            f"{overlap.effective_events:,.0f} of its {events:,} events: most articles were hardly "
            "ever shown to most visitors"
        )
    return found
