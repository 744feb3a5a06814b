"""Files and folders are replaced whole or not at all; locks; syncing to disk."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.events.making import same, uniform_log

from topstory import files
from topstory.events import EventLog

OLD = uniform_log(40, [["a", "b"]])
NEW = uniform_log(60, [["c", "d", "e"]])

WRITER = """
import os, signal, sys
import numpy as np
from topstory.events import EventLog
from topstory.events.folder import write
from topstory import files

target, moment = sys.argv[1:]
def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)
if moment == "exchange":
    files._exchange = die
elif moment == "sync":
    files._sync_tree = die
elif moment == "contents":
    write.write_contents = die
elif moment == "after":
    exchange = files._exchange
    files._exchange = lambda *paths: exchange(*paths) and die()
n = 200_000
log = EventLog.from_arrays(
    np.random.default_rng(0).random((n, 6)), [["x", "y"]], np.zeros(n, int), np.full(n, "y"),
    np.zeros(n), timestamps=np.arange(n),
)
print("ready", flush=True)
for _ in range(1000):
    log.write(target)
"""


def hidden(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


def start(target: Path, moment: str) -> "subprocess.Popen[str]":
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, target, moment], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    return writer


@pytest.mark.parametrize("moment", ["contents", "sync", "exchange"])
def test_a_write_killed_before_the_exchange_leaves_the_old_log(tmp_path: Path, moment: str) -> None:
    OLD.write(tmp_path / "log")
    with start(tmp_path / "log", moment) as writer:
        assert writer.wait() == -signal.SIGKILL
    assert same(EventLog.read(tmp_path / "log"), OLD)
    assert len(hidden(tmp_path)) == 1
    NEW.write(tmp_path / "log")  # sweeps up
    assert same(EventLog.read(tmp_path / "log"), NEW)
    assert hidden(tmp_path) == []


def test_a_write_killed_after_the_exchange_leaves_the_new_log(tmp_path: Path) -> None:
    OLD.write(tmp_path / "log")
    with start(tmp_path / "log", "after") as writer:
        assert writer.wait() == -signal.SIGKILL
    assert len(EventLog.read(tmp_path / "log")) == 200_000
    NEW.write(tmp_path / "log")
    assert same(EventLog.read(tmp_path / "log"), NEW)
    assert hidden(tmp_path) == []


def test_no_kill_9_at_any_moment_damages_a_log(tmp_path: Path) -> None:
    for delay in np.linspace(0, 0.4, 5):
        OLD.write(tmp_path / "log")
        with start(tmp_path / "log", "any") as writer:
            time.sleep(delay)
            writer.kill()
        log = EventLog.read(tmp_path / "log")
        assert same(log, OLD) or len(log) == 200_000
    OLD.write(tmp_path / "log")
    assert os.listdir(tmp_path) == ["log"]


def test_a_living_writer_s_folder_is_not_swept_up(tmp_path: Path) -> None:
    with files.replaced_folder(tmp_path / "log", lambda _: None) as fresh:
        (fresh / "half").touch()
        OLD.write(tmp_path / "log")
        assert (fresh / "half").exists()
        (fresh / "log.json").write_text("whole")
    assert (tmp_path / "log" / "half").exists()


def test_a_write_that_fails_leaves_the_old_log_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from topstory.events.folder import write

    OLD.write(tmp_path / "log")

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for step in ("_write_events", "write_contents"):
        with monkeypatch.context() as patch:
            patch.setattr(write, step, full)
            with pytest.raises(OSError, match="No space left"):
                NEW.write(tmp_path / "log")
        assert same(EventLog.read(tmp_path / "log"), OLD)
        assert hidden(tmp_path) == []


def test_what_is_not_a_log_is_never_replaced(tmp_path: Path) -> None:
    for name, text in (("thesis.tex", "years of work"), ("log.json", '{"format": "another"}')):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_text(text)
        with pytest.raises(FileExistsError, match="not empty and not a topstory log"):
            NEW.write(folder)
        assert os.listdir(folder) == [name]
        assert (folder / name).read_text() == text
    (tmp_path / "file").write_text("text")
    with pytest.raises(FileExistsError, match="it is a file; choose another place"):
        NEW.write(tmp_path / "file")
    assert hidden(tmp_path) == []


def test_a_log_beside_something_else_is_not_replaced(tmp_path: Path) -> None:
    OLD.write(tmp_path / "log")
    (tmp_path / "log" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"besides a topstory log it holds 'notes.txt'"):
        NEW.write(tmp_path / "log")
    assert same(EventLog.read(tmp_path / "log"), OLD)


def test_a_log_of_a_later_version_may_be_replaced(tmp_path: Path) -> None:
    OLD.write(tmp_path / "log")
    path = tmp_path / "log" / "log.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 9'))
    NEW.write(tmp_path / "log")
    assert same(EventLog.read(tmp_path / "log"), NEW)


def test_two_renames_do_where_there_is_no_exchange(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_exchange", lambda *paths: False)
    OLD.write(tmp_path / "log")
    NEW.write(tmp_path / "log")
    assert same(EventLog.read(tmp_path / "log"), NEW)
    assert hidden(tmp_path) == []


def test_a_log_left_aside_by_a_kill_between_two_renames_is_pointed_to(tmp_path: Path) -> None:
    OLD.write(tmp_path / "log")
    (tmp_path / "log").rename(tmp_path / ".log.previous")
    with pytest.raises(FileNotFoundError, match=r"rename \.log\.previous to log"):
        EventLog.read(tmp_path / "log")
    NEW.write(tmp_path / "log")
    assert same(EventLog.read(tmp_path / "log"), NEW)


def test_another_log_s_leftovers_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".other.writing-0123").mkdir()
    NEW.write(tmp_path / "log")
    assert hidden(tmp_path) == [".other.writing-0123"]


def test_logs_may_be_written_to_one_place_at_once(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as threads:
        for _ in threads.map(lambda log: log.write(tmp_path / "log"), [OLD, NEW] * 10):
            pass
    last = EventLog.read(tmp_path / "log")
    assert same(last, OLD) or same(last, NEW)
    assert hidden(tmp_path) == []


def test_a_writer_whose_new_folder_is_swept_up_makes_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock_folder = files.lock_folder
    sweeper: list[int | None] = []
    claimed: list[int | None] = []

    def contended(folder: Path) -> int | None:
        """Another writer took the lock first, and removes the folder only later."""
        if not sweeper:
            sweeper.append(lock_folder(folder))
        elif sweeper[0] is not None:
            folder.rmdir()
            os.close(sweeper[0])
            sweeper[0] = None
        claimed.append(lock_folder(folder))
        return claimed[-1]

    monkeypatch.setattr(files, "lock_folder", contended)
    NEW.write(tmp_path / "log")
    assert same(EventLog.read(tmp_path / "log"), NEW)
    assert claimed[0] is None  # the folder was gone
    assert claimed[1] is not None


def test_an_interrupt_at_the_very_beginning_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(folder: Path) -> None:
        assert folder.is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "lock_folder", interrupt)
    with pytest.raises(KeyboardInterrupt):
        NEW.write(tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_only_if_its_block_succeeds(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with files.replaced_file(path) as file:
        file.write(b"old")
    with pytest.raises(ZeroDivisionError), files.replaced_file(path) as file:
        file.write(b"half" * (1 // 0))
    assert path.read_bytes() == b"old"
    with files.replaced_file(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file"]


def test_a_private_file_is_private_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(mode=0o644)
    with files.replaced_file(path, mode=0o600) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_names_the_file_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*args: Any) -> None:
        names = [] if step == "fsync" else [args[0]]
        raise OSError(errno.ENOSPC, "No space left on device", *names)

    path = tmp_path / "file"
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left") as caught, files.replaced_file(path):
        pass
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def fail_to_sync_folders(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(code, os.strerror(code))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", refuse)


def test_a_folder_that_cannot_be_synced_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code in (errno.EIO, errno.EINVAL):
        fail_to_sync_folders(code, monkeypatch)
        with pytest.raises(OSError, match=os.strerror(code)):
            files.sync(tmp_path)


def test_replacing_does_without_syncing_folders_only_where_that_is_not_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_to_sync_folders(errno.EINVAL, monkeypatch)
    OLD.write(tmp_path / "log")
    with files.replaced_file(tmp_path / "file") as file:
        file.write(b"old")
    fail_to_sync_folders(errno.EIO, monkeypatch)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        NEW.write(tmp_path / "log")
    failing = pytest.raises(OSError, match=os.strerror(errno.EIO))
    with failing, files.replaced_file(tmp_path / "file") as file:
        file.write(b"new")
    assert same(EventLog.read(tmp_path / "log"), OLD)


def test_a_lock_has_one_holder_and_ends_with_it(tmp_path: Path) -> None:
    with files.locked(tmp_path / "lock"), pytest.raises(BlockingIOError):
        files.locked(tmp_path / "lock")
    files.locked(tmp_path / "lock").close()


def test_an_error_names_the_folder_that_was_asked_for(tmp_path: Path) -> None:
    """Not the hidden one that is written meanwhile: not by a file in it, nor in a sentence."""

    def failing(failure: Callable[[Path], object]) -> str:
        folder = files.replaced_folder(tmp_path / "log", lambda _: None)
        with pytest.raises((OSError, ValueError)) as caught, folder as fresh:
            failure(fresh)
        return str(caught.value)

    def refuse(path: Path) -> None:
        raise ValueError(f"{path / 'events'}: damaged")

    assert failing(lambda fresh: (fresh / "none" / "file").write_text("x")).endswith(
        f"'{tmp_path / 'log' / 'none' / 'file'}'"
    )
    assert failing(refuse) == f"{tmp_path / 'log' / 'events'}: damaged"
    assert hidden(tmp_path) == []
