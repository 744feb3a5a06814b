"""Arrays and their description in one safetensors file: versioned, exact, checksummed, no pickle.

The header's metadata holds `format`, `version`, the description as JSON, and `checksum` (BLAKE2b
over the description and the arrays).
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from topstory.files import replaced_file

Arrays = Mapping[str, npt.NDArray[Any]]
Made = TypeVar("Made")
# What a description can lead to that says anything at all.
UNUSABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
_KINDS = {"f": "F", "i": "I", "u": "U", "b": "BOOL"}  # NumPy's letters, and safetensors' names


@dataclass(frozen=True)
class Seal:
    """One kind of file."""

    kind: str  # what it holds: "policy"
    key: str  # of the description in the metadata
    version: int  # the newest that this topstory reads
    writer: str  # what writes one: "Policy.save"
    format: str  # "topstory-policy"

    def write(
        self, path: str | PathLike[str], described: Mapping[str, Any], arrays: Arrays
    ) -> None:
        """Write the file; an existing one is replaced in one step.

        Empty arrays are left out: the format cannot hold them.
        """
        text = json.dumps(described)
        kept = {
            name: np.asarray(arrays[name], order="C")
            for name in sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # aligned
            if arrays[name].size
        }
        metadata = {
            "format": self.format,
            "version": str(self.version),
            self.key: text,
            "checksum": _checksum(text, kept),
        }
        check_place(path)
        with replaced_file(Path(path)) as file:
            # Not by safetensors' `save`, which copies all, and lets no other thread run meanwhile.
            file.write(_header(kept, metadata))
            for array in kept.values():
                file.write(array.reshape(-1).view(np.uint8).data)

    def read(
        self, path: str | PathLike[str], build: Callable[[dict[str, Any], Arrays], Made]
    ) -> Made:
        """What `build` makes of the file; ValueError if the file is damaged or of another kind."""
        with self._opened(path) as (file, metadata):
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no iterator)
        text = metadata.get(self.key, "")
        if metadata.get("checksum") != _checksum(text, arrays):
            raise ValueError(f"{path}: damaged: the checksum does not match its contents")
        try:
            return build(json.loads(text), arrays)
        except UNUSABLE as error:
            raise ValueError(f"{path}: not a {self.kind} that can be loaded: {error}") from error

    def outline(self, path: str | PathLike[str]) -> tuple[Any, dict[str, tuple[int, ...]]]:
        """The description of a file, and the shapes of its arrays; it may still be damaged.

        So one can refuse what would take too much memory, before it is read.
        """
        with self._opened(path) as (file, metadata):
            shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 (no iterator)
        try:
            return json.loads(metadata.get(self.key, "")), shapes
        except UNUSABLE as error:
            raise ValueError(f"{path}: not a {self.kind} that can be loaded: {error}") from None

    @contextmanager
    def _opened(self, path: str | PathLike[str]) -> Iterator[tuple[Any, dict[str, str]]]:
        """The file, and its metadata."""
        if Path(path).is_dir():
            problem = f"it is a folder; a {self.kind} is one file"
            raise IsADirectoryError(errno.EISDIR, problem, str(path))
        try:
            with safe_open(path, framework="numpy") as file:
                metadata = file.metadata() or {}
                self._check(path, metadata)
                yield file, metadata
        except SafetensorError as error:
            raise ValueError(f"{path}: not a safetensors file, or damaged: {error}") from None
        except FileNotFoundError:
            raise
        except OSError as error:  # safetensors does not name the file
            raise OSError(f"{path}: it cannot be read as a {self.kind}: {error}") from None

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
    """Raise OSError if no file can be written at this path. Call it before long work.

    >>> check_place("nowhere/model")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] there is no folder nowhere to write it to: 'nowhere/model'
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file", str(target))
    if not target.parent.is_dir():
        problem = f"there is no folder {target.parent} to write it to"
        raise FileNotFoundError(errno.ENOENT, problem, str(target))
    if not os.access(target.parent, os.W_OK):
        problem = f"no permission to write to {target.parent}"
        raise PermissionError(errno.EACCES, problem, str(target))


def _header(arrays: Arrays, metadata: Mapping[str, str]) -> bytes:
    """What safetensors has before the arrays, which follow each other in this order."""
    described: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        bits = "" if array.dtype.kind == "b" else 8 * array.itemsize
        kind = f"{_KINDS[array.dtype.kind]}{bits}"
        described[name] = {"dtype": kind, "shape": array.shape, "data_offsets": (begin, end)}
    text = json.dumps(described, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _checksum(text: str, arrays: Arrays) -> str:
    digest = blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(
            np.asarray(array, order="C").reshape(-1).data
        )  # no copy: a model may be large
    return digest.hexdigest()
