"""A policy as one safetensors file: versioned, exact, checked, without pickle.

The header's metadata has `format`, `version`, `policy` (JSON with all that is not an array) and
`checksum` (BLAKE2b over that and the arrays). The arrays are the model's state.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from topstory.explorers import EpsilonGreedy, Explorer, Greedy, Uniform, UpperConfidence
from topstory.models import Model
from topstory.policies.policy import Policy
from topstory.policies.registry import REGISTRY

FORMAT = "topstory-policy"
VERSION = 1

_MODELS: dict[str, type[Model]] = {e.model.name: e.model for e in REGISTRY.values()}
_EXPLORERS: dict[str, type[Explorer]] = {
    explorer.name: explorer for explorer in (EpsilonGreedy, Greedy, Uniform, UpperConfidence)
}

Arrays = Mapping[str, npt.NDArray[Any]]


def save(policy: Policy, path: str | PathLike[str]) -> None:
    """Write the policy; a file that is there already is replaced in one step."""
    model = policy.model
    arrays = {name: array.copy() for name, array in model.arrays().items() if array.size}
    described = describe(policy) | {
        "dimension": model.dimension,
        "articles": model.roster.ids,
    }
    text = json.dumps(described)
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "policy": text,
        "checksum": _checksum(text, arrays),
    }
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(to_bytes(arrays, metadata))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def describe(policy: Policy) -> dict[str, Any]:
    """All that is neither an array nor an article: what `build` makes it of again."""
    model, explorer = policy.model, policy.explorer
    return {
        "model": {"name": model.name, "parameters": model.parameters()},
        "callables": model.callables(),
        "explorer": {"name": explorer.name, "parameters": explorer.parameters()},
        "seed": policy.seed,
        "decisions": policy.decisions,
    }


def load(path: str | PathLike[str], callables: Mapping[str, Any]) -> Policy:
    """Read the policy; ValueError says what is wrong with the file."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ValueError(f"{path}: not a topstory policy; Policy.save writes one")
            version = metadata.get("version", "")
            if not version.isdigit() or not 1 <= int(version) <= VERSION:
                raise ValueError(
                    f"{path}: policy format {version or 'unknown'}, but this topstory reads up to "
                    f"{VERSION}; a newer topstory may read it"
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
    except SafetensorError as error:
        raise ValueError(f"{path}: not a safetensors file, or damaged: {error}") from None
    text = metadata.get("policy", "")
    if metadata.get("checksum") != _checksum(text, arrays):
        raise ValueError(f"{path}: damaged: the checksum does not match its contents")
    try:
        return build(json.loads(text), arrays, callables)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a policy that can be loaded: {error}") from error


def build(described: dict[str, Any], arrays: Arrays, callables: Mapping[str, Any]) -> Policy:
    """The policy that was described, with its `articles` and `dimension` beside."""
    wanted = set(described["callables"])
    if wanted != set(callables):
        names = ", ".join(sorted(wanted ^ set(callables)))
        raise ValueError(
            f"{names}: a function is not stored, so give it to load again if and only if it was "
            "given when the policy was made"
        )
    made = described["model"]
    model = _MODELS[made["name"]](**made["parameters"], **callables)
    model.restore(described["articles"], described["dimension"], arrays)
    explorer = _EXPLORERS[described["explorer"]["name"]](**described["explorer"]["parameters"])
    policy = Policy(model, explorer, described["seed"])
    policy.decisions = described["decisions"]
    return policy


def _checksum(text: str, arrays: Arrays) -> str:
    digest = blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
