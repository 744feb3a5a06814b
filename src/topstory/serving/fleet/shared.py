"""What all machines of a fleet need, kept in its database.

The learner's configuration counts for all, with the secrets that its first start made, its feature
model, and the policies that pools began with. So another machine needs nothing but the URL.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from topstory.files import replaced_file
from topstory.serving.config.feature_model import FILE as FEATURES
from topstory.serving.config.schema import Config, KeyConfig
from topstory.serving.fleet.inbox import Inbox
from topstory.serving.journal.journal import JournalError

_PUT = "INSERT INTO shared VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class Secrets(msgspec.Struct, frozen=True):
    """What only services know."""

    signing: dict[str, str]
    keys: tuple[KeyConfig, ...]


def read(inbox: Inbox, name: str) -> bytes | None:
    """One of the things, if it is there."""
    rows = inbox.run("SELECT value FROM shared WHERE name = %s", name)
    return bytes(rows[0][0]) if rows else None


def is_prepared(inbox: Inbox) -> bool:
    """Whether the tables of a fleet are there: a learner makes them."""
    try:
        return bool(inbox.run("SELECT to_regclass('topstory.shared') IS NOT NULL")[0][0])
    except JournalError:
        return False


def config_of(inbox: Inbox, own: Config) -> Config | None:
    """The fleet's configuration, to listen where this machine's says; None: no learner yet."""
    body = read(inbox, "config")
    if body is None:
        return None
    found = msgspec.msgpack.decode(body, type=Config)
    return msgspec.structs.replace(
        found,
        host=own.host,
        port=own.port,
        data=own.data,
        workers=1,
        log_level=own.log_level,
        journal=msgspec.structs.replace(
            found.journal,
            url=own.journal.url,
            lock_seconds=own.journal.lock_seconds,
            degraded=own.journal.degraded,
        ),
    )


def secrets_for(inbox: Inbox, config: Config) -> Config:
    """The configuration with the fleet's secrets, where it has none of its own."""
    body = read(inbox, "secrets")
    if body is None:
        return config
    found = msgspec.msgpack.decode(body, type=Secrets)
    return msgspec.structs.replace(
        config, signing=config.signing or found.signing, keys=config.keys or found.keys
    )


def copy_files(inbox: Inbox, folder: Path) -> None:
    """Write the policies that pools began with, and the feature model, into a data folder."""
    (folder / "start").mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, value in inbox.run("SELECT name, value FROM shared WHERE name LIKE %s", "file/%"):
        path = folder / name.removeprefix("file/")
        if not path.exists() or path.read_bytes() != bytes(value):
            with replaced_file(path) as file:
                file.write(bytes(value))


Statements = list[tuple[str, tuple[str, bytes]]]


def statements(resolved: Config) -> Statements:
    """What a learner writes when it begins, once the files are there."""
    secrets = Secrets(resolved.signing, resolved.keys)
    return [
        (_PUT, ("config", msgspec.msgpack.encode(resolved))),
        (_PUT, ("secrets", msgspec.msgpack.encode(secrets))),
    ]


def files(folder: Path) -> Statements:
    """What writes the files of a data folder that others need, before a record refers to them."""
    paths = [*(folder / "start").glob("*.safetensors"), folder / FEATURES]
    return [
        (_PUT, (f"file/{path.relative_to(folder)}", path.read_bytes()))
        for path in paths
        if path.is_file()
    ]
