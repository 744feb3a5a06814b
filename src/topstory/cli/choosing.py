"""Which policies were asked for, and which parameters each of them gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import typer

from topstory.policies.registry import REGISTRY, policy

Parameters = dict[str, float]


def chosen(
    names: Sequence[str], given: Mapping[str, float | None], seed: int
) -> dict[str, Parameters]:
    """Each policy that was asked for, and those of the given parameters that it takes.

    Wrong usage: an unknown name, or a parameter that none of the policies takes.

    >>> chosen(["ucb,egreedy"], {"alpha": 0.3, "epsilon": 0.1, "ridge": None}, seed=0)
    {'ucb': {'alpha': 0.3}, 'egreedy': {'epsilon': 0.1}}
    """
    wanted = [name for text in names for name in listed(text) or ()]
    if not wanted:
        raise typer.BadParameter("name at least one", param_hint="--policy")
    asked: dict[str, Parameters] = {}
    for name in [n for each in wanted for n in (REGISTRY if each == "all" else (each,))]:
        if name not in REGISTRY:
            raise typer.BadParameter(
                f"none is called {name!r}; there are all, {', '.join(REGISTRY)}",
                param_hint="--policy",
            )
        entry = REGISTRY[name]
        takes = (*entry.model_parameters, *entry.explorer_parameters)
        asked[name] = {k: v for k, v in given.items() if v is not None and k in takes}
    if given.get("alpha") is not None and given.get("delta") is not None:
        raise typer.BadParameter(
            "give an alpha or the delta that makes one, not both", param_hint="--delta"
        )
    for parameter, value in given.items():
        if value is not None and not any(parameter in takes for takes in asked.values()):
            raise meaningless(f"--{parameter.replace('_', '-')}", asked)
    for name, parameters in asked.items():  # a bad value is told before a long log is read
        policy(name, seed=seed, **parameters, **({"offset": {}} if warm(name) else {}))
    return asked


def listed(text: str | None) -> list[str] | None:
    """Names with commas between them; None if nothing was said.

    >>> listed("ucb, egreedy")
    ['ucb', 'egreedy']
    """
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def meaningless(option: str, asked: Iterable[str]) -> typer.BadParameter:
    """The error that none of the policies takes an option."""
    return typer.BadParameter(f"it means nothing to {', '.join(asked)}", param_hint=option)


def warm(name: str) -> bool:
    """Whether the policy needs offsets that are known beforehand."""
    return "offset" in REGISTRY[name].model_parameters
