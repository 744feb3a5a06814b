"""Files and folders that are replaced whole or not at all, locks, and syncing to disk."""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
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


@contextmanager
def replaced_file(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A fresh file that takes the place of `path` when the block ends without an error.

    It has the permissions `mode`, less the umask, from the start.
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
        sync(path.parent)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def replaced_folder(target: Path, check: Callable[[Path], None]) -> Iterator[Path]:
    """A fresh hidden folder beside `target` that takes its place when the block ends.

    `check(target)` raises if what is there must not be replaced. If the block raises, or the
    process dies, the target stays as it was; what a dead process left is removed by the next.
    """
    target = Path(os.path.realpath(target))  # a symbolic link stays, and what it points to changes
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
        sync(target.parent)
    finally:
        # Either what we were writing, or, once swapped, the old log.
        shutil.rmtree(fresh, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def left_aside(target: Path) -> Path:
    """Where the old folder waits while two plain renames put the new one in its place."""
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
    # No atomic exchange on this system: between these two lines only `left_aside` is whole.
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
    """Make the folder, locked for as long as this process lives."""
    while True:
        fresh.mkdir()
        lock = _lock(fresh)
        # Between mkdir and lock another writer may have taken it for a dead one's and removed it.
        if fresh.is_dir():
            return lock
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """A lock that the system drops when its holder dies; None if it is held, or there is none.

    Process ids would not do: they are used again, and mean nothing in another container.
    """
    if fcntl is None:
        return None
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _sweep(target: Path) -> None:
    """Remove what writers of this target left behind when they were killed."""
    if target.exists():
        shutil.rmtree(left_aside(target), ignore_errors=True)
    for folder in target.parent.iterdir():
        if folder.name.startswith(_prefix(target)):
            lock = _lock(folder)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _sync_tree(folder: Path) -> None:
    """Onto the disk, files before the folders that list them."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(parent, name))
        sync(Path(parent))


def sync(path: Path) -> None:
    """Put a file or a folder onto the disk."""
    if os.name != "posix" and path.is_dir():
        return  # Windows has no handle for a folder
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        with suppress(OSError) if path.is_dir() else nullcontext():
            os.fsync(handle)
    finally:
        os.close(handle)
