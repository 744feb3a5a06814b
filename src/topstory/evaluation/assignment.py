"""Which policies are compared, and which of the given parameters each of them takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from topstory.evaluation.replays.warm_start import needs_offset
from topstory.policies.entries import Setting
from topstory.policies.registry import PAPER, REGISTRY, without_prior

ALL = "all"  # stands for the policies of the paper

Parameters = dict[str, Setting]


def policy_names(policies: str | Iterable[str]) -> list[str]:
    """Each policy once, with `all` spelled out.

    >>> policy_names(["ucb", "ucb"]), policy_names("all") == list(PAPER)
    (['ucb'], True)
    """
    given = [policies] if isinstance(policies, str) else list(policies)
    names = [name for each in given for name in (PAPER if each == ALL else (each,))]
    return list(dict.fromkeys(names))


def assign_parameters(
    policies: str | Iterable[str], parameters: Mapping[str, Setting | None]
) -> dict[str, Parameters]:
    """Each policy, with those of the parameters that it takes; None counts as not given.

    >>> assign_parameters(["ucb", "egreedy"], {"alpha": 0.3, "epsilon": 0.1, "ridge": None})
    {'ucb': {'alpha': 0.3}, 'egreedy': {'epsilon': 0.1}}
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    assigned: dict[str, Parameters] = {}
    for name in policy_names(policies):
        if name not in REGISTRY:
            raise ValueError(f"no policy is called {name!r}; there are {', '.join(REGISTRY)}")
        assigned[name] = {key: value for key, value in given.items() if key in _taken(name)}
    if not assigned:
        raise ValueError("a comparison needs at least one policy")
    if unused := unused_parameters(assigned, given):
        raise ValueError(f"{unused[0]} does not apply to {', '.join(assigned)}")
    return assigned


def unused_parameters(policies: Iterable[str], parameters: Iterable[str]) -> list[str]:
    """The names of those parameters that none of the policies takes."""
    taken = {key for name in policies for key in _taken(name)}
    return [key for key in parameters if key not in taken]


def _taken(name: str) -> tuple[str, ...]:
    return tuple(each.name for each in REGISTRY[name].parameters)


def check_policies(assigned: Mapping[str, Parameters], seed: int) -> None:
    """Refuse a bad value of a parameter before any work is done."""
    for name, own in assigned.items():
        without_prior(name, seed=seed, **own, **({"offset": {}} if needs_offset(name) else {}))
