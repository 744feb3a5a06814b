"""Secrets that the first start creates in the data folder, readable by the owner only."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from topstory.files import replaced_file, sync
from topstory.serving.api.endpoints import ROLES
from topstory.serving.config.loading import BadConfig
from topstory.serving.config.schema import Config, KeyConfig
from topstory.serving.security.api_keys import new_key
from topstory.serving.security.decision_ids import Signer, new_secret
from topstory.serving.security.sessions import Sessions

SIGNING_COMMENT = "# Secrets for decision ids. The last one signs, all are accepted.\n"
KEYS_COMMENT = "# A key with all roles, created at the first start.\n"


def signer_of(config: Config) -> Signer:
    """A signer with the configured secrets, or with the one that the first start created."""
    return Signer({name: bytes.fromhex(secret) for name, secret in secrets_of(config).items()})


def sessions_of(config: Config) -> Sessions:
    """Sessions of the studio, by the secret that signs decision ids."""
    secret = bytes.fromhex(list(secrets_of(config).values())[-1])
    return Sessions(secret, config.pages.session_hours * 3600)


def secrets_of(config: Config) -> dict[str, str]:
    """The configured secrets by id, or one that the first start creates."""
    found = config.signing
    if not found:
        path = Path(config.data) / "signing.toml"
        if not path.exists():
            _write(path, f'{SIGNING_COMMENT}k1 = "{new_secret()}"\n')
        found = _read(path)
        if not found:
            raise BadConfig(
                f"{path}: the file has no secret. Restore it from a backup. If you delete it, the "
                "next start creates a new secret, and ids of earlier decisions are rejected"
            )
    return found


def keys_of(
    config: Config, print_line: Callable[[str], None] = lambda words: None
) -> tuple[tuple[KeyConfig, ...], bool]:
    """The configured keys, or one created and printed at the first start; whether it is new."""
    if config.keys:
        return config.keys, False
    path = Path(config.data) / "keys.toml"
    new = not path.exists()
    if new:
        key, digest = new_key()
        # Before it is stored: if the process ends here, no key is in use that nobody has seen.
        print_line(f"API key (all roles, shown only once): {key}")
        _write(path, KEYS_COMMENT + key_entry("first", digest))
    try:
        return msgspec.convert(_read(path)["keys"], tuple[KeyConfig, ...]), new
    except (KeyError, msgspec.ValidationError):
        raise BadConfig(
            f"{path}: the file has no keys. Delete it, and the next start creates and prints one"
        ) from None


def key_entry(name: str, digest: str, roles: tuple[str, ...] = ROLES) -> str:
    """The lines of a configuration for a key.

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
    """Replace the file whole; nobody but the owner can read it at any time."""
    with replaced_file(path, mode=0o600) as file:
        file.write(text.encode())
    # Again, and strictly: replaced_file accepts a file system that cannot sync folders.
    sync(path.parent)
