"""The policies to be evaluated: given, or trained on the first part of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from topstory.evaluation.assignment import assign_parameters
from topstory.evaluation.off_policy.weighting.targets import FixedPolicy
from topstory.evaluation.replays.warm_start import needs_exploration
from topstory.evaluation.training import NONE, PROPENSITY, train
from topstory.events import EventLog
from topstory.models.linear import LinearModel
from topstory.policies import Policy
from topstory.policies.registry import policy as policy_called

Given = str | Policy | FixedPolicy
Progress = Callable[[str, float, float], object]


class FixedPolicies(NamedTuple):
    """Fixed policies by name, and the part of the log that none of those trained here has seen."""

    policies: dict[str, Policy | FixedPolicy]
    rest: EventLog
    trained_events: int


def by_name(policies: Given | Iterable[str] | Mapping[str, Given]) -> dict[str, Given]:
    """Policies as the caller may give them, each with its name.

    >>> by_name(["ucb", "random"])
    {'ucb': 'ucb', 'random': 'random'}
    """
    if isinstance(policies, Mapping):
        found: dict[str, Given] = dict(policies)
    elif isinstance(policies, str):
        found = {policies: policies}
    elif isinstance(policies, Iterable):
        names = list(policies)
        if not all(isinstance(each, str) for each in names):
            raise TypeError("give several policies as a mapping of names: {'mine': policy, …}")
        found = {name: name for name in names}
    elif hasattr(policies, "probabilities"):
        found = {"policy": policies}
    else:
        raise TypeError(
            "a policy to be evaluated is a topstory.Policy, the name of one, or an object with "
            f"probabilities(user, pool); got {policies!r}"
        )
    if not found:
        raise ValueError("give at least one policy to evaluate")
    return found


def candidates(
    given: Mapping[str, Given],
    log: EventLog,
    train_share: float,
    seed: int,
    parameters: Mapping[str, Any],
    progress: Progress | None = None,
) -> FixedPolicies:
    """The policies, those given by name trained on the first `train_share` of the log."""
    made, learning = learners(given, seed, parameters)
    if not learning:
        return FixedPolicies(chosen(given, made), log, 0)
    cut = share_of_events(len(log), train_share)
    first = log[:cut]
    for name in learning:
        weights = weights_for(made[name], first.recorded_propensity is not None)
        made[name] = train(
            made[name], first, weights=weights, held_out=0, seed=seed, progress=progress
        ).policy
    return FixedPolicies(chosen(given, made), log[cut:], cut)


def learners(
    given: Mapping[str, Given], seed: int, parameters: Mapping[str, Any]
) -> tuple[dict[str, Policy], list[str]]:
    """The policies given by name, not yet trained; and the names of those that learn."""
    called = [each for each in given.values() if isinstance(each, str)]
    assigned = assign_parameters(called, parameters) if called else {}
    if parameters and not called:
        named = ", ".join(parameters)
        raise ValueError(f"{named}: parameters are for policies given by name, and there are none")
    made = {}
    for name, own in assigned.items():
        if needs_exploration([name]):
            raise ValueError(
                f"{name} starts from what an earlier log taught: train it with `topstory train` "
                "and evaluate the file"
            )
        made[name] = policy_called(name, seed=seed, **own)
        if made[name].model.folds:
            raise ValueError(f"{name} knows the log that is to judge it; replay shows its value")
    learning = [name for name, each in made.items() if each.model.learns]
    return made, learning


def share_of_events(events: int, train_share: float) -> int:
    """How many events policies learn from before the rest judges them.

    >>> share_of_events(100, 0.25)
    25
    """
    if not 0 < train_share < 1:
        raise ValueError(f"train_share must be between 0 and 1, got {train_share!r}")
    cut = round(train_share * events)
    if not 0 < cut < events:
        raise ValueError(f"the log has {events} events: too few to train on a part of them")
    return cut


def weights_for(policy: Policy, recorded: bool) -> str:
    """How events count in training: averages need weights where the log has propensities."""
    averages = not isinstance(policy.model, LinearModel)
    return PROPENSITY if averages and recorded else NONE


def chosen(given: Mapping[str, Given], made: Mapping[str, Policy]) -> dict[str, Any]:
    """The policies to be judged, by name."""
    return {name: made[each] if isinstance(each, str) else each for name, each in given.items()}
