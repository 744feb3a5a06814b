"""From a TOML file and the environment to a `Config`; errors name the key."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from topstory.policies import REGISTRY, Policy
from topstory.policies.registry import policy as named_policy
from topstory.serving.config.feature_model import load_feature_model
from topstory.serving.config.schema import SERVED, Config, PolicyConfig, TrafficConfig

PREFIX = "TOPSTORY_"
_IGNORED = {"TOPSTORY_DEBUG"}  # the command's own


class BadConfig(ValueError):
    """The configuration does not say what it should; the message names the key."""


def read_config(path: Path | None, environment: Mapping[str, str] | None = None) -> Config:
    """The configuration of a file (None: all defaults), overridden by the environment.

    `TOPSTORY_PORT=80` overrides `port`, `TOPSTORY_LIMITS__BATCH=10` overrides `limits.batch`.

    >>> read_config(None, {"TOPSTORY_TRAFFIC__LEARNING": "1.5"})
    Traceback (most recent call last):
    ...
    topstory.serving.config.loading.BadConfig: traffic.learning: Expected `float` <= 1.0 (from \
TOPSTORY_TRAFFIC__LEARNING)
    """
    told: dict[str, Any] = {}
    where = "the defaults" if path is None else str(path)
    if path is not None:
        try:
            told = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadConfig(f"{path}: not a TOML file: {error}") from None
    given = os.environ if environment is None else environment
    sources = _override(told, given)
    while True:
        try:
            config = msgspec.convert(told, Config)
            break
        except msgspec.ValidationError as error:
            key, what = _located(str(error))
            if key in sources and re.match(r"Expected `str( \| null)?`, got", what):
                _put(told, key.split("."), given[sources[key]])  # a folder's name may be a number
                continue
            raise BadConfig(f"{key}: {what} (from {sources.get(key, where)})") from None
    _check(config)
    return config


def _put(place: dict[str, Any], parts: list[str], value: Any) -> None:
    for part in parts[:-1]:
        place = place[part]
    place[parts[-1]] = value


def _override(told: dict[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Put the environment's values in their places; which variable a key came from."""
    sources: dict[str, str] = {}
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in _IGNORED:
            continue
        parts = variable.removeprefix(PREFIX).lower().split("__")
        place = told
        for part in parts[:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise BadConfig(f"{'.'.join(parts)}: {part} has no keys (from {variable})")
        place[parts[-1]] = _value(environment[variable])
        sources[".".join(parts)] = variable
    return sources


def _value(text: str) -> Any:
    """What the text would be in TOML; else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _located(message: str) -> tuple[str, str]:
    """The decoder's message as a key and what is wrong with it.

    >>> _located("Object contains unknown field `prot` - at `$.limits`")
    ('limits.prot', 'there is no such key')
    """
    what, _, place = message.partition(" - at `$")
    key = place.rstrip("`").removeprefix(".")
    unknown = re.search(r"unknown field `(?P<name>[^`]*)`", what)
    if unknown is not None:
        return f"{key}.{unknown['name']}".removeprefix("."), "there is no such key"
    return key or "the file", what


def _check(config: Config) -> None:
    """What types alone cannot say."""
    if not config.pools:
        raise BadConfig("pools: give at least one, such as [pools.front]")
    _check_traffic("traffic", config.traffic)
    _check_policy("policy", config.policy)
    for name, pool in config.pools.items():
        if pool.traffic is not None:
            _check_traffic(f"pools.{name}.traffic", pool.traffic)
        if pool.policy is not None:
            _check_policy(f"pools.{name}.policy", pool.policy)
    for field in ("name", "sha256"):
        values = [getattr(key, field) for key in config.keys]
        for place, value in enumerate(values):
            if value in values[:place]:
                raise BadConfig(f"keys[{place}].{field}: an earlier key has {value!r} too")
    for key, secret in config.signing.items():
        if not re.fullmatch(r"[A-Za-z0-9]{1,8}", key):
            raise BadConfig(f"signing.{key}: an id is 1 to 8 letters or digits")
        if not re.fullmatch(r"(?:[0-9a-fA-F]{2}){32,}", secret):
            raise BadConfig(f"signing.{key}: a secret is 32 bytes or more, in hex")


def check_files(config: Config) -> None:
    """Whether the files that a start would read can be read."""
    for name, pool in config.pools.items():
        start = config.policy_of(name).start
        # It is read when the pool is first opened, and may be gone after that.
        if start is not None and not (Path(config.data) / "start" / f"{name}.safetensors").exists():
            key = "policy" if pool.policy is None else f"pools.{name}.policy"
            try:
                Policy.load(start)
            except (OSError, ValueError) as error:
                raise BadConfig(f"{key}.start: {error}") from None
    if config.features is not None:
        try:
            load_feature_model(config.features)
        except (OSError, ValueError) as error:
            raise BadConfig(f"features: {error}") from None


def _check_traffic(key: str, traffic: TrafficConfig) -> None:
    total = traffic.learning + traffic.deployment + traffic.uniform
    if abs(total - 1.0) > 1e-9:
        raise BadConfig(f"{key}: learning + deployment + uniform must be 1, got {total:g}")


def policy_parameters(told: PolicyConfig) -> dict[str, float]:
    """Those parameters that were given."""
    given = {name: getattr(told, name) for name in SERVED}
    return {name: value for name, value in given.items() if value is not None}


def _check_policy(key: str, told: PolicyConfig) -> None:
    entry = REGISTRY.get(told.name)
    if entry is None or entry.model.needs_log:
        listed = ", ".join(name for name, each in REGISTRY.items() if not each.model.needs_log)
        raise BadConfig(f"{key}.name: no policy {told.name!r} can be served; there are {listed}")
    for name, value in policy_parameters(told).items():
        if not isfinite(value):
            raise BadConfig(f"{key}.{name}: it must be finite, got {value}")
    if told.start is not None:
        return  # the file says what the model is
    if "offset" in entry.model_parameters:
        raise BadConfig(
            f"{key}.start: {told.name} needs offsets known beforehand: give a file of Policy.save"
        )
    try:
        named_policy(told.name, seed=told.seed, **policy_parameters(told))
    except (TypeError, ValueError) as error:
        raise BadConfig(f"{key}: {error}") from None
