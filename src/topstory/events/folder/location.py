"""Where a log is: in a folder of this machine, or in an object store (`s3://…`, `gs://…`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs")
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://")


class RemotePath:
    """A place in an object store, with as much of `pathlib.Path` as reading a log needs."""

    def __init__(self, shown: str, store: pyarrow.fs.FileSystem, path: str) -> None:
        self._shown, self._store, self._path = shown, store, path

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self._shown}/{name}", self._store, f"{self._path}/{name}")

    def __str__(self) -> str:
        return self._shown

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._path.rpartition("/")[2]

    @property
    def suffixes(self) -> list[str]:
        """Of the name, such as .csv."""
        return Path(self.name).suffixes

    def is_dir(self) -> bool:
        """Whether objects have names that begin with this path."""
        return self._info().type is pyarrow.fs.FileType.Directory

    def is_file(self) -> bool:
        """Whether there is an object of this name."""
        return self._info().type is pyarrow.fs.FileType.File

    def exists(self) -> bool:
        """Whether there is anything."""
        return self._info().type is not pyarrow.fs.FileType.NotFound

    def version(self) -> tuple[int, ...]:
        """Changes when the object does."""
        info = self._info()
        return () if info.mtime_ns is None else (info.mtime_ns, info.size or 0)

    def read_bytes(self) -> bytes:
        """All of an object."""
        if not self.exists():
            raise FileNotFoundError(f"{self}: there is no such object")
        with self._naming(), self._store.open_input_stream(self._path) as stream:
            return bytes(stream.read())

    def open(self) -> pa.NativeFile:
        """The object, to be read from anywhere in it."""
        with self._naming():
            return self._store.open_input_file(self._path)

    def _info(self) -> pyarrow.fs.FileInfo:
        with self._naming():
            info = self._store.get_file_info(self._path)
            assert isinstance(info, pyarrow.fs.FileInfo)
            return info

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Errors of the store say where, in one line."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise OSError(
                f"{self}: cannot be read ({reason}); check the address and the credentials"
            ) from None


Location = Path | RemotePath


def check_local(folder: str | PathLike[str]) -> None:
    """Raise ValueError if a log is to be written anywhere but to a folder.

    >>> check_local("s3://bucket/logs")
    Traceback (most recent call last):
    ...
    ValueError: s3://bucket/logs: logs are written to folders of this machine; copy the folder there
    """
    text = fspath(folder)
    found = re.match(r"(?P<scheme>[a-z0-9]+):/+", text)  # a Path has one slash of the two
    if found is not None and found["scheme"] in SCHEMES:
        shown = f"{found['scheme']}://{text[found.end() :]}"
        raise ValueError(
            f"{shown}: logs are written to folders of this machine; copy the folder there"
        )


def location(folder: str | PathLike[str]) -> Location:
    """The place that a path or a URL names.

    >>> location("logs/2009").name
    '2009'
    >>> location("ftp://example/logs")
    Traceback (most recent call last):
    ...
    ValueError: ftp://example/logs: topstory reads logs from folders, and from s3://…, gs://…, \
gcs://…, abfs://…, abfss://… and hdfs://…; copy it to one of these
    """
    text = fspath(folder)
    found = _URL.match(text)
    if found is None:
        return Path(folder)
    parts = urlsplit(text)
    shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path.rstrip('/')}"
    if parts.password is not None:
        # A report names its log, and would show them.
        raise ValueError(
            f"{shown}: its URL has credentials; give them by the environment, such as "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if parts.scheme == "file":
        return Path(parts.path)
    if parts.scheme not in SCHEMES:
        *most, last = (f"{scheme}://…" for scheme in SCHEMES)
        raise ValueError(
            f"{shown}: topstory reads logs from folders, and from {', '.join(most)} and {last}; "
            "copy it to one of these"
        )
    try:
        store, path = pyarrow.fs.FileSystem.from_uri(text)
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0].replace(text, shown).rstrip(".")
        raise ValueError(f"{shown}: not an address of a log ({reason})") from None
    return RemotePath(shown, store, path.rstrip("/"))
