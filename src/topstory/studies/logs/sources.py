"""The logs of a study: where they come from, and what the warm policies know beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from topstory.engines import Engine
from topstory.evaluation.warm_start import FEWEST_EVENTS, split_first_tenth, warm_offset
from topstory.events import EventLog
from topstory.features import FeatureBuilder
from topstory.studies.logs.features import (
    SUPPORT,
    Support,
    builder,
    described,
    learned,
    support_options,
)
from topstory.studies.logs.summaries import EXPLORATION, FEATURE_MODEL, fingerprint

FIRST_TENTH = "the tuning log's first tenth"


@dataclass(frozen=True)
class Logs:
    """What is tuned on, what is judged on, and what was explored before either."""

    tuning: EventLog
    evaluation: EventLog
    exploration: EventLog | None

    def offset(self, log: EventLog) -> Mapping[str, Any]:
        """The warm policies' user-specific offsets for a log's articles."""
        assert self.exploration is not None
        return warm_offset(self.exploration, log)


class Source(Protocol):
    """Logs that may take a while to make: they are asked for only if there is a run to make."""

    @property
    def known_by(self) -> dict[str, str]:
        """What tells these logs from others, by role."""

    @property
    def options(self) -> tuple[str, ...]:
        """What names them on the command line."""

    @property
    def logs(self) -> Logs:
        """The logs, made once."""


@dataclass(frozen=True)
class OwnLogs:
    """Logs that someone else has recorded.

    Args:
        tuning: a log to choose parameters on.
        evaluation: another, to judge the policies on.
        exploration: a third for the warm policies' offsets; without it they are fitted on the
            tuning log's first tenth, and tuning is done on the rest. Where all three are raw, the
            features are learned from it too.
        folder: of the study, where features are kept.
        engine: what they are learned by.
        seed: of their fit.
        support: of their categories, None for the paper's; raw logs only.
    """

    tuning: EventLog
    evaluation: EventLog
    exploration: EventLog | None
    folder: Path
    engine: Engine
    seed: int
    support: Support | None = None

    def __post_init__(self) -> None:
        given = {"tuning": self.tuning, "evaluation": self.evaluation}
        if self.exploration is not None:
            given[EXPLORATION] = self.exploration
        raw = [role for role, log in given.items() if _raw(log)]
        for role, log in given.items():
            if not len(log):
                raise ValueError(f"the {role} log has no events")
        if raw:
            _check_raw(raw, list(given))
        elif self.support is not None:
            raise ValueError(
                f"support {self.support!r} is of features learned from raw logs, and these have "
                "contexts: leave it out"
            )
        for role, log in given.items():
            if log.dimension != self.tuning.dimension:
                raise ValueError(
                    f"the {role} log's contexts have {log.dimension} features, and the tuning "
                    f"log's {self.tuning.dimension}: a study needs the same for all"
                )
            if not raw and _features(log) != _features(self.tuning):
                raise ValueError(
                    f"the {role} log's articles have {_features(log)} features, and the tuning "
                    f"log's {_features(self.tuning)}: a study needs the same for all"
                )
        for role in ("tuning", EXPLORATION):
            if self.known_by[role] == self.known_by["evaluation"]:
                raise ValueError(
                    f"the {role} log and the evaluation log are the same: policies are judged on "
                    "events that no choice has seen; give a log of another time, or split this "
                    "one by time (EventLog.between)"
                )

    @cached_property
    def known_by(self) -> dict[str, str]:
        """Their contents, and how features are made of them if they are raw."""
        known = {"tuning": fingerprint(self.tuning), "evaluation": fingerprint(self.evaluation)}
        explored = FIRST_TENTH if self.exploration is None else fingerprint(self.exploration)
        model = {FEATURE_MODEL: described(self._builder)} if _raw(self.tuning) else {}
        return {**known, EXPLORATION: explored, **model}

    @property
    def options(self) -> tuple[str, ...]:
        """With names in capitals: where a log lies is not known here."""
        explored = () if self.exploration is None else ("--exploration", "EXPLORATION")
        support = () if self.support is None else support_options(self.support)
        return ("--tuning", "TUNING", "--evaluation", "EVALUATION", *explored, *support)

    @cached_property
    def logs(self) -> Logs:
        """With features made of raw profiles, if they are raw; or with the tuning log split."""
        if self.exploration is not None:
            if _raw(self.exploration):
                return self._featured(self.exploration)
            return Logs(self.tuning, self.evaluation, self.exploration)
        exploration, tuning = split_first_tenth(self.tuning)
        return Logs(tuning, self.evaluation, exploration if len(exploration) else None)

    @property
    def _builder(self) -> FeatureBuilder:
        return builder(self.engine, self.seed, SUPPORT if self.support is None else self.support)

    def _featured(self, exploration: EventLog) -> Logs:
        model = learned(self._builder, exploration, self.folder)
        return Logs(*(model.apply(log) for log in (self.tuning, self.evaluation, exploration)))


def check_explored(tuning: EventLog, exploration: EventLog | None) -> None:
    """Refuse a tuning log without a first tenth, where that is to teach the warm policies."""
    if exploration is None and 0 < len(tuning) < FEWEST_EVENTS:
        raise ValueError(
            f"the tuning log's {len(tuning)} events are too few to fit the warm policies' offsets "
            "on a tenth of them: give an exploration log, a longer tuning log, or policies that "
            "are not warm"
        )


def _raw(log: EventLog) -> bool:
    """Whether its features are still to be made; a log with contexts is taken as it is."""
    return log.profiles is not None and log.dimension == 1


def _check_raw(raw: list[str], given: list[str]) -> None:
    if EXPLORATION not in given:
        raise ValueError(
            f"{_listed(raw)} raw: features are learned from the raw profiles of a log of random "
            "exploration; give one with --exploration, or make features first (topstory features "
            "fit, topstory features apply)"
        )
    if len(raw) < len(given):
        others = [role for role in given if role not in raw]
        raise ValueError(
            f"{_listed(raw)} raw, and {_listed(others)} not: a study learns features for all of "
            "its logs or for none; give all of them raw, or make features first (topstory "
            "features apply)"
        )


def _listed(roles: list[str]) -> str:
    """The logs, and whether they are one or several.

    >>> _listed(["tuning"]), _listed(["tuning", "evaluation"])
    ('the tuning log is', 'the tuning and the evaluation log are')
    """
    return f"the {' and the '.join(roles)} log {'is' if len(roles) == 1 else 'are'}"


def _features(log: EventLog) -> int | str:
    return "no" if log.features is None else log.features.shape[1]
