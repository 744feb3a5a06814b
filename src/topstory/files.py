"""Whole-or-nothing writing of files and folders, file locks, and syncing to disk."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    # Ignored: None stands for a module that this system lacks.
    fcntl = None  # type: ignore[assignment]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # Linux
_RENAME_SWAP = 2  # macOS
# Some network file systems cannot sync a folder; in some folders one may write but not read.
_CANNOT_SYNC_FOLDER = {
    *(errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EBADF),
    *(errno.EACCES, errno.EPERM),
}


@contextmanager
def replaced_file(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends without an error.

    It is on the disk by then. If the block raises, `path` stays as it was.

    Args:
        path: the file; folders above it are made if they are missing.
        mode: the permissions, less the umask. The file has them from the start: with 0o600
            nobody else can read it at any time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replaced_file(Path(folder, "note")) as file:
    ...         _ = file.write(b"whole")
    ...     Path(folder, "note").read_bytes()
    b'whole'
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path}: it is a folder; choose another name for the file")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(fresh, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
        _sync_folder_if_possible(path.parent)
    except OSError as error:
        if error.errno is None or error.filename not in (None, fresh, str(fresh)):
            raise
        # The caller does not know the temporary file.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):  # the first error is the one to report
            fresh.unlink()


def locked(path: Path) -> IO[bytes]:
    """Open a file for appending, and lock it until it is closed or this process ends.

    Raises BlockingIOError if another process holds the lock. Windows has no such locks: there,
    callers must see to it themselves that only one process writes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder, "lock")):
    ...     locked(Path(folder, "lock"))
    Traceback (most recent call last):
    ...
    BlockingIOError: ...
    """
    file = path.open("a+b")
    try:
        _flock(file.fileno())
    except BaseException:
        file.close()
        raise
    return file


def sync(path: Path) -> None:
    """Put a file, or the names that a folder lists, onto the disk; OSError if that fails."""
    if os.name != "posix" and path.is_dir():
        return  # Windows has no handle for a folder
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def replaced_folder(target: Path, check: Callable[[Path], None]) -> Iterator[Path]:
    """A new hidden folder beside `target` that takes its place when the block ends.

    `check(target)` raises if what is there must not be replaced. If the block raises, or the
    process dies, `target` stays as it was. The next writer removes what a dead process left.
    """
    # A symbolic link stays; the folder that it points to is replaced.
    given, target = target, Path(os.path.realpath(target))
    if target.exists():
        check(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    fresh, lock = target.with_name(_prefix(target) + secrets.token_hex(8)), None
    try:  # from here on an interrupt leaves nothing behind
        lock = _claim(fresh)
        yield fresh
        _sync_tree(fresh)
        _put(fresh, target, check)
        _sync_folder_if_possible(target.parent)
    except (OSError, ValueError) as error:
        _rename(error, str(fresh), str(given))
        raise
    finally:
        # What we were writing; or, once the two are swapped, the old folder.
        shutil.rmtree(fresh, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _rename(error: OSError | ValueError, hidden: str, known: str) -> None:
    """Let an error name the folder that the caller knows, not the temporary one."""
    error.args = tuple(a.replace(hidden, known) if isinstance(a, str) else a for a in error.args)
    if isinstance(error, OSError):
        for name in ("filename", "filename2"):
            if isinstance(path := getattr(error, name), str | os.PathLike):
                setattr(error, name, os.fspath(path).replace(hidden, known))


def left_aside(target: Path) -> Path:
    """Where the old folder is kept while two plain renames put the new one in its place."""
    return target.with_name(f".{target.name}.previous")


def _put(fresh: Path, target: Path, check: Callable[[Path], None]) -> None:
    try:
        os.rename(fresh, target)  # replaces nothing, or an empty folder
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES) or not target.exists():
            raise
    check(target)  # again: it may have changed since
    if _exchange(fresh, target):
        return
    # No atomic exchange on this system: between these two renames only `left_aside` is complete.
    shutil.rmtree(left_aside(target), ignore_errors=True)
    os.rename(target, left_aside(target))
    os.rename(fresh, target)
    shutil.rmtree(left_aside(target), ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step; False where the system or the file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    paths = os.fsencode(one), os.fsencode(other)
    if sys.platform.startswith("linux") and hasattr(libc, "renameat2"):
        # Ignored: libc is loaded by now; ctypes finds functions by name at run time.
        renameat2 = libc.renameat2  # type: ignore[union-attr]
        failed = renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE)
    elif sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        # Ignored: as above.
        failed = libc.renamex_np(*paths, _RENAME_SWAP)  # type: ignore[union-attr]
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(code, os.strerror(code), str(other))


def _prefix(target: Path) -> str:
    return f".{target.name}.writing-"


def _claim(fresh: Path) -> int | None:
    """Make the folder, and lock it for as long as this process lives."""
    while True:
        with suppress(FileExistsError):
            fresh.mkdir()
        # Between mkdir and lock another writer may take it for a dead process's folder. While that
        # writer removes it, the lock is busy; afterwards the folder is gone.
        with suppress(BlockingIOError):
            lock = lock_folder(fresh)
            if fresh.is_dir():
                return lock
            if lock is not None:
                os.close(lock)
        time.sleep(0.001)


def lock_folder(folder: Path) -> int | None:
    """A handle that holds the lock; None if the folder is gone, or locks are not supported.

    BlockingIOError if another writer holds it. Process ids would not do in place of locks: they
    are reused, and mean nothing in another container.
    """
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        _flock(handle)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return handle


def _flock(handle: int) -> None:
    """Take the lock; the system releases it when its holder dies."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(target: Path) -> None:
    """Remove what writers of this target left behind when they were killed."""
    if target.exists():
        shutil.rmtree(left_aside(target), ignore_errors=True)
    for folder in target.parent.iterdir():
        if folder.name.startswith(_prefix(target)):
            with suppress(BlockingIOError):  # its writer is alive
                lock = lock_folder(folder)
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)


def _sync_tree(folder: Path) -> None:
    """Put everything onto the disk, files before the folders that list them."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(parent, name))
        _sync_folder_if_possible(Path(parent))


def _sync_folder_if_possible(folder: Path) -> None:
    try:
        sync(folder)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC_FOLDER:
            raise
