"""Where the logs of a study come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from topstory.engines import Engine
from topstory.evaluation.replays.truth import ExpectedPayoffs
from topstory.evaluation.replays.warm_start import MIN_EVENTS, split_first_tenth, warm_offset
from topstory.events import EventLog
from topstory.models.priors import Prior, fit_prior
from topstory.models.priors.fit import MIN_ARTICLES
from topstory.studies.logs.features import (
    DEFAULT_SUPPORT,
    Support,
    fit_or_load,
    new_builder,
    parameters_text,
    support_options,
)
from topstory.studies.logs.summaries import EXPLORATION, FEATURE_MODEL, fingerprint
from topstory.studies.settings import LEARNERS, STUDIED

if TYPE_CHECKING:
    from topstory.features import FeatureBuilder

FIRST_TENTH = "the tuning log's first tenth"


@dataclass(frozen=True)
class Logs:
    """The log to tune on, the log to evaluate on, and the exploration before both."""

    tuning: EventLog
    evaluation: EventLog
    exploration: EventLog | None
    expected: ExpectedPayoffs | None = None  # of the evaluation log, if a simulator knows them

    def offset(self, log: EventLog) -> Mapping[str, Any]:
        """The offsets of warm policies for the articles of a log."""
        assert self.exploration is not None
        return warm_offset(self.exploration, log)

    @cached_property
    def prior(self) -> Prior:
        """What the exploration teaches policies with a prior."""
        assert self.exploration is not None
        return fit_prior(self.exploration)


class LogSource(Protocol):
    """Logs that may take a while to make. They are made only if a run is missing."""

    @property
    def identities(self) -> dict[str, str]:
        """Texts that differ if the logs differ, by role."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options that name them on the command line."""

    @property
    def logs(self) -> Logs:
        """The logs, made on first use."""


@dataclass(frozen=True)
class OwnLogs:
    """Logs that the user gives.

    Args:
        tuning: the log to tune on.
        evaluation: the log to evaluate on.
        exploration: the log to fit the offsets of warm policies on. Without it they are fitted on
            the first tenth of the tuning log, and the rest is tuned on. If all three logs are raw,
            features are learned from it too.
        folder: the folder of the study, which keeps the features.
        engine: the engine that features are fitted on.
        seed: the seed of their fit.
        support: their minimum support; None for the paper's. Only for raw logs.
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
        raw = [role for role, log in given.items() if is_raw(log)]
        for role, log in given.items():
            if not len(log):
                raise ValueError(f"the {role} log has no events")
        if raw:
            _check_raw(raw, list(given))
        elif self.support is not None:
            raise ValueError(
                f"support {self.support!r} applies only to features learned from raw logs, and "
                "these logs have contexts; leave it out"
            )
        for role, log in given.items():
            if log.dimension != self.tuning.dimension:
                raise ValueError(
                    f"the {role} log's contexts have {log.dimension} features, and the tuning "
                    f"log's {self.tuning.dimension}; all logs of a study need the same"
                )
            if not raw and _features(log) != _features(self.tuning):
                raise ValueError(
                    f"the {role} log's articles have {_features(log)} features, and the tuning "
                    f"log's {_features(self.tuning)}; all logs of a study need the same"
                )
        for role in ("tuning", EXPLORATION):
            if self.identities[role] == self.identities["evaluation"]:
                raise ValueError(
                    f"the {role} log and the evaluation log are the same; evaluate on events that "
                    "no choice has seen: give a log of another time, or split this one by time "
                    "(EventLog.between)"
                )

    @cached_property
    def identities(self) -> dict[str, str]:
        """Hashes of the logs, and the parameters of the features if the logs are raw."""
        hashes = {"tuning": fingerprint(self.tuning), "evaluation": fingerprint(self.evaluation)}
        explored = FIRST_TENTH if self.exploration is None else fingerprint(self.exploration)
        model = {FEATURE_MODEL: parameters_text(self._builder)} if is_raw(self.tuning) else {}
        return {**hashes, EXPLORATION: explored, **model}

    @property
    def options(self) -> tuple[str, ...]:
        """With placeholders in capitals, since the paths of the logs are not known here."""
        explored = () if self.exploration is None else ("--exploration", "EXPLORATION")
        support = () if self.support is None else support_options(self.support)
        return ("--tuning", "TUNING", "--evaluation", "EVALUATION", *explored, *support)

    @cached_property
    def logs(self) -> Logs:
        """With features, if they are raw; with the tuning log split, if there is no exploration."""
        if self.exploration is not None:
            if is_raw(self.exploration):
                return self._featured(self.exploration)
            return Logs(self.tuning, self.evaluation, self.exploration)
        exploration, tuning = split_first_tenth(self.tuning)
        return Logs(tuning, self.evaluation, exploration if len(exploration) else None)

    @property
    def _builder(self) -> FeatureBuilder:
        minimum = DEFAULT_SUPPORT if self.support is None else self.support
        return new_builder(self.engine, self.seed, minimum)

    def _featured(self, exploration: EventLog) -> Logs:
        model = fit_or_load(self._builder, exploration, self.folder)
        return Logs(
            model.apply(self.tuning), model.apply(self.evaluation), model.apply(exploration)
        )


def check_exploration(tuning: EventLog, exploration: EventLog | None) -> None:
    """Raise if the offsets of warm policies need a first tenth, and the tuning log is too short."""
    if exploration is None and 0 < len(tuning) < MIN_EVENTS:
        raise ValueError(
            f"the tuning log's {len(tuning)} events are too few to fit the offsets of "
            "warm policies, or priors, on a tenth of them; give an exploration log, a longer "
            "tuning log, or policies that are not warm and have no prior"
        )


def default_policies(tuning: EventLog, exploration: EventLog | None) -> tuple[str, ...]:
    """What a study compares: with priors, if there are two articles to learn one from."""
    taught = split_first_tenth(tuning)[0] if exploration is None else exploration
    shown = np.unique(taught.shown_index)
    return STUDIED if len(shown) >= MIN_ARTICLES else LEARNERS


def is_raw(log: EventLog) -> bool:
    """Whether its features are still to be made. A log with contexts is used as it is."""
    return log.profiles is not None and log.dimension == 1


def _check_raw(raw: list[str], given: list[str]) -> None:
    if EXPLORATION not in given:
        raise ValueError(
            f"{_listed(raw)} raw, and features are learned from a raw log of random exploration; "
            "give one with --exploration, or make features first (topstory features fit, topstory "
            "features apply)"
        )
    if len(raw) < len(given):
        others = [role for role in given if role not in raw]
        raise ValueError(
            f"{_listed(raw)} raw, and {_listed(others)} not; a study learns features for all of "
            "its logs or for none. Give only raw logs, or make features first (topstory features "
            "apply)"
        )


def _listed(roles: list[str]) -> str:
    """The subject and verb of a sentence about some logs.

    >>> _listed(["tuning"]), _listed(["tuning", "evaluation"])
    ('the tuning log is', 'the tuning and the evaluation log are')
    """
    return f"the {' and the '.join(roles)} log {'is' if len(roles) == 1 else 'are'}"


def _features(log: EventLog) -> int | str:
    return "no" if log.features is None else log.features.shape[1]
