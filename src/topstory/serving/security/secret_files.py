"""Keys that were made at the first start, kept in the data folder for its owner only."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from topstory.files import replaced_file, sync
from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import ROLES, Config, KeyConfig
from topstory.serving.security.api_keys import new_key
from topstory.serving.security.decision_ids import Signer, new_secret

SIGNING = "# Signs decision ids. The last line signs, all are accepted.\n"
KEYS = "# An API key with all roles, created at first start.\n"


def signer_of(config: Config) -> Signer:
    """Signs with the configured secrets, or with one that is made once."""
    return Signer({name: bytes.fromhex(secret) for name, secret in secrets_of(config).items()})


def secrets_of(config: Config) -> dict[str, str]:
    """The configured secrets by their ids, or one that is made once."""
    told = config.signing
    if not told:
        path = Path(config.data) / "signing.toml"
        if not path.exists():
            _write(path, f'{SIGNING}k1 = "{new_secret()}"\n')
        told = _read(path)
        if not told:
            raise BadConfig(
                f"{path}: it holds no secret: restore it from a backup; if it is removed, another "
                "is made, and ids of earlier decisions are refused"
            )
    return told


def keys_of(
    config: Config, tell: Callable[[str], None] = lambda words: None
) -> tuple[tuple[KeyConfig, ...], bool]:
    """The configured keys, or one that is made and told once; whether it was made now."""
    if config.keys:
        return config.keys, False
    path = Path(config.data) / "keys.toml"
    made = not path.exists()
    if made:
        key, digest = new_key()
        # Printed before it is stored: if this process dies here, no key is valid that nobody saw.
        tell(f"API key (all roles, shown only once): {key}")
        _write(path, KEYS + key_entry("first", digest))
    try:
        return msgspec.convert(_read(path)["keys"], tuple[KeyConfig, ...]), made
    except (KeyError, msgspec.ValidationError):
        raise BadConfig(
            f"{path}: contains no keys; remove it, and the next start creates one and prints it"
        ) from None


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
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"{path}: not a TOML file: {error}") from None


def _write(path: Path, text: str) -> None:
    """There whole or not at all, and from the beginning with nobody else's eyes on it."""
    with replaced_file(path, mode=0o600) as file:
        file.write(text.encode())
    # Again, and strictly: replaced_file accepts a file system that cannot sync folders.
    sync(path.parent)
