"""A policy as one sealed file: its description, and the arrays of its model's state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Annotated, Any

import msgspec

from topstory.models.priors.prior import ARRAYS as PRIOR_ARRAYS
from topstory.models.priors.storage import build as build_prior
from topstory.models.priors.storage import describe as describe_prior
from topstory.policies.policy import Policy
from topstory.policies.registry import EXPLORERS, MODELS
from topstory.sealed import Arrays, Seal

PRIOR = "prior."  # before the names of its arrays
# Version 2 has hybrid's general form.
_SEAL = Seal(kind="policy", key="policy", version=2, writer="Policy.save", format="topstory-policy")


Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Id = Annotated[str, msgspec.Meta(max_length=1_000)]


class Part(msgspec.Struct, frozen=True):
    """A model or an explorer: its name, and its numbers."""

    name: str
    parameters: dict[str, Any]


class Description(msgspec.Struct, frozen=True):
    """What a file says of its policy; all but `trials`, `prior` and `feature_model` is required."""

    model: Part
    explorer: Part
    callables: list[str]
    seed: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
    decisions: Count
    dimension: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None
    articles: list[Id | None]
    trials: Count = 0
    feature_model: str | None = None


def save(policy: Policy, path: str | PathLike[str]) -> None:
    """Write the policy; a file that is there already is replaced in one step."""
    seal = replace(_SEAL, version=policy.model.stored_version)
    seal.write(path, describe_whole(policy), state_of(policy))


def describe_whole(policy: Policy) -> dict[str, Any]:
    """Everything except arrays."""
    model = policy.model
    prior = {} if model.prior is None else {"prior": describe_prior(model.prior)}
    known = {"dimension": model.dimension, "articles": model.roster.ids}
    return describe(policy) | known | prior


def state_of(policy: Policy) -> Arrays:
    """The arrays of its model, and of the prior that it has."""
    model = policy.model
    arrays = {name: array.copy() for name, array in model.arrays().items()}
    if model.prior is not None:
        arrays |= {f"{PRIOR}{name}": getattr(model.prior, name) for name in PRIOR_ARRAYS}
    return arrays


def describe(policy: Policy) -> dict[str, Any]:
    """Everything except arrays and articles: what `build` needs to create the policy again."""
    model, explorer = policy.model, policy.explorer
    known: dict[str, Any] = (
        {} if policy.feature_model is None else {"feature_model": policy.feature_model}
    )
    if policy.half_life is not None:
        known |= {"half_life": policy.half_life, "tick": policy.tick}
    return known | {
        "model": {"name": model.name, "parameters": model.parameters()},
        "callables": model.callables(),
        "explorer": {"name": explorer.name, "parameters": explorer.parameters()},
        "seed": policy.seed,
        "decisions": policy.decisions,
        "trials": policy.trials,
    }


def load(path: str | PathLike[str], callables: Mapping[str, Any]) -> Policy:
    """Read the policy; ValueError says what is wrong with the file."""
    return _SEAL.read(path, lambda described, arrays: build(described, arrays, callables))


def outline(path: str | PathLike[str]) -> tuple[Description, dict[str, tuple[int, ...]]]:
    """What a file describes, and the shapes of its arrays, which are not read; or ValueError."""
    described, shapes = _SEAL.outline(path)
    try:
        return _checked(described), shapes
    except ValueError as error:
        raise ValueError(f"{path}: not a policy that can be loaded: {error}") from None


def _checked(described: Any) -> Description:
    """The description, if its parts are of the right kinds; ValueError says what is wrong."""
    found = msgspec.convert(described, Description)
    ids = [article for article in found.articles if article is not None]
    if len(set(ids)) < len(ids):
        raise ValueError("it has an article twice")
    "".join(ids).encode()  # a lone surrogate could not be answered
    return found


def build(described: dict[str, Any], arrays: Arrays, callables: Mapping[str, Any]) -> Policy:
    """Create the described policy; the description also has its `articles` and `dimension`."""
    _checked(described)
    wanted = set(described["callables"])
    if wanted != set(callables):
        names = ", ".join(sorted(wanted ^ set(callables)))
        raise ValueError(
            f"{names}: a function is not stored, so pass it to load if and only if it was passed "
            "when the policy was created"
        )
    stored = described["model"]
    given = dict(callables)
    if "prior" in described:
        own = {n.removeprefix(PRIOR): array for n, array in arrays.items() if n.startswith(PRIOR)}
        given["prior"] = build_prior(described["prior"], own)
    model = MODELS[stored["name"]].load().from_stored(stored["parameters"], given)
    model.restore(described["articles"], described["dimension"], arrays)
    stored = described["explorer"]
    explorer = EXPLORERS[stored["name"]].load()(**stored["parameters"])
    policy = Policy(model, explorer, described["seed"], described.get("half_life"))
    policy.tick = described.get("tick")
    policy.decisions = described["decisions"]
    policy.trials = described.get("trials", 0)  # not in files of the first version
    policy.feature_model = described.get("feature_model")
    return policy
