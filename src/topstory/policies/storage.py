"""A policy as one sealed file: its description, and the arrays of its model's state."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from topstory.models.priors.prior import ARRAYS as PRIOR_ARRAYS
from topstory.models.priors.storage import build as build_prior
from topstory.models.priors.storage import describe as describe_prior
from topstory.policies.policy import Policy
from topstory.policies.registry import EXPLORERS, MODELS
from topstory.sealed import Arrays, Seal

PRIOR = "prior."  # before the names of its arrays
_SEAL = Seal(kind="policy", key="policy", version=1, writer="Policy.save", format="topstory-policy")


def save(policy: Policy, path: str | PathLike[str]) -> None:
    """Write the policy; a file that is there already is replaced in one step."""
    model = policy.model
    described = describe(policy) | {
        "dimension": model.dimension,
        "articles": model.roster.ids,
    }
    arrays = {name: array.copy() for name, array in model.arrays().items()}
    if model.prior is not None:
        described["prior"] = describe_prior(model.prior)
        arrays |= {f"{PRIOR}{name}": getattr(model.prior, name) for name in PRIOR_ARRAYS}
    _SEAL.write(path, described, arrays)


def describe(policy: Policy) -> dict[str, Any]:
    """Everything except arrays and articles: what `build` needs to create the policy again."""
    model, explorer = policy.model, policy.explorer
    known = {} if policy.feature_model is None else {"feature_model": policy.feature_model}
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


def build(described: dict[str, Any], arrays: Arrays, callables: Mapping[str, Any]) -> Policy:
    """Create the described policy; the description also has its `articles` and `dimension`."""
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
    policy = Policy(model, explorer, described["seed"])
    policy.decisions = described["decisions"]
    policy.trials = described.get("trials", 0)  # not in files of the first version
    policy.feature_model = described.get("feature_model")
    return policy
