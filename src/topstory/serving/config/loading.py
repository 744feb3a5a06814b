"""Reads a `Config` from a TOML file and the environment. Errors name the key."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path
from typing import Any

import msgspec

from topstory.models import Prior
from topstory.policies import REGISTRY, Policy
from topstory.policies.registry import without_prior
from topstory.serving.config.feature_model import load_feature_model
from topstory.serving.config.schema import SERVED, Config, PolicyConfig, TrafficConfig

PREFIX = "TOPSTORY_"
_IGNORED = {"TOPSTORY_DEBUG"}  # belongs to the command line


class BadConfig(ValueError):
    """The configuration is wrong; the message names the key."""


def read_config(path: Path | None, environment: Mapping[str, str] | None = None) -> Config:
    """The configuration from a file (None: all defaults), overridden by the environment.

    `TOPSTORY_PORT=80` overrides `port`, `TOPSTORY_LIMITS__BATCH=10` overrides `limits.batch`.

    >>> read_config(None, {"TOPSTORY_TRAFFIC__LEARNING": "1.5"})
    Traceback (most recent call last):
    ...
    topstory.serving.config.loading.BadConfig: traffic.learning: Expected `float` <= 1.0 (from \
TOPSTORY_TRAFFIC__LEARNING)
    """
    document: dict[str, Any] = {}
    if path is not None:
        try:
            document = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadConfig(f"{path}: not a TOML file: {error}") from None
    config = _convert(document, {}, "the defaults" if path is None else str(path))
    variables = _override(document, os.environ if environment is None else environment)
    if variables:
        config = _convert(document, variables, "the environment", strict=False)
    _check(config)
    return config


def _convert(
    document: dict[str, Any], variables: Mapping[str, str], source: str, strict: bool = True
) -> Config:
    try:
        return msgspec.convert(document, Config, strict=strict)
    except msgspec.ValidationError as error:
        key, what = _located(str(error))
        raise BadConfig(f"{key}: {what} (from {variables.get(key, source)})") from None


def _override(document: dict[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Put the environment's values into the document; returns the variable of each key."""
    variables: dict[str, str] = {}
    for variable in sorted(environment):
        if not variable.startswith(PREFIX) or variable in _IGNORED:
            continue
        parts = variable.removeprefix(PREFIX).lower().split("__")
        table = document
        for part in parts[:-1]:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise BadConfig(f"{'.'.join(parts)}: {part} is not a table (from {variable})")
        table[parts[-1]] = _value(environment[variable])
        variables[".".join(parts)] = variable
    return variables


def _value(text: str) -> Any:
    """Arrays, tables and quoted strings as in TOML; anything else is left to `msgspec.convert`."""
    if text[:1] in ("[", "{", '"', "'"):
        with suppress(tomllib.TOMLDecodeError):
            return tomllib.loads(f"value = {text}")["value"]
    return text


def _located(message: str) -> tuple[str, str]:
    """Split a message of msgspec into the key and what is wrong with it.

    >>> _located("Object contains unknown field `prot` - at `$.limits`")
    ('limits.prot', 'unknown key')
    """
    what, _, place = message.partition(" - at `$")
    key = place.rstrip("`").removeprefix(".")
    unknown = re.search(r"unknown field `(?P<name>[^`]*)`", what)
    if unknown is not None:
        return f"{key}.{unknown['name']}".removeprefix("."), "unknown key"
    return key or "the file", what


def _check(config: Config) -> None:
    """Check what types alone cannot express."""
    if not config.pools:
        raise BadConfig("pools: configure at least one, such as [pools.front]")
    _check_traffic("traffic", config.traffic)
    _check_policy("policy", config.policy, config.limits.payoffs)
    for name, pool in config.pools.items():
        if pool.traffic is not None:
            _check_traffic(f"pools.{name}.traffic", pool.traffic)
        if pool.policy is not None:
            _check_policy(f"pools.{name}.policy", pool.policy, config.limits.payoffs)
    for field in ("name", "sha256"):
        values = [getattr(key, field) for key in config.keys]
        for place, value in enumerate(values):
            if value in values[:place]:
                raise BadConfig(f"keys[{place}].{field}: an earlier key also has {value!r}")
    payoffs = config.limits.payoffs
    if payoffs is not None and not -inf < payoffs[0] < payoffs[1] < inf:
        raise BadConfig(f"limits.payoffs: the lowest must be below the highest, got {payoffs}")
    for key, secret in config.signing.items():
        if not re.fullmatch(r"[A-Za-z0-9]{1,8}", key):
            raise BadConfig(f"signing.{key}: an id must be 1 to 8 letters or digits")
        if not re.fullmatch(r"(?:[0-9a-fA-F]{2}){32,}", secret):
            raise BadConfig(f"signing.{key}: a secret must be 32 bytes or more, in hex")


def check_files(config: Config) -> None:
    """Check that the files which a start reads can be read."""
    for name, pool in config.pools.items():
        wanted = config.policy_of(name)
        # Read when the pool is first opened; they may be deleted after that.
        if (Path(config.data) / "start" / f"{name}.safetensors").exists():
            continue
        key = "policy" if pool.policy is None else f"pools.{name}.policy"
        for field, load in (("start", Policy.load), ("prior", Prior.load)):
            if (path := getattr(wanted, field)) is not None:
                try:
                    check_servable(load(path))
                except (OSError, ValueError) as error:
                    raise BadConfig(f"{key}.{field}: {error}") from None
    if config.features is not None:
        try:
            load_feature_model(config.features)
        except (OSError, ValueError) as error:
            raise BadConfig(f"features: {error}") from None


def check_servable(loaded: Policy | Prior) -> None:
    """ValueError for a policy that the service cannot run."""
    if isinstance(loaded, Policy) and loaded.half_life is not None:
        raise ValueError(
            f"the policy has a half-life of {loaded.half_life:g} hours, and the service moves no "
            "clock; train one without"
        )


def _check_traffic(key: str, traffic: TrafficConfig) -> None:
    total = traffic.learning + traffic.deployment + traffic.uniform
    if abs(total - 1.0) > 1e-9:
        raise BadConfig(f"{key}: learning + deployment + uniform must be 1, got {total:g}")


def policy_parameters(config: PolicyConfig) -> dict[str, Any]:
    """The parameters that are set."""
    given = {name: getattr(config, name) for name in SERVED}
    return {name: value for name, value in given.items() if value is not None}


def _check_policy(key: str, config: PolicyConfig, payoffs: tuple[float, float] | None) -> None:
    used = config.used_name
    entry = REGISTRY.get(used)
    if entry is None or entry.model.needs_log:
        listed = ", ".join(name for name, each in REGISTRY.items() if not each.model.needs_log)
        raise BadConfig(f"{key}.name: {used!r} cannot be served; choose one of {listed}")
    for name, value in policy_parameters(config).items():
        if not isinstance(value, str) and not isfinite(value):
            raise BadConfig(f"{key}.{name}: must be finite, got {value}")
    if config.prior is not None and (config.start is not None or not entry.from_prior):
        why = "start defines the model" if config.start else "its name does not end in -prior"
        raise BadConfig(f"{key}.prior: {used} takes none: {why}")
    if config.start is not None:
        return  # the file defines the model
    if entry.from_prior and config.prior is None:
        raise BadConfig(
            f"{key}.prior: {used} starts from what an earlier log taught; set a file "
            "written by topstory prior"
        )
    if "offset" in entry.model_parameters:
        raise BadConfig(
            f"{key}.start: {used} needs offsets known in advance; set a file written by Policy.save"
        )
    try:
        made = without_prior(used, seed=config.seed, **policy_parameters(config))
        made.model.check_payoffs(*(payoffs or (0.0, 1.0)))
    except (TypeError, ValueError) as error:
        raise BadConfig(f"{key}: {error}") from None
