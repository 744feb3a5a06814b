"""The logs of a study: where they come from, and what the warm policies know beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from topstory.events import EventLog
from topstory.features.offset import fit_warm_offset
from topstory.studies.facts import fingerprint

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
        return fit_warm_offset(self.exploration).table(log.articles)


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
    """

    tuning: EventLog
    evaluation: EventLog
    exploration: EventLog | None = None

    def __post_init__(self) -> None:
        given = {"tuning": self.tuning, "evaluation": self.evaluation}
        if self.exploration is not None:
            given["exploration"] = self.exploration
        raw = {role for role, log in given.items() if log.profiles is not None}
        if raw and raw != {*given, "exploration"}:
            raise ValueError(
                f"features are made of raw profiles, by a log of random exploration, for all logs "
                f"or for none: here the {' and '.join(sorted(raw))} log has them, of "
                f"{', '.join(given)}"
            )
        for role, log in given.items():
            if not len(log):
                raise ValueError(f"the {role} log has no events")
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

    @cached_property
    def known_by(self) -> dict[str, str]:
        """Their contents."""
        known = {"tuning": fingerprint(self.tuning), "evaluation": fingerprint(self.evaluation)}
        explored = FIRST_TENTH if self.exploration is None else fingerprint(self.exploration)
        return {**known, "exploration": explored}

    @property
    def options(self) -> tuple[str, ...]:
        """With names in capitals: where a log lies is not known here."""
        explored = () if self.exploration is None else ("--exploration", "EXPLORATION")
        return ("--tuning", "TUNING", "--evaluation", "EVALUATION", *explored)

    @cached_property
    def logs(self) -> Logs:
        """With features made of raw profiles, if they are raw; or with the tuning log split."""
        if self.exploration is not None:
            if self.exploration.profiles is not None:
                return self._featured(self.exploration)
            return Logs(self.tuning, self.evaluation, self.exploration)
        tenth = len(self.tuning) // 10
        if not tenth:
            return Logs(self.tuning, self.evaluation, None)
        return Logs(self.tuning[tenth:], self.evaluation, self.tuning[:tenth])

    def _featured(self, exploration: EventLog) -> Logs:
        from topstory.features import FeatureBuilder

        builder = FeatureBuilder().fit(exploration)
        return Logs(*(builder.apply(log) for log in (self.tuning, self.evaluation, exploration)))


def _features(log: EventLog) -> int | str:
    return "no" if log.features is None else log.features.shape[1]
