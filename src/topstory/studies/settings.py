"""The settings of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from topstory.evaluation.comparison import BASELINE
from topstory.evaluation.exploration import LEARNING_SHARE, check_learning_share
from topstory.evaluation.replays.run import BUCKETS, TOTAL
from topstory.evaluation.tuning.grids import SIZES, default_grid, parameter_name
from topstory.evaluation.uncertainty.paths import REPEATS, check_repeats
from topstory.policies.registry import PAPER, REGISTRY

REFERENCES = ("random", "omniscient")
LEARNERS = tuple(name for name in PAPER if REGISTRY[name].tuned)
# The paper's first, then some of its models that start from what the exploration taught.
STUDIED = (*LEARNERS, "ucb-prior", "linucb-disjoint-prior", "linucb-hybrid-prior")
TUNED = tuple(dict.fromkeys(each.tuned.name for each in REGISTRY.values() if each.tuned))
MAX_DELAY = 100_000  # minutes
SEARCHED_RIDGES = (10.0, 100.0)  # tried in addition to the paper's 1


class StudySettings(msgspec.Struct, frozen=True):
    """Together with the logs, these determine every run of a study.

    >>> StudySettings(policies=("ucb",)).grid("ucb")[:2]
    (0.03, 0.06)
    """

    policies: tuple[str, ...] = STUDIED  # those that learn; the references are always run too
    sizes: tuple[float, ...] = SIZES
    values: dict[str, tuple[float, ...]] = {}  # by parameter: what is tried instead of its grid
    scale: float = 1.0  # of the payoffs, which grids are for
    ridges: tuple[float, ...] = ()  # tried in addition to the paper's fixed 1
    repeats: int = REPEATS  # seeds on the evaluation log
    tune_on: str = TOTAL
    learning_share: float = LEARNING_SHARE  # of the traffic, in totals over both buckets
    seed: int = 0
    delays: tuple[float, ...] = ()  # minutes by which payoffs come late, in a figure of its own

    def grid(self, policy: str) -> tuple[float, ...]:
        """The values of ε, α or the like that a policy is tuned over."""
        given = self.values.get(parameter_name(policy))
        return default_grid(policy, self.scale) if given is None else given


def checked_settings(
    policies: Sequence[str] | None,
    sizes: Sequence[float] | None,
    values: Mapping[str, Sequence[float] | None],
    scale: float,
    repeats: int,
    tune_on: str,
    learning_share: float,
    tune_ridge: bool,
    seed: int,
    delays: Sequence[float] = (),
) -> StudySettings:
    """The settings; raises ValueError if they are not valid."""
    names = STUDIED if policies is None else tuple(dict.fromkeys(policies))
    for name in names:
        parameter_name(name)
    if BASELINE not in names:
        names = (BASELINE, *names)  # lifts are over it
    if tune_on not in (TOTAL, *BUCKETS):
        raise ValueError(f"tune_on must be 'total', 'deployment' or 'learning', got {tune_on!r}")
    check_learning_share(learning_share)
    for name in values:
        if name not in TUNED:
            raise ValueError(f"no policy is tuned by {name!r}; there are {', '.join(TUNED)}")
    check_repeats(repeats)
    return StudySettings(
        policies=names,
        sizes=SIZES if sizes is None else tuple(dict.fromkeys(map(float, sizes))),
        values={
            name: tuple(dict.fromkeys(map(float, tried)))
            for name, tried in values.items()
            if tried is not None
        },
        scale=scale,
        ridges=SEARCHED_RIDGES if tune_ridge else (),
        repeats=repeats,
        tune_on=tune_on,
        learning_share=float(learning_share),
        seed=seed,
        delays=_checked_delays(delays),
    )


def _checked_delays(delays: Sequence[float]) -> tuple[float, ...]:
    for each in delays:
        if not 0 < each <= MAX_DELAY:
            raise ValueError(
                f"a delay must be above 0 and at most {MAX_DELAY:,} minutes, got {each!r}"
            )
    return tuple(sorted(set(map(float, delays))))
