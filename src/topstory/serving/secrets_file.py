"""Keys that were made at the first start, kept in the data folder for its owner only."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from topstory.serving.config import ROLES, Config, KeyConfig
from topstory.serving.keys import new_key
from topstory.serving.signing import Signer, new_secret

SIGNING = "# Signs decision ids. The last line signs, all are accepted.\n"
KEYS = "# A key with all roles, made at the first start.\n"


def signer_of(config: Config) -> Signer:
    """Signs with the configured secrets, or with one that is made once."""
    told = config.signing
    if not told:
        path = Path(config.data) / "signing.toml"
        if not path.exists():
            _write(path, f'{SIGNING}k1 = "{new_secret()}"\n')
        told = _read(path)
    return Signer({name: bytes.fromhex(secret) for name, secret in told.items()})


def keys_of(config: Config) -> tuple[tuple[KeyConfig, ...], str | None]:
    """The configured keys, or one that is made once: then the key itself, to be told."""
    if config.keys:
        return config.keys, None
    path = Path(config.data) / "keys.toml"
    made = None
    if not path.exists():
        made, digest = new_key()
        _write(path, KEYS + key_entry("first", digest))
    return msgspec.convert(_read(path)["keys"], tuple[KeyConfig, ...]), made


def key_entry(name: str, digest: str, roles: tuple[str, ...] = ROLES) -> str:
    """What a configuration says of a key.

    >>> print(key_entry("web", "0" * 4, ("decide",)), end="")
    [[keys]]
    name = "web"
    sha256 = "0000"
    roles = ["decide"]
    """
    listed = ", ".join(f'"{role}"' for role in roles)
    return f'[[keys]]\nname = "{name}"\nsha256 = "{digest}"\nroles = [{listed}]\n'


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def _write(path: Path, text: str) -> None:
    """There from the beginning with nobody else's eyes on it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
