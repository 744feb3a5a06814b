"""Arrays and their description as one safetensors file: versioned, exact, checked, no pickle.

The header's metadata has `format`, `version`, the description as JSON, and `checksum` (BLAKE2b over
that and the arrays).
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

Arrays = Mapping[str, npt.NDArray[Any]]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Seal:
    """One kind of file."""

    kind: str  # what it holds: "policy"
    key: str  # the description's place in the metadata
    version: int  # the newest that is known
    writer: str  # what writes one: "Policy.save"
    format: str  # "topstory-policy"

    def write(
        self, path: str | PathLike[str], described: Mapping[str, Any], arrays: Arrays
    ) -> None:
        """Write the file; one that is there already is replaced in one step.

        Arrays without entries are left out: the format has no place for them.
        """
        text = json.dumps(described)
        kept = {name: array for name, array in arrays.items() if array.size}
        metadata = {
            "format": self.format,
            "version": str(self.version),
            self.key: text,
            "checksum": _checksum(text, kept),
        }
        check_place(path)
        target = Path(path)
        unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with unfinished.open("wb") as file:
                file.write(to_bytes(dict(kept), metadata))
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        except OSError as error:
            if error.errno is None:
                raise
            # Who asked for the target knows nothing of the unfinished file.
            raise OSError(error.errno, error.strerror, str(target)) from error
        finally:
            with suppress(OSError):  # the first error is the one to tell
                unfinished.unlink()

    def read(
        self, path: str | PathLike[str], build: Callable[[dict[str, Any], Arrays], Made]
    ) -> Made:
        """What `build` makes of the file; ValueError says what is wrong with it."""
        if Path(path).is_dir():
            told = f"it is a folder; a {self.kind} is one file"
            raise IsADirectoryError(errno.EISDIR, told, str(path))
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                self._check(path, metadata)
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
        except SafetensorError as error:
            raise ValueError(f"{path}: not a safetensors file, or damaged: {error}") from None
        except FileNotFoundError:
            raise
        except OSError as error:  # safetensors does not say of which file
            raise OSError(f"{path}: it cannot be read as a {self.kind}: {error}") from None
        text = metadata.get(self.key, "")
        if metadata.get("checksum") != _checksum(text, arrays):
            raise ValueError(f"{path}: damaged: the checksum does not match its contents")
        try:
            return build(json.loads(text), arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: not a {self.kind} that can be loaded: {error}") from error

    def _check(self, path: str | PathLike[str], metadata: Mapping[str, str]) -> None:
        if metadata.get("format") != self.format:
            raise ValueError(f"{path}: not a topstory {self.kind}; {self.writer} writes one")
        version = metadata.get("version", "")
        if not version.isdigit() or not 1 <= int(version) <= self.version:
            raise ValueError(
                f"{path}: {self.kind} format {version or 'unknown'}, but this topstory reads up to "
                f"{self.version}; a newer topstory may read it"
            )


def check_place(path: str | PathLike[str]) -> None:
    """Refuse a path at which no file can be written: worth asking before long work.

    >>> check_place("nowhere/model")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] there is no folder nowhere to write it to: 'nowhere/model'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file", str(target))
    if not target.parent.is_dir():
        told = f"there is no folder {target.parent} to write it to"
        raise FileNotFoundError(errno.ENOENT, told, str(target))
    if not os.access(target.parent, os.W_OK):
        told = f"nothing may be written to {target.parent}"
        raise PermissionError(errno.EACCES, told, str(target))


def _checksum(text: str, arrays: Arrays) -> str:
    digest = blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
